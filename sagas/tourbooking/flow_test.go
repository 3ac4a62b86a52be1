package tourbooking_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

const (
	reserve   = suppliers.Action(suppliers.Reserve)
	authorize = suppliers.Action(suppliers.Authorize)
)

func (st *stage) wantEffects(want map[string]int) {
	st.Helper()
	if d := cmp.Diff(want, st.effects()); d != "" {
		st.Errorf("effects at the suppliers (-want +got):\n%s", d)
	}
}

func (st *stage) wantEnd(d sagas.Detail, state, reason string, booking tourbooking.State) {
	st.Helper()
	if d.State != state || d.Reason != reason || st.bookingState() != booking {
		st.Errorf("saga %s because %q, booking %s, want %s %q %s; ledger %+v", d.State, d.Reason, st.bookingState(), state, reason, booking, d.Steps)
	}
}

func TestBooking_succeedsAndIsTicketed(t *testing.T) {
	st := setup(t, short{})
	st.world.Script(booked, "flight", suppliers.Action(suppliers.Ticket), suppliers.Twice())
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.ended(id)
	tickets := st.ended(sagas.OperationID(tenant, ticketing.TypeName, id, 1))
	st.wantEnd(tickets, "completed", "", tourbooking.Ticketed)
	st.wantEffects(map[string]int{
		"flight reserve": 1, "hotel reserve": 1, "transfer reserve": 1, "payment authorize": 1, "payment capture": 1, "flight ticket": 1,
	})
	want := []string{
		"tour.booking.quoted", "tour.booking.segment_confirmed", "tour.booking.segment_confirmed", "tour.booking.held",
		"tour.booking.payment_authorized", "tour.booking.confirmed", "tour.booking.ticketing_started", "tour.booking.ticketed",
	}
	if d := cmp.Diff(want, st.told("tour.booking.")); d != "" {
		t.Errorf("events of the booking (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"payment.settlement.authorized", "payment.settlement.captured"}, st.told("payment.")); d != "" {
		t.Errorf("settlements (-want +got):\n%s", d)
	}
}

func TestBooking_hotelSoldOut(t *testing.T) {
	st := setup(t, short{})
	others := make(chan struct{})
	st.world.Script(booked, "hotel", reserve, suppliers.Refuse("SOLD_OUT").When(others))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.eventually("flight and transfer are reserved", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && len(d.Steps) == 2
	})
	close(others)
	st.wantEnd(st.ended(id), "failed", models.CodeSoldOut, tourbooking.Compensated)
	st.wantEffects(map[string]int{"flight reserve": 1, "flight cancel": 1, "transfer reserve": 1, "transfer cancel": 1})
}

func TestBooking_paymentDeclined_undoneInTheOrderOfTheModel(t *testing.T) {
	st := setup(t, short{})
	st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED"))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.wantEnd(st.ended(id), "failed", models.CodePaymentDeclined, tourbooking.Compensated)
	var order []string
	for _, e := range st.world.Ledger() {
		if e.Kind == suppliers.Cancel {
			order = append(order, e.Segment)
		}
	}
	if d := cmp.Diff([]string{"transfer", "hotel", "flight"}, order); d != "" {
		t.Errorf("cancelled (-want +got):\n%s", d)
	}
}

// A supplier acts and never answers: it is asked, not called again, although it ignores keys.
func TestBooking_hotelActsAndSaysNothing(t *testing.T) {
	st := setup(t, short{call: 200 * time.Millisecond})
	st.world.Script(booked, "hotel", reserve, suppliers.TimeoutAfter())
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.wantEnd(st.ended(id), "completed", "", st.bookingState())
	if n := st.effects()["hotel reserve"]; n != 1 {
		t.Errorf("%d rooms, want 1", n)
	}
}

