package generate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

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

// travel is a mux with the handlers of all three travel sagas.
func travel(t *testing.T) *worker.Mux {
	t.Helper()
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
	return mux
}

// TestModelsAndHandlersAgree holds the shipped models against the shipped handlers (spec B6): every job type of a model has a
// handler, and every code that one side names is known to the other.
func TestModelsAndHandlersAgree(t *testing.T) {
	t.Parallel()
	mux := travel(t)
	if err := errors.Join(tourbooking.CheckTourBooking(mux), refund.CheckRefund(mux), ticketing.CheckTicketing(mux)); err != nil {
		t.Error(err)
	}
	for _, c := range slices.Concat(tourbooking.TourBookingCodes(), refund.RefundCodes(), ticketing.TicketingCodes()) {
		if !slices.Contains(mux.Types(), c.JobType) {
			t.Errorf("element %q: no handler for job type %q", c.Element, c.JobType)
		}
		if perSecond, cost := mux.Expected(c.JobType); perSecond <= 0 || cost <= 0 { // spec W10
			t.Errorf("job type %q: the handler declares no throughput with Expect", c.JobType)
		}
	}
}

// A code that only the model knows, and one that only the handler knows, each fail the check (spec B6).
func TestModelsAndHandlersAgree_not(t *testing.T) {
	t.Parallel()
	mux := travel(t)
	for _, tt := range []struct {
		codes worker.ModelCodes
		want  string
	}{
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Boundary: []string{refund.CodeRefundRefused, "LOST"}, Any: true}, "the model catches LOST, which the handler does not declare"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay}, "the handler throws REFUND_REFUSED, which nothing in the model catches"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Throws: []string{}, Any: true}, "which the model does not declare in journeyman:errors"},
		{worker.ModelCodes{Element: "refundPay", JobType: refund.JobRefundPay, Throws: []string{refund.CodeRefundRefused, "LOST"}, Any: true}, "the model declares LOST in journeyman:errors, the handler does not throw it"},
	} {
		if err := mux.CheckCodes("refund.bpmn", []worker.ModelCodes{tt.codes}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %s", tt.codes, err, tt.want)
		}
	}
}
