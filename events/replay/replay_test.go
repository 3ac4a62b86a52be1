package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/outbox"
)

// 6,000 messages of two days rebuild a projection, from the log and from the archive: each once, each key in order.
func TestReplay_E9_RebuildsFromLogAndFromArchive(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 3000)
	f.day("2026-01-03", 3001, 3000)
	store, err := bucket.Open(f.ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // memory
	a, err := archive.New(f.pool, store, archive.Config{PartRows: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Pass(f.ctx); err != nil {
		t.Fatal(err)
	}
	p, err := f.runner().Start(f.ctx, request(replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply)))
	if err != nil || p.State != replay.Completed || p.Delivered != 6000 || p.Ended == nil {
		t.Fatalf("from the log: %+v, %v; want completed with 6000", p, err)
	}
	f.once(6000)
	last, got := map[string]int64{}, 0
	p, err = f.runner().Start(f.ctx, request(replay.FromArchive(store, nil), replay.Apply("memory", nil, func(_ context.Context, _ *outbox.Tx, m events.Received) error {
		got++
		if m.Metadata.Sequence != last[m.Metadata.BusinessKey]+1 && m.Metadata.Sequence > 1 && last[m.Metadata.BusinessKey] > 0 {
			return fmt.Errorf("key %s: sequence %d after %d", m.Metadata.BusinessKey, m.Metadata.Sequence, last[m.Metadata.BusinessKey])
		}
		last[m.Metadata.BusinessKey] = m.Metadata.Sequence
		return nil
	})))
	if err != nil || p.Delivered != 6000 || got != 6000 {
		t.Errorf("from the archive: %+v, %v; %d handled", p, err, got)
	}
}

// By time, type, key, consumer group and the place of an earlier replay; the dry run says the same numbers and writes nothing.
func TestReplay_E9_FiltersAndDryRun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 600)
	f.day("2026-01-03", 601, 600)
	store, err := bucket.Open(f.ctx, "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // memory
	a, err := archive.New(f.pool, store, archive.Config{PartRows: 130})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Pass(f.ctx); err != nil {
		t.Fatal(err)
	}
	day2 := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time { return day2.Add(time.Duration(n/10) * time.Millisecond) }
	for name, c := range map[string]struct {
		filter replay.Filter
		want   int64
	}{
		"all":      {replay.Filter{}, 1200},
		"from":     {replay.Filter{From: at(1000)}, 201}, // 1000 to 1200
		"until":    {replay.Filter{Until: day2}, 600},
		"between":  {replay.Filter{From: at(800), Until: at(900)}, 100},
		"type":     {replay.Filter{Types: []string{"test.thing.renamed"}}, 400},
		"wildcard": {replay.Filter{Types: []string{"test.*"}, Until: day2}, 600},
		"keys":     {replay.Filter{Keys: []string{"K-7", "K-8"}}, 24},
		"group":    {replay.Filter{Types: replay.TypesFor(f.cat, "view")}, 800},
		"place":    {replay.Filter{After: at(1000).Format(events.TimeFormat) + "/1004"}, 196},
		"nothing":  {replay.Filter{Keys: []string{"none"}}, 0},
	} {
		for _, source := range []replay.Source{replay.FromLog(f.pool, "", nil), replay.FromArchive(store, nil)} {
			f.exec(`TRUNCATE applied`)
			rows := f.count(`SELECT count(*) FROM journeyman.replay`) + f.count(`SELECT count(*) FROM journeyman.outbox`)
			plan, err := f.runner().Plan(f.ctx, source, c.filter, nil)
			if err != nil {
				t.Fatalf("%s from %s: %v", name, source.Name(), err)
			}
			var byType int64
			for _, n := range plan.Types {
				byType += n
			}
			if plan.Messages != c.want || byType != c.want || (c.want > 0) != (plan.First != nil) {
				t.Errorf("%s from %s: plan %+v, want %d", name, source.Name(), plan, c.want)
			}
			if now := f.count(`SELECT count(*) FROM journeyman.replay`) + f.count(`SELECT count(*) FROM journeyman.outbox`); now != rows || f.count(`SELECT count(*) FROM applied`) != 0 {
				t.Errorf("%s: the dry run wrote something", name)
			}
			if source.Name() == "archive" && name != "between" {
				continue // the plan read the same; one replay shows that it delivers it
			}
			req := request(source, replay.Apply("things", nil, apply))
			req.Filter = c.filter
			p, err := f.runner().Start(f.ctx, req)
			if err != nil || p.Delivered != c.want {
				t.Errorf("%s from %s: %+v, %v; want %d", name, source.Name(), p, err, c.want)
			}
			f.once(int(c.want))
		}
	}
}

