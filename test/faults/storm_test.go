package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// storm plays sagas with random faults of suppliers and line, while partners cancel, repeat and retry, operators cancel
// instances, and the clocks jump.
type storm struct {
	*stage
	streams bool
	random  *rand.Rand
	runs    []*run
	did     map[string]int
}

// any plans one saga.
func (s *storm) plan(saga string) plan {
	p := plan{saga: saga, ends: []string{"completed", "failed", "expired", "manual"}, random: true}
	var own []step
	for _, st := range append(steps(), more()...) {
		if st.saga == saga && !st.cheaper() {
			own = append(own, st)
		}
	}
	// A request that lands later than any lease, as it can when the clocks jump, is nobody's to know; the matrix has those that land in time.
	faults := []fault{refuses, timesOut, actsTimesOut, answersTwice, failsOnce, actsFailsOnce}
	for range s.random.IntN(4) {
		p.cells = append(p.cells, cell{own[s.random.IntN(len(own))], faults[s.random.IntN(len(faults))]})
	}
	elements := []string{"begin", "flightReserve:flight", "flightReserve:" + secondFlight, "hotelReserve:hotel", "transferReserve:transfer", "paymentAuthorize", "bookingConfirm", "paymentCapture", "close", "hotelReserve:hotel:undo", "undoRestFailure", "giveUpCancel"}
	switch saga {
	case amendment.TypeName:
		elements = []string{"begin", "amendmentBegin", "segmentReserve", "differenceAuthorize", "amendmentConfirm", "differenceSettle", "oldRelease", "close", "segmentReserve:undo", "undoRestFailure", "giveUpCancel"}
	case refund.TypeName:
		elements = []string{"begin", "segmentRefund:1", "segmentRefund:2", "refundApprove", "refundPay", "close", "undoRestFailure", "giveUpCancel"}
	}
	answers, handing := []string{lostReply, lostDeadline, unavailable, exhausted, falseGone}, []string{twiceGiven, lostBatch}
	for n := s.random.IntN(3); n > 0 && !s.streams; n-- {
		w := wireFault{"CompleteJob", elements[s.random.IntN(len(elements))], answers[s.random.IntN(len(answers))]}
		if s.random.IntN(3) == 0 {
			w.method, w.kind = "ActivateJobs", handing[s.random.IntN(len(handing))]
		}
		p.wires = append(p.wires, w)
	}
	return p
}

// jumps are how far the clocks may jump at any moment.
var jumps = []time.Duration{time.Second, 10 * time.Second, 31 * time.Second, 2 * time.Minute, 11 * time.Minute, 31 * time.Minute}

// act does one thing to one open saga, or to the clocks.
func (s *storm) act(open []*run) {
	s.Helper()
	r := open[s.random.IntN(len(open))]
	did := ""
	switch n := s.random.IntN(100); {
	case n < 2:
		did = "cancel"
		s.cancel(r.id)
	case n < 4:
		var instance int64
		s.must(s.pool.QueryRow(s.ctx, `SELECT coalesce(max(process_instance_key), 0) FROM journeyman.saga WHERE id = $1`, r.id).Scan(&instance))
		if instance == 0 {
			return
		}
		did = "cancel from outside"
		_ = s.conn.CancelInstance(s.ctx, instance) // it may have ended
	case n < 15:
		did = "repeat"
		if a := s.post(r.saga, r.key, r.body); a.status != 202 && a.status != 200 && a.status != 429 {
			r.fail("repeat: status %d %s", a.status, a.body)
		}
	case n < 19:
		did = "other payload"
		if a := s.post(r.saga, r.key, map[string]any{"booking": r.booking, "other": true}); a.status != 422 && a.status != 429 { // INV11
			r.fail("other payload under the same key: status %d %s, want 422", a.status, a.body)
		}
	case n < 21:
		did = "jump"
		s.advance(jumps[s.random.IntN(len(jumps))])
	default:
		return
	}
	s.did[did]++
}

