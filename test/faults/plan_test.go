package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// part says where in a saga a step stands.
type part int

const (
	forward part = iota // before the pivot: can be undone
	past                // behind the pivot: goes forward, or to a person
	undo                // takes a forward step back
)

// step is one request to a supplier in one of the models.
type step struct {
	saga    string // tour-booking, refund or amendment
	segment string // its id, see segments
	action  suppliers.Action
	part    part
}

func (s step) String() string {
	text := s.saga + " " + s.segment + "." + string(s.action)
	if s.old() {
		text += " (old)"
	}
	return text
}

// old says that the step gives back what an amendment has replaced; its undo cancels what is new, with the same request.
func (s step) old() bool {
	return s.saga == amendment.TypeName && s.action == "cancel" && s.part == past
}

// cheaper says that the step is made only by an amendment to a lower price, which authorizes and captures nothing.
func (s step) cheaper() bool { return s.saga == amendment.TypeName && s.action == "refund" }

// together says that one saga may make both requests, and that a script can tell them apart.
func together(a, b step) bool {
	same := a.segment == b.segment && a.action == b.action
	return a.saga == b.saga && !same && (a.cheaper() == b.cheaper() || a.segment != "payment" || b.segment != "payment")
}

// steps lists every request to a supplier that the models make.
func steps() []step {
	tour, back, change := tourbooking.TypeName, refund.TypeName, amendment.TypeName
	all := []step{
		{tour, "flight", "reserve", forward}, {tour, "hotel", "reserve", forward}, {tour, "transfer", "reserve", forward},
		{tour, "payment", "authorize", forward}, {tour, "payment", "capture", past},
		{tour, "flight", "cancel", undo}, {tour, "hotel", "cancel", undo}, {tour, "transfer", "cancel", undo}, {tour, "payment", "void", undo},
		{back, "flight", "refund", forward}, {back, "hotel", "refund", forward}, {back, "transfer", "refund", forward},
		{back, "payment", "refund", past},
		{back, "flight", "reinstate", undo}, {back, "hotel", "reinstate", undo}, {back, "transfer", "reinstate", undo},
		{change, "hotel", "reserve", forward}, {change, "payment", "authorize", forward},
		{change, "payment", "capture", past}, {change, "payment", "refund", past}, {change, "hotel", "cancel", past},
		{change, "hotel", "cancel", undo}, {change, "payment", "void", undo},
	}
	return all
}

// more are the steps of the segments that only a long booking has.
func more() []step {
	tour := tourbooking.TypeName
	return []step{
		{tour, secondHotel, "reserve", forward}, {tour, secondFlight, "reserve", forward},
		{tour, secondHotel, "cancel", undo}, {tour, secondFlight, "cancel", undo},
	}
}

// fault is what a supplier does instead of acting and answering.
type fault string

const (
	refuses       fault = "refuses"
	timesOut      fault = "times out"     // once, without an effect
	actsTimesOut  fault = "acts, silent"  // once, with its effect
	answersLate   fault = "lands late"    // its effect lands after the saga was given up, where it can be
	answersTwice  fault = "twice"         // the request arrives twice
	failsOnce     fault = "fails once"    // 500 without an effect
	actsFailsOnce fault = "acts, fails"   // 500 with its effect
	neverAnswers  fault = "never answers" // for good, without an effect
	deafOnce      fault = "acts, no word" // acts, times out, and cannot be asked for a while
)

// lateness are the faults that land when the saga has been given up, undone and closed for so long.
func lateness() map[fault]time.Duration {
	return map[fault]time.Duration{"lands 5 min late": 5 * time.Minute, "lands 45 min late": 45 * time.Minute}
}

// pairable are the faults of the pairs; the others are played alone.
func pairable() []fault {
	return []fault{refuses, timesOut, actsTimesOut, answersLate, answersTwice, failsOnce}
}

// cell is one fault at one step.
type cell struct {
	step  step
	fault fault
}

func (c cell) String() string { return c.step.String() + " " + string(c.fault) }

// plan is one saga with the faults that it meets.
type plan struct {
	saga   string
	cells  []cell
	wires  []wireFault
	about  string   // names the plan where cells and wires do not
	ends   []string // how it may end; nil = as cells say
	random bool     // a person may have to act
	long   bool     // the booking has two flights and two hotels whatever its number; for tours
}

func (p plan) String() string {
	var all []string
	for _, c := range p.cells {
		all = append(all, c.String())
	}
	for _, w := range p.wires {
		all = append(all, w.String())
	}
	if p.about != "" {
		return p.about
	}
	if len(all) == 0 {
		return p.saga + " plain"
	}
	return strings.Join(all, " + ")
}

func (p plan) has(match func(cell) bool) bool { return slices.ContainsFunc(p.cells, match) }

// undone says that the plan needs its saga to be given up: an undo step is faulty, or an effect must land after the give-up.
func (p plan) undone() bool { return p.has(func(c cell) bool { return c.step.part == undo }) }

// late says that an effect before the pivot lands after the partner has cancelled.
func (p plan) late() bool {
	return p.has(func(c cell) bool {
		return (c.fault == answersLate || lateness()[c.fault] > 0) && c.step.part == forward
	})
}

// sells says that the saga changes or gives back a booking that must have been sold before.
func (p plan) sells() bool { return p.saga != tourbooking.TypeName }

