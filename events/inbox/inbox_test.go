package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

func TestInbox_DuplicatesAreAbsorbed(t *testing.T) { onEach(t, testInboxDuplicatesAreAbsorbed) }

func testInboxDuplicatesAreAbsorbed(t *testing.T, f *fixture) {
	var duplicates atomic.Int64
	a, b := f.created("K", 1), f.created("K", 2)
	f.publish(a, b, a, a, b, f.created("K", 3))
	f.run(apply, func(c *inbox.Config) { c.Hooks.Duplicate = func(string) { duplicates.Add(1) } })
	f.eventually("three distinct messages", func() bool { return f.applied() == 3 })
	f.eventually("three duplicates", func() bool { return duplicates.Load() == 3 })
	if got := f.order("K"); got != "1 2 3" {
		t.Errorf("applied %s, want 1 2 3", got)
	}
}

// Same id, other content: a dead letter, and the alert of one (spec W8).
func TestInbox_SameIDOtherContentIsBuried(t *testing.T) {
	onEach(t, testInboxSameIDOtherContentIsBuried)
}

func testInboxSameIDOtherContentIsBuried(t *testing.T, f *fixture) {
	id, alerts := events.NewID(), &alerts{}
	f.publish(envelope(t, "test.thing.created", 1, id, "K", 1), envelope(t, "test.thing.created", 1, id, "K", 2))
	stop := f.run(apply, func(c *inbox.Config) { c.Hooks.Dead = alerts.dead })
	f.eventually("the conflict", func() bool { return len(f.dead()) == 1 })
	if d := f.dead()[0]; d.Reason != outcome.ReasonConflict || d.State != "dead" || f.applied() != 1 {
		t.Errorf("got %s/%s with %d applied, want dead/conflict with 1", d.State, d.Reason, f.applied())
	}
	stop()
	if want := "test.thing.created " + id + " conflict, parked: false"; len(alerts.told) != 1 || alerts.told[0] != want {
		t.Errorf("alerts %q, want %q alone", alerts.told, want)
	}
}

// alerts keeps what the hook of dead letters tells. Read it when the inbox has stopped.
type alerts struct {
	mu   sync.Mutex
	told []string
}

func (a *alerts) dead(messageType, messageID, reason string, parked bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, fmt.Sprintf("%s %s %s, parked: %t", messageType, messageID, reason, parked))
}

func TestInbox_CommandsAreRecognisedByTheirKey(t *testing.T) {
	onEach(t, testInboxCommandsAreRecognisedByTheirKey)
}

func testInboxCommandsAreRecognisedByTheirKey(t *testing.T, f *fixture) {
	f.publish(envelope(t, "test.thing.make.requested", 1, events.NewID(), "K", 7), envelope(t, "test.thing.make.requested", 1, events.NewID(), "K", 7), f.created("K", 8))
	f.run(apply)
	f.eventually("two", func() bool { return f.applied() >= 2 })
	if got := f.count(`SELECT count(*) FROM applied WHERE body::jsonb->>'n' = '7'`); got != 1 {
		t.Errorf("the command was applied %d times, want 1", got)
	}
}

// A failing message holds the later ones of its key, and nobody else's.
func TestInbox_RetryKeepsTheOrderOfAKey(t *testing.T) { onEach(t, testInboxRetryKeepsTheOrderOfAKey) }

