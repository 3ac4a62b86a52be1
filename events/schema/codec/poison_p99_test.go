//go:build kafka

package codec_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

const (
	perSecond   = 150             // messages, poison among them
	turnTakes   = 3 * time.Second // 450 messages, so four of them may be above the p99
	poisonEvery = 20              // one message in so many, of each kind in turn
	handlers    = 8               // at once
	ratioMost   = 2.0             // of the others' p99 among poison to that without
	// A busy machine pauses for longer than a p99 takes, so more rounds decide when the first ones say that it is too high: a fault
	// that holds others up does so in all.
	fewest, most = 7, 15
	// noise is the least that counts as a p99 without poison: below it one pause of the machine makes a ratio.
	noise = 10 * time.Millisecond
)

// poison is a kind of message that can never be handled.
type poison struct {
	kind, reason string
	attempts     int
	record       func(f *fixture, key string) events.Record
}

// The good messages' types: of no frame, and of one with JSON and with Protocol Buffers in it.
const plain, framed, binary = "test.plain.noted", "test.seat.assigned", "test.payment.captured"

// long makes a message of more than 1 MiB. Compressed it is below the broker's own limit, as any message is that arrives.
var long = func() string { //nolint:gochecknoglobals // made once
	random := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	return hex.EncodeToString(random) + strings.Repeat("x", 500_000)
}()

// poisons are all kinds. Each comes in topics that the good messages come in too.
func poisons() []poison {
	return []poison{
		{"bad JSON", inbox.ReasonEnvelope, 1, func(f *fixture, key string) events.Record {
			r := f.good(plain, key, "cut off", "")
			r.Body = r.Body[:len(r.Body)/2]
			return r
		}},
		{"bad JSON in a frame", inbox.ReasonSchema, 1, func(f *fixture, key string) events.Record {
			r := f.good(framed, key, "cut off", "")
			r.Body = r.Body[:len(r.Body)-1]
			return r
		}},
		{"schema id of another format", inbox.ReasonSchema, 1, func(f *fixture, key string) events.Record {
			body, err := f.producer.Encode("test.account.locked", 1, []byte(`{"id":"x"}`))
			if err != nil {
				f.Error(err)
			}
			return foreign(framed, key, body)
		}},
		{"unknown schema id", inbox.ReasonSchemaID, 4, func(_ *fixture, key string) events.Record { // after the catalog's schedule
			return foreign(binary, key, []byte("\x00\x7f\xff\xff\xf0\x00"))
		}},
		{"more than 1 MiB", inbox.ReasonTooLarge, 1, func(f *fixture, key string) events.Record {
			return f.good(plain, key, "large", long)
		}},
		{"panic", outcome.ReasonPanic, 1, func(f *fixture, key string) events.Record { return f.good(plain, key, "panic", "") }},
	}
}

