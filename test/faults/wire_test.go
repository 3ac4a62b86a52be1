package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// wireFault is one fault of the line between worker and engine, for the calls about one element.
type wireFault struct {
	method  string // a gRPC method of Zeebe
	element string // what follows the saga's id in the operation's; "" = the start message
	kind    string
}

func (w wireFault) String() string { return w.method + " of " + w.element + " " + w.kind }

const (
	lostReply    = "executed, reply lost"
	lostDeadline = "executed, times out"
	unavailable  = "unavailable, 3 times"
	exhausted    = "resource exhausted, 8 times"
	falseGone    = "not found although it is there"
	twiceGiven   = "given out twice"
	lostBatch    = "lost on its way"
)

// install puts the fault on the line for one saga.
func (w wireFault) install(t *traffic, sagaID string) {
	operation := sagaID
	if w.element != "" {
		operation += ":" + w.element
	}
	f := &wire{method: w.method, operation: operation, times: 1}
	after := func(code codes.Code) {
		f.do = func(ctx context.Context, next func(context.Context) (any, error)) (any, error) {
			if _, err := next(ctx); err != nil {
				return nil, err
			}
			return nil, status.Error(code, "the reply was lost")
		}
	}
	instead := func(code codes.Code) {
		f.do = func(context.Context, func(context.Context) (any, error)) (any, error) {
			return nil, status.Error(code, "by the test")
		}
	}
	switch w.kind {
	case lostReply:
		after(codes.Unavailable)
	case lostDeadline:
		after(codes.DeadlineExceeded)
	case unavailable:
		f.times = 3
		instead(codes.Unavailable)
	case exhausted:
		f.times = 8
		instead(codes.ResourceExhausted)
	case falseGone:
		instead(codes.NotFound)
	case twiceGiven:
		f.twice = true
	case lostBatch:
		f.drop = true
	}
	t.put(f)
}

// wirePlans are sagas that meet one fault of the line each, at every kind of answer.
func wirePlans() []plan {
	tour, back := tourbooking.TypeName, refund.TypeName
	refused := cell{step{tour, "hotel", "reserve", forward}, refuses}
	failing := cell{step{tour, "flight", "reserve", forward}, failsOnce}
	declined := cell{step{tour, "payment", "authorize", forward}, refuses}
	reinstated := cell{step{back, "hotel", "refund", forward}, refuses}
	answers := []string{lostReply, lostDeadline, unavailable, exhausted, falseGone}
	handing := []string{twiceGiven, lostBatch}
	var plans []plan
	add := func(saga string, cells []cell, method string, kinds []string, elements ...string) {
		for _, e := range elements {
			for _, k := range kinds {
				plans = append(plans, plan{saga: saga, cells: cells, wires: []wireFault{{method, e, k}}})
			}
		}
	}
	add(tour, nil, "PublishMessage", answers[:4], "")
	add(tour, nil, "CompleteJob", answers, "begin", "flightReserve:flight", "hotelReserve:hotel", "paymentAuthorize", "bookingConfirm", "paymentCapture", "close")
	add(tour, nil, "ActivateJobs", handing, "begin", "flightReserve:flight", "hotelReserve:hotel", "paymentAuthorize", "bookingConfirm", "paymentCapture", "close")
	add(tour, []cell{refused}, "ThrowError", answers, "hotelReserve:hotel")
	add(tour, []cell{failing}, "FailJob", answers, "flightReserve:flight")
	add(tour, []cell{declined}, "CompleteJob", answers, "giveUpFailure", "flightReserve:flight:undo", "hotelReserve:hotel:undo", "undoRestFailure")
	add(tour, []cell{declined}, "ActivateJobs", handing, "giveUpFailure", "flightReserve:flight:undo", "hotelReserve:hotel:undo", "undoRestFailure")
	add(back, nil, "CompleteJob", answers, "segmentRefund:1", "refundApprove", "refundPay")
	add(back, nil, "ActivateJobs", handing, "segmentRefund:2", "refundApprove", "refundPay")
	add(back, []cell{reinstated}, "CompleteJob", answers, "undoRestFailure")
	return plans
}

// TestWire plays faults of the line between worker and engine: lost replies behind every kind of answer, refusals before
// they were executed, jobs given out twice or lost. None of them may change how a saga ends, and NOT_FOUND above all
// must never undo what stands (path rule 14).
func TestWire(t *testing.T) {
	s := setup(t)
	runs := s.play(sample(t, wirePlans(), sampledWires), 1)
	var hits []string
	for _, f := range s.traffic.faults {
		if f.times > 0 && (f.drop || f.twice || f.do != nil) && !f.seen() {
			hits = append(hits, fmt.Sprintf("%s of %s", f.method, f.operation))
		}
	}
	slices.Sort(hits)
	if len(hits) > 0 {
		t.Errorf("%d faults were never hit, for example %s", len(hits), hits[0])
	}
	for _, r := range runs {
		t.Logf("%s: %s", r.plan, s.result(r))
	}
	s.finish(runs)
}

func (w *wire) seen() bool {
	select {
	case <-w.hit:
		return true
	default:
		return false
	}
}
