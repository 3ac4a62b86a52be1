package faults

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
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

	whenDecided, whenQuiet func() // release what suppliers hold; may be called more than once
	arrive                 []step // the partner cancels when the first of these requests has arrived
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

func (r *run) fail(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *run) businessKey() string { return tenant + ":" + r.booking }

// pivot is the element that decides.
func (r *run) pivot() string {
	if r.saga == refund.TypeName {
		return "refundApprove"
	}
	return "bookingConfirm"
}

// prepare makes a run of a plan. Nothing is sent yet.
func (s *stage) prepare(p plan, booking string) *run {
	r := &run{plan: p, booking: booking, key: p.saga + "-" + booking}
	r.id = sagas.OperationID(tenant, p.saga, r.key, 1)
	r.body = bookingBody(booking)
	decided, quiet := make(chan struct{}), make(chan struct{})
	var onceDecided, onceQuiet sync.Once
	r.whenDecided = func() { onceDecided.Do(func() { close(decided) }) }
	r.whenQuiet = func() { onceQuiet.Do(func() { close(quiet) }) }
	for _, c := range p.cells {
		b := behaviour(c)
		if c.fault == answersLate {
			release := quiet
			if c.step.part == forward {
				release = decided
				r.arrive = append(r.arrive, c.step)
			}
			b = suppliers.LandLate(release)
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
		if c.step.part == undo {
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
	var runs, sales []*run
	for i, p := range plans {
		r := s.prepare(p, name(first+i))
		runs = append(runs, r)
		if p.saga == refund.TypeName {
			sale := s.prepare(plan{saga: tourbooking.TypeName}, r.booking)
			sales = append(sales, sale)
		}
	}
	s.sell(sales, runs)
	for i, r := range runs {
		s.begin(r)
		s.look(runs[:i+1])
	}
	s.drive(runs)
	s.settle(runs)
	s.judge(runs)
	return runs
}

// sell books what refunds give back.
func (s *stage) sell(sales, runs []*run) {
	s.Helper()
	if len(sales) == 0 {
		return
	}
	for _, r := range sales {
		s.begin(r)
	}
	s.drive(sales)
	s.until("tickets of all sales", 30*time.Second, func() bool {
		var open int
		s.must(s.pool.QueryRow(s.ctx, `SELECT count(*) FROM journeyman.saga WHERE type = 'ticketing' AND closed_at IS NULL`).Scan(&open))
		return open == 0
	})
	sold := map[string]answer{}
	for _, r := range sales {
		if r.end.State != "completed" {
			s.Fatalf("sale of %s: ended %q: %s", r.booking, r.end.State, r.end.body)
		}
		sold[r.booking] = r.end
	}
	for _, r := range runs {
		if of, ok := sold[r.booking]; ok {
			r.body = refundBody(r.booking, of)
		}
	}
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
	enough := slices.ContainsFunc(r.arrive, func(st step) bool { return s.world.Requests(r.businessKey(), st.segment, st.action) > 0 })
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
		s.must(s.rest.CompleteUserTask(s.ctx, int64(task.UserTaskKey), map[string]any{"remediation": map[string]any{"outcome": "done", "note": "settled by hand"}}))
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

// settle gives what comes after the end, late landings and orphans, the chance to be put right: until the ledgers balance, or an hour has gone by.
func (s *stage) settle(runs []*run) {
	s.Helper()
	began, still := s.offset(), s.stillness()
	for s.offset()-began < time.Hour {
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
