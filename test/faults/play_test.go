package faults

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// run is one plan being played.
type run struct {
	plan
	booking string // of the partner
	key     string // Idempotency-Key
	id      string // operation and saga id
	body    map[string]any

	whenDecided, whenQuiet func()                   // release what suppliers hold; may be called more than once
	later                  map[time.Duration]func() // release what lands so long after the end; may be called more than once
	arrive                 []arrival                // the partner cancels when the first of these requests has arrived
	cancelled              bool
	dropped                *wire // loses the pivot's job, so that the partner can cancel before it

	decision string
	closed   bool
	manual   bool // its instance is gone and a person has to close it
	retried  bool // a newer attempt has its key
	end      answer
	acts     []string // what a person did
	wrong    []string
}

// arrival is a request that is waited for, and how many like it there were before, of the sale.
type arrival struct {
	step
	before int
}

func (s *stage) arrived(r *run, a arrival) bool {
	return s.world.Requests(r.businessKey(), a.segment, a.action) > a.before
}

func (s *stage) arrival(r *run, st step) arrival {
	return arrival{st, s.world.Requests(r.businessKey(), st.segment, st.action)}
}

func (r *run) fail(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *run) businessKey() string { return tenant + ":" + r.booking }

// pivot is the element that decides.
func (r *run) pivot() string {
	switch r.saga {
	case refund.TypeName:
		return "refundApprove"
	case amendment.TypeName:
		return "amendmentConfirm"
	default:
		return "bookingConfirm"
	}
}

// gate is closed by calling open, once or more often.
func gate() (closed <-chan struct{}, open func()) {
	c := make(chan struct{})
	var once sync.Once
	return c, func() { once.Do(func() { close(c) }) }
}

// prepare makes a run of a plan on a booking that has been sold, if it must be. Nothing is sent yet.
func (s *stage) prepare(p plan, booking string, sold sales) *run {
	r := &run{plan: p, booking: booking, key: p.saga + "-" + booking, later: map[time.Duration]func(){}}
	r.id = sagas.OperationID(tenant, p.saga, r.key, 1)
	switch p.saga {
	case refund.TypeName:
		r.body = refundBody(booking, sold[booking])
	case amendment.TypeName:
		r.body = amendmentBody(p, booking)
	default:
		r.body = bookingBody(r)
	}
	var decided, quiet <-chan struct{}
	decided, r.whenDecided = gate()
	quiet, r.whenQuiet = gate()
	for _, c := range p.cells {
		b, late := behaviour(c), lateness()[c.fault]
		if late > 0 || c.fault == answersLate && c.step.part == forward {
			r.arrive = append(r.arrive, s.arrival(r, c.step))
		}
		switch {
		case late > 0:
			var release <-chan struct{}
			release, r.later[late] = gate()
			b = suppliers.LandLate(release)
		case c.fault == answersLate && c.step.part == forward:
			b = suppliers.LandLate(decided)
		case c.fault == answersLate:
			b = suppliers.LandLate(quiet)
		}
		s.world.Script(r.businessKey(), c.step.segment, c.step.action, b)
		if c.fault == deafOnce {
			s.world.Script(r.businessKey(), c.step.segment, suppliers.Ask, suppliers.TimeoutBefore().Times(3))
		}
	}
	for _, w := range p.wires {
		w.install(s.traffic, r.id)
	}
	if p.undone() {
		r.dropped = s.traffic.put(&wire{method: "ActivateJobs", operation: r.id + ":" + r.pivot(), times: -1, drop: true})
	}
	return r
}

func behaviour(c cell) suppliers.Behaviour {
	switch c.fault {
	case refuses:
		b := suppliers.Refuse(refusal(c.step))
		if c.step.part == undo || c.step.old() {
			b = b.Times(1) // a person has a word with the supplier, then tries again
		}
		return b
	case timesOut:
		return suppliers.TimeoutBefore()
	case neverAnswers:
		if c.step.part == undo {
			return suppliers.TimeoutBefore().Times(6)
		}
		return suppliers.TimeoutBefore().Always()
	case actsTimesOut, deafOnce:
		return suppliers.TimeoutAfter()
	case answersTwice:
		return suppliers.Twice()
	case failsOnce:
		return suppliers.Fail(1)
	default:
		return suppliers.ActThenFail()
	}
}

// begin sends the request.
func (s *stage) begin(r *run) {
	s.Helper()
	if a := s.post(r.saga, r.key, r.body); a.status != 202 {
		r.fail("start: status %d: %s", a.status, a.body)
		r.closed = true
	}
}

// play plays all plans at once, each on a booking of its own, and gives them ended and judged.
func (s *stage) play(plans []plan, first int) []*run {
	s.Helper()
	sold := s.sell(plans, first)
	var runs []*run
	for i, p := range plans {
		runs = append(runs, s.prepare(p, name(first+i), sold))
	}
	for i, r := range runs {
		s.begin(r)
		s.look(runs[:i+1])
	}
	s.drive(runs)
	s.land(runs)
	s.settle(runs)
	s.judge(runs)
	return runs
}

