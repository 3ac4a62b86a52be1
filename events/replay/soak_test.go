//go:build soak

package replay_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/outbox"
)

// 300,000 messages of three days: archived, audited, dropped from the log,
// rebuilt from the archive into a table and put into a group's queue; each once and in order, in bounded memory.
func TestReplay_E9_Soak(t *testing.T) {
	f := setup(t)
	const perDay = 100_000
	for i, day := range []string{"2026-01-02", "2026-01-03", "2026-01-04"} {
		f.day(day, i*perDay+1, perDay)
	}
	store, err := bucket.Open(f.ctx, "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // a folder
	a, err := archive.New(f.pool, store, archive.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rate := func(what string, start time.Time) {
		t.Logf("%s: %.0f messages/s", what, 3*perDay/time.Since(start).Seconds())
	}
	start := time.Now()
	done, err := a.Pass(f.ctx)
	if err != nil || done.Rows != 3*perDay || done.Days != 3 {
		t.Fatalf("archive: %+v, %v", done, err)
	}
	rate("archived and verified", start)
	t.Logf("%d bytes in %d objects, %.1f a row", done.Bytes, done.Parts, float64(done.Bytes)/float64(done.Rows))
	start = time.Now()
	if audit, err := a.Audit(f.ctx, nil); err != nil || audit.Rows != 3*perDay || len(audit.Faults) != 0 {
		t.Fatalf("audit: %+v, %v", audit, err)
	}
	rate("audited", start)

	start = time.Now()
	p, err := f.runner().Plan(f.ctx, replay.FromLog(f.pool, "", nil), replay.Filter{}, nil)
	if err != nil || p.Messages != 3*perDay {
		t.Fatalf("plan: %+v, %v", p, err)
	}
	rate("counted in the log", start)
	for _, table := range []string{"event_log_20260102", "event_log_20260103", "event_log_20260104"} {
		f.exec(`DROP TABLE journeyman.` + table)
	}

	start = time.Now()
	last, n, peak := map[string]int64{}, 0, uint64(0)
	r, err := f.runner().Start(f.ctx, request(replay.FromArchive(store, nil), replay.Apply("memory", nil, func(_ context.Context, _ *outbox.Tx, m events.Received) error {
		if n++; n%10_000 == 0 {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			peak = max(peak, stats.HeapInuse)
		}
		if m.Metadata.Sequence <= last[m.Metadata.BusinessKey] && m.Metadata.Sequence > 1 {
			t.Errorf("key %s: sequence %d after %d", m.Metadata.BusinessKey, m.Metadata.Sequence, last[m.Metadata.BusinessKey])
		}
		last[m.Metadata.BusinessKey] = m.Metadata.Sequence
		return nil
	})))
	if err != nil || r.Delivered != 3*perDay || n != 3*perDay {
		t.Fatalf("from the archive to a function: %+v, %v", r, err)
	}
	rate("from the archive to a function that does nothing", start)
	t.Logf("heap in use at most %d MB", peak>>20)
	if peak > 400<<20 {
		t.Errorf("heap in use %d MB, want a bound of one part and its rows", peak>>20)
	}
	start = time.Now()
	if r, err = f.runner().Start(f.ctx, request(replay.FromArchive(store, nil), replay.Apply("things", nil, apply))); err != nil || r.Delivered != 3*perDay {
		t.Fatalf("from the archive to a table: %+v, %v", r, err)
	}
	rate("from the archive to a table, one INSERT each", start)
	f.once(3 * perDay)

	g, err := replay.ToGroup(replay.GroupConfig{DB: f.pool, Group: "view-rebuild", MaxWaiting: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if r, err = f.runner().Start(f.ctx, request(replay.FromArchive(store, nil), g)); err != nil || r.Delivered != 3*perDay {
		t.Fatalf("from the archive to a group: %+v, %v", r, err)
	}
	rate("from the archive into a group's queue", start)
	if bad := f.count(`SELECT count(*) FROM (SELECT (convert_from(body, 'UTF8')::jsonb->'metadata'->>'sequence')::bigint AS seq,
		lag((convert_from(body, 'UTF8')::jsonb->'metadata'->>'sequence')::bigint) OVER (PARTITION BY business_key ORDER BY id) AS before FROM journeyman.inbox_retry) q WHERE seq <= before`); bad != 0 {
		t.Errorf("%d messages out of their key's order", bad)
	}
}
