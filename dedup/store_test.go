package dedup_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outcome"
)

func open(t *testing.T) (context.Context, *pgxpool.Pool, *dedup.Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	pool := pgtest.Pool(t)
	if err := dedup.Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	s, err := dedup.New("")
	if err != nil {
		t.Fatal(err)
	}
	return ctx, pool, s
}

func batch(t *testing.T, ctx context.Context, pool *pgxpool.Pool, fill func(b *pgx.Batch)) {
	t.Helper()
	b := &pgx.Batch{}
	fill(b)
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
}

func finish(t *testing.T, ctx context.Context, pool *pgxpool.Pool, s *dedup.Store, id string, retain time.Duration) {
	t.Helper()
	batch(t, ctx, pool, func(b *pgx.Batch) {
		s.QueueClaim(b, dedup.Claim{OperationID: id, State: dedup.Claimed, JobContext: dedup.JobContext{Cluster: "c", ProcessInstanceKey: 7}})
		s.QueueFinish(b, id, 1, dedup.EffectNone, dedup.Outcome{Class: outcome.Success, Variables: json.RawMessage(`{"n":12345678901234567890, "s":"\u0000"}`)}, 100, dedup.Retention{For: retain})
	})
}

func TestStore_claimAndReplay(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	var first, second *dedup.Fenced
	batch(t, ctx, pool, func(b *pgx.Batch) {
		first = s.QueueClaim(b, dedup.Claim{OperationID: "a", State: dedup.Claimed})
		second = s.QueueClaim(b, dedup.Claim{OperationID: "a", State: dedup.Claimed})
	})
	if !first.Won || second.Won {
		t.Errorf("first claim %v, second %v", first.Won, second.Won)
	}
	finish(t, ctx, pool, s, "b", time.Hour)
	op, ok, err := s.Lookup(ctx, pool, "b")
	if err != nil || !ok || op.State != dedup.Done || string(op.Variables) != `{"n":12345678901234567890, "s":"\u0000"}` {
		t.Errorf("stored %+v, %v: variables must be given back byte for byte", op, err)
	}
	var used int64
	batch(t, ctx, pool, func(b *pgx.Batch) { s.QueueUsed(b, "c", 7, &used) })
	if used != 100 {
		t.Errorf("used %d bytes, want 100", used)
	}
	if _, ok, err := s.Lookup(ctx, pool, "none"); ok || err != nil {
		t.Errorf("unknown operation: %v, %v", ok, err)
	}
}

// TestStore_lease: a lease that is held is not taken; one that ran out is, with the next fence, and the old holder is out.
func TestStore_lease(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	batch(t, ctx, pool, func(b *pgx.Batch) {
		s.QueueClaim(b, dedup.Claim{OperationID: "a", JobType: "t", State: dedup.Calling, Owner: "one", Lease: time.Minute, JobContext: dedup.JobContext{Cluster: "c"}})
	})
	take := func() *dedup.Fenced {
		var f *dedup.Fenced
		batch(t, ctx, pool, func(b *pgx.Batch) {
			f = s.QueueTake(b, dedup.Take{OperationID: "a", Fence: 1, Owner: "two", Lease: time.Minute, JobContext: dedup.JobContext{Cluster: "c"}})
		})
		return f
	}
	if take().Won {
		t.Error("a held lease was taken")
	}
	if ops, err := s.Expired(ctx, pool, []string{"t"}, "c", 10, "sweep", time.Minute); err != nil || len(ops) != 0 {
		t.Errorf("expired: %v, %v", ops, err)
	}
	if err := postgres.AdvanceClock(ctx, pool, "journeyman", time.Hour); err != nil {
		t.Fatal(err)
	}
	if ops, err := s.Expired(ctx, pool, []string{"t"}, "other cluster", 10, "sweep", time.Minute); err != nil || len(ops) != 0 {
		t.Errorf("expired in another cluster: %v, %v", ops, err)
	}
	f := take()
	if !f.Won || f.Fence != 2 {
		t.Errorf("take-over: %+v", f)
	}
	if ok, err := s.Renew(ctx, pool, "a", 1, "one", time.Minute); ok || err != nil {
		t.Errorf("the old holder renewed: %v, %v", ok, err)
	}
	if ok, err := s.StoreResult(ctx, pool, "a", 1, json.RawMessage(`{}`), time.Minute); ok || err != nil {
		t.Errorf("the old holder stored: %v, %v", ok, err)
	}
	if ok, err := s.StoreResult(ctx, pool, "a", 2, json.RawMessage(`{}`), time.Minute); !ok || err != nil {
		t.Errorf("the new holder could not store: %v, %v", ok, err)
	}
}

// TestAttempts_clock: moving the clock that tests may move makes no live process dead.
func TestAttempts_movedClockKillsNobody(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	alive, dead, me := dedup.Process{ID: "00000000-0000-4000-8000-000000000001"}, dedup.Process{ID: "00000000-0000-4000-8000-000000000002"}, dedup.Process{ID: "00000000-0000-4000-8000-000000000003"}
	for _, p := range []dedup.Process{alive, me} {
		if err := s.Beat(ctx, pool, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []dedup.Process{alive, dead} {
		if _, err := s.OpenAttempts(ctx, pool, p, "c", []int64{1}, []string{"op"}, 15*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if err := postgres.AdvanceClock(ctx, pool, "journeyman", time.Hour); err != nil {
		t.Fatal(err)
	}
	got, err := s.OpenAttempts(ctx, pool, me, "c", []int64{1, 2}, []string{"op", "op2"}, 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if a := got[1]; a.Runs != 2 || a.Deaths != 1 || a.DeathAlone != 0 {
		t.Errorf("job 1: %+v, want 2 runs and the one death", a)
	}
	if a := got[2]; a.Runs != 0 || a.Deaths != 0 || a.ReceivedAt.IsZero() {
		t.Errorf("job 2: %+v", a)
	}
}

func TestStore_lists(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	finish(t, ctx, pool, s, "done", time.Hour)
	batch(t, ctx, pool, func(b *pgx.Batch) {
		s.QueueClaim(b, dedup.Claim{OperationID: "calling", SagaID: "s", State: dedup.Calling, Owner: "x", Lease: time.Minute})
		var r dedup.Revocation
		s.QueueRevoke(b, "never ran", "t", "b", "s", "timer", time.Hour, &r)
	})
	if err := s.Orphan(ctx, pool, "done", dedup.OrphanOpen); err != nil {
		t.Fatal(err)
	}
	for filter, want := range map[string]int{dedup.ListAll: 3, dedup.ListLeased: 1, dedup.ListRevoked: 1, dedup.ListOrphans: 1, dedup.ListUnknown: 0, dedup.ListUndo: 0, "nonsense": 0} {
		got, err := s.List(ctx, pool, filter, "", 10)
		if err != nil || len(got) != want {
			t.Errorf("list %q: %d, %v; want %d", filter, len(got), err, want)
		}
	}
	if got, err := s.List(ctx, pool, "", "s", 10); err != nil || len(got) != 2 {
		t.Errorf("list of a saga: %d, %v", len(got), err)
	}
	c, err := s.Counts(ctx, pool)
	if err != nil || c != (dedup.Counts{Leased: 1, Revoked: 1, Orphans: 1, OrphansOpen: 1}) {
		t.Errorf("counts %+v, %v", c, err)
	}
}
