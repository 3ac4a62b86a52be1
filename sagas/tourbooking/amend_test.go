package tourbooking_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

const (
	capture = suppliers.Action(suppliers.Capture)
)

// otherHotel changes the hotel of goodTour, so that the booking costs amount.
func otherHotel(amount int) string {
	return fmt.Sprintf(`{"booking":"B-1","segment":"hotel","kind":"hotel","offer":"HT-201","nights":4,"amount":%d,"currency":"EUR","token":"tok_1"}`, amount)
}

// changed is what a test of an amendment starts from: goodTour sold and ticketed, with one effect each.
func changed(t *testing.T, quick short) *stage {
	st := setup(t, quick)
	id := st.post(tourbooking.TypeName, "sale", goodTour)
	st.ended(id)
	st.ended(sagas.OperationID(tenant, ticketing.TypeName, id, 1))
	return st
}

// wantChange compares what an amendment changed at the suppliers, the booking's price and the one hotel that stands.
func (st *stage) wantChange(d sagas.Detail, state, reason string, amount int64, more map[string]int) {
	st.Helper()
	want := map[string]int{"flight reserve": 1, "hotel reserve": 1, "transfer reserve": 1, "payment authorize": 1, "payment capture": 1, "flight ticket": 1}
	for what, n := range more {
		want[what] += n
	}
	st.wantEffects(want)
	st.wantEnd(d, state, reason, tourbooking.Ticketed)
	var got int64
	var hotels int
	if err := st.pool.QueryRow(st.ctx, `SELECT b.amount, (SELECT count(*) FROM journeyman.tour_reservation r WHERE r.saga_id = b.saga_id AND r.segment = 'hotel' AND r.status = 'confirmed')
		FROM journeyman.tour_booking b WHERE b.business_key = $1`, booked).Scan(&got, &hotels); err != nil {
		st.Fatal(err)
	}
	if got != amount || hotels != 1 {
		st.Errorf("the booking costs %d and has %d hotels, want %d and one", got, hotels, amount)
	}
}

// Issue 6, item 5: the new segment is reserved before the old one is released, and the difference is captured or paid back.
func TestAmendment_changesTheHotel(t *testing.T) {
	for name, c := range map[string]struct {
		amount int
		more   map[string]int
		money  []string
	}{
		"dearer":  {140000, map[string]int{"payment authorize": 1, "payment capture": 1}, []string{"payment.settlement.authorized", "payment.settlement.captured"}},
		"cheaper": {110000, map[string]int{"payment refund": 1}, []string{"payment.settlement.refunded"}},
		"same":    {125000, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			st := changed(t, short{})
			before := len(st.told("payment."))
			more := map[string]int{"hotel reserve": 1, "hotel cancel": 1}
			for what, n := range c.more {
				more[what] = n
			}
			d := st.ended(st.post(amendment.TypeName, "change", otherHotel(c.amount)))
			st.wantChange(d, "completed", "", int64(c.amount), more)
			var order []string
			for _, e := range st.world.Ledger() {
				if e.Segment == "hotel" {
					order = append(order, string(e.Kind))
				}
			}
			if diff := cmp.Diff([]string{"reserve", "reserve", "cancel"}, order); diff != "" {
				t.Errorf("at the hotel (-want +got):\n%s", diff)
			}
			if got := st.told("payment.")[before:]; len(got) != len(c.money) || len(got) > 0 && cmp.Diff(c.money, got) != "" {
				t.Errorf("settlements: got %v, want %v", got, c.money)
			}
			again := st.ended(st.post(amendment.TypeName, "again", otherHotel(c.amount))) // and once more
			if again.State != "completed" || st.bookingState() != tourbooking.Ticketed {
				t.Errorf("a second amendment: %s because %s", again.State, again.Reason)
			}
		})
	}
}

