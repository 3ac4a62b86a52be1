package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// sized gives a message of so many bytes of body and headers.
func (f *fixture) sized(key string, n, size int) events.Record {
	f.Helper()
	r := f.created(key, n)
	r.Headers = append(r.Headers, events.Header{Name: events.HeaderEventType, Value: "test.thing.created"})
	room := size - len(r.Body)
	for _, h := range r.Headers {
		room -= len(h.Name) + len(h.Value)
	}
	if room < 0 {
		f.Fatalf("%d bytes are too few", size)
	}
	r.Body = bytes.Replace(r.Body, []byte(`"data":{`), []byte(`"data":{`+strings.Repeat(" ", room)), 1)
	return r
}

// A message above the limit is a dead letter before anybody decodes it, with its original bytes in table and DLQ topic; one at
// the limit is handled, the key goes on, and a higher limit takes the message back.
func TestInbox_TooLargeIsBuriedUnread_E8(t *testing.T) { onEach(t, testInboxTooLargeIsBuriedUnreadE8) }

func testInboxTooLargeIsBuriedUnreadE8(t *testing.T, f *fixture) {
	const limit = 2000
	alerts := &alerts{}
	var seen atomic.Int64
	count := func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		seen.Add(1)
		return apply(ctx, tx, m)
	}
	stop := f.run(count, func(c *inbox.Config) { c.MaxBytes, c.Hooks.Dead = limit, alerts.dead })
	large := f.sized("K", 2, limit+1)
	garbage := events.Record{Topic: "test.thing.created.v1", Key: "garbage", Body: bytes.Repeat([]byte{'{', 0}, limit)}
	heady := f.created("heady", 1)
	heady.Headers = append(heady.Headers, events.Header{Name: "x", Value: strings.Repeat("h", limit)})
	f.publish(f.sized("K", 1, limit), large, f.created("K", 3), garbage, heady)
	f.eventually("three set aside, two applied", func() bool { return len(f.dead()) == 3 && f.applied() == 2 })
	stop()
	if got := f.order("K"); got != "1 3" || seen.Load() != 2 {
		t.Errorf("applied %s in %d calls, want 1 3 in 2", got, seen.Load())
	}
	byKey := map[string]inbox.Dead{}
	for _, d := range f.dead() {
		byKey[d.BusinessKey] = d
		if d.State != "dead" || d.Reason != inbox.ReasonTooLarge || d.Class != string(outcome.Fatal) || !strings.Contains(d.Error, "want at most 2000") {
			t.Errorf("%s: %s %s %s (%s), want dead too_large with the limit", d.BusinessKey, d.State, d.Reason, d.Class, d.Error)
		}
	}
	d := byKey["K"]
	if !bytes.Equal(d.Body, large.Body) || !bytes.Equal(byKey["garbage"].Body, garbage.Body) {
		t.Error("the table does not hold the original bytes")
	}
	if d.MessageID != large.Header(events.HeaderEventID) || d.Type != "test.thing.created" || !strings.Contains(d.Error, fmt.Sprint(limit+1, " bytes")) {
		t.Errorf("id %q, type %q, error %q; want those of the headers and its size", d.MessageID, d.Type, d.Error)
	}
	if want := "test.thing.created " + d.MessageID + " too_large, parked: false"; len(alerts.told) != 3 || !slices.Contains(alerts.told, want) {
		t.Errorf("alerts %q, want one a message and %q among them", alerts.told, want)
	}
	f.copied(map[string][]byte{"K": large.Body, "garbage": garbage.Body, "heady": heady.Body})

	if err := f.desk.Redrive(f.ctx, f.pool, d.ID); err != nil {
		t.Fatal(err)
	}
	f.run(count, func(c *inbox.Config) { c.MaxBytes = limit + 1 })
	f.eventually("the large one under a higher limit", func() bool { return f.order("K") == "1 3 2" })
}