// cheaper says that an amendment must be to a lower price.
func (p plan) cheaper() bool { return p.has(func(c cell) bool { return c.step.cheaper() }) }

// person says that a person may have to act: a refusal where the model has nobody else.
func (p plan) person() bool {
	return p.has(func(c cell) bool {
		return c.fault == refuses && c.step.part != forward || c.fault == neverAnswers && c.step.part != forward
	})
}

// doubled says that the hotel, which ignores keys, was sent the same request twice: that is at-least-once by its
// declaration (worker.KeyIgnored), and the second effect is not ours to know.
func (p plan) doubled() bool {
	return p.random || p.has(func(c cell) bool {
		return (c.step.segment == "hotel" || c.step.segment == secondHotel) && c.step.part == forward && (c.fault == answersTwice || c.fault == answersLate || lateness()[c.fault] > 0)
	})
}

// expected are the end states that are documented for a plan.
func (p plan) expected() []string {
	refused := p.has(func(c cell) bool { return c.step.part == forward && (c.fault == refuses || c.fault == neverAnswers) })
	switch {
	case p.ends != nil:
		return p.ends
	case refused || p.undone() || p.late():
		return []string{"failed"}
	default:
		return []string{"completed"}
	}
}

// singles are the plans with one fault.
func singles(faults []fault) []plan {
	plans := []plan{{saga: tourbooking.TypeName}, {saga: refund.TypeName}, {saga: amendment.TypeName}}
	for _, st := range steps() {
		for _, f := range faults {
			plans = append(plans, plan{saga: st.saga, cells: []cell{{st, f}}})
		}
	}
	return plans
}

// pairs are the plans with two faults at different steps of one saga.
func pairs() []plan {
	var plans []plan
	all := steps()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if !together(a, b) {
				continue
			}
			for _, fa := range pairable() {
				for _, fb := range pairable() {
					plans = append(plans, plan{saga: a.saga, cells: []cell{{a, fa}, {b, fb}}})
				}
			}
		}
	}
	return plans
}

// oneKind are the pairs at two segments of one kind: their faults are told apart, and neither touches the other.
func oneKind() []plan {
	var plans []plan
	tour := tourbooking.TypeName
	for _, both := range [][2]string{{"flight", secondFlight}, {"hotel", secondHotel}} {
		for _, fa := range pairable() {
			for _, fb := range pairable() {
				plans = append(plans, plan{saga: tour, long: true, cells: []cell{{step{tour, both[0], "reserve", forward}, fa}, {step{tour, both[1], "reserve", forward}, fb}}})
			}
		}
	}
	return plans
}

// refusal is the code a supplier refuses a step with.
func refusal(st step) string {
	switch {
	case st.action == "reserve":
		return "SOLD_OUT"
	case st.action == "authorize":
		return "PAYMENT_DECLINED"
	default:
		return "NOT_TODAY"
	}
}

// The segments that only a long booking has, of kinds that it has already. A refund comes to them last.
const secondHotel, secondFlight = "villa", "way-home"

// longBooking says whether a booking has five segments, two of them flights and two hotels: every third has.
func longBooking(booking string) bool {
	n, err := strconv.Atoi(strings.TrimPrefix(booking, "F-"))
	return err == nil && n%3 == 0
}

// segments are the ids of the segments that the booking of a run has.
func (r *run) segments() []string {
	if r.long || longBooking(r.booking) {
		return []string{"flight", "hotel", "transfer", secondHotel, secondFlight}
	}
	return []string{"flight", "hotel", "transfer"}
}

// bookingBody costs soldFor, whatever its segments.
func bookingBody(r *run) map[string]any {
	offers := map[string]map[string]any{
		"flight": {"kind": "flight", "offer": "FL-100"}, "hotel": {"kind": "hotel", "offer": "HT-200", "nights": 3}, "transfer": {"kind": "transfer", "offer": "TR-300"},
		secondHotel: {"kind": "hotel", "offer": "HT-1", "nights": 1}, secondFlight: {"kind": "flight", "offer": "FL-1"},
	}
	var segments []map[string]any
	for _, id := range r.segments() {
		offers[id]["id"] = id
		segments = append(segments, offers[id])
	}
	if len(segments) > 3 {
		offers["transfer"]["offer"] = "TR-298"
	}
	return map[string]any{
		"booking": r.booking, "travellers": 2, "segments": segments, "payment": map[string]any{"token": "tok_1", "amount": soldFor, "currency": "EUR"},
	}
}

func refundBody(booking string, of answer) map[string]any {
	var segments []map[string]any
	for _, s := range of.Result.Segments {
		segments = append(segments, map[string]any{"kind": s.Kind, "reference": s.Reference, "amount": s.Amount})
	}
	return map[string]any{"booking": booking, "currency": "EUR", "segments": segments}
}

// Prices of a booking before and after an amendment.
const soldFor, dearer, cheaper = 60000, 70000, 50000

func amendmentBody(p plan, booking string) map[string]any {
	amount := dearer
	if p.cheaper() {
		amount = cheaper
	}
	return map[string]any{
		"booking": booking, "segment": "hotel", "kind": "hotel", "offer": "HT-201", "nights": 4, "amount": amount, "currency": "EUR", "token": "tok_1",
	}
}

func name(i int) string { return fmt.Sprintf("F-%04d", i) }
