package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// blocked publishes records while the only worker is held by a first message, so that they wait together.
func (f *fixture) blocked(h inbox.Handler, records []events.Record, edit ...func(*inbox.Config)) {
	f.Helper()
	began, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.BusinessKey == "plug" {
			once.Do(func() { close(began) })
			<-release
		}
		return h(ctx, tx, m)
	}, append([]func(*inbox.Config){func(c *inbox.Config) { c.Concurrency, c.MaxInFlight = 1, 200 }}, edit...)...)
	f.publish(f.created("plug", 1))
	<-began
	f.publish(records...)
	close(release)
}

func TestGroup_MessagesShareATransaction(t *testing.T) { onEach(t, testGroupMessagesShareATransaction) }

func testGroupMessagesShareATransaction(t *testing.T, f *fixture) {
	var all []events.Record
	for n := 1; n <= 20; n++ {
		for k := range 5 {
			all = append(all, f.created(fmt.Sprintf("K-%d", k), n))
		}
	}
	again := all[17]
	f.blocked(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		tx.Emit(events.Message{Type: "test.thing.viewed", Data: map[string]any{"seen": m.MessageID}})
		return apply(ctx, tx, m)
	}, append(all, again))
	f.eventually("all messages", func() bool { return f.applied() == 101 })
	want := "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"
	for k := range 5 {
		if got := f.order(fmt.Sprintf("K-%d", k)); got != want {
			t.Errorf("key %d: applied %s", k, got)
		}
	}
	if n := f.count(`SELECT count(*) FROM (SELECT FROM journeyman.outbox GROUP BY event_id) x`); n != 101 {
		t.Errorf("%d events staged, want one per message, 101", n)
	}
	if n := f.count(`SELECT count(DISTINCT xmin::text) FROM journeyman.inbox`); n > 60 {
		t.Errorf("101 messages took %d transactions, want several in each", n)
	}
}

// Refusals, failures and panics take back their own work only, run once per attempt, and hold their key alone.
func TestGroup_FailuresStayTheirOwn_E8(t *testing.T) { onEach(t, testGroupFailuresStayTheirOwnE8) }

func testGroupFailuresStayTheirOwnE8(t *testing.T, f *fixture) {
	var runs sync.Map
	var all []events.Record
	for n := 1; n <= 6; n++ {
		for _, k := range []string{"good", "retry", "business", "fatal", "panic", "sql", "swallows"} {
			all = append(all, f.created(k, n))
		}
	}
	var failed atomic.Bool
	f.blocked(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if err := apply(ctx, tx, m); err != nil {
			return err
		}
		if m.Metadata.Sequence != 2 {
			return nil
		}
		key := m.Metadata.BusinessKey
		n, _ := runs.LoadOrStore(key, new(atomic.Int64))
		n.(*atomic.Int64).Add(1) //nolint:forcetypeassert // just stored
		switch key {
		case "retry":
			if failed.CompareAndSwap(false, true) {
				return errors.New("not yet")
			}
		case "business":
			return outcome.NewBusiness("NO", "no")
		case "fatal":
			return outcome.NewFatal(errors.New("broken"))
		case "panic":
			panic("boom")
		case "sql":
			_, err := tx.Exec(ctx, `SELECT 1/0 WHERE $1`, true)
			return outcome.NewFatal(err)
		}
		return nil
	}, all)
	f.eventually("all but four", func() bool { return f.applied() == 1+7*6-4 && len(f.dead()) == 4 })
	for _, k := range []string{"good", "retry", "swallows"} {
		if got := f.order(k); got != "1 2 3 4 5 6" {
			t.Errorf("key %s: applied %s", k, got)
		}
	}
	for _, k := range []string{"business", "fatal", "panic", "sql"} {
		if got := f.order(k); got != "1 3 4 5 6" {
			t.Errorf("key %s: applied %s", k, got)
		}
		if n, _ := runs.Load(k); n.(*atomic.Int64).Load() != 1 { //nolint:forcetypeassert // stored above
			t.Errorf("key %s: the failing message was handled more than once", k)
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.inbox`); n != f.applied() {
		t.Errorf("%d inbox rows for %d applied messages", n, f.applied())
	}
}

// A handler that passes over a failed statement spoils the group's transaction: each is then delivered alone.
func TestGroup_BrokenTransactionIsDeliveredSingly(t *testing.T) {
	onEach(t, testGroupBrokenTransactionIsDeliveredSingly)
}

func testGroupBrokenTransactionIsDeliveredSingly(t *testing.T, f *fixture) {
	var all []events.Record
	for n := 1; n <= 10; n++ {
		all = append(all, f.created(fmt.Sprintf("K-%d", n), n))
	}
	f.blocked(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.BusinessKey == "K-5" {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		}
		return apply(ctx, tx, m)
	}, all)
	f.eventually("nine, and one in the dead letters", func() bool { return f.applied() == 10 && len(f.dead()) == 1 })
	if d := f.dead()[0]; d.BusinessKey != "K-5" || d.Attempts != 4 {
		t.Errorf("got %s after %d attempts", d.BusinessKey, d.Attempts)
	}
}

// A deadlock over what a group holds is nobody's failed attempt.
func TestGroup_ContentionIsNoAttempt(t *testing.T) { onEach(t, testGroupContentionIsNoAttempt) }

func testGroupContentionIsNoAttempt(t *testing.T, f *fixture) {
	var failed, retried atomic.Int64
	var all []events.Record
	for n := 1; n <= 10; n++ {
		all = append(all, f.created(fmt.Sprintf("K-%d", n%3), n))
	}
	f.blocked(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.Sequence == 5 && failed.Add(1) == 1 {
			_, err := tx.Exec(ctx, `DO $$ BEGIN RAISE EXCEPTION 'as if' USING ERRCODE = '40P01'; END $$`)
			return err
		}
		return apply(ctx, tx, m)
	}, all, func(c *inbox.Config) { c.Hooks.Retrying = func(string, int, time.Duration, error) { retried.Add(1) } })
	f.eventually("all messages", func() bool { return f.applied() == 11 })
	if failed.Load() != 2 || retried.Load() != 0 {
		t.Errorf("handled %d times, %d attempts counted as failed, want 2 and none", failed.Load(), retried.Load())
	}
}

// Settings of one handler do not hold for the next.
func TestGroup_SettingsDoNotLeak(t *testing.T) { onEach(t, testGroupSettingsDoNotLeak) }

func testGroupSettingsDoNotLeak(t *testing.T, f *fixture) {
	var leaked atomic.Int64
	var all []events.Record
	for n := 1; n <= 12; n++ {
		all = append(all, f.created("K", n))
	}
	f.blocked(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		var now string
		if err := tx.QueryRow(ctx, `SELECT current_setting('statement_timeout')`).Scan(&now); err != nil {
			return err
		}
		if now != "0" {
			leaked.Add(1)
		}
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 4321`); err != nil {
			return err
		}
		return apply(ctx, tx, m)
	}, all)
	f.eventually("all messages", func() bool { return f.applied() == 13 })
	if leaked.Load() > 0 {
		t.Errorf("%d handlers ran with settings of another", leaked.Load())
	}
}

