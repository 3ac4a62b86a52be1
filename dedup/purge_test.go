package dedup_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outcome"
)

// fill enters n operations that ended and whose retention is over.
func fill(t *testing.T, ctx context.Context, pool *pgxpool.Pool, prefix string, n int) {
	t.Helper()
	if _, err := pool.Exec(ctx, `INSERT INTO journeyman.operation (operation_id, job_type, state, class, created_at, settled_at, expires_at, cluster, process_instance_key)
		SELECT $1 || md5(i::text), 'a.b', 'done', 'SUCCESS', journeyman.now() - interval '2 hours', journeyman.now() - interval '2 hours', journeyman.now() - make_interval(secs => i % 60), 'c', i
		FROM generate_series(1, $2) i`, prefix, n); err != nil {
		t.Fatal(err)
	}
}

func rows(t *testing.T, ctx context.Context, pool *pgxpool.Pool, where string) (n int) {
	t.Helper()
	if err := pool.QueryRow(ctx, `SELECT count(*) FROM journeyman.operation WHERE `+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestPurge_D4: a round takes what is over in passes of a bounded size, passes over rows that are locked or that something points to
// without looking at them twice, and never waits.
func TestPurge_D4(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	fill(t, ctx, pool, "old-", 95)
	finish(t, ctx, pool, s, "kept", time.Nanosecond)
	finish(t, ctx, pool, s, "young", 48*time.Hour)
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(ctx) //nolint:errcheck // only to hold a lock
	if _, err := tx.Exec(ctx, `SELECT 1 FROM journeyman.operation WHERE operation_id LIKE 'old-a%' FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	locked := rows(t, ctx, pool, `operation_id LIKE 'old-a%'`)
	p := dedup.Purging{Batch: 10, Passes: 3, Pause: time.Millisecond, Unless: []string{`o.operation_id = 'kept'`}}
	got, err := s.PurgeRound(ctx, pool, p)
	if err != nil || !got.Led || got.Seen != 30 || got.Gone > 30 || got.Slimmed != 0 {
		t.Errorf("three passes of ten: %+v, %v", got, err)
	}
	p.Passes = 0
	left := int64(rows(t, ctx, pool, "true") - 1) // young is not over
	got, err = s.PurgeRound(ctx, pool, p)
	if err != nil || got.Seen != left || got.Gone != left-int64(locked)-1 {
		t.Errorf("the rest of %d with %d locked: %+v, %v", left, locked, got, err)
	}
	if n := rows(t, ctx, pool, "true"); n != locked+2 {
		t.Errorf("%d rows left, want the %d locked ones, the kept and the young one", n, locked)
	}
}

// TestPurge_claimsGoOn: while a round runs, claims, replays and ends of other operations go on, and a claim of an id that is being
// purged waits for one pass at most. Nothing young is touched.
func TestPurge_claimsGoOn(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	fill(t, ctx, pool, "old-", 20000)
	var passes atomic.Int64
	over := make(chan struct{})
	var got dedup.Purged
	var err error
	go func() {
		defer close(over)
		got, err = s.PurgeRound(ctx, pool, dedup.Purging{Batch: 500, Pause: time.Millisecond})
	}()
	var wg sync.WaitGroup
	var made, blocked atomic.Int64
	for lane := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				b := &pgx.Batch{}
				b.Queue("BEGIN")
				b.Queue("SELECT set_config('lock_timeout', '2s', true)")
				id := fmt.Sprintf("new-%d-%d", lane, n)
				if n%2 == 1 {
					id = fmt.Sprintf("old-%032x", n) // seldom there; a purged one may be claimed anew
				}
				f := s.QueueClaim(b, dedup.Claim{OperationID: id, State: dedup.Claimed})
				s.QueueFinish(b, id, 1, dedup.EffectNone, dedup.Outcome{Class: outcome.Success}, 0, dedup.Retention{For: time.Hour})
				b.Queue("COMMIT")
				if cerr := pool.SendBatch(ctx, b).Close(); cerr != nil {
					blocked.Add(1)
					t.Errorf("claim during the purge: %v", cerr)
					return
				}
				if f.Won {
					made.Add(1)
				}
			}
		})
	}
	<-over
	wg.Wait()
	_ = passes.Load()
	if err != nil || got.Gone != 20000 {
		t.Errorf("purged %+v, %v", got, err)
	}
	if n := rows(t, ctx, pool, "true"); int64(n) != made.Load() || n == 0 || blocked.Load() > 0 {
		t.Errorf("%d rows left, %d operations made meanwhile", n, made.Load())
	}
}

// TestPurge_oneLeader: two rounds at once exclude each other, and when the leader's connection dies in the middle of a pass nothing
// is lost and the next one leads at once.
func TestPurge_oneLeader(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	fill(t, ctx, pool, "old-", 2000)
	// A pass is held open by a condition that waits for a lock of the test.
	gate, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Release()
	if _, err := gate.Exec(ctx, `SELECT pg_advisory_lock(4711)`); err != nil {
		t.Fatal(err)
	}
	slow := dedup.Purging{Batch: 100, Pause: time.Millisecond, Unless: []string{`(SELECT pg_advisory_xact_lock_shared(4711)) IS NULL`}}
	first := make(chan error, 1)
	go func() {
		_, err := s.PurgeRound(ctx, pool, slow)
		first <- err
	}()
	var pid int32
	for pid == 0 {
		err := pool.QueryRow(ctx, `SELECT coalesce((SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = 4711 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())), 0)`).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
	}
	if second, err := s.PurgeRound(ctx, pool, dedup.Purging{}); err != nil || second.Led || second.Seen != 0 {
		t.Errorf("a second leader: %+v, %v", second, err)
	}
	if _, err := pool.Exec(ctx, `SELECT pg_terminate_backend($1)`, pid); err != nil {
		t.Fatal(err)
	}
	if err := <-first; err == nil {
		t.Error("the killed leader reported success")
	}
	for alive := true; alive; { // the client hears of it before the server has let go of its locks
		if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&alive); err != nil {
			t.Fatal(err)
		}
	}
	if n := rows(t, ctx, pool, "true"); n != 2000 {
		t.Errorf("%d rows after the kill in the first pass, want all 2000", n)
	}
	third, err := s.PurgeRound(ctx, pool, dedup.Purging{Pause: time.Millisecond})
	if err != nil || !third.Led || third.Gone != 2000 {
		t.Errorf("after the leader's death: %+v, %v", third, err)
	}
}

// TestPurge_D3: a money operation loses its data at the end of its retention, and goes after seven years; business key, fingerprint,
// class, code and result hash stay meanwhile.
func TestPurge_D3(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	out := dedup.Outcome{Class: outcome.Business, Code: "DECLINED", Message: "no", Variables: []byte(`{"secret":1}`)}
	batch(t, ctx, pool, func(b *pgx.Batch) {
		for _, id := range []string{"pay", "room"} {
			s.QueueClaim(b, dedup.Claim{OperationID: id, BusinessKey: "B-" + id, State: dedup.Claimed, Fingerprint: dedup.Fingerprint{Sum: []byte{1, 2}, Fields: []string{"a"}}, Input: []byte(`{"card":"x"}`), Meta: []byte(`{}`)})
		}
		s.QueueFinish(b, "pay", 1, dedup.EffectNone, out, 12, dedup.Retention{For: 30 * 24 * time.Hour, Keep: dedup.KeepMoney})
		s.QueueFinish(b, "room", 1, dedup.EffectNone, out, 12, dedup.Retention{For: 30 * 24 * time.Hour})
	})
	round := func(after time.Duration, want dedup.Purged) {
		t.Helper()
		if err := postgres.AdvanceClock(ctx, pool, "journeyman", after); err != nil {
			t.Fatal(err)
		}
		got, err := s.PurgeRound(ctx, pool, dedup.Purging{})
		if got.Seen = 0; err != nil || got != want {
			t.Errorf("after %s more: %+v, %v; want %+v", after, got, err, want)
		}
	}
	round(29*24*time.Hour, dedup.Purged{Led: true})
	round(2*24*time.Hour, dedup.Purged{Led: true, Gone: 1, Slimmed: 1})
	op, ok, err := s.Lookup(ctx, pool, "pay")
	if err != nil || !ok || op.BusinessKey != "B-pay" || op.Class != outcome.Business || op.Code != "DECLINED" || hex.EncodeToString(op.Fingerprint.Sum) != "0102" ||
		!slices.Equal(op.ResultHash, dedup.Hash(out)) || op.SlimmedAt.IsZero() || op.Keep != dedup.KeepMoney {
		t.Errorf("slimmed row: %+v, %v, %v", op, ok, err)
	}
	if op.Variables != nil || op.Input != nil || op.Meta != nil || op.Message != "" {
		t.Errorf("data is left: %s %s %s %q", op.Variables, op.Input, op.Meta, op.Message)
	}
	round(6*365*24*time.Hour, dedup.Purged{Led: true})
	round(365*24*time.Hour, dedup.Purged{Led: true, Gone: 1})
	if strings.Contains(fmt.Sprint(rows(t, ctx, pool, "true")), "1") {
		t.Error("the row is still there after seven years")
	}
}
