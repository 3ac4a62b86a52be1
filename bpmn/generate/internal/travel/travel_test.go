package travel_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn/generate/internal/travel"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// noSagas stands for *sagas.Sagas: nothing runs here.
type noSagas struct{}

var errNotRun = errors.New("not run in this test")

func (noSagas) Decide(context.Context, *outbox.Tx, string, sagas.Decision) error { return errNotRun }

func (noSagas) StartTx(context.Context, *outbox.Tx, sagas.StartRequest) (string, error) {
	return "", errNotRun
}

// TestModelsAndHandlersAgree holds the shipped models against the shipped handlers (spec B6): every job type of a model has a
// handler, and every code that one side names is known to the other.
func TestModelsAndHandlersAgree(t *testing.T) {
	t.Parallel()
	c, err := supplier.New("http://127.0.0.1:1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	mux := worker.NewMux()
	err = errors.Join(
		tourbooking.Install(mux, tourbooking.Config{Flight: c, Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
		refund.Install(mux, refund.Config{Flight: c, Hotel: c, Transfer: c, Payment: c, Sagas: noSagas{}}),
		ticketing.Install(mux, ticketing.Config{Flight: c, Sagas: noSagas{}, CallbackURL: "http://127.0.0.1:1/callback", CallbackSecret: []byte("0123456789abcdef")}),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(travel.CheckTourBooking(mux), travel.CheckRefund(mux), travel.CheckTicketing(mux)); err != nil {
		t.Error(err)
	}
	for _, c := range slices.Concat(travel.TourBookingCodes(), travel.RefundCodes(), travel.TicketingCodes()) {
		if !slices.Contains(mux.Types(), c.JobType) {
			t.Errorf("element %q: no handler for job type %q", c.Element, c.JobType)
		}
	}
}
