package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// batchSizes notes how many jobs each call of a batch handler was given.
type batchSizes struct {
	mu   sync.Mutex
	seen []int
}

func (b *batchSizes) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = append(b.seen, n)
}

func (b *batchSizes) all() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.seen)
}

// waitTogether runs a worker whose one slot is held until n jobs of a batch handler, op-1, op-2, ..., wait for it.
func (w *world) waitTogether(n int, h Handler, cfg Config) (keys []int64) {
	w.t.Helper()
	gate := make(chan struct{})
	mux := NewMux()
	mux.Handle("gate", Transactional(func(context.Context, *Tx, Job[struct{}]) (struct{}, error) { <-gate; return struct{}{}, nil }, NoEffect()))
	mux.Handle("flight.reserve", h)
	cfg.Concurrency, cfg.MaxJobsActive = 1, 60
	wk, _ := w.start(mux, cfg)
	w.gw.add("gate", job("gate", ""))
	w.until("the slot is taken", func() bool { ok := wk.slots.TryAcquire(1); release(ok, wk); return !ok })
	for i := range n {
		keys = append(keys, w.gw.add("flight.reserve", job(fmt.Sprint("op-", i+1), offer)))
	}
	w.until("all wait", func() bool { wk.mu.Lock(); defer wk.mu.Unlock(); return len(wk.waiting) == n })
	close(gate)
	return keys
}

// TestBatch_most: of more jobs than fit a call takes as many as its handler declares, and the others come in the next one.
func TestBatch_most(t *testing.T) {
	t.Parallel()
	const most, jobs = 5, 8
	w, sizes := newWorld(t), &batchSizes{}
	keys := w.waitTogether(jobs, Batch(most, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		sizes.add(len(jobs))
		for _, j := range jobs {
			if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, 1)`, j.OperationID); err != nil {
				return nil, err
			}
		}
		return make([]BatchEnd[reserved], len(jobs)), nil
	}, NotCompensable("test")), fast())
	for i, k := range keys {
		id := fmt.Sprint("op-", i+1)
		if w.wait(k, "completed"); w.rooms(id) != 1 {
			t.Errorf("%s: %d rooms, want 1", id, w.rooms(id))
		}
	}
	sum := 0
	for _, n := range sizes.all() {
		sum += n
	}
	if got := sizes.all(); slices.Max(got) != most || sum != jobs {
		t.Errorf("calls of %v jobs, want %d in all, and %d in the largest", got, jobs, most)
	}
}

const batchCatalog = `domains: [test]
messages:
  - {type: test.room.reserved, class: domain, owner: test, producers: [test]}
  - {type: test.room.refused, class: domain, owner: test, producers: [test]}
  - {type: test.room.retried, class: domain, owner: test, producers: [test]}
`

// TestBatch_events: of one call each job has its own events in the outbox: a success those of its end, a refusal those attached to it
// and no others (path rule 3), a failure none, together with others and alone.
func TestBatch_events(t *testing.T) {
	t.Parallel()
	w, sizes := newWorld(t), &batchSizes{}
	catalog, err := events.ParseCatalog([]byte(batchCatalog))
	if err != nil {
		t.Fatal(err)
	}
	stager, err := outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "test", Instance: "test-1", Env: "test"})
	if err := errors.Join(err, outbox.Migrate(w.ctx, w.pool, "journeyman")); err != nil {
		t.Fatal(err)
	}
	cfg := fast()
	cfg.Stager = stager
	event := func(what string, j Job[reserve]) events.Message {
		return events.Message{Type: "test.room." + what, Data: map[string]string{"id": j.OperationID}}
	}
	keys := w.waitTogether(4, Batch(10, func(_ context.Context, _ *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		sizes.add(len(jobs))
		ends := make([]BatchEnd[reserved], len(jobs))
		for i, j := range jobs {
			ends[i].Events = []events.Message{event("reserved", j)}
			switch j.OperationID {
			case "op-2":
				ends[i].Err = BusinessError("SOLD_OUT", "none left", WithEvents(event("refused", j)))
			case "op-3":
				ends[i].Err = Retryable(errBoom, WithEvents(event("retried", j)))
			}
		}
		return ends, nil
	}, NotCompensable("test")), cfg)
	for i, state := range []string{"completed", "error-thrown", "failed", "completed"} {
		w.wait(keys[i], state)
	}
	if got := sizes.all(); got[0] != 4 || !slices.Contains(got, 1) {
		t.Errorf("calls of %v jobs, want all four first and the one that failed by itself", got)
	}
	rows, err := w.pool.Query(w.ctx, `SELECT operation_id || ' ' || type || ' ' || business_key FROM journeyman.outbox ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var staged []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		staged = append(staged, s)
	}
	want := []string{"op-1 test.room.reserved B-1", "op-2 test.room.refused B-1", "op-4 test.room.reserved B-1"}
	if err := rows.Err(); err != nil || !slices.Equal(staged, want) {
		t.Errorf("in the outbox:\n%s\nwant\n%s\n%v", strings.Join(staged, "\n"), strings.Join(want, "\n"), err)
	}
}
