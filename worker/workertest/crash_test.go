package workertest_test

import (
	"context"
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