func testInboxRetryKeepsTheOrderOfAKey(t *testing.T, f *fixture) {
	var failures atomic.Int64
	release := make(chan struct{})
	h := func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		select {
		case <-release:
		default:
			if m.Metadata.BusinessKey == "sick" && m.Metadata.Sequence == 1 {
				failures.Add(1)
				return outcome.NewRetryable(errors.New("not yet"), 2*time.Second) // its attempts outlast the others
			}
		}
		return apply(ctx, tx, m)
	}
	f.run(h)
	var all []events.Record
	for n := 1; n <= 20; n++ {
		all = append(all, f.created("sick", n))
		for k := range 5 {
			all = append(all, f.created(fmt.Sprintf("well-%d", k), n))
		}
	}
	f.publish(all...)
	f.eventually("100 messages of other keys", func() bool { return f.count(`SELECT count(*) FROM applied WHERE key <> 'sick'`) == 100 })
	f.eventually("19 messages behind the sick one", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE next_at = 'infinity'`) == 19
	})
	if got := f.order("sick"); got != "" {
		t.Errorf("applied %s of the sick key, want nothing yet", got)
	}
	close(release)
	f.eventually("all messages", func() bool { return f.applied() == 120 })
	want := "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
	for _, key := range []string{"sick", "well-0", "well-4"} {
		if got := f.order(key); got != want {
			t.Errorf("key %s: applied %s", key, got)
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_retry`); n != 0 {
		t.Errorf("%d messages still wait", n)
	}
}

func TestInbox_PoisonIsBuriedWithItsBytes(t *testing.T) {
	onEach(t, testInboxPoisonIsBuriedWithItsBytes)
}

func testInboxPoisonIsBuriedWithItsBytes(t *testing.T, f *fixture) {
	var attempts atomic.Int64
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.Sequence == 1 {
			attempts.Add(1)
			return errors.New("always")
		}
		return apply(ctx, tx, m)
	})
	poison := f.created("K", 1)
	f.publish(poison, f.created("K", 2))
	f.eventually("the message behind", func() bool { return f.order("K") == "2" })
	list := f.dead()
	if len(list) != 1 {
		t.Fatalf("%d dead messages, want 1", len(list))
	}
	d := list[0]
	if !bytes.Equal(d.Body, poison.Body) || len(d.Headers) != 1 || d.Attempts != 4 || d.Reason != inbox.ReasonPoisoned || d.Position.Topic != poison.Topic || !strings.Contains(d.Error, "always") {
		t.Errorf("got %+v", d)
	}
	if attempts.Load() != 4 {
		t.Errorf("%d attempts, want 4 (poisoned_after)", attempts.Load())
	}
}

func TestInbox_HowAHandlerEnds(t *testing.T) { onEach(t, testInboxHowAHandlerEnds) }

func testInboxHowAHandlerEnds(t *testing.T, f *fixture) {
	refuse := atomic.Bool{}
	refuse.Store(true)
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if err := apply(ctx, tx, m); err != nil {
			return err
		}
		switch {
		case m.Metadata.BusinessKey == "business" && refuse.Load():
			return outcome.NewBusiness("SOLD_OUT", "no room")
		case m.Metadata.BusinessKey == "fatal":
			return outcome.NewFatal(errors.New("broken"))
		case m.Metadata.BusinessKey == "panic":
			panic("boom")
		case m.Metadata.BusinessKey == "commit":
			_, _ = tx.Exec(ctx, "/* x */ commit")
		case m.Metadata.BusinessKey == "emit":
			tx.Emit(events.Message{Type: "test.no.such"})
		}
		return nil
	})
	bad := events.Record{Topic: "test.thing.created.v1", Key: "bad", Body: []byte("{")}
	wrongKey := f.created("one", 1)
	wrongKey.Key = "another"
	nul := f.created("nul", 1)
	nul.Key, nul.Body = "nul\x00", bytes.ReplaceAll(nul.Body, []byte(`"nul"`), []byte(`"nul\u0000"`))
	nul.Headers = append(nul.Headers, events.Header{Name: "x\x00\xff", Value: "\xff\x00"})
	f.publish(nul, f.created("business", 1), f.created("fatal", 1), f.created("panic", 1), f.created("commit", 1), f.created("emit", 1),
		envelope(t, "test.thing.created", 2, events.NewID(), "version", 1), bad, wrongKey, f.created("good", 1))
	f.eventually("nine set aside and one applied", func() bool { return len(f.dead()) == 9 && f.applied() == 1 })
	want := map[string]string{
		"business": "parked SOLD_OUT", "fatal": "dead error", "panic": "dead panic", "commit": "dead error", "emit": "dead emit",
		"version": "dead version", "bad": "dead envelope", "another": "dead envelope", "nul\uFFFD": "dead envelope",
	}
	for _, d := range f.dead() {
		if got := d.State + " " + d.Reason; got != want[d.BusinessKey] {
			t.Errorf("%s: %s (%s), want %s", d.BusinessKey, got, d.Error, want[d.BusinessKey])
		}
		if d.BusinessKey == "business" {
			refuse.Store(false)
			if err := f.desk.Redrive(f.ctx, f.pool, d.ID); err != nil {
				t.Error(err)
			}
		}
	}
	f.eventually("the redriven message", func() bool { return f.order("business") == "1" })
}

