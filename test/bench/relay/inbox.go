package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/bench/rig"
)

// record is a message as the relay publishes it.
func record(n int, key string) (events.Record, error) {
	id := events.NewID()
	data, err := json.Marshal(booking(n).Data)
	if err != nil {
		return events.Record{}, err
	}
	body, err := events.Envelope{
		MessageID: id, MessageKind: events.KindEvent, MessageType: "bench.room.booked", MessageVersion: 1, Producer: "bench", ProducerInstance: "b", Data: data,
		Metadata: events.Metadata{BusinessKey: key, CorrelationID: "c-" + key, OperationID: "op-" + id, EventClass: events.ClassDomain},
	}.Render()
	if err == nil {
		body, err = events.Finalise(body, time.Now(), int64(n))
	}
	return events.Record{Topic: topic, Key: key, Body: body, Headers: []events.Header{{Name: events.HeaderEventID, Value: id}}}, err
}

// inboxes compares the inbox with a loop that reads and inserts, each in a group of its own over the same topic.
func (b *bench) inboxes(ctx context.Context, r rig.Report) error {
	k, err := dial(b.broker.Keeps)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	if _, err := b.pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS seen (id uuid, key text, body text)`); err != nil {
		return err
	}
	n := min(b.rows, 20_000)
	for from := 0; from < n; from += batch {
		var list []events.Record
		for i := from; i < min(from+batch, n); i++ {
			rec, err := record(i, fmt.Sprintf("booking-%04d", i%1000))
			if err != nil {
				return err
			}
			list = append(list, rec)
		}
		if err := errors.Join(k.Publish(ctx, list)...); err != nil {
			return err
		}
	}
	rates := series{}
	for i := range b.rounds {
		for _, c := range []struct {
			name string
			run  func(context.Context, *kafka.Client, string, int) (float64, error)
		}{
			{"bare", b.readAndInsert},
			{"inbox", func(ctx context.Context, k *kafka.Client, group string, n int) (float64, error) {
				return b.consume(ctx, k, group, n, false)
			}},
			{"inbox_batch", func(ctx context.Context, k *kafka.Client, group string, n int) (float64, error) {
				return b.consume(ctx, k, group, n, true)
			}},
		} {
			rate, err := c.run(ctx, k, fmt.Sprintf("%s-%d", c.name, i), n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			b.say("%-16s %7.0f messages/s", c.name, rate)
			rates[c.name] = append(rates[c.name], rate)
		}
	}
	r["messages_per_s_read_and_insert"], r["messages_per_s_inbox"], r["messages_per_s_inbox_batch"] = rig.Round(rates.median("bare")), rig.Round(rates.median("inbox")), rig.Round(rates.median("inbox_batch"))
	r["inbox_ratio"], r["inbox_ratio_batch"] = rig.Round(rates.ratio("inbox", "bare")), rig.Round(rates.ratio("inbox_batch", "bare"))
	return nil
}

const insertSeen = `INSERT INTO seen (id, key, body) VALUES ($1, $2, $3)`

// readAndInsert is the bare loop: up to 64 messages in a transaction, without an inbox; clock from the first message.
func (b *bench) readAndInsert(ctx context.Context, k *kafka.Client, group string, n int) (float64, error) {
	c, err := k.Subscribe(ctx, group, topic)
	if err != nil {
		return 0, err
	}
	defer c.Close() //nolint:errcheck // measured
	var began time.Time
	for left := n; left > 0; {
		var list []events.Delivery
		q := &pgx.Batch{}
		q.Queue("BEGIN")
		for range min(64, left) {
			d, err := c.Fetch(ctx)
			if err != nil {
				return 0, err
			}
			if began.IsZero() {
				began = time.Now()
			}
			e, err := events.ParseEnvelope(d.Body)
			if err != nil {
				return 0, err
			}
			q.Queue(insertSeen, e.MessageID, d.Key, string(e.Data))
			list = append(list, d)
		}
		q.Queue("COMMIT")
		if err := b.pool.SendBatch(ctx, q).Close(); err != nil {
			return 0, err
		}
		if err := c.Commit(ctx, list...); err != nil {
			return 0, err
		}
		left -= len(list)
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// consume is the inbox with its defaults and eight handlers; with batch its handler takes several messages at a time. Clock from
// the first message.
func (b *bench) consume(ctx context.Context, k *kafka.Client, group string, n int, batch bool) (float64, error) {
	var began, count atomic.Int64
	all := make(chan struct{})
	applied := func(messages int) {
		if count.Add(int64(messages)) == int64(n) {
			close(all)
		}
	}
	route := inbox.Route{Types: []string{"bench.room.booked"}}
	if batch {
		route.Batch = func(ctx context.Context, tx *outbox.Tx, messages []events.Received) error {
			began.CompareAndSwap(0, time.Now().UnixNano())
			ids, keys, bodies := make([]string, len(messages)), make([]string, len(messages)), make([]string, len(messages))
			for i, m := range messages {
				ids[i], keys[i], bodies[i] = m.MessageID, m.Metadata.BusinessKey, string(m.Data)
			}
			_, err := tx.Exec(ctx, `INSERT INTO seen (id, key, body) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[])`, ids, keys, bodies)
			if err == nil {
				applied(len(messages))
			}
			return err
		}
	} else {
		route.Handler = func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
			began.CompareAndSwap(0, time.Now().UnixNano())
			_, err := tx.Exec(ctx, insertSeen, m.MessageID, m.Metadata.BusinessKey, string(m.Data))
			if err == nil {
				applied(1)
			}
			return err
		}
	}
	i, err := inbox.New(k, b.pool, inbox.Config{Group: group, Catalog: b.catalog, Concurrency: 8, MaxInFlight: 1024}, route)
	if err != nil {
		return 0, err
	}
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- i.Run(run) }()
	select {
	case <-all:
	case err := <-done:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	took := time.Duration(time.Now().UnixNano() - began.Load())
	cancel()
	return float64(n) / took.Seconds(), <-done
}