// sales are the final answers of bookings that refunds and amendments start from.
type sales map[string]answer

// sell books what refunds give back and amendments change.
func (s *stage) sell(plans []plan, first int) sales {
	s.Helper()
	var runs []*run
	for i, p := range plans {
		if p.sells() {
			runs = append(runs, s.prepare(plan{saga: tourbooking.TypeName}, name(first+i), nil))
		}
	}
	if len(runs) == 0 {
		return nil
	}
	for _, r := range runs {
		s.begin(r)
	}
	s.drive(runs)
	still := s.stillness()
	s.until("tickets of all sales", time.Minute, func() bool {
		var open int
		s.must(s.pool.QueryRow(s.ctx, `SELECT count(*) FROM journeyman.saga WHERE type = 'ticketing' AND closed_at IS NULL`).Scan(&open))
		if open > 0 && still.quiet() { // a job whose worker died comes back by its time-out
			s.advance(31 * time.Second)
			still.reset()
		}
		return open == 0
	})
	sold := sales{}
	for _, r := range runs {
		if r.end.State != "completed" {
			s.Fatalf("sale of %s: ended %q: %s", r.booking, r.end.State, r.end.body)
		}
		sold[r.booking] = r.end
	}
	return sold
}

// land lets arrive at the suppliers what was on its way all the time, by the clocks so long after all sagas have ended.
func (s *stage) land(runs []*run) {
	s.Helper()
	began, still := s.offset(), s.stillness()
	all := map[time.Duration]bool{}
	for _, r := range runs {
		for d := range r.later {
			all[d] = true
		}
	}
	for _, d := range slices.Sorted(maps.Keys(all)) {
		for s.offset()-began < d {
			s.advance(time.Minute)
			still.reset()
			s.until("quiet", time.Minute, still.quiet)
		}
		for _, r := range runs {
			if let := r.later[d]; let != nil {
				before := s.standing(r)
				let()
				s.until(r.String()+" landed", 10*time.Second, func() bool { return s.standing(r) > before })
			}
		}
	}
}

// standing counts the effects of a run that were made.
func (s *stage) standing(r *run) (n int) {
	for _, e := range s.world.Ledger() {
		if e.Booking == r.businessKey() && strings.HasPrefix(e.Reference, r.id+":") && e.Kind.Ends() != "" {
			n++
		}
	}
	return n
}

// ladder is how far the clocks move each time that nothing happens any more.
var ladder = []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second, 31 * time.Second, time.Minute}

// longest is the time by the moved clocks within which every saga must have ended.
const longest = 3 * time.Hour

// drive lets the runs go on until all have ended: it plays partner and person, and moves the clocks when nothing moves by itself.
func (s *stage) drive(runs []*run) {
	s.Helper()
	began, rung := s.offset(), 0
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	still := s.stillness()
	for {
		if s.look(runs) {
			return
		}
		if still.quiet() {
			if s.offset()-began > longest {
				for _, r := range runs {
					if !r.closed {
						r.fail("stuck: decision %q after %v: %s", r.decision, longest, s.stuck(r))
						r.closed = true
					}
				}
				return
			}
			acted := false
			for _, r := range runs {
				if !r.closed {
					acted = s.person(r) || acted
					r.whenQuiet()
				}
			}
			if still.moved() || acted {
				rung = max(0, rung-2)
			}
			if !acted {
				s.advance(ladder[min(rung, len(ladder)-1)])
				rung++
			}
			still.reset()
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.Fatal(s.ctx.Err())
		}
	}
}

// look reads how the runs stand, cancels and releases what waits for that, and reports whether all have ended.
func (s *stage) look(runs []*run) bool {
	s.Helper()
	byID := map[string]*run{}
	for _, r := range runs {
		if !r.closed {
			byID[r.id] = r
		}
	}
	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}
	rows, err := s.pool.Query(s.ctx, `SELECT s.id, coalesce(s.decision, ''), s.closed_at IS NOT NULL AND EXISTS (SELECT 1 FROM journeyman_records.record r WHERE r.operation_id = s.id AND r.final IS NOT NULL)
		FROM journeyman.saga s WHERE s.id = ANY ($1)`, ids)
	s.must(err)
	var id, decision string
	var closed bool
	var ended []*run
	_, err = pgx.ForEachRow(rows, []any{&id, &decision, &closed}, func() error {
		r := byID[id]
		r.decision = decision
		if closed {
			ended = append(ended, r)
		}
		return nil
	})
	s.must(err)
	for _, r := range ended {
		if r.end = s.status(r.id); !r.end.final() {
			r.fail("record is final, the API says %d %s", r.end.status, r.end.body)
		}
		r.closed = true
		s.traffic.lift(r.dropped)
		r.whenDecided()
	}
	for _, r := range byID {
		s.nudge(r)
	}
	return len(byID) == len(ended)
}

