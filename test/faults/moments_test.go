package faults

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/audit"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// answered says that the engine may have the answer at a moment: from the commit on the sweep sends it, whoever is held.
func answered(moment string) bool {
	return slices.Contains([]string{"worker.commit.after", "worker.answer.before", "worker.answer.after"}, moment)
}

// during is the moment when the request is at the supplier; it lands there only afterwards.
const during = "during the call"

// moments of one external step, in their order; all but during are crash points of the worker.
func moments() []string {
	return []string{
		"worker.received", "worker.claimed", "worker.call.before", during, "worker.call.after", "worker.call.stored",
		"worker.commit.before", "worker.commit.after", "worker.answer.before", "worker.answer.after",
	}
}

// holds keep operations at crash points until they are let go.
type holds struct {
	mu  sync.Mutex
	all map[string]*held
}

type held struct {
	reached, release chan struct{}
	hit, free        sync.Once
}

func (h *held) let() { h.free.Do(func() { close(h.release) }) }

func newHolds(s *stage) *holds {
	h := &holds{all: map[string]*held{}}
	for _, point := range moments() {
		if point == during {
			continue
		}
		s.Cleanup(crash.Hook(point, func(operation string) {
			h.mu.Lock()
			x := h.all[point+" "+operation]
			h.mu.Unlock()
			if x == nil {
				return
			}
			x.hit.Do(func() { close(x.reached) })
			<-x.release
		}))
	}
	s.Cleanup(h.letAll) // before the hooks go: cleanups run last in, first out
	return h
}

func (h *holds) letAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.all {
		x.let()
	}
}

