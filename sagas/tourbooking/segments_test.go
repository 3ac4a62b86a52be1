package tourbooking_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// longTour is a booking of mixed segments, with two flights and two hotels.
const longTour = `{"booking":"B-1","travellers":2,"segments":[
	{"id":"out","kind":"flight","offer":"FL-100"},{"id":"cab","kind":"transfer","offer":"TR-300"},
	{"id":"city","kind":"hotel","offer":"HT-200","nights":3},{"id":"beach","kind":"hotel","offer":"HT-250","nights":4},
	{"id":"home","kind":"flight","offer":"FL-110"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"}}`

// segmentsOf are the ids of longTour, in its order.
var segmentsOf = []string{"out", "cab", "city", "beach", "home"}

// perSegment counts the effects of a kind, by segment id.
func (st *stage) perSegment(kind suppliers.Kind) map[string]int {
	out := map[string]int{}
	for _, e := range st.world.Ledger() {
		if e.Kind == kind {
			out[e.Segment]++
		}
	}
	return out
}

// reserved says whether the ledger of a saga has so many reservations.
func (st *stage) reserved(id string, segments ...string) bool {
	d, err := st.sagas.Show(st.ctx, id)
	if err != nil {
		return false
	}
	for _, s := range segments {
		if !slices.ContainsFunc(d.Steps, func(r sagas.StepRow) bool {
			return strings.HasSuffix(r.OperationID, "Reserve:"+s) && r.Class == "SUCCESS"
		}) {
			return false
		}
	}
	return true
}

// Issue 6, item 5: any number of segments of mixed kinds, all at once.
func TestSegments_mixedKindsAreBookedAndTicketed(t *testing.T) {
	st := setup(t, short{})
	id := st.post(tourbooking.TypeName, "k", longTour)
	d := st.ended(id)
	st.wantEnd(st.ended(sagas.OperationID(tenant, ticketing.TypeName, id, 1)), "completed", "", tourbooking.Ticketed)
	once := map[string]int{"out": 1, "cab": 1, "city": 1, "beach": 1, "home": 1}
	if diff := cmp.Diff(once, st.perSegment(suppliers.Reserve)); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
	if got := st.told("tour.booking."); !slices.Equal(got, []string{
		"tour.booking.quoted", "tour.booking.segment_confirmed", "tour.booking.segment_confirmed", "tour.booking.segment_confirmed", "tour.booking.segment_confirmed",
		"tour.booking.held", "tour.booking.payment_authorized", "tour.booking.confirmed", "tour.booking.ticketing_started", "tour.booking.ticketed",
	}) {
		t.Errorf("events of the booking: %v, want it held with the last of five segments", got)
	}
	var tickets int
	if err := st.pool.QueryRow(st.ctx, `SELECT count(*) FROM journeyman.ticket WHERE business_key = $1`, booked).Scan(&tickets); err != nil || tickets != 4 {
		t.Errorf("%d tickets, %v, want one for each of two travellers on each of two flights", tickets, err)
	}
	for _, s := range d.Steps {
		if s.UndoState != "open" && s.UndoState != "none" {
			t.Errorf("step %s is %s", s.Name, s.UndoState)
		}
	}
}

func TestSegments_withoutAFlightNothingIsTicketed(t *testing.T) {
	st := setup(t, short{})
	d := st.ended(st.post(tourbooking.TypeName, "k", `{"booking":"B-1","travellers":2,"segments":[{"id":"stay","kind":"hotel","offer":"HT-200","nights":1}],"payment":{"token":"tok_1","amount":1,"currency":"EUR"}}`))
	st.wantEnd(d, "completed", "", tourbooking.Confirmed)
	st.wantEffects(map[string]int{"stay reserve": 1, "payment authorize": 1, "payment capture": 1})
}