// nudge cancels when a held request has arrived or the pivot's job was lost, and lets go what waits for the decision.
func (s *stage) nudge(r *run) {
	s.Helper()
	if r.decision != "" {
		r.whenDecided()
		return
	}
	if r.cancelled || r.closed {
		return
	}
	enough := slices.ContainsFunc(r.arrive, func(a arrival) bool { return s.arrived(r, a) })
	if r.dropped != nil {
		select {
		case <-r.dropped.hit:
			enough = true
		default:
		}
	}
	if enough {
		r.cancelled = true
		s.cancel(r.id)
	}
}

// person does what an operator does: completes the user task, resolves an incident. It reports whether there was anything.
func (s *stage) person(r *run) bool {
	s.Helper()
	var instance int64
	err := s.pool.QueryRow(s.ctx, `SELECT coalesce(process_instance_key, 0) FROM journeyman.saga WHERE id = $1`, r.id).Scan(&instance)
	if err != nil || instance == 0 {
		return false
	}
	tasks, err := s.rest.SearchUserTasks(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance), "state": "CREATED"}})
	s.must(err)
	for _, task := range tasks.Items {
		r.acts = append(r.acts, "task "+task.ElementID)
		s.must(s.rest.CompleteUserTask(s.ctx, int64(task.UserTaskKey), map[string]any{"remediation": s.settledByHand(r.id)}))
	}
	incidents, err := s.rest.SearchIncidents(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance), "state": "ACTIVE"}})
	s.must(err)
	for _, i := range incidents.Items {
		r.acts = append(r.acts, "incident "+i.ElementID+": "+i.ErrorMessage)
		if len(r.acts) > 20 {
			r.fail("a person had to act more than 20 times, last: %s\n    %s", r.acts[len(r.acts)-1], s.stuck(r))
			r.closed = true
			return false
		}
		if i.JobKey != 0 {
			s.must(s.conn.UpdateJobRetries(s.ctx, int64(i.JobKey), 3))
		}
		s.must(s.conn.ResolveIncident(s.ctx, int64(i.IncidentKey)))
	}
	if len(tasks.Items)+len(incidents.Items) > 0 {
		return true
	}
	s.must(s.pool.QueryRow(s.ctx, `SELECT state = 'manual' FROM journeyman.saga WHERE id = $1`, r.id).Scan(&r.manual))
	if r.manual {
		i, err := s.rest.ProcessInstance(s.ctx, instance)
		s.must(err)
		r.manual = i.State != "ACTIVE"
		r.closed = r.manual
	}
	return r.manual
}

// settle gives what comes after the end, late landings and orphans, the chance to be put right: until the ledgers balance, or two hours have gone by:
// suppliers are asked for the last time an hour after the undo.
func (s *stage) settle(runs []*run) {
	s.Helper()
	began, still := s.offset(), s.stillness()
	for s.offset()-began < 2*time.Hour {
		ok := still.quiet()
		for _, r := range runs {
			ok = ok && len(s.ledgerFaults(r)) == 0
		}
		if ok {
			return
		}
		if still.quiet() {
			s.advance(30 * time.Second)
			still.reset()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-s.ctx.Done():
			s.Fatal(s.ctx.Err())
		}
	}
}

// stuck says where a run stands, for the message of a failure.
func (s *stage) stuck(r *run) string {
	var out strings.Builder
	var instance int64
	var state string
	_ = s.pool.QueryRow(s.ctx, `SELECT coalesce(process_instance_key, 0), state FROM journeyman.saga WHERE id = $1`, r.id).Scan(&instance, &state)
	fmt.Fprintf(&out, "saga %s instance %d;", state, instance)
	elements, err := s.rest.SearchElementInstances(s.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(instance), "state": "ACTIVE"}})
	if err == nil {
		for _, e := range elements.Items {
			fmt.Fprintf(&out, " active %s;", e.ElementID)
		}
	}
	rows, err := s.pool.Query(s.ctx, `SELECT operation_id, state, effect, class, code, message, attempts, owner <> '' FROM journeyman.operation WHERE saga_id = $1 ORDER BY created_at`, r.id)
	if err == nil {
		var id, st, effect, class, code, message string
		var attempts int
		var owned bool
		_, _ = pgx.ForEachRow(rows, []any{&id, &st, &effect, &class, &code, &message, &attempts, &owned}, func() error {
			fmt.Fprintf(&out, "\n    %s %s effect=%s %s %s attempts=%d owned=%v %.120s", strings.TrimPrefix(id, r.id), st, effect, class, code, attempts, owned, message)
			return nil
		})
	}
	return out.String()
}

// same reports whether a final answer is the same bytes whoever asks.
func (s *stage) same(r *run) {
	s.Helper()
	if again := s.status(r.id); again.status != 200 || !bytes.Equal(again.body, r.end.body) {
		r.fail("final answer changed:\n  %s\n  %d %s", r.end.body, again.status, again.body)
	}
	if r.retried {
		return
	}
	if again := s.post(r.saga, r.key, r.body); again.status != 200 || !bytes.Equal(again.body, r.end.body) {
		r.fail("repeat is answered otherwise:\n  %s\n  %d %s", r.end.body, again.status, again.body)
	}
}
