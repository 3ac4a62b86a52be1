package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// batchWorld runs a batch handler over jobs op-1, op-2, ... in one call where that is possible. calls lists the ids of each call.
func batchWorld(w *world, n int, end func(j Job[reserve]) error, all func(ids []string) error) (mates []*mate, rt *Runtime, calls func() [][]string) {
	w.t.Helper()
	var mu sync.Mutex
	var seen [][]string
	mux := NewMux()
	mux.Handle("flight.reserve", Batch(50, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		var ids, ok []string
		ends := make([]BatchEnd[reserved], len(jobs))
		for i, j := range jobs {
			ids = append(ids, j.OperationID)
			if ends[i].Err = end(j); ends[i].Err == nil {
				ok, ends[i].Out = append(ok, j.OperationID), reserved{ID: "R-" + j.OperationID}
			}
		}
		mu.Lock()
		seen = append(seen, ids)
		mu.Unlock()
		if _, err := tx.Exec(ctx, `INSERT INTO room SELECT unnest($1::text[]), 1`, ok); err != nil {
			return nil, err
		}
		if all != nil {
			if err := all(ids); err != nil {
				return nil, err
			}
		}
		return ends, nil
	}, NotCompensable("test")))
	rt = w.runtime(mux, fast())
	for i := range n {
		mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(fmt.Sprint("op-", i+1), offer)), ctx: w.ctx})
	}
	return mates, rt, func() [][]string { mu.Lock(); defer mu.Unlock(); return slices.Clone(seen) }
}

// TestBatch_ends: one call, each job with its own outcome, and nothing left of the one that is to be tried again.
func TestBatch_ends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mates, rt, calls := batchWorld(w, 5, func(j Job[reserve]) error {
		switch j.OperationID {
		case "op-2":
			return BusinessError("SOLD_OUT", "none left")
		case "op-3":
			return errors.New("the price list is being loaded")
		case "op-4":
			return Fatal(errors.New("no such flight"))
		}
		return nil
	}, nil)
	rt.runGroup(w.ctx, mates)
	if c := calls(); len(c) != 1 || len(c[0]) != 5 {
		t.Errorf("calls %v", c)
	}
	for i, want := range []outcome.Class{outcome.Success, outcome.Business, "", outcome.Fatal, outcome.Success} {
		m, id := mates[i], fmt.Sprint("op-", i+1)
		op := w.op(id)
		rooms := 0
		if want == outcome.Success {
			rooms = 1
		}
		if op.Class != want || w.rooms(id) != rooms {
			t.Errorf("%s: recorded %q, want %q; %d rooms", id, op.Class, want, w.rooms(id))
		}
		if want == "" && (m.res.kind != retry || op.State != "") {
			t.Errorf("%s: end %d, state %q", id, m.res.kind, op.State)
		}
		if want != "" && (m.res.kind != answered || op.State != dedup.Done || m.res.queued == nil) {
			t.Errorf("%s: end %d, state %q", id, m.res.kind, op.State)
		}
	}
	if n := w.count(`SELECT count(*) FROM journeyman.zeebe_command`); n != 4 {
		t.Errorf("%d answers queued, want 4", n)
	}
}

// TestBatch_worker: jobs that wait beside each other come in one call; a bad one does not take the others down.
func TestBatch_worker(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			gate := make(chan struct{})
			var mu sync.Mutex
			var sizes []int
			mux := NewMux()
			mux.Handle("gate", Transactional(func(context.Context, *Tx, Job[struct{}]) (struct{}, error) { <-gate; return struct{}{}, nil }, NoEffect()))
			mux.Handle("flight.reserve", Batch(50, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
				mu.Lock()
				sizes = append(sizes, len(jobs))
				mu.Unlock()
				ends := make([]BatchEnd[reserved], len(jobs))
				for i, j := range jobs {
					if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, 1)`, j.OperationID); err != nil {
						return nil, err
					}
					ends[i].Out.ID = "R-" + j.OperationID
					if j.OperationID == "op-4" {
						return nil, bad()
					}
				}
				return ends, nil
			}, NotCompensable("test")))
			cfg := fast()
			cfg.Concurrency, cfg.MaxJobsActive = 1, 60
			wk, _ := w.start(mux, cfg)
			w.gw.add("gate", job("gate", ""))
			w.until("the slot is taken", func() bool { ok := wk.slots.TryAcquire(1); release(ok, wk); return !ok })
			keys := make([]int64, 8)
			for i := range keys {
				keys[i] = w.gw.add("flight.reserve", job(fmt.Sprint("op-", i+1), offer))
			}
			w.until("all wait", func() bool { wk.mu.Lock(); defer wk.mu.Unlock(); return len(wk.waiting) == len(keys) })
			close(gate)
			for i, k := range keys {
				id := fmt.Sprint("op-", i+1)
				if i == 3 {
					w.wait(k, "failed")
					if w.rooms(id) != 0 {
						t.Errorf("%s left a room", id)
					}
					continue
				}
				if j := w.wait(k, "completed"); w.rooms(id) != 1 || j.Retries != 3 {
					t.Errorf("%s: %d rooms, %d retries", id, w.rooms(id), j.Retries)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if slices.Max(sizes) != len(keys) {
				t.Errorf("calls of %v jobs, want one of %d", sizes, len(keys))
			}
		})
	}
}

func TestBatch_declaration(t *testing.T) {
	t.Parallel()
	mux := NewMux()
	mux.Handle("a", Batch[reserve, reserved](0, nil, NoEffect()))
	if err := mux.check(fast().HandlerTimeout); err == nil {
		t.Error("a batch of no jobs and no function passed")
	}
}