// All segments have ended, and then the booking fails: the drawn compensation undoes each once, the last of the request first.
func TestSegments_allUndoneInReverseOrder(t *testing.T) {
	st := setup(t, short{})
	st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED"))
	st.wantEnd(st.ended(st.post(tourbooking.TypeName, "k", longTour)), "failed", tourbooking.CodePaymentDeclined, tourbooking.Compensated)
	var order []string
	for _, e := range st.world.Ledger() {
		if e.Kind == suppliers.Cancel {
			order = append(order, e.Segment)
		}
	}
	want := slices.Clone(segmentsOf)
	slices.Reverse(want)
	if d := cmp.Diff(want, order); d != "" {
		t.Errorf("cancelled (-want +got):\n%s", d)
	}
}

// The hardest case: the multi-instance is not finished. One segment is sold out while others are reserved, in flight, or land
// when everything is over. Every effect is undone, once; the partner is told why.
func TestSegments_oneSoldOut(t *testing.T) {
	st := setup(t, short{call: time.Minute}) // no call ends by itself before the worker's 20 s are over
	sold, land, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
	st.world.Script(booked, "beach", reserve, suppliers.Refuse("SOLD_OUT").When(sold))
	st.world.Script(booked, "home", reserve, suppliers.LandLate(land)) // has no effect until everything is given up
	st.world.Script(booked, "city", reserve, suppliers.Late(late))     // has one, and says so too late
	id := st.post(tourbooking.TypeName, "k", longTour)
	st.eventually("two are reserved and two in flight", func() bool {
		return st.reserved(id, "out", "cab") && st.world.Requests(booked, "home", reserve) > 0 && st.effects()["city reserve"] == 1
	})
	close(sold)
	st.eventually("the saga is decided", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		return err == nil && d.Decision == sagas.Failed
	})
	close(land)
	close(late)
	st.wantEnd(st.ended(id), "failed", tourbooking.CodeSoldOut, tourbooking.Compensated)
	if n := st.world.Requests(booked, "home", reserve); n != 1 {
		t.Errorf("the last segment was asked for %d times, want once: the one that failed ends the others", n)
	}
	st.eventually("nothing stands", func() bool { return cmp.Equal(st.perSegment(suppliers.Reserve), st.perSegment(suppliers.Cancel)) })
	if d := cmp.Diff(map[string]int{"out": 1, "cab": 1, "city": 1, "home": 1}, st.perSegment(suppliers.Cancel)); d != "" {
		t.Errorf("cancelled (-want +got):\n%s", d)
	}
}

// The same with a step that takes too long and with a partner's cancel: others are terminated beside it, or all from around them.
func TestSegments_unfinishedAndGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		giveUp   func(st *stage, id string)
		state    string
		reason   string
		decision sagas.Decision
		booking  tourbooking.State
	}{
		"slow":   {func(st *stage, _ string) { st.must(func() error { return st.eng.AdvanceClock(11 * time.Minute) }) }, "failed", tourbooking.CodeStepTimedOut, sagas.Failed, tourbooking.Compensated},
		"cancel": {func(st *stage, id string) { st.cancel(id) }, "failed", "cancelled", sagas.Cancelled, tourbooking.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			st := setup(t, short{})
			land := make(chan struct{})
			st.world.Script(booked, "home", reserve, suppliers.LandLate(land))
			st.world.Script(booked, "beach", reserve, suppliers.LandLate(land))
			id := st.post(tourbooking.TypeName, "k", longTour)
			st.eventually("three are reserved and two in flight", func() bool {
				return st.reserved(id, "out", "cab", "city") && st.world.Requests(booked, "home", reserve) > 0 && st.world.Requests(booked, "beach", reserve) > 0
			})
			c.giveUp(st, id)
			st.eventually("the saga is decided", func() bool {
				d, err := st.sagas.Show(st.ctx, id)
				return err == nil && d.Decision == c.decision
			})
			close(land)
			st.wantEnd(st.ended(id), c.state, c.reason, c.booking)
			st.eventually("nothing stands", func() bool {
				return len(st.perSegment(suppliers.Cancel)) == 5 && cmp.Equal(st.perSegment(suppliers.Reserve), st.perSegment(suppliers.Cancel))
			})
			for s, n := range st.perSegment(suppliers.Cancel) {
				if n != 1 {
					t.Errorf("%s was cancelled %d times", s, n)
				}
			}
		})
	}
}

