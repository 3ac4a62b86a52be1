package inbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// replayed marks a record for a replay; published tells how old it is.
func replayed(r events.Record, id string, mode events.ReplayMode, group string, age time.Duration) events.Record {
	return events.Redelivery{ID: id, Mode: mode, Group: group, Published: time.Now().Add(-age)}.Mark(r)
}

// route is one for test.thing.created with a policy; its handler writes a row and emits an event.
func (f *fixture) route(p inbox.ReplayPolicy) []inbox.Route {
	return []inbox.Route{{Types: []string{"test.thing.created"}, Replay: p, Handler: func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		body := "live"
		if m.Replay {
			body = "replay " + m.ReplayID
		}
		tx.Emit(events.Message{Type: "test.thing.viewed", BusinessKey: m.Metadata.BusinessKey, Data: map[string]any{}})
		_, err := tx.Exec(ctx, `INSERT INTO applied (key, id, body) VALUES ($1, $2, $3)`, m.Metadata.BusinessKey, m.MessageID, body)
		return err
	}}}
}

func (f *fixture) bodies(id string) string {
	f.Helper()
	var s string
	if err := f.pool.QueryRow(f.ctx, `SELECT coalesce(string_agg(body, ', ' ORDER BY n), '') FROM applied WHERE id = $1`, id).Scan(&s); err != nil {
		f.Fatal(err)
	}
	return s
}

// after publishes one more message of the key and waits for it: all before it are settled then.
func (f *fixture) after(records ...events.Record) {
	f.Helper()
	last := f.created(records[0].Key, 999)
	f.publish(append(records, last)...)
	f.eventually("the last message", func() bool { return f.bodies(last.Header(events.HeaderEventID)) != "" })
}

// A live group whose handler says nothing of replays has no effect twice, whatever is replayed to it (spec E9).
func TestInbox_E9_LiveGroupRefusesReplays(t *testing.T) {
	onEach(t, testInboxE9LiveGroupRefusesReplays)
}

func testInboxE9LiveGroupRefusesReplays(t *testing.T, f *fixture) {
	r := f.created("K", 1)
	id := r.Header(events.HeaderEventID)
	var refused atomic.Int64
	stop := f.runRoutes(f.route(inbox.ReplayRefused), func(c *inbox.Config) {
		c.Hooks.Refused = func(string, string, string) { refused.Add(1) }
	})
	defer stop()
	f.after(r)
	other := f.created("K", 2)
	f.after(
		replayed(r, events.NewID(), events.ReplayAgain, "", time.Minute),
		replayed(r, events.NewID(), events.ReplayAgain, "view", time.Minute),
		replayed(r, events.NewID(), events.ReplayMissing, "", time.Minute),       // absorbed by the inbox
		replayed(r, events.NewID(), events.ReplayMissing, "", 40*24*time.Hour),   // the inbox may have forgotten it (spec E10)
		replayed(other, events.NewID(), events.ReplayMissing, "", 2*time.Minute), // never handled: no replay policy needed
		replayed(f.created("K", 3), events.NewID(), events.ReplayMissing, "other", time.Minute),
	)
	if got := f.bodies(id); got != "live" {
		t.Errorf("handled as %q, want once, live", got)
	}
	if got := f.bodies(other.Header(events.HeaderEventID)); len(got) < 6 || got[:6] != "replay" {
		t.Errorf("the missing message was handled as %q, want as a replay", got)
	}
	if n := f.count(`SELECT count(*) FROM applied WHERE body LIKE 'replay%'`); n != 1 {
		t.Errorf("%d messages handled as replay, want the missing one", n)
	}
	if n := refused.Load(); n != 3 {
		t.Errorf("%d refused, want 3", n)
	}
}

// A handler that takes replays handles a message once more for each replay, not for each delivery.
func TestInbox_E9_RebuildHandlesOncePerReplay(t *testing.T) {
	for policy, emitted := range map[inbox.ReplayPolicy]int{inbox.ReplayQuiet: 1, inbox.ReplayFull: 3} {
		t.Run(string(policy), func(t *testing.T) {
			onEach(t, func(t *testing.T, f *fixture) {
				f.runRoutes(f.route(policy))
				r := f.created("K", 1)
				id := r.Header(events.HeaderEventID)
				f.after(r)
				one, two := events.NewID(), events.NewID()
				f.after(replayed(r, one, events.ReplayAgain, "", time.Minute), replayed(r, one, events.ReplayAgain, "view", time.Minute), replayed(r, two, events.ReplayAgain, "view", time.Minute))
				if got, want := f.bodies(id), "live, replay "+one+", replay "+two; got != want {
					t.Errorf("handled as %q, want %q", got, want)
				}
				// Two live ones that after() published come on top.
				if n := f.count(`SELECT count(*) FROM journeyman.outbox`); n != emitted+2 {
					t.Errorf("%d messages emitted, want %d", n, emitted+2)
				}
				marked := f.count(`SELECT count(*) FROM journeyman.outbox WHERE convert_from(body, 'UTF8')::jsonb->'metadata'->>'replay' = 'true'`)
				if want := emitted - 1; marked != want {
					t.Errorf("%d emitted messages marked as replay, want %d", marked, want)
				}
			})
		})
	}
}

// A replayed message that fails keeps its mark in the retry store.
func TestInbox_E9_ReplayIsRetriedAsReplay(t *testing.T) {
	onEach(t, testInboxE9ReplayIsRetriedAsReplay)
}

func testInboxE9ReplayIsRetriedAsReplay(t *testing.T, f *fixture) {
	var tries atomic.Int64
	f.runRoutes([]inbox.Route{{Types: []string{"test.thing.created"}, Replay: inbox.ReplayQuiet, Handler: func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if !m.Replay {
			return outcome.Fatalf("x", "not seen as a replay")
		}
		if tries.Add(1) < 3 {
			return outcome.NewRetryable(context.DeadlineExceeded, 0)
		}
		return apply(ctx, tx, m)
	}}})
	f.publish(replayed(f.created("K", 1), events.NewID(), events.ReplayAgain, "", time.Minute))
	f.eventually("the third attempt", func() bool { return f.applied() == 1 })
}