// TestPoison_OtherKeysKeepTheirPace_E8 publishes at a steady rate, in turn clean and with poison of every kind among the messages: all
// poison is set aside with its reason, and of the times from publish to handler of the other keys the p99 at most doubles, by the
// median of the rounds.
func TestPoison_OtherKeysKeepTheirPace_E8(t *testing.T) { //nolint:paralleltest // it measures
	f := setup(t)
	foreigner := f.ownServices()
	if _, err := f.pool.Exec(f.ctx, `CREATE TABLE handled (turn text NOT NULL, us bigint NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	f.consume(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		var d booking
		if err := m.Decode(&d); err != nil {
			return err
		}
		if d.ID == "panic" {
			panic("poison")
		}
		// Of a handler's run that is rolled back nothing stays, so the last one counts.
		_, err := tx.Exec(ctx, `INSERT INTO handled (turn, us) VALUES ($1, $2)`, d.ID, time.Now().UnixMicro()-d.N)
		return err
	}, func(c *inbox.Config) { c.Concurrency = handlers })
	sent := map[string]int{}
	var ratios []float64
	median := func() float64 { return slices.Sorted(slices.Values(ratios))[len(ratios)/2] }
	for round := 0; round <= fewest || round <= most && median() > ratioMost; round++ {
		p99 := map[bool]time.Duration{}
		for _, poisoned := range []bool{round%2 == 1, round%2 == 0} { // what drifts weighs on both
			p99[poisoned] = f.turn(fmt.Sprintf("%d %t", round, poisoned), foreigner, poisoned, sent)
		}
		ratio := float64(p99[true]) / float64(max(p99[false], noise))
		t.Logf("round %d: p99 %v clean, %v among poison, ratio %.2f", round, p99[false], p99[true], ratio)
		if round > 0 { // the first one warms
			ratios = append(ratios, ratio)
		}
	}
	if median() > ratioMost {
		t.Errorf("among poison the p99 of other keys is %.2f times the one without, want at most %.1f (all rounds: %.2f)", median(), ratioMost, ratios)
	}
	f.setAside(sent)
}

// ownServices gives the fixture time for all rounds, a connection for each handler and then some, topics of its own, and a producer
// besides, so that large records of the one do not hold up the other.
func (f *fixture) ownServices() (foreigner eventstest.Broker) {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	f.Cleanup(cancel)
	f.ctx = ctx
	cfg := f.pool.Config()
	cfg.MaxConns = 3 * handlers
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(pool.Close)
	f.pool = pool
	addrs, prefix, _ := services(f.T)
	dial := func() eventstest.Broker {
		k, err := kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: time.Second})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = k.Close() })
		return eventstest.Shared(eventstest.Broker{Publisher: k, Subscriber: k, Admin: k}, prefix)
	}
	f.kafka = dial()
	if err := f.kafka.EnsureTopics(f.ctx, 1, f.cat.Topics()...); err != nil {
		f.Fatal(err)
	}
	return dial()
}

// turn publishes for a while, waits for the end of every message, and gives the p99 of the good ones. sent counts poison by kind.
func (f *fixture) turn(name string, foreigner events.Publisher, poisoned bool, sent map[string]int) (p99 time.Duration) {
	f.Helper()
	n, good := int(turnTakes.Seconds()*perSecond), 0
	bad := map[int]events.Record{}
	for i, kinds := 0, poisons(); poisoned && i < n; i += poisonEvery {
		p := kinds[len(bad)%len(kinds)]
		bad[i] = p.record(f, fmt.Sprintf("%s/%s/%d", p.kind, name, i))
		sent[p.kind]++
	}
	errs := make([]error, n)
	start := time.Now()
	pace := time.NewTimer(0)
	defer pace.Stop()
	var wg sync.WaitGroup
	for i := range n {
		pace.Reset(time.Until(start.Add(time.Duration(i) * time.Second / perSecond)))
		select {
		case <-pace.C:
		case <-f.ctx.Done():
			f.Fatal(f.ctx.Err())
		}
		if i%poisonEvery != 0 {
			good++
			r := f.good([]string{plain, framed, binary}[i%3], fmt.Sprintf("good/%d", i%100), name, "")
			wg.Go(func() { errs[i] = f.kafka.Publish(f.ctx, []events.Record{r})[0] })
		} else if r, ok := bad[i]; ok {
			wg.Go(func() { errs[i] = foreigner.Publish(f.ctx, []events.Record{r})[0] })
		}
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		f.Fatal(err)
	}
	all := 0
	for _, n := range sent {
		all += n
	}
	f.eventually("all good messages", func() bool { return f.count(`SELECT count(*) FROM handled WHERE turn = $1`, name) == good })
	f.eventually("all poison set aside", func() bool { return f.count(`SELECT count(*) FROM journeyman.inbox_dead`) == all })
	return time.Duration(f.count(`SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY us) FROM handled WHERE turn = $1`, name)) * time.Microsecond
}

// setAside checks that dead letters are there as often as sent says, each with the reason of its kind.
func (f *fixture) setAside(sent map[string]int) {
	f.Helper()
	want := map[string]poison{}
	for _, p := range poisons() {
		want[p.kind] = p
		if sent[p.kind] == 0 {
			f.Errorf("%s: none was sent", p.kind)
		}
	}
	rows, err := f.pool.Query(f.ctx, `SELECT business_key, state, reason, attempts FROM journeyman.inbox_dead`)
	if err != nil {
		f.Fatal(err)
	}
	var key, state, reason string
	var attempts int
	_, err = pgx.ForEachRow(rows, []any{&key, &state, &reason, &attempts}, func() error {
		kind, _, _ := strings.Cut(key, "/")
		sent[kind]--
		if p := want[kind]; state != "dead" || reason != p.reason || attempts != p.attempts {
			f.Errorf("%s: %s as %s after %d attempts, want dead as %s after %d", key, state, reason, attempts, p.reason, p.attempts)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	for kind, n := range sent {
		if n != 0 {
			f.Errorf("%s: %d dead letters too few", kind, n)
		}
	}
}

// good is a message of the type that can be handled. It carries the time.
func (f *fixture) good(messageType, key, id, note string) events.Record {
	f.Helper()
	now := time.Now()
	data, err := json.Marshal(booking{ID: id, N: now.UnixMicro(), Note: &note})
	if err != nil {
		f.Fatal(err)
	}
	if messageType != plain {
		body, err := f.producer.Encode(messageType, 1, data)
		if err != nil {
			f.Fatal(err)
		}
		return foreign(messageType, key, body)
	}
	messageID := events.NewID()
	body, err := events.Envelope{
		MessageID: messageID, MessageKind: events.KindEvent, MessageType: messageType, MessageVersion: 1, Producer: "tester", Data: data,
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c", OperationID: messageID, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, now, 1)
	}
	if err != nil {
		f.Fatal(err)
	}
	return events.Record{Topic: events.Topic(messageType, 1), Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: messageID}}}
}