// Spec S4: what is unknown of one of two flights is found out; the other one is not touched.
func TestSegments_oneOfTwoFlightsIsFollowedUp(t *testing.T) {
	st := setup(t, short{call: 500 * time.Millisecond, sla: time.Second})
	st.world.Script(booked, "home", reserve, suppliers.TimeoutAfter().Always())
	st.world.Script(booked, "home", suppliers.Ask, suppliers.Fail(16))
	d := st.ended(st.post(tourbooking.TypeName, "k", longTour))
	st.wantEnd(d, "completed", "", st.bookingState())
	var followed []string
	for _, s := range d.Steps {
		if s.JobType == tourbooking.JobFlightFollowUp {
			followed = append(followed, s.Name)
		}
	}
	if got := st.perSegment(suppliers.Reserve); !slices.Equal(followed, []string{"flightFollowUp:home"}) || got["home"] != 1 || got["out"] != 1 {
		t.Errorf("followed up %v, reserved %v, want flightFollowUp:home alone and each once", followed, got)
	}
}

// One of two hotels is changed: the other one stands, and the answer names the segment.
func TestSegments_oneOfTwoHotelsIsAmended(t *testing.T) {
	st := setup(t, short{})
	st.ended(st.post(tourbooking.TypeName, "sale", longTour))
	body := func(segment, kind string) string {
		return fmt.Sprintf(`{"booking":"B-1","segment":%q,"kind":%q,"offer":"HT-201","nights":4,"amount":125000,"currency":"EUR","token":"tok_1"}`, segment, kind)
	}
	for _, segment := range []string{"nowhere", "cab"} {
		if d := st.ended(st.post(amendment.TypeName, "bad-"+segment, body(segment, "hotel"))); d.State != "failed" || d.Reason != amendment.CodeNotAmendable {
			t.Errorf("amendment of %q as a hotel: %s because %s, want failed because %s", segment, d.State, d.Reason, amendment.CodeNotAmendable)
		}
	}
	if d := st.ended(st.post(amendment.TypeName, "change", body("beach", "hotel"))); d.State != "completed" {
		t.Fatalf("amendment %s because %s", d.State, d.Reason)
	}
	if got, lost := st.perSegment(suppliers.Reserve), st.perSegment(suppliers.Cancel); got["beach"] != 2 || got["city"] != 1 || !cmp.Equal(lost, map[string]int{"beach": 1}) {
		t.Errorf("reserved %v, cancelled %v, want another beach hotel and the old one given back", got, lost)
	}
}

// What a partner reads while a segment is open: names and kinds are those of the request.
func TestSegments_finalAnswerNamesThem(t *testing.T) {
	st := setup(t, short{})
	id := st.post(tourbooking.TypeName, "k", longTour)
	st.ended(id)
	var final []byte
	st.must(func() error {
		return st.pool.QueryRow(st.ctx, `SELECT body FROM journeyman.outbox WHERE business_key = $1 AND type = 'platform.saga.completed' LIMIT 1`, booked).Scan(&final)
	})
	var message struct {
		Data struct{ Final []byte }
	}
	st.must(func() error { return json.Unmarshal(final, &message) })
	var answer struct{ Result tourbooking.Result }
	st.must(func() error { return json.Unmarshal(message.Data.Final, &answer) })
	var got []string
	for _, s := range answer.Result.Segments {
		got = append(got, s.Segment+" "+s.Kind+" "+s.Status)
	}
	want := []string{"beach hotel confirmed", "cab transfer confirmed", "city hotel confirmed", "home flight confirmed", "out flight confirmed"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("segments of the answer (-want +got):\n%s", d)
	}
}