// retry forces another attempt of every saga that failed; nil when there was none.
func (s *storm) retry(r *run) *run {
	s.Helper()
	if r.end.State != "failed" && r.end.State != "expired" {
		return nil
	}
	n := &run{plan: r.plan, booking: r.booking, key: r.key, body: r.body, cancelled: true}
	n.about = "attempt 2 of " + r.plan.String()
	n.id = sagas.OperationID(tenant, r.saga, r.key, 2)
	n.whenDecided, n.whenQuiet = r.whenDecided, r.whenQuiet
	if a := s.post(r.saga, r.key, r.body, "X-Idempotency-Force-Retry", "true"); a.status != 202 || a.OperationID != n.id {
		r.fail("force retry: status %d %s", a.status, a.body)
		return nil
	}
	r.retried = true
	s.did["force retry"]++
	return n
}

// rage acts until all have ended or so many acts were tried; drive ends the rest.
func (s *storm) rage(runs []*run, tries int) {
	s.Helper()
	for range tries {
		s.look(runs)
		open := slices.DeleteFunc(slices.Clone(runs), func(r *run) bool { return r.closed })
		if len(open) == 0 {
			break
		}
		s.act(open)
	}
	s.drive(runs)
}

// TestStorm plays random plans and checks the invariants: INV1 and INV9 in the ledgers, INV2 and INV8 by the ends, INV3 to
// INV6 by the audit, INV10 by reading every answer again, INV11 in act, INV12 by the triggers, INV16 before every CompleteJob.
func TestStorm(t *testing.T) {
	n := seed(t)
	for round := range stormRounds {
		t.Run(fmt.Sprintf("round%d", round), func(t *testing.T) { playStorm(t, rand.New(rand.NewPCG(n, uint64(round))), (n+uint64(round))%2 == 1) }) //nolint:gosec // a plan
	}
}

// playStorm plays one storm. With streams jobs are pushed, and the line stays whole.
func playStorm(t *testing.T, random *rand.Rand, streams bool) {
	s := &storm{stage: setupWith(t, callTimeout, streams), streams: streams, random: random, did: map[string]int{}}
	var early atomic.Int64
	told := func(operation string) {
		var state string
		err := s.pool.QueryRow(s.ctx, `SELECT state FROM journeyman.operation WHERE operation_id = $1`, operation).Scan(&state)
		if err == nil && state != "done" && state != "revoked" || err == pgx.ErrNoRows { //nolint:errorlint // pgx gives it bare
			early.Add(1)
		}
	}
	s.traffic.told.Store(&told)
	var plans []plan
	for i := range stormSize {
		plans = append(plans, s.plan([]string{tourbooking.TypeName, tourbooking.TypeName, refund.TypeName, amendment.TypeName}[i%4]))
	}
	sold := s.sell(plans, 0)
	for i, p := range plans {
		s.runs = append(s.runs, s.prepare(p, name(i), sold))
	}
	for i, r := range s.runs {
		s.begin(r)
		s.look(s.runs[:i+1])
	}
	s.rage(s.runs, 40*stormSize)
	s.settle(s.runs)
	s.judge(s.runs)
	var second []*run
	for _, r := range s.runs {
		if again := s.retry(r); again != nil {
			second = append(second, again)
		}
	}
	s.rage(second, 20*len(second))
	all := append(s.runs, second...)
	s.settle(all)
	s.judge(second)
	ends := map[string]int{}
	for _, r := range all {
		ends[s.result(r)]++
		if !r.manual && r.end.final() {
			s.same(r)
			for _, w := range s.ledgerFaults(r) {
				r.fail("later: %s", w)
			}
		}
	}
	if n := early.Load(); n > 0 {
		t.Errorf("%d answers were told before they were committed", n)
	}
	t.Logf("%d sagas; %v; ends %v", len(all), s.did, ends)
	s.finish(all)
}