// Whatever goes wrong before the pivot: the traveller keeps what was booked, nothing of the change stands.
func TestAmendment_isUndone(t *testing.T) {
	for name, c := range map[string]struct {
		script func(st *stage)
		body   string
		reason string
		more   map[string]int
	}{
		"no room":            {func(st *stage) { st.world.Script(booked, "hotel", reserve, suppliers.Refuse("SOLD_OUT")) }, otherHotel(140000), "SOLD_OUT", nil},
		"difference refused": {func(st *stage) { st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED")) }, otherHotel(140000), "PAYMENT_DECLINED", map[string]int{"hotel reserve": 1, "hotel cancel": 1}},
		"another currency":   {func(*stage) {}, `{"booking":"B-1","segment":"hotel","kind":"hotel","offer":"HT-201","nights":4,"amount":140000,"currency":"USD","token":"t"}`, amendment.CodeNotAmendable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			st := changed(t, short{})
			c.script(st)
			st.wantChange(st.ended(st.post(amendment.TypeName, "change", c.body)), "failed", c.reason, 125000, c.more)
		})
	}
}

// The hotel acts and says nothing: it is asked, not called again, although it ignores keys.
func TestAmendment_hotelActsAndSaysNothing(t *testing.T) {
	st := changed(t, short{call: 200 * time.Millisecond})
	st.world.Script(booked, "hotel", reserve, suppliers.TimeoutAfter())
	d := st.ended(st.post(amendment.TypeName, "change", otherHotel(125000)))
	st.wantChange(d, "completed", "", 125000, map[string]int{"hotel reserve": 1, "hotel cancel": 1})
}

// Spec S4: nobody says in time what became of a step. The follow-up finds it done, and the amendment goes on; nothing is done twice.
func TestAmendment_followsUpWhatIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		segment string
		action  suppliers.Action
		step    string
	}{
		"the room":       {"hotel", reserve, "segmentFollowUp"},
		"the difference": {"payment", authorize, "differenceFollowUp"},
		"the settlement": {"payment", capture, "settleFollowUp"},
	} {
		t.Run(name, func(t *testing.T) {
			st := changed(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
			st.world.Script(booked, c.segment, c.action, suppliers.TimeoutAfter())
			st.world.Script(booked, c.segment, suppliers.Ask, suppliers.Fail(8))
			d := st.ended(st.post(amendment.TypeName, "change", otherHotel(140000)))
			st.wantChange(d, "completed", "", 140000, map[string]int{"hotel reserve": 1, "hotel cancel": 1, "payment authorize": 1, "payment capture": 1})
			if !slices.ContainsFunc(d.Steps, func(s sagas.StepRow) bool { return s.ElementID == c.step && s.Class == string(outcome.Success) }) {
				t.Errorf("the steps %+v have no %s that found it", d.Steps, c.step)
			}
		})
	}
}

// The follow-up finds nothing: only then is the amendment given up.
func TestAmendment_followUpFindsNothing(t *testing.T) {
	st := changed(t, short{call: 100 * time.Millisecond, sla: 300 * time.Millisecond})
	st.world.Script(booked, "hotel", reserve, suppliers.TimeoutBefore().Always())
	st.world.Script(booked, "hotel", suppliers.Ask, suppliers.Fail(8))
	d := st.ended(st.post(amendment.TypeName, "change", otherHotel(140000)))
	st.wantChange(d, "failed", amendment.CodeNotReserved, 125000, nil)
}

// The new room lands after the deadline: it is released once, the old one stands.
func TestAmendment_landsAfterTheDeadline(t *testing.T) {
	st := changed(t, short{})
	release := make(chan struct{})
	st.world.Script(booked, "hotel", reserve, suppliers.LandLate(release))
	id := st.post(amendment.TypeName, "change", otherHotel(140000))
	st.eventually("the hotel is asked", func() bool { return st.world.Requests(booked, "hotel", reserve) > 1 })
	st.must(func() error { return st.eng.AdvanceClock(31 * time.Minute) })
	st.eventually("the saga is decided", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && d.Decision == sagas.Expired
	})
	close(release)
	d := st.ended(id)
	st.eventually("the new room is released", func() bool { return st.effects()["hotel cancel"] == 1 })
	st.wantChange(d, "expired", "deadline", 125000, map[string]int{"hotel reserve": 1, "hotel cancel": 1})
}

// Past the pivot it goes to a person: the booking has its new hotel, nothing is rolled back.
func TestAmendment_captureRefusedGoesToAPerson(t *testing.T) {
	st := changed(t, short{})
	st.world.Script(booked, "payment", capture, suppliers.Refuse("CAPTURE_REFUSED"))
	id := st.post(amendment.TypeName, "change", otherHotel(140000))
	st.eventually("the settlement was refused", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		for _, s := range d.Steps {
			if s.ElementID == "differenceSettle" && s.Code == "SETTLEMENT_REFUSED" {
				return err == nil && d.Decision == sagas.Completed
			}
		}
		return false
	})
	if got := st.effects(); got["hotel reserve"] != 2 || got["hotel cancel"] != 0 || got["payment void"] != 0 {
		t.Errorf("got %v, want the new room held and nothing undone", got)
	}
}

func TestAmendment_ofNoBooking(t *testing.T) {
	st := setup(t, short{})
	if d := st.ended(st.post(amendment.TypeName, "change", otherHotel(1))); d.State != "failed" || d.Reason != amendment.CodeNotAmendable {
		t.Errorf("got %s because %s", d.State, d.Reason)
	}
	st.wantEffects(map[string]int{})
}

func TestParse_amendment(t *testing.T) {
	t.Parallel()
	typ, err := amendment.Type(amendment.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := typ.Parse(t.Context(), tenant, []byte(otherHotel(100))); err != nil || p.BusinessKey != booked {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, body := range []string{
		`{}`, otherHotel(0), `{"booking":"B-1","segment":"flight","kind":"flight","offer":"FL-1","amount":1,"currency":"EUR","token":"t"}`,
		`{"booking":"B-1","segment":"transfer","kind":"transfer","offer":"TR-1","nights":3,"amount":1,"currency":"EUR","token":"t"}`,
		`{"booking":"B-1","segment":"hotel","kind":"hotel","offer":"HT-1","amount":1,"currency":"EUR","token":"t"}`, `{"booking":"B-1","segment":"hotel","kind":"hotel","offer":"","nights":1,"amount":1,"currency":"EUR","token":"t"}`,
	} {
		if _, err := typ.Parse(t.Context(), tenant, []byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}