func TestInbox_EventsGoWithTheTransaction(t *testing.T) {
	onEach(t, testInboxEventsGoWithTheTransaction)
}

func testInboxEventsGoWithTheTransaction(t *testing.T, f *fixture) {
	var runs atomic.Int64
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		tx.Emit(events.Message{Type: "test.thing.viewed", Data: map[string]any{"seen": m.MessageID}})
		if runs.Add(1) == 1 {
			return errors.New("first try fails after the emit")
		}
		return apply(ctx, tx, m)
	})
	m := f.created("K", 1)
	f.publish(m)
	f.eventually("the message", func() bool { return f.applied() == 1 })
	var id, key, op string
	if err := f.pool.QueryRow(f.ctx, `SELECT event_id::text, business_key, operation_id FROM journeyman.outbox`).Scan(&id, &key, &op); err != nil {
		t.Fatal(err)
	}
	source := m.Header(events.HeaderEventID)
	want := events.DeriveID("view/"+source, 0, events.Message{Type: "test.thing.viewed", Version: 1, BusinessKey: "K"})
	if id != want || key != "K" || op != "op-"+source {
		t.Errorf("staged %s %s %s, want %s", id, key, op, want)
	}
}

// The server ends the handler's connection, twice: that is nobody's attempt.
func TestInbox_LostConnectionBurnsNoAttempt(t *testing.T) {
	onEach(t, testInboxLostConnectionBurnsNoAttempt)
}

func testInboxLostConnectionBurnsNoAttempt(t *testing.T, f *fixture) {
	var runs, attempt atomic.Int64
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		attempt.Store(int64(m.Attempt))
		if runs.Add(1) <= 2 {
			_, err := tx.Exec(ctx, `SELECT pg_terminate_backend(pg_backend_pid())`)
			return err
		}
		return apply(ctx, tx, m)
	})
	f.publish(f.created("K", 1))
	f.eventually("the message", func() bool { return f.applied() == 1 })
	if attempt.Load() != 1 || f.count(`SELECT count(*) FROM journeyman.inbox_retry`) != 0 {
		t.Errorf("attempt %d, want 1 and nothing in inbox_retry", attempt.Load())
	}
}

func TestInbox_DrainFinishesWhatItTook(t *testing.T) { onEach(t, testInboxDrainFinishesWhatItTook) }

func testInboxDrainFinishesWhatItTook(t *testing.T, f *fixture) {
	began, release := make(chan struct{}, 8), make(chan struct{})
	h := func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		began <- struct{}{}
		<-release
		return apply(ctx, tx, m)
	}
	stop := f.run(h, func(c *inbox.Config) { c.Concurrency = 1 })
	f.publish(f.created("K", 1), f.created("K", 2))
	<-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("stopped with a handler at work")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	<-stopped
	if got := f.order("K"); got != "1" {
		t.Errorf("applied %q, want 1: what was not begun is left", got)
	}
	var fetched atomic.Int64
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		fetched.Add(1)
		return apply(ctx, tx, m)
	})
	f.eventually("the rest", func() bool { return f.order("K") == "1 2" })
	if fetched.Load() != 1 {
		t.Errorf("the handler ran %d times after the restart, want 1: the offset of the first was committed", fetched.Load())
	}
}

