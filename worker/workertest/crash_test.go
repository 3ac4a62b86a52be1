package workertest_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

// A worker stands still at each point of a transactional job; another one finishes the job, and the effect is there once.
func TestHold(t *testing.T) {
	t.Parallel()
	for _, p := range []workertest.Point{workertest.AfterReceive, workertest.AfterClaim, workertest.BeforeCommit, workertest.AfterCommit, workertest.BeforeSend, workertest.AfterSend} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, model(""))
			if _, err := h.pool.Exec(t.Context(), `CREATE TABLE stay (id text)`); err != nil {
				t.Fatal(err)
			}
			key := string(p) // points are told apart by operation, and tests run in one process
			var runs atomic.Int64
			fill := func(mux *worker.Mux) {
				mux.Handle("room.reserve", worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[first]) (held, error) {
					runs.Add(1)
					_, err := tx.Exec(ctx, `INSERT INTO stay VALUES ($1)`, job.OperationID)
					return held{ID: "R"}, err
				}, worker.NotCompensable("a test")))
			}
			held := workertest.Hold(t, p, "op-"+key)
			h.build(fill)
			inst := h.create(map[string]any{"businessKey": key})
			held.Wait()
			h.build(fill)
			if p == workertest.AfterClaim || p == workertest.BeforeCommit {
				// The first worker's transaction is open: the second waits for it, as for one that is only slow.
				held.Release()
			}
			h.env.AdvanceClock(10 * time.Minute) // past the job's time-out
			inst.WantActive("wait").WantVariable("room", "R").WantNoIncidents()
			held.Release()
			h.until("one stay", func() bool {
				var n int
				err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM stay`).Scan(&n)
				return err == nil && n == 1
			})
		})
	}
}

// The same at the points of an external call: another worker takes the lease over, asks, and finishes.
func TestHold_external(t *testing.T) {
	t.Parallel()
	for _, p := range []workertest.Point{workertest.BeforeCall, workertest.AfterCall, workertest.AfterStore} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, model(""))
			if _, err := h.pool.Exec(t.Context(), `CREATE TABLE stay (id text)`); err != nil {
				t.Fatal(err)
			}
			key := string(p)
			var mu sync.Mutex
			rooms := map[string]bool{}
			fill := func(mux *worker.Mux) {
				mux.Handle("room.reserve", worker.External(worker.Remote[first, held, held]{
					Call: func(_ context.Context, c worker.Call[first]) (held, error) {
						mu.Lock()
						defer mu.Unlock()
						rooms[c.Key] = true
						return held{ID: "R"}, nil
					},
					Resolve: func(_ context.Context, c worker.Call[first]) (held, error) {
						mu.Lock()
						defer mu.Unlock()
						if !rooms[c.Key] {
							return held{}, worker.ErrNotHappened
						}
						return held{ID: "R"}, nil
					},
					Settle: func(ctx context.Context, tx *worker.Tx, job worker.Job[first], res held) (held, error) {
						_, err := tx.Exec(ctx, `INSERT INTO stay VALUES ($1)`, job.OperationID)
						return res, err
					},
				}, worker.KeyValidFor(time.Hour), worker.NotCompensable("a test")))
			}
			held := workertest.Hold(t, p, "op-"+key)
			h.build(fill)
			inst := h.create(map[string]any{"businessKey": key})
			held.Wait()
			h.build(fill)
			workertest.AdvanceClock(t, h.pool, "", 10*time.Minute) // past the lease
			h.env.AdvanceClock(10 * time.Minute)                   // past the job's time-out
			inst.WantActive("wait").WantVariable("room", "R").WantNoIncidents()
			held.Release() // it was only slow: what it finds is done
			mu.Lock()
			defer mu.Unlock()
			if len(rooms) != 1 {
				t.Errorf("%d rooms, want 1", len(rooms))
			}
			var n int
			if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM stay`).Scan(&n); err != nil || n != 1 {
				t.Errorf("%d stays, %v, want 1", n, err)
			}
		})
	}
}

// Every point that Points lists is held by one of the tests above.
func TestPoints(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("crash_test.go")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"AfterReceive", "AfterClaim", "BeforeCall", "AfterCall", "AfterStore", "BeforeCommit", "AfterCommit", "BeforeSend", "AfterSend"}
	if len(names) != len(workertest.Points()) {
		t.Errorf("%d points, want %d", len(workertest.Points()), len(names))
	}
	for _, n := range names {
		if !strings.Contains(string(text), "workertest."+n) {
			t.Errorf("no test holds at %s", n)
		}
	}
}

func TestHold_neverReached(t *testing.T) {
	t.Parallel()
	held := workertest.Hold(t, workertest.AfterCommit, "op-none")
	select {
	case <-held.Reached():
		t.Error("reached by nobody")
	default:
	}
	held.Release()
	held.Release()
}