func TestBatchHandler_TakesSeveral(t *testing.T) { onEach(t, testBatchHandlerTakesSeveral) }

func testBatchHandlerTakesSeveral(t *testing.T, f *fixture) {
	var calls, most atomic.Int64
	h := func(ctx context.Context, tx *outbox.Tx, list []events.Received) error {
		calls.Add(1)
		most.Store(max(most.Load(), int64(len(list))))
		keys, ids, bodies := []string{}, []string{}, []string{}
		for _, m := range list {
			if m.Metadata.BusinessKey == "bad" {
				return outcome.NewBusiness("NO", "no")
			}
			keys, ids, bodies = append(keys, m.Metadata.BusinessKey), append(ids, m.MessageID), append(bodies, string(m.Data))
		}
		_, err := tx.Exec(ctx, `INSERT INTO applied (key, id, body) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])`, keys, ids, bodies)
		return err
	}
	var all []events.Record
	for n := 1; n <= 100; n++ {
		all = append(all, f.created(fmt.Sprintf("K-%d", n%3), n))
	}
	all = slices.Insert(all, 50, f.created("bad", 1))
	f.publish(all...)
	f.runRoutes([]inbox.Route{{Types: []string{"test.thing.created"}, Batch: h}}, func(c *inbox.Config) { c.Concurrency, c.MaxInFlight = 1, 200 })
	f.eventually("all but one", func() bool { return f.applied() == 100 && len(f.dead()) == 1 })
	if most.Load() < 2 {
		t.Errorf("%d calls, the largest with %d messages", calls.Load(), most.Load())
	}
	if d := f.dead()[0]; d.State != "parked" || d.BusinessKey != "bad" {
		t.Errorf("got %s of %s", d.State, d.BusinessKey)
	}
	for k := range 3 {
		var seq []int
		rows, _ := f.pool.Query(f.ctx, `SELECT body FROM applied WHERE key = $1 ORDER BY n`, fmt.Sprintf("K-%d", k))
		for rows.Next() {
			var body string
			var data struct{ N int }
			if err := rows.Scan(&body); err != nil {
				t.Fatal(err)
			}
			_ = json.Unmarshal([]byte(body), &data)
			seq = append(seq, data.N)
		}
		if !slices.IsSorted(seq) {
			t.Errorf("key %d: applied %v", k, seq)
		}
	}
}