func TestInbox_RunsOnManyMembers(t *testing.T) { onEach(t, testInboxRunsOnManyMembers) }

func testInboxRunsOnManyMembers(t *testing.T, f *fixture) {
	stops := []func(){f.run(apply), f.run(apply)}
	var all []events.Record
	for n := 1; n <= 50; n++ {
		for k := range 8 {
			all = append(all, f.created(fmt.Sprintf("K-%d", k), n))
		}
	}
	f.publish(all[:200]...)
	f.eventually("some messages", func() bool { return f.applied() > 50 })
	stops[0]() // leaves in the middle
	f.publish(all[200:]...)
	f.eventually("all messages", func() bool { return f.applied() == 400 })
	for k := range 8 {
		if got := strings.Count(f.order(fmt.Sprintf("K-%d", k)), " "); got != 49 {
			t.Errorf("key %d: %d messages", k, got+1)
		}
	}
	if n := f.count(`SELECT count(*) FROM (SELECT id FROM applied GROUP BY id HAVING count(*) > 1) d`); n != 0 {
		t.Errorf("%d messages applied twice", n)
	}
}

func TestNew_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, transports()[0])
	_, err := inbox.New(f.bus, f.pool, inbox.Config{Catalog: f.cat, Keep: time.Hour, DedupBy: "luck", MaxBytes: 999},
		inbox.Route{Types: []string{"test.none.*"}, Handler: apply},
		inbox.Route{Types: []string{"test.thing.created"}, Versions: []int{1, 9}, Handler: apply},
		inbox.Route{Types: []string{"test.*"}, Handler: apply},
		inbox.Route{Types: []string{"test.thing.viewed"}})
	if _, err := inbox.New(f.bus, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Concurrency: 1, Stager: f.stage, Emits: []string{"test.thing.viewed", "test.thing.vanished"}},
		inbox.Route{Types: []string{"test.thing.counted"}, Handler: apply}); err == nil || !strings.Contains(err.Error(), "test.thing.vanished") || strings.Contains(err.Error(), "viewed") {
		t.Errorf("a handler that emits what is not in the catalog: got %v", err)
	}
	if _, err := inbox.New(f.bus, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Concurrency: 1, MaxBytes: -1},
		inbox.Route{Types: []string{"test.thing.counted"}, Handler: apply}); err == nil || !strings.Contains(err.Error(), "max bytes -1") {
		t.Errorf("a negative limit: got %v", err)
	}
	for _, want := range []string{"group: empty", "concurrency 0", "max bytes 999, want at least 1000", "keep 1h", `"luck"`, "test.none.*: not in the catalog", "version 9", "in two routes", "do not list", "want a handler"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant it to name %q", err, want)
		}
	}
}

// A handler that overstays loses its connection with its transaction; each time is an attempt, so it ends.
func TestInbox_OverstayingEnds(t *testing.T) { onEach(t, testInboxOverstayingEnds) }

func testInboxOverstayingEnds(t *testing.T, f *fixture) {
	f.run(func(ctx context.Context, tx *outbox.Tx, _ events.Received) error {
		_, err := tx.Exec(ctx, `SELECT pg_sleep(60)`)
		return err
	}, func(c *inbox.Config) { c.HandlerTimeout = 50 * time.Millisecond })
	f.publish(f.created("K", 1))
	f.eventually("the end", func() bool { return len(f.dead()) == 1 })
	if d := f.dead()[0]; d.Attempts != 4 || d.Reason != inbox.ReasonPoisoned {
		t.Errorf("got %d attempts, %s", d.Attempts, d.Reason)
	}
}