func (h *holds) add(point, operation string) *held {
	x := &held{reached: make(chan struct{}), release: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[point+" "+operation] = x
	return x
}

// enders are what ends an element while its operation stands at a moment.
const (
	byTimer   = "step time-out"
	byDue     = "deadline"
	byPartner = "partner's cancel"
	byOutside = "instance cancelled from outside"
	bySibling = "sibling refused"
)

// scene is one element ended in one way, at every moment.
type scene struct {
	saga, element string
	step          step
	ender         string
	sibling       step // that refuses, for bySibling
	pivot         bool // the element decides: it makes no effect, and may win
}

// moments of the scene's element, in their order.
func (c scene) moments() []string {
	if !c.pivot {
		return moments()
	}
	return []string{"worker.received", "worker.claimed", "worker.commit.before", "worker.commit.after", "worker.answer.before", "worker.answer.after"}
}

// ends are how a saga of the scene may end.
func (c scene) ends() []string {
	switch {
	case c.pivot && c.ender == byOutside:
		return []string{"failed", "expired", "completed", "manual"}
	case c.step.part == past:
		return []string{"completed", "manual"} // never rolled back
	case c.pivot:
		return []string{"failed", "expired", "completed"}
	default:
		return []string{"failed", "expired"}
	}
}

func (c scene) String() string { return c.saga + " " + c.element + ": " + c.ender }

func scenes() []scene {
	tour, back, change := tourbooking.TypeName, refund.TypeName, amendment.TypeName
	flight, hotel := step{tour, "flight", "reserve", forward}, step{tour, "hotel", "reserve", forward}
	pay := step{tour, "payment", "authorize", forward}
	gone := step{back, "hotel", "refund", forward}
	first, last := step{back, "flight", "refund", forward}, step{back, "transfer", "refund", forward}
	room, more := step{change, "hotel", "reserve", forward}, step{change, "payment", "authorize", forward}
	var all []scene
	for _, e := range []string{byTimer, byPartner, byOutside, bySibling} {
		all = append(all, scene{tour, "flightReserve:flight", flight, e, hotel, false}, scene{tour, "hotelReserve:hotel", hotel, e, flight, false})
	}
	// Half of the iterations are done, those of its own kind too.
	villa := step{tour, secondHotel, "reserve", forward}
	for _, e := range []string{byPartner, byOutside} {
		all = append(all, scene{tour, "hotelReserve:" + secondHotel, villa, e, step{}, false})
	}
	all = append(all, scene{tour, "hotelReserve:" + secondHotel, villa, bySibling, hotel, false})
	for _, e := range []string{byDue, byPartner, byOutside} {
		all = append(all, scene{tour, "paymentAuthorize", pay, e, step{}, false}, scene{back, "segmentRefund:2", gone, e, step{}, false},
			scene{back, "segmentRefund:1", first, e, step{}, false}, scene{back, "segmentRefund:3", last, e, step{}, false},
			scene{tour, "bookingConfirm", pay, e, step{}, true}, scene{back, "refundApprove", gone, e, step{}, true},
			scene{change, "segmentReserve", room, e, step{}, false}, scene{change, "differenceAuthorize", more, e, step{}, false},
			scene{change, "amendmentConfirm", more, e, step{}, true})
	}
	// Behind the pivot, and while the saga is being undone, only an instance cancelled from outside ends an element.
	return append(all, scene{tour, "paymentCapture", step{tour, "payment", "capture", past}, byOutside, step{}, false},
		scene{tour, "flightReserve:flight:undo", step{tour, "flight", "cancel", undo}, byOutside, step{}, false},
		scene{back, "refundPay", step{back, "payment", "refund", past}, byOutside, step{}, false},
		scene{back, "undoRestFailure", step{back, "hotel", "reinstate", undo}, byOutside, step{}, true},
		scene{change, "differenceSettle", step{change, "payment", "capture", past}, byOutside, step{}, false},
		scene{change, "oldRelease", step{change, "hotel", "cancel", past}, byOutside, step{}, false},
		scene{change, "segmentReserve:undo", step{change, "hotel", "cancel", undo}, byOutside, step{}, false})
}

// acted is one moment of a scene.
type acted struct {
	*run
	moment string
	came   arrival
	hold   *held // nil for during
	land   chan struct{}
	refuse chan struct{}
}

// playScene holds a booking at each moment, ends their elements, lets go, and judges what became of the effects.
func (s *stage) playScene(h *holds, c scene, first int) []*run {
	s.Helper()
	all, runs := s.cast(h, c, first)
	defer func() {
		for _, a := range all {
			a.letGo()
		}
	}()
	for i := range all {
		// The one whose poller stands still comes last: the others need it.
		a := all[(i+1)%len(all)]
		s.begin(a.run)
		s.reached(c, a)
	}
	if c.ender == byTimer {
		s.advance(11 * time.Minute)
	}
	if c.ender == byDue {
		s.advance(61 * time.Minute)
	}
	for _, a := range all {
		s.endElement(c, a)
	}
	for _, a := range all {
		a.letGo()
	}
	s.drive(runs)
	s.settle(runs)
	s.judge(runs)
	for _, a := range all {
		s.landed(c, a)
	}
	return runs
}

// landed makes sure that the scene was one: from the request on, there was an effect to be undone.
func (s *stage) landed(c scene, a *acted) {
	s.Helper()
	if c.pivot || c.step.part == undo {
		return
	}
	at, from := slices.Index(moments(), a.moment), slices.Index(moments(), during)
	n := s.oldReleased(a.run)
	if !c.step.old() {
		made, _ := s.tally(a.run, c.step.segment, suppliers.Kind(c.step.action))
		n = made.made
	}
	if at >= from && n == 0 {
		a.fail("no effect was made: the scene proves nothing")
	}
}

func (a *acted) letGo() {
	if a.hold != nil {
		a.hold.let()
		return
	}
	select {
	case <-a.land:
	default:
		close(a.land)
	}
}

// cast prepares one run for each moment; refunds are sold first.
func (s *stage) cast(h *holds, c scene, first int) (all []*acted, runs []*run) {
	s.Helper()
	sold := s.sell(slices.Repeat([]plan{{saga: c.saga}}, len(c.moments())), first)
	for i, m := range c.moments() {
		r := s.prepare(plan{saga: c.saga, ends: c.ends(), long: c.step.segment == secondHotel}, name(first+i), sold)
		a := &acted{run: r, moment: m, came: s.arrival(r, c.step), refuse: make(chan struct{})}
		r.about = c.String() + " at " + m
		switch m {
		case during:
			a.land = make(chan struct{})
			s.world.Script(r.businessKey(), c.step.segment, c.step.action, suppliers.LandLate(a.land))
		case "worker.commit.after", "worker.answer.before", "worker.answer.after":
			if c.pivot || c.step.part != forward {
				a.hold = h.add(m, r.id+":"+c.element)
				break
			}
			// The engine has the answer, or gets it by the sweep while the test holds the handler, and no timer of the step ends anything. The saga is kept before its pivot until others end it.
			r.ends = []string{"completed", "failed"} // a sibling may still run into its own
			if c.ender != byTimer {
				r.ends = []string{"failed", "expired"}
				r.dropped = s.traffic.put(&wire{method: "ActivateJobs", operation: r.id + ":" + r.pivot(), times: -1, drop: true})
				r.cancelled = true // not by nudge
			}
			fallthrough
		default:
			a.hold = h.add(m, r.id+":"+c.element)
		}
		if c.step.part == undo { // something must make the saga be given up
			refused := step{c.saga, "payment", "authorize", forward}
			if c.saga == refund.TypeName {
				refused = step{c.saga, "transfer", "refund", forward}
			}
			s.world.Script(r.businessKey(), refused.segment, refused.action, suppliers.Refuse(refusal(refused)))
			r.ends = []string{"failed"}
		}
		if c.ender == bySibling {
			s.world.Script(r.businessKey(), c.sibling.segment, c.sibling.action, suppliers.Refuse(refusal(c.sibling)).When(a.refuse))
		}
		all, runs = append(all, a), append(runs, r)
	}
	return all, runs
}

// reached waits until the run stands at its moment.
func (s *stage) reached(c scene, a *acted) {
	s.Helper()
	s.until(a.about+" reached", 20*time.Second, func() bool {
		if a.moment == during {
			return s.arrived(a.run, a.came)
		}
		select {
		case <-a.hold.reached:
			return true
		default:
			return false
		}
	})
}

// endElement ends the element that the run's operation belongs to, and waits for the engine to say so.
func (s *stage) endElement(c scene, a *acted) {
	s.Helper()
	switch c.ender {
	case byPartner:
		s.cancel(a.id)
	case byOutside:
		var instance int64
		s.must(s.pool.QueryRow(s.ctx, `SELECT process_instance_key FROM journeyman.saga WHERE id = $1`, a.id).Scan(&instance))
		if err := s.conn.CancelInstance(s.ctx, instance); err != nil && !answered(a.moment) {
			s.Errorf("%s: cancel instance: %v", a.about, err)
		}
	case bySibling:
		close(a.refuse)
	}
	history := audit.Engine{Address: "http://" + s.eng.RESTAddr(), Client: s.http}
	want := []string{"TERMINATED"}
	if answered(a.moment) {
		want = append(want, "COMPLETED")
	}
	if c.pivot && c.ender == byPartner {
		want = append(want, "ACTIVE") // a decided saga is not cancelled any more
	}
	s.until(fmt.Sprintf("%s: element ended", a.about), 15*time.Second, func() bool {
		state, err := history.ElementState(s.ctx, a.id+":"+c.element)
		s.must(err)
		return slices.Contains(want, state)
	})
}

// TestMoments ends elements at every moment of their operation: by timer, deadline, cancel, from outside, by a sibling's
// failure. Whatever the moment, the orphan is undone exactly once and nothing that stands is touched.
func TestMoments(t *testing.T) {
	s := setupWith(t, 8*time.Second, false)
	h := newHolds(s)
	var runs []*run
	for i, c := range chosen(t) {
		began := time.Now()
		part := s.playScene(h, c, 1+100*i)
		var ends []string
		for j, r := range part {
			ends = append(ends, fmt.Sprintf("%s: %s", c.moments()[j], s.result(r)))
		}
		t.Logf("%s (%v)\n    %s", c, time.Since(began).Round(time.Millisecond), strings.Join(ends, "\n    "))
		runs = append(runs, part...)
		s.report(part)
	}
	s.audit()
	t.Logf("%d sagas", len(runs))
}
