package worker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/zeebe"
)

// BenchmarkGroup runs the same handler (one INSERT) singly, 16 to a transaction, and as a batch handler 50 to a call, in turns
// within one run, 4 at once, from claim to commit without sending the answer. It reports jobs/s and the ratios to singly. The
// test's PostgreSQL does not fsync: what sharing one flush saves on a real disk is not in these figures.
func BenchmarkGroup(b *testing.B) {
	const lanes, per = 4, 200
	ctx := context.Background()
	pool := pgtest.Pool(b)
	for _, err := range []error{dedup.Migrate(ctx, pool, ""), zeebe.Migrate(ctx, pool, "")} {
		if err != nil {
			b.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE room (operation_id text, run bigint)`); err != nil {
		b.Fatal(err)
	}
	mux := NewMux()
	mux.Handle("one", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		_, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, $2)`, j.OperationID, 1)
		return reserved{ID: "R"}, err
	}, NotCompensable("bench")))
	mux.Handle("set", Batch(50, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[reserved], error) {
		ids := make([]string, len(jobs))
		ends := make([]BatchEnd[reserved], len(jobs))
		for i, j := range jobs {
			ids[i], ends[i].Out.ID = j.OperationID, "R"
		}
		_, err := tx.Exec(ctx, `INSERT INTO room SELECT unnest($1::text[]), 1`, ids)
		return ends, err
	}, NotCompensable("bench")))
	cfg := fast()
	cfg.Log = zerolog.Nop()
	rt, err := NewRuntime(pool, mux, cfg, "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	next := 0
	tasks := func(jobType string) []*task {
		out := make([]*task, per)
		for i := range out {
			next++
			vars := job(fmt.Sprint("op-", next), offer)
			parsed, err := parseVariables(vars)
			if err != nil {
				b.Fatal(err)
			}
			m, err := metaOf(zeebe.Job{Key: int64(next), Type: jobType, ProcessID: "p", ProcessInstanceKey: int64(next), ElementID: "t", ElementInstanceKey: int64(next), Retries: 3, Headers: "{}"}, "bench", parsed)
			if err != nil {
				b.Fatal(err)
			}
			out[i] = &task{spec: mux.forward[jobType], meta: m, job: true, owner: uuid()}
			if err := rt.takeInput(out[i], parsed, []byte(vars)); err != nil {
				b.Fatal(err)
			}
		}
		return out
	}
	took := map[string]time.Duration{}
	var over atomic.Int64
	round := func(name, jobType string, size int) {
		var sets [lanes][]*task
		for i := range sets {
			sets[i] = tasks(jobType)
		}
		began := time.Now()
		var all sync.WaitGroup
		for _, set := range sets {
			all.Go(func() {
				for len(set) > 0 {
					n := min(size, len(set))
					if size == 1 {
						if res := rt.execute(ctx, set[0]); res.kind != answered {
							b.Errorf("%s: %d %v", name, res.kind, res.err)
						}
					} else {
						var mates []*mate
						for _, t := range set[:n] {
							mates = append(mates, &mate{t: t, ctx: ctx})
						}
						rt.runGroup(ctx, mates)
						for _, m := range mates {
							if m.res.kind == apart || m.res.kind == later { // over the budget of the transaction on a busy machine
								over.Add(1)
								m.res = rt.execute(ctx, m.t)
							}
							if m.res.kind != answered {
								b.Errorf("%s: %d %v", name, m.res.kind, m.res.err)
							}
						}
					}
					set = set[n:]
				}
			})
		}
		all.Wait()
		took[name] += time.Since(began)
	}
	for _, warm := range []struct {
		jobType string
		size    int
	}{{"one", 1}, {"one", 16}, {"set", 50}} {
		round("warm", warm.jobType, warm.size)
	}
	clear(took)
	over.Store(0)
	n := 0
	for b.Loop() {
		round("single", "one", 1)
		round("grouped", "one", 16)
		round("batch", "set", 50)
		n += lanes * per
	}
	rate := func(name string) float64 { return float64(n) / took[name].Seconds() }
	b.ReportMetric(rate("single"), "jobs/s_single")
	b.ReportMetric(rate("grouped"), "jobs/s_grouped")
	b.ReportMetric(rate("batch"), "jobs/s_batch")
	b.ReportMetric(float64(over.Load())/float64(n), "over_budget/job")
	b.ReportMetric(rate("grouped")/rate("single"), "grouped/single")
	b.ReportMetric(rate("batch")/rate("single"), "batch/single")
}
