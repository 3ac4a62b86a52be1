package worker

import (
	"context"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// TestWorker_spans: one root span per job, linked to the trace the operation came with; the handler's own spans are its children (spec V2).
func TestWorker_spans(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(sdk.WithSyncer(seen))
	cfg := fast()
	cfg.TracerProvider = provider
	inside := make(chan trace.SpanContext, 1)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		inside <- trace.SpanContextFromContext(ctx)
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	w.start(mux, cfg)
	w.wait(w.gw.add("flight.reserve", job("op-1", offer)), "completed")
	w.until("span ended", func() bool { return len(seen.GetSpans()) == 1 })

	span := seen.GetSpans()[0]
	if span.Name != "process flight.reserve" || span.Parent.IsValid() {
		t.Errorf("span %q with parent %v, want a root named after the job type", span.Name, span.Parent)
	}
	if got := <-inside; got.SpanID() != span.SpanContext.SpanID() {
		t.Error("the handler's context does not carry the span")
	}
	attrs := map[string]string{}
	for _, a := range span.Attributes {
		attrs[string(a.Key)] = a.Value.String()
	}
	for name, want := range map[string]string{"operation_id": "op-1", "outcome": "SUCCESS"} {
		if attrs[name] != want {
			t.Errorf("attribute %s = %q, want %q", name, attrs[name], want)
		}
	}
	for _, name := range []string{"process_instance_id", "business_key", "correlation_id", "step_name"} {
		if _, ok := attrs[name]; !ok {
			t.Errorf("attribute %s is missing", name)
		}
	}
	if len(span.Links) != 1 || !span.Links[0].SpanContext.IsRemote() {
		t.Errorf("links %v, want one to the operation's trace", span.Links)
	}
}