func TestReplay_E9_AsksWhoAndWhy(t *testing.T) {
	t.Parallel()
	f := setup(t)
	src, target := replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply)
	for want, edit := range map[string]func(*replay.Request){
		"reason": func(r *replay.Request) { r.Reason = " " },
		"actor":  func(r *replay.Request) { r.Actor = "" },
		"mode":   func(r *replay.Request) { r.Mode = "some" },
		"inbox":  func(r *replay.Request) { r.Mode = events.ReplayMissing },
		"source": func(r *replay.Request) { r.Source = nil },
		"rate":   func(r *replay.Request) { r.Rate = -1 },
		"until":  func(r *replay.Request) { r.Filter.From, r.Filter.Until = time.Now(), time.Now().Add(-time.Hour) },
	} {
		req := request(src, target)
		edit(&req)
		if _, err := f.runner().Start(f.ctx, req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal that names %q", err, want)
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.replay`); n != 0 {
		t.Errorf("%d refused replays on record", n)
	}
	if _, err := replay.New(replay.Config{Batch: -1}); err == nil || !strings.Contains(err.Error(), "pool") || !strings.Contains(err.Error(), "stager") || !strings.Contains(err.Error(), "batch") {
		t.Errorf("New: %v, want all mistakes", err)
	}
}

// A replay tells what it does (spec Z9), and what its handler emits is dropped and counted.
func TestReplay_E9_TellsAndSuppresses(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 1000)
	p, err := f.runner(func(c *replay.Config) { c.Batch, c.ProgressEvery = 100, 300 }).Start(f.ctx, request(replay.FromLog(f.pool, "", nil),
		replay.Apply("things", nil, func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
			tx.Emit(events.Message{Type: "test.thing.viewed", BusinessKey: "x", Data: map[string]any{}})
			return apply(ctx, tx, m)
		})))
	if err != nil || p.Suppressed != 1000 {
		t.Fatalf("%+v, %v; want 1000 suppressed", p, err)
	}
	if got := f.text(`SELECT string_agg(type, ' ' ORDER BY id) FROM journeyman.outbox`); got != "platform.replay.started platform.replay.progressed platform.replay.progressed platform.replay.progressed platform.replay.completed" {
		t.Errorf("emitted %s", got)
	}
	if got := f.text(`SELECT convert_from(body, 'UTF8')::jsonb->'data' #>> '{}' FROM journeyman.outbox ORDER BY id DESC LIMIT 1`); !strings.Contains(got, `"delivered": 1000`) || !strings.Contains(got, "projection was wrong") {
		t.Errorf("completed with %s", got)
	}
}

// A handler's error ends the replay at its message; resumed, it goes on there.
func TestReplay_E9_FailsAndIsResumed(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 2000)
	bad := f.text(`SELECT event_id::text FROM journeyman.event_log WHERE id = 1234`)
	broken := true
	target := replay.Apply("things", nil, func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if broken && m.MessageID == bad {
			return errors.New("does not fit")
		}
		return apply(ctx, tx, m)
	})
	src, r := replay.FromLog(f.pool, "", nil), f.runner()
	p, err := r.Start(f.ctx, request(src, target))
	if err == nil || p.State != replay.Failed || !strings.Contains(p.Error, bad) || p.Delivered != 1000 {
		t.Fatalf("%+v, %v; want failed at %s after two batches", p, err, bad)
	}
	if _, err := r.Resume(f.ctx, p.ID, src, replay.Apply("others", nil, apply), nil); err == nil || !strings.Contains(err.Error(), "same source and target") {
		t.Errorf("resumed into another target: %v", err)
	}
	broken = false
	if p, err = r.Resume(f.ctx, p.ID, src, target, nil); err != nil || p.State != replay.Completed || p.Delivered != 2000 || p.Error != "" {
		t.Fatalf("resumed: %+v, %v", p, err)
	}
	f.once(2000)
	if _, err := r.Resume(f.ctx, p.ID, src, target, nil); !errors.Is(err, replay.ErrEnded) {
		t.Errorf("resumed twice: %v, want ErrEnded", err)
	}
}