// The supplier cannot be asked within the step's SLA: the model's follow-up task finds out.
func TestBooking_followUpFindsTheReservation(t *testing.T) {
	st := setup(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
	st.world.Script(booked, "flight", reserve, suppliers.TimeoutAfter().Always())
	st.world.Script(booked, "flight", suppliers.Ask, suppliers.Fail(8))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	d := st.ended(id)
	if d.State != "completed" {
		t.Fatalf("saga %s because %s", d.State, d.Reason)
	}
	followed := false
	for _, s := range d.Steps {
		followed = followed || s.JobType == models.JobFlightFollowUp
	}
	if n := st.effects()["flight reserve"]; n != 1 || !followed {
		t.Errorf("%d flights, follow-up in the ledger %v, want 1 and true; ledger %+v", n, followed, d.Steps)
	}
}

// What the follow-up found is undone like any other effect.
func TestBooking_followUpIsUndone(t *testing.T) {
	st := setup(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
	st.world.Script(booked, "flight", reserve, suppliers.TimeoutAfter().Always())
	st.world.Script(booked, "flight", suppliers.Ask, suppliers.Fail(8))
	st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED"))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.wantEnd(st.ended(id), "failed", models.CodePaymentDeclined, tourbooking.Compensated)
	for _, segment := range []string{"flight", "hotel", "transfer"} {
		if n := st.effects()[segment+" cancel"]; n != 1 {
			t.Errorf("%s: %d cancels, want 1", segment, n)
		}
	}
}

func TestBooking_followUpFindsNothing(t *testing.T) {
	st := setup(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
	st.world.Script(booked, "flight", reserve, suppliers.TimeoutBefore().Always())
	st.world.Script(booked, "flight", suppliers.Ask, suppliers.Fail(8))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	d := st.ended(id)
	if d.State != "failed" || d.Reason != models.CodeNotReserved {
		t.Errorf("saga %s because %s, want failed because %s", d.State, d.Reason, models.CodeNotReserved)
	}
	if n := st.effects()["flight reserve"]; n != 0 {
		t.Errorf("%d flights, want none", n)
	}
}

func TestBooking_cancelledWhileItRuns(t *testing.T) {
	st := setup(t, short{})
	release := make(chan struct{})
	st.world.Script(booked, "payment", authorize, suppliers.LandLate(release))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.eventually("the payment is asked", func() bool { return st.world.Requests(booked, "payment", authorize) > 0 })
	st.cancel(id)
	st.eventually("the saga is decided", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && d.Decision == sagas.Cancelled
	})
	close(release)
	st.wantEnd(st.ended(id), "failed", "cancelled", tourbooking.Cancelled)
	for _, segment := range []string{"flight", "hotel", "transfer"} {
		if got := st.effects(); got[segment+" reserve"] != 1 || got[segment+" cancel"] != 1 {
			t.Errorf("%s: %v, want reserved and cancelled once", segment, got)
		}
	}
	st.eventually("nothing is blocked on the card", func() bool {
		got := st.effects()
		return got["payment authorize"] == got["payment void"]
	})
}

func TestBooking_deadlinePasses(t *testing.T) {
	st := setup(t, short{})
	release := make(chan struct{})
	st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED").When(release))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.eventually("the payment is asked", func() bool { return st.world.Requests(booked, "payment", authorize) > 0 })
	st.eng.AdvanceClock(31 * time.Minute)
	st.eventually("the saga is decided", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && d.Decision == sagas.Expired
	})
	close(release)
	st.wantEnd(st.ended(id), "expired", "deadline", tourbooking.Expired)
}

func TestBooking_stepTimesOut(t *testing.T) {
	st := setup(t, short{})
	release := make(chan struct{})
	st.world.Script(booked, "hotel", reserve, suppliers.Late(release))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.eventually("all three are reserved at their suppliers", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && len(d.Steps) == 2 && st.effects()["hotel reserve"] == 1
	})
	st.eng.AdvanceClock(11 * time.Minute)
	st.eventually("the saga is decided", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && d.Decision == sagas.Failed
	})
	close(release)
	if d := st.ended(id); d.State != "failed" || d.Reason != tourbooking.CodeStepTimedOut {
		t.Errorf("saga %s because %s, want failed because %s", d.State, d.Reason, tourbooking.CodeStepTimedOut)
	}
	st.eventually("no reservation stands", func() bool {
		got := st.effects()
		return got["hotel cancel"] == 1 && got["flight cancel"] == 1 && got["transfer cancel"] == 1
	})
}

func TestBooking_captureRefusedGoesToAPerson(t *testing.T) {
	st := setup(t, short{})
	st.world.Script(booked, "payment", suppliers.Action(suppliers.Capture), suppliers.Refuse("CAPTURE_REFUSED"))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.eventually("the booking is sold and the capture was refused", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		if err != nil || d.Decision != sagas.Completed {
			return false
		}
		for _, s := range d.Steps {
			if s.JobType == models.JobPaymentCapture && s.Code == models.CodeCaptureRefused {
				return true
			}
		}
		return false
	})
	if got := st.effects(); got["flight cancel"]+got["hotel cancel"]+got["transfer cancel"]+got["payment void"] != 0 {
		t.Errorf("something was undone past the pivot: %v", got)
	}
}

func TestBooking_sameNumberTwice(t *testing.T) {
	st := setup(t, short{})
	st.ended(st.post(tourbooking.TypeName, "k1", goodTour))
	second := st.ended(st.post(tourbooking.TypeName, "k2", goodTour))
	if second.State != "failed" || second.Reason != tourbooking.CodeBookingExists {
		t.Errorf("saga %s because %s, want failed because %s", second.State, second.Reason, tourbooking.CodeBookingExists)
	}
	if n := st.effects()["flight reserve"]; n != 1 {
		t.Errorf("%d flights, want 1", n)
	}
}

