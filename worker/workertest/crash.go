package workertest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
)

// Point names a place on the way of an effect where a process may die. Every
// worker passes them; they cost nothing while no test uses them.
type Point string

// The points of a job, in the order in which it passes them. Those of a call
// are for external handlers.
const (
	AfterReceive Point = "worker.received"      // the job is ours, nothing is recorded
	AfterClaim   Point = "worker.claimed"       // the operation is claimed, the handler has not run
	BeforeCall   Point = "worker.call.before"   // external: about to call the other system
	AfterCall    Point = "worker.call.after"    // external: it has answered, nothing of it is stored
	AfterStore   Point = "worker.call.stored"   // external: its answer is stored, not settled
	BeforeCommit Point = "worker.commit.before" // everything is written, nothing is committed
	AfterCommit  Point = "worker.commit.after"  // committed, the engine knows nothing
	BeforeSend   Point = "worker.answer.before" // about to tell the engine
	AfterSend    Point = "worker.answer.after"  // told; the command row still stands
)

// Points lists all points in that order.
func Points() []Point {
	return []Point{AfterReceive, AfterClaim, BeforeCall, AfterCall, AfterStore, BeforeCommit, AfterCommit, BeforeSend, AfterSend}
}

// Held is a goroutine of a worker that a test holds at a point: for everybody
// else that worker is dead there, until the test lets it go on, which is a
// worker that was only slow.
type Held struct {
	t       testing.TB
	point   Point
	reached chan struct{}
	release func()
}

// Hold holds the first goroutine that reaches a point for an operation, and no
// later one. What is held is released when the test ends.
func Hold(t testing.TB, p Point, operationID string) *Held {
	t.Helper()
	h := &Held{t: t, point: p, reached: make(chan struct{})}
	gate := make(chan struct{})
	var first, last sync.Once
	remove := crash.Hook(string(p), func(detail string) {
		if detail != operationID {
			return
		}
		mine := false
		first.Do(func() { mine = true })
		if mine {
			close(h.reached)
			<-gate
		}
	})
	h.release = func() { last.Do(func() { close(gate) }) }
	t.Cleanup(func() {
		h.release()
		remove()
	})
	return h
}

// mostWait bounds how long a test waits for a point.
const mostWait = 20 * time.Second

// Wait blocks until the point is reached. Never reached ends the test after 20 seconds.
func (h *Held) Wait() {
	h.t.Helper()
	timer := time.NewTimer(mostWait)
	defer timer.Stop()
	select {
	case <-h.reached:
	case <-timer.C:
		h.t.Fatalf("workertest: point %s was not reached within %s", h.point, mostWait)
	}
}

// Reached is closed when the point is reached.
func (h *Held) Reached() <-chan struct{} { return h.reached }

// Release lets the goroutine go on. It may be called more than once.
func (h *Held) Release() { h.release() }

// AdvanceClock moves the clock of a worker's tables forward: leases run out, retention passes. schema "" is "journeyman". The
// engine has a clock of its own; move it too where a job's time-out matters.
func AdvanceClock(t testing.TB, pool *pgxpool.Pool, schema string, by time.Duration) {
	t.Helper()
	if err := postgres.AdvanceClock(context.WithoutCancel(t.Context()), pool, postgres.SchemaOr(schema), by); err != nil {
		t.Fatalf("workertest: move the clock by %s: %v", by, err)
	}
}