// Stopped, it is paused; a second runner takes over from a first; cancelled, it has ended.
func TestReplay_E9_PauseTakeOverCancel(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 3000)
	src, target := replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply)
	ctx, stop := context.WithCancel(f.ctx)
	p, err := f.runner(func(c *replay.Config) { c.Progress = func(replay.Replay) { stop() } }).Start(ctx, request(src, target))
	if !errors.Is(err, context.Canceled) || p.State != replay.Paused || p.Delivered == 0 || p.Delivered == 3000 {
		t.Fatalf("%+v, %v; want paused", p, err)
	}
	// The first runner stands between two batches while another takes over.
	reached, goOn := make(chan struct{}), make(chan struct{})
	first := true
	taken := make(chan error, 1)
	go func() {
		_, err := f.runner(func(c *replay.Config) {
			c.Progress = func(replay.Replay) {
				if first {
					first = false
					close(reached)
					<-goOn
				}
			}
		}).Resume(f.ctx, p.ID, src, target, nil)
		taken <- err
	}()
	<-reached
	ctx, stop = context.WithCancel(f.ctx)
	defer stop()
	if p, err = f.runner(func(c *replay.Config) { c.Progress = func(replay.Replay) { stop() } }).Resume(ctx, p.ID, src, target, nil); p.State != replay.Paused {
		t.Fatalf("%+v, %v; want paused", p, err)
	}
	close(goOn)
	if err := <-taken; !errors.Is(err, replay.ErrTaken) {
		t.Errorf("the first runner ended with %v, want ErrTaken", err)
	}
	r := f.runner()
	if _, err := r.Cancel(f.ctx, p.ID, "ann", ""); err == nil {
		t.Error("cancelled without a reason")
	}
	if p, err = r.Cancel(f.ctx, p.ID, "ann", "wrong day"); err != nil || p.State != replay.Cancelled || !strings.Contains(p.Error, "wrong day") {
		t.Errorf("cancel: %+v, %v", p, err)
	}
	if _, err := r.Cancel(f.ctx, p.ID, "ann", "again"); !errors.Is(err, replay.ErrEnded) {
		t.Errorf("cancelled twice: %v", err)
	}
	if _, err := r.Get(f.ctx, events.NewID()); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("Get of none: %v", err)
	}
	if list, err := r.List(f.ctx, 10); err != nil || len(list) != 1 || list[0].State != replay.Cancelled {
		t.Errorf("list %+v, %v", list, err)
	}
	f.once(int(p.Delivered))
}

// A rate holds a replay back: a batch is a quarter of a second's worth, and the
// bucket holds one batch, so all others wait for the clock.
func TestReplay_E9_Rate(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.day("2026-01-02", 1, 1000)
	req := request(replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply))
	req.Rate = 2000
	start, batches := time.Now(), 0
	p, err := f.runner(func(c *replay.Config) { c.Progress = func(replay.Replay) { batches++ } }).Start(f.ctx, req)
	if err != nil || p.Delivered != 1000 || p.Rate != 2000 || batches != 2 {
		t.Fatalf("%+v, %v in %d batches, want 2", p, err, batches)
	}
	if took := time.Since(start); took < 240*time.Millisecond { // a lower bound holds on any machine
		t.Errorf("1000 messages at 2000 a second took %v", took)
	}
}

// Only what was published before the start is replayed, although the log grows under the replay.
func TestReplay_E9_EndsWhereItBegan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	today := time.Now().UTC().Format(time.DateOnly)
	f.day(today, 1, 1000)
	grown := 0
	p, err := f.runner(func(c *replay.Config) {
		c.Batch = 100
		c.Progress = func(replay.Replay) {
			grown++
			f.exec(`INSERT INTO journeyman.event_log SELECT journeyman.now(), shard, id + $1, gen_random_uuid(), type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at
				FROM journeyman.event_log WHERE id = 1`, 1_000_000*grown)
		}
	}).Start(f.ctx, request(replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply)))
	if err != nil || p.Delivered != 1000 {
		t.Fatalf("%+v, %v", p, err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_log`); n != 1000+grown || grown != 10 {
		t.Errorf("log has %d rows, grew by %d", n, grown)
	}
	fmt.Fprintln(t.Output(), p.Filter.Until)
}
