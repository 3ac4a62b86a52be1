package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/bench/rig"
)

const (
	steady      = "bench.room.cleaned"
	framed      = "bench.room.priced" // its bodies name schemas of the registry
	steadyPerS  = 300
	poisonEvery = 20 // one in so many is poison, of each kind in turn
	group       = "steady"
)

// kinds of poison.
const (
	brokenJSON = iota
	unknownVersion
	panics
	wrongSchemaID
	tooLarge // over a mebibyte of nothing
	kinds
)

// poisoned measures publish to applied at a steady rate, in turn clean and with poison of several keys among the messages, and looks
// for each poison's end before it goes on: the p99 of the other keys over all turns among poison stands against that of all clean ones.
func (b *bench) poisoned(ctx context.Context, r rig.Report) error {
	during, rounds := 5*time.Second, 6
	if b.quick {
		during, rounds = 3*time.Second, 4
	}
	k, err := dial(b.broker.Keeps)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	if _, err := b.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS seen (id uuid, key text, body text)`); err != nil {
		return err
	}
	schemas := srfake.New()
	defer schemas.Close()
	reg, err := registry.New(registry.Config{URLs: []string{schemas.URL()}})
	if err != nil {
		return err
	}
	defer reg.Close()
	read, err := codec.New(ctx, codec.Config{Catalog: b.catalog, Registry: reg})
	if err != nil {
		return err
	}
	arrived := &arrivals{at: map[string]time.Time{}}
	i, err := inbox.New(k, b.pool, inbox.Config{Group: group, Catalog: b.catalog, Concurrency: 8, Codec: read}, inbox.Route{Types: []string{steady, framed}, Handler: arrived.handle})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- i.Run(run) }()
	var clean, dirty []float64
	bad := 0
	err = func() error {
		for n := range rounds + 1 {
			for _, turn := range []struct {
				dirty bool
				into  *[]float64
			}{{false, &clean}, {true, &dirty}} {
				ms, err := b.steadily(ctx, k, arrived, during, turn.dirty)
				if err != nil {
					return err
				}
				if turn.dirty {
					bad += len(ms) / (poisonEvery - 1)
					if err := b.allDead(ctx, bad); err != nil {
						return err
					}
				}
				if n > 0 { // the first turns warm
					*turn.into = append(*turn.into, ms...)
				}
			}
		}
		return nil
	}()
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	dead, err := b.dead(ctx)
	if err != nil {
		return err
	}
	p99, poisonedP99 := quantile(clean, 0.99), quantile(dirty, 0.99)
	ratio := poisonedP99 / p99
	b.say("steady           p99 %.1f ms clean, %.1f ms among poison, ratio %.2f; set aside: %v", p99, poisonedP99, ratio, dead)
	r["steady_p99_ms"], r["poison_p99_ms"], r["poison_p99_ratio"], r["poison_dead"] = rig.Round(p99), rig.Round(poisonedP99), rig.Round(ratio), dead
	return nil
}

// dead counts what was set aside, by reason.
func (b *bench) dead(ctx context.Context) (map[string]int, error) {
	rows, err := b.pool.Query(ctx, `SELECT reason, count(*) FROM journeyman.inbox_dead WHERE consumer = $1 GROUP BY reason`, group)
	if err != nil {
		return nil, err
	}
	dead := map[string]int{}
	var reason string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&reason, &n}, func() error {
		dead[reason] = n
		return nil
	})
	return dead, err
}

// allDead waits until n messages are set aside.
func (b *bench) allDead(ctx context.Context, n int) error {
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // a benchmark waits for another process
		dead, err := b.dead(ctx)
		if err != nil {
			return err
		}
		sum := 0
		for _, v := range dead {
			sum += v
		}
		if sum >= n {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d poisonous messages were set aside: %v", sum, n, dead)
		}
	}
}

// arrivals notes when a handler had a message.
type arrivals struct {
	mu sync.Mutex
	at map[string]time.Time
}

func (a *arrivals) handle(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	if strings.Contains(string(m.Data), "panic") {
		panic("poison") //nolint:forbidigo // the poison
	}
	if _, err := tx.Exec(ctx, insertSeen, m.MessageID, m.Metadata.BusinessKey, "steady"); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at[m.MessageID] = time.Now()
	return nil
}

func (a *arrivals) of(id string) (time.Time, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.at[id]
	return at, ok
}

// steadily publishes at the rate and gives the milliseconds from the send to the handler of each good message.
func (b *bench) steadily(ctx context.Context, k *kafka.Client, arrived *arrivals, during time.Duration, dirty bool) ([]float64, error) {
	sent := map[string]time.Time{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	n := int(during.Seconds() * steadyPerS)
	errs := make([]error, n)
	start := time.Now()
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / steadyPerS))) //nolint:forbidigo // the pace of an open loop
		bad := dirty && i%poisonEvery == poisonEvery-1
		rec, err := steadyRecord(i, bad)
		if err != nil {
			return nil, err
		}
		if !bad {
			mu.Lock()
			sent[rec.Header(events.HeaderEventID)] = time.Now()
			mu.Unlock()
		}
		wg.Go(func() { errs[i] = k.Publish(ctx, []events.Record{rec})[0] })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var ms []float64
	for deadline := time.Now().Add(10 * time.Second); len(sent) > 0; time.Sleep(5 * time.Millisecond) { //nolint:forbidigo // a benchmark waits for another process
		for id, at := range sent {
			if got, ok := arrived.of(id); ok {
				ms = append(ms, got.Sub(at).Seconds()*1000)
				delete(sent, id)
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%d of %d good messages were never handled", len(sent), n)
		}
	}
	return ms, nil
}

// steadyRecord is a good message, or poison of the next kind.
func steadyRecord(i int, bad bool) (events.Record, error) {
	kind := -1
	key, data, version, id := fmt.Sprintf("steady-%03d", i%200), `{"room":"LH-1"}`, 1, events.NewID()
	if bad {
		key, kind = fmt.Sprintf("poison-%d", i), (i/poisonEvery)%kinds
	}
	switch kind {
	case wrongSchemaID:
		return events.Record{
			Topic: framed + ".v1", Key: key, Body: append([]byte{0, 0, 0, 39, 15}, data...),
			Headers: []events.Header{{Name: events.HeaderEventID, Value: id}, {Name: events.HeaderEventType, Value: framed}, {Name: events.HeaderEventVersion, Value: "1"}},
		}, nil
	case unknownVersion:
		version = 9
	case panics:
		data = `{"room":"panic"}`
	}
	body, err := events.Envelope{
		MessageID: id, MessageKind: events.KindEvent, MessageType: steady, MessageVersion: version, Producer: "bench", ProducerInstance: "b", Data: []byte(data),
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c", OperationID: "op-" + id, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, time.Now(), int64(i))
	}
	switch kind {
	case brokenJSON:
		body = body[:len(body)/2]
	case tooLarge:
		body = []byte(strings.Repeat("x", 1<<20+1))
	}
	return events.Record{Topic: steady + ".v1", Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: id}}}, err
}