// copied expects these bodies by key in the DLQ topics, forwarded from the table.
func (f *fixture) copied(want map[string][]byte) {
	f.Helper()
	if err := deadletter.Migrate(f.ctx, f.pool, "journeyman"); err != nil {
		f.Fatal(err)
	}
	topics := deadletter.Topics(f.cat)
	names := make([]string, len(topics))
	for n, topic := range topics {
		names[n] = topic.Name
	}
	fw, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: f.pool, Publisher: f.bus, Catalog: f.cat})
	if err == nil {
		err = f.bus.EnsureTopics(f.ctx, 1, topics...)
	}
	if err != nil {
		f.Fatal(err)
	}
	if n, err := fw.Pass(f.ctx); err != nil || n != len(want) {
		f.Fatalf("%d letters forwarded, want %d (%v)", n, len(want), err)
	}
	c, err := f.bus.Subscribe(f.ctx, "dlq-reader", names...)
	if err != nil {
		f.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	for range want {
		d, err := c.Fetch(f.ctx)
		if err != nil {
			f.Fatal(err)
		}
		if !bytes.Equal(d.Body, want[d.Key]) || d.Header(deadletter.HeaderReason) != inbox.ReasonTooLarge || !strings.Contains(d.Header(deadletter.HeaderError), "want at most") {
			f.Errorf("the DLQ topic has %d bytes for %s, want %d; headers %v", len(d.Body), d.Key, len(want[d.Key]), d.Headers)
		}
	}
}

// The marks of a redelivery do not count: a message at the limit that failed and is redriven is handled.
func TestInbox_RedriveDoesNotOutgrowTheLimit_E8(t *testing.T) {
	onEach(t, testInboxRedriveDoesNotOutgrowTheLimitE8)
}

func testInboxRedriveDoesNotOutgrowTheLimitE8(t *testing.T, f *fixture) {
	var mended atomic.Bool
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if !mended.Load() {
			return outcome.NewFatal(errors.New("unknown currency"))
		}
		return apply(ctx, tx, m)
	}, func(c *inbox.Config) { c.MaxBytes = 2000 })
	f.publish(f.sized("K", 1, 2000))
	f.eventually("the dead letter", func() bool { return len(f.dead()) == 1 })
	mended.Store(true)
	if err := deadletter.Migrate(f.ctx, f.pool, "journeyman"); err != nil {
		t.Fatal(err)
	}
	desk, err := deadletter.New(deadletter.Config{DB: f.pool})
	if err != nil {
		t.Fatal(err)
	}
	why := deadletter.Why{Actor: "ann", Reason: "mended", RootCause: "unknown currency"}
	if res, err := desk.Redrive(f.ctx, deadletter.Request{Why: why, IDs: []int64{f.dead()[0].ID}}, nil); err != nil || len(res) != 1 || res[0].Err != nil {
		t.Fatalf("redrive: %+v, %v", res, err)
	}
	f.eventually("the redriven message", func() bool { return f.order("K") == "1" })
}

// What the tables could not index is a dead letter: a key, an idempotency key or a replay's id that is too long stops nobody.
func TestInbox_LongKeysAreBuried_E8(t *testing.T) { onEach(t, testInboxLongKeysAreBuriedE8) }

func testInboxLongKeysAreBuriedE8(t *testing.T, f *fixture) {
	var random strings.Builder // so that it does not compress
	for random.Len() < 9000 {
		random.WriteString(events.NewID())
	}
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if len(m.Metadata.BusinessKey) > 100 && m.Attempt == 1 {
			return outcome.NewRetryable(errors.New("not yet"), 0)
		}
		return apply(ctx, tx, m)
	})
	command := envelope(t, "test.thing.make.requested", 1, events.NewID(), "K", 1)
	command.Body = bytes.Replace(command.Body, []byte("idem-1"), []byte(random.String()), 1)
	replayed := f.created("K", 2)
	replayed.Headers = append(replayed.Headers, events.Header{Name: events.HeaderReplayID, Value: random.String()},
		events.Header{Name: events.HeaderReplayMode, Value: string(events.ReplayAgain)}, events.Header{Name: events.HeaderRedriveID, Value: "r"})
	f.publish(f.created(random.String()[:3000], 1), command, replayed, f.created("K", 3), f.created(random.String()[:1000], 1))
	f.eventually("three set aside, two applied", func() bool { return len(f.dead()) == 3 && f.applied() == 2 })
	for _, d := range f.dead() {
		if d.State != "dead" || d.Reason != inbox.ReasonEnvelope || !strings.Contains(d.Error, "want at most") {
			t.Errorf("%.10s: %s %s (%s), want a dead letter that names the limit", d.BusinessKey, d.State, d.Reason, d.Error)
		}
	}
}