// sold books and waits until the money is taken, then gives the body of a refund of everything.
func (st *stage) sold() string {
	st.Helper()
	id := st.post(tourbooking.TypeName, "sale", goodTour)
	if d := st.ended(id); d.State != "completed" {
		st.Fatalf("booking %s because %s", d.State, d.Reason)
	}
	st.ended(sagas.OperationID(tenant, ticketing.TypeName, id, 1))
	r := refund.Request{Booking: "B-1", Currency: "EUR"}
	for _, e := range st.world.Ledger() {
		if e.Kind == suppliers.Reserve {
			r.Segments = append(r.Segments, refund.Segment{Kind: e.Segment, Reference: e.ID, Amount: e.Amount})
		}
	}
	text, err := json.Marshal(r)
	st.must(func() error { return err })
	return string(text)
}

func TestRefund_everythingTakenBack(t *testing.T) {
	st := setup(t, short{})
	body := st.sold()
	st.wantEnd(st.ended(st.post(refund.TypeName, "r", body)), "completed", "", tourbooking.Cancelled)
	var paid int64
	for _, e := range st.world.Ledger() {
		if e.Supplier == suppliers.Payment && e.Kind == suppliers.Refund {
			paid += e.Amount
		}
	}
	if want := int64(10000 + 20000 + 30000); paid != want {
		t.Errorf("%d paid back, want %d", paid, want)
	}
	if d := cmp.Diff([]string{"payment.settlement.authorized", "payment.settlement.captured", "payment.settlement.refunded"}, st.told("payment.")); d != "" {
		t.Errorf("settlements (-want +got):\n%s", d)
	}
}

func TestRefund_oneSupplierRefuses(t *testing.T) {
	st := setup(t, short{})
	body := st.sold()
	others := make(chan struct{})
	st.world.Script(booked, "hotel", suppliers.Action(suppliers.Refund), suppliers.Refuse("NOT_REFUNDABLE").When(others))
	id := st.post(refund.TypeName, "r", body)
	st.eventually("the others have taken their segments back", func() bool {
		got := st.effects()
		return got["flight refund"] == 1 && got["transfer refund"] == 1
	})
	close(others)
	st.wantEnd(st.ended(id), "failed", models.CodeRefundIncomplete, tourbooking.Ticketed)
	got := st.effects()
	if got["flight reinstate"] != 1 || got["transfer reinstate"] != 1 || got["hotel refund"] != 0 || got["payment refund"] != 0 {
		t.Errorf("effects %v, want flight and transfer reinstated once and nothing paid", got)
	}
}

func TestRefund_supplierActsAndSaysNothing(t *testing.T) {
	st := setup(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
	body := st.sold()
	st.world.Script(booked, "hotel", suppliers.Action(suppliers.Refund), suppliers.TimeoutAfter())
	st.world.Script(booked, "hotel", suppliers.Ask, suppliers.Fail(8))
	st.wantEnd(st.ended(st.post(refund.TypeName, "r", body)), "completed", "", tourbooking.Cancelled)
	if n := st.effects()["hotel refund"]; n != 1 {
		t.Errorf("%d returns at the hotel, want 1", n)
	}
}

func TestRefund_refusedBeforeItStarts(t *testing.T) {
	st := setup(t, short{})
	body := st.sold()
	tests := []struct{ name, body, reason string }{
		{"unknown booking", `{"booking":"B-9","currency":"EUR","segments":[{"kind":"flight","reference":"FLR-1","amount":1}]}`, refund.CodeBookingUnknown},
		{"too much", `{"booking":"B-1","currency":"EUR","segments":[{"kind":"flight","reference":"FLR-1","amount":125001}]}`, refund.CodeRefundTooHigh},
		{"other currency", `{"booking":"B-1","currency":"USD","segments":[{"kind":"flight","reference":"FLR-1","amount":1}]}`, refund.CodeRefundTooHigh},
	}
	for i, tt := range tests {
		d := st.ended(st.post(refund.TypeName, fmt.Sprint("refused", i), tt.body))
		if d.State != "failed" || d.Reason != tt.reason {
			t.Errorf("%s: saga %s because %s, want failed because %s", tt.name, d.State, d.Reason, tt.reason)
		}
	}
	st.wantEnd(st.ended(st.post(refund.TypeName, "r1", body)), "completed", "", tourbooking.Cancelled)
	again := st.ended(st.post(refund.TypeName, "r2", body))
	if again.State != "failed" || again.Reason != refund.CodeBookingNotRefundable {
		t.Errorf("second refund: saga %s because %s, want failed because %s", again.State, again.Reason, refund.CodeBookingNotRefundable)
	}
}

func TestTicketing_refusedLeavesTheBookingConfirmed(t *testing.T) {
	st := setup(t, short{})
	st.world.Script(booked, "flight", suppliers.Action(suppliers.Ticket), suppliers.Refuse("CLOSED"))
	id := st.post(tourbooking.TypeName, "k", goodTour)
	st.ended(id)
	st.wantEnd(st.ended(sagas.OperationID(tenant, ticketing.TypeName, id, 1)), "failed", models.CodeTicketingRefused, tourbooking.Confirmed)
}
