package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/bench/rig"
)

const (
	steady         = "bench.room.cleaned"
	steadyPerS     = 300
	poisonEvery    = 20 // one in so many is poison, of each kind in turn
	largestMessage = 1 << 20
)

// poisoned measures publish to applied at a steady rate, first clean, then with poison of several keys among the messages, and
// looks for each poison's end.
func (b *bench) poisoned(ctx context.Context, r rig.Report) error {
	during := 6 * time.Second
	if b.quick {
		during = 3 * time.Second
	}
	k, err := dial(b.broker.Keeps)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	arrived := &arrivals{at: map[string]time.Time{}}
	i, err := inbox.New(k, b.pool, inbox.Config{Group: "steady", Catalog: b.catalog, Concurrency: 8}, inbox.Route{Types: []string{steady}, Handler: arrived.handle})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- i.Run(run) }()
	if _, err := b.steadily(ctx, k, arrived, time.Second, false); err != nil { // warm
		cancel()
		return errors.Join(err, <-done)
	}
	clean, err := b.steadily(ctx, k, arrived, during, false)
	var dirty []float64
	if err == nil {
		dirty, err = b.steadily(ctx, k, arrived, during, true)
	}
	dead := map[string]int{}
	for deadline := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // a benchmark waits for another process
		dead = map[string]int{}
		var list []inbox.Dead
		if list, err = inbox.NewDesk("journeyman").Dead(ctx, b.pool, "steady", 10_000); err == nil {
			for _, d := range list {
				dead[d.Reason]++
			}
			if len(list) >= int(during.Seconds()*steadyPerS)/poisonEvery {
				break
			}
		}
	}
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	p99, poisonedP99 := quantile(clean, 0.99), quantile(dirty, 0.99)
	b.say("steady           p99 %.1f ms clean, %.1f ms among poison; set aside: %v", p99, poisonedP99, dead)
	r["steady_p99_ms"], r["poison_p99_ms"], r["poison_p99_ratio"], r["poison_dead"] = rig.Round(p99), rig.Round(poisonedP99), rig.Round(poisonedP99/p99), dead
	return nil
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

// steadyRecord is a good message, or poison: broken JSON, a version nobody knows, a handler that panics, nearly a mebibyte of nothing.
func steadyRecord(i int, bad bool) (events.Record, error) {
	key := fmt.Sprintf("steady-%03d", i%200)
	data := `{"room":"LH-1"}`
	version := 1
	kind := (i / poisonEvery) % 4
	if bad {
		key = fmt.Sprintf("poison-%d", i)
		switch kind {
		case 1:
			version = 9
		case 2:
			data = `{"room":"panic"}`
		}
	}
	id := events.NewID()
	body, err := events.Envelope{
		MessageID: id, MessageKind: events.KindEvent, MessageType: steady, MessageVersion: version, Producer: "bench", ProducerInstance: "b", Data: []byte(data),
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c", OperationID: "op-" + id, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, time.Now(), int64(i))
	}
	switch {
	case bad && kind == 0:
		body = body[:len(body)/2]
	case bad && kind == 3:
		body = []byte(strings.Repeat("x", largestMessage-10_000))
	}
	return events.Record{Topic: steady + ".v1", Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: id}}}, err
}
