package worker

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/vitrip/journeyman/outcome"
)

// tracerName names the instrumentation.
const tracerName = "github.com/vitrip/journeyman/worker"

// startSpan begins the span of one job (spec V2). It is a root of its own with a link to the trace that the operation came
// with: a saga lives for days, and one endless trace serves nobody.
func (w *Worker) startSpan(ctx context.Context, m Meta) (context.Context, trace.Span) {
	opts := []trace.SpanStartOption{
		trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindConsumer),
	}
	if sc := remote(m.Traceparent); sc.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sc}))
	}
	ctx, span := w.tracer.Start(ctx, "process "+m.Type, opts...)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.Int64("process_instance_id", m.ProcessInstanceKey),
			attribute.String("business_key", m.BusinessKey),
			attribute.String("operation_id", m.OperationID),
			attribute.String("correlation_id", m.CorrelationID),
			attribute.String("saga_id", m.SagaID),
			attribute.String("step_name", m.ElementID),
			attribute.String("job_type", m.Type),
		)
	}
	return ctx, span
}

// remote reads a W3C traceparent; the zero SpanContext when it is not one.
func remote(traceparent string) trace.SpanContext {
	carrier := propagation.MapCarrier{"traceparent": strings.TrimSpace(traceparent)}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}

// endSpan closes the span with the outcome class. A retry that will come again is not an error of the process.
func endSpan(span trace.Span, res result) {
	class := outcome.Success
	if res.err != nil {
		class = res.err.Class
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.String("outcome", string(class)))
	}
	switch {
	case res.kind == dropped:
		span.SetAttributes(attribute.String("left", res.reason))
	case class == outcome.Fatal:
		span.SetStatus(codes.Error, res.err.Reason)
	}
	span.End()
}
