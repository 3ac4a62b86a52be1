package archive_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/outbox"
)

type sink struct{}

func (sink) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

// 20,000 rows of two days are archived, read back row for row, dropped by the
// relay when their retention is over, and can still be read (spec E9).
func TestArchive_E9_DaysGoToTheArchiveAndComeBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 12_000)
	f.day("2026-01-03", 12_001, 8_000)
	f.day("2026-01-04", 0, 0) // nothing happened
	want := f.logged()
	s := &memory{}
	a := f.archiver(s)
	if d := f.pass(a); d.Rows != 20_000 || d.Parts != 7 || d.Days != 3 {
		t.Errorf("did %+v, want 20000 rows, 7 parts, 3 days", d)
	}
	f.same(f.archived(s), want)
	f.sound(a, 20_000)
	if d := f.pass(a); d.Rows != 0 || d.Days != 0 {
		t.Errorf("a second pass did %+v, want nothing", d)
	}
	if err := outbox.NewLog("journeyman").SetArchived(f.ctx, f.pool, true, "ann", "test"); err != nil {
		t.Fatal(err)
	}
	r, err := outbox.NewRelay(f.pool, sink{}, outbox.RelayConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	f.eventually("the relay to drop three days", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'dropped'`) == 3
	})
	cancel()
	<-done
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); n != 0 {
		t.Errorf("%d rows left", n)
	}
	f.same(f.archived(s), want)
	if d := f.pass(a); d.Rows != 0 || d.Days != 0 {
		t.Errorf("a pass after the drop did %+v, want nothing", d)
	}
	f.sound(a, 20_000)
}

// Reading takes up behind a cursor and ends before a time.
func TestReader_E9_FromACursorToATime(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 7000)
	f.day("2026-01-03", 7001, 3000)
	s := &memory{}
	f.pass(f.archiver(s))
	var at outbox.LogCursor
	n := 0
	enough := errors.New("enough")
	r := archive.NewReader(s)
	err := r.Rows(f.ctx, outbox.LogCursor{}, time.Time{}, func(row outbox.Logged) error {
		if n++; n == 4321 {
			at = row.Cursor()
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("got %v, want the caller's own error", err)
	}
	var ids []int64
	until := time.Date(2026, 1, 3, 0, 0, 0, int(800*time.Millisecond), time.UTC)
	if err := r.Rows(f.ctx, at, until, func(row outbox.Logged) error {
		ids = append(ids, row.ID)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 7999-4321 || ids[0] != 4322 || ids[len(ids)-1] != 7999 {
		t.Errorf("%d rows from %d to %d, want 4322 to 7999", len(ids), ids[0], ids[len(ids)-1])
	}
}

// Several archivers at once do each step once.
func TestArchive_E9_LeaderElected(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 2000)
	want := f.logged()
	s := &memory{}
	var wg sync.WaitGroup
	for range 4 {
		a := f.archiver(s, func(c *archive.Config) { c.PartRows = 100 })
		wg.Go(func() {
			f.eventually("the day to be verified", func() bool {
				if _, err := a.Pass(f.ctx); err != nil {
					t.Error(err)
					return true
				}
				return f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'verified'`) == 1
			})
		})
	}
	wg.Wait()
	f.same(f.archived(s), want)
	if names, _ := s.List(f.ctx, ""); len(names) != 21 {
		t.Errorf("%d objects, want 20 parts and a manifest: %v", len(names), names)
	}
	f.sound(f.archiver(s), 2000)
}

// A damaged object is noticed before its day counts as archived, and later by an audit.
func TestArchive_E9_DamageIsNoticed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 5000)
	f.day("2026-01-03", 5001, 100)
	s := &memory{}
	a := f.archiver(s, func(c *archive.Config) {
		c.Hooks.Wrote = func(string, int64, int64) {
			if names, _ := s.List(f.ctx, "v1/2026-01-02/part-00002"); len(names) == 1 {
				s.damage("2026-01-02/part-00002")
			}
		}
	})
	if _, err := a.Pass(f.ctx); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Fatalf("pass: %v, want the damage named", err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'verified'`); n != 0 {
		t.Error("a damaged day counts as verified")
	}
	s.damage("2026-01-02/part-00002") // the same bit: whole again
	a = f.archiver(s)
	f.pass(a)
	f.sound(a, 5100)
	for _, what := range []string{"2026-01-02/part-00001", "2026-01-03/manifest"} {
		name := s.damage(what)
		audit, err := a.Audit(f.ctx, nil)
		if err != nil || len(audit.Faults) == 0 || !strings.Contains(strings.Join(audit.Faults, " "), name) {
			t.Errorf("damage of %s: audit %+v, %v", name, audit, err)
		}
		s.damage(what)
	}
	f.sound(a, 5100)
}

// forgetful says that it wrote a manifest and did not.
type forgetful struct{ *memory }

func (f forgetful) Create(ctx context.Context, name string, content []byte) error {
	if strings.Contains(name, "manifest") {
		return nil
	}
	return f.memory.Create(ctx, name, content)
}

// A manifest that was not kept does not seal its day.
func TestArchive_E9_ManifestIsReadBack(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 100)
	s := &memory{}
	if _, err := f.archiver(forgetful{s}).Pass(f.ctx); !errors.Is(err, archive.ErrMissing) {
		t.Fatalf("pass: %v, want ErrMissing", err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log_day WHERE state = 'verified'`); n != 0 {
		t.Error("the day counts as verified")
	}
	a := f.archiver(s)
	f.pass(a)
	f.sound(a, 100)
}

// Rows that come to a day after it was verified get a part and a manifest of their own, which continues the chain.
func TestArchive_E9_LateRowsGetAnotherManifest(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 100)
	s := &memory{}
	a := f.archiver(s)
	f.pass(a)
	f.rows("2026-01-02", 5000, 50)
	f.exec(`UPDATE journeyman.event_log_day SET state = 'writing', verified_at = NULL`) // as the relay does when the day holds other rows
	if d := f.pass(a); d.Rows != 50 || d.Days != 1 {
		t.Errorf("did %+v, want 50 rows and the day", d)
	}
	f.same(f.archived(s), f.logged())
	if days, err := archive.NewReader(s).Manifests(f.ctx, time.Time{}, time.Time{}); err != nil || len(days) != 1 || days[0].Number != 2 || days[0].Previous == nil || days[0].Rows != 150 {
		t.Errorf("manifests %+v, %v; want the second one with 150 rows, linked", days, err)
	}
	f.sound(a, 150)
}

// Run keeps days from being dropped before it archives any, and stops when told.
func TestArchive_E9_RunSwitchesKeepingOn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 100)
	verified := make(chan struct{})
	a := f.archiver(&memory{}, func(c *archive.Config) {
		c.RowsPerSec = 1_000_000
		c.Hooks.Verified = func(string, int64) { close(verified) }
	})
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	<-verified
	if on, err := outbox.NewLog("journeyman").Archived(f.ctx, f.pool); err != nil || !on {
		t.Errorf("archived %v, %v; want days kept", on, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run ended with %v", err)
	}
}

func TestNew_RefusesAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := archive.New(nil, nil, archive.Config{Schema: "Bad", PartRows: -1, PartBytes: -1, RowsPerSec: -1, After: -1})
	for _, want := range []string{"schema", "pool", "store", "part rows", "part bytes", "rows per second", "after"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %q", err, want)
		}
	}
}
