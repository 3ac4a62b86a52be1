//go:build soak

package dedup

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outcome"
)

// TestSoak_tenMillion: with ten million old operations the plans are the same, claims and ends run at no less than four fifths of
// their speed on an empty table (the target 0.9 is measured by the benchmark, on a quiet machine), and a purge beside them takes what
// is over. SOAK_ROWS sets another number.
func TestSoak_tenMillion(t *testing.T) {
	n := 10_000_000
	if v := os.Getenv("SOAK_ROWS"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	s, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	const warm, measured = 2 * time.Second, 8 * time.Second
	claimFor(t, ctx, pool, s, "warm", warm)
	empty := claimFor(t, ctx, pool, s, "empty", measured)
	start := time.Now()
	const step = 500_000
	for from := 0; from < n; from += step {
		if err := fillFrom(ctx, pool, from, min(step, n-from)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pool.Exec(ctx, `VACUUM ANALYZE journeyman.operation`); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows entered in %s", n, time.Since(start).Round(time.Second))
	checkPlans(t, ctx, pool)
	claimFor(t, ctx, pool, s, "warm2", warm)
	full := claimFor(t, ctx, pool, s, "full", measured)
	purging, stop := context.WithCancel(ctx)
	var purged Purged
	var perr error
	over := make(chan struct{})
	go func() {
		defer close(over)
		purged, perr = s.PurgeRound(purging, pool, Purging{Passes: 1 << 20})
	}()
	beside := claimFor(t, ctx, pool, s, "beside", measured)
	stop()
	<-over
	t.Logf("claims and ends: empty %d, with %d rows %d (%.2f), beside a purge %d (%.2f), which took %d rows (%v)", empty, n, full, float64(full)/float64(empty), beside, float64(beside)/float64(empty), purged.Gone, perr)
	if float64(full) < 0.8*float64(empty) {
		t.Errorf("%d operations with %d old rows, %d without", full, n, empty)
	}
	if purged.Gone == 0 {
		t.Error("the purge took nothing")
	}
	if beside == 0 {
		t.Error("nothing was claimed beside the purge")
	}
}

func fillFrom(ctx context.Context, pool *pgxpool.Pool, from, n int) error {
	_, err := pool.Exec(ctx, `INSERT INTO journeyman.operation (operation_id, business_key, job_type, fingerprint, fingerprint_fields, state, class, variables, result_hash, bytes, attempts,
			cluster, job_key, process_instance_key, created_at, settled_at, expires_at)
		SELECT gen_random_uuid()::text || ':step', 'B-' || i, 'type.' || i % 20, decode(md5(i::text), 'hex'), '{a,b}', 'done', 'SUCCESS', '{"id":"R-1"}', decode(md5(i::text), 'hex'), 12, 1,
			'c', i, i / 3 + 1, now() - interval '1 day' * (i % 30), now() - interval '1 day' * (i % 30), now() + interval '1 day' * (28 - i % 30)
		FROM generate_series($1::int + 1, $1::int + $2::int) i`, from, n)
	return err
}

// claimFor claims and ends operations by four lanes and gives how many.
func claimFor(t *testing.T, ctx context.Context, pool *pgxpool.Pool, s *Store, prefix string, d time.Duration) int64 {
	t.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for lane := range 4 {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				id := fmt.Sprintf("%s-%d-%d", prefix, lane, n)
				var used int64
				b := &pgx.Batch{}
				b.Queue("BEGIN")
				var seen Operation
				var there bool
				s.QueueEnter(b, id, "2s", "c", int64(n), &used)
				s.QueueEntered(b, id, &seen, &there)
				s.QueueRecord(b, Record{Claim: Claim{OperationID: id, JobType: "t", JobContext: JobContext{Cluster: "c", JobKey: int64(n)}}, Outcome: Outcome{Class: outcome.Success}, Retention: Retention{For: time.Hour}})
				b.Queue("COMMIT")
				if err := pool.SendBatch(ctx, b).Close(); err != nil || there {
					t.Errorf("%s: there before %v, %v", id, there, err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return done.Load()
}
