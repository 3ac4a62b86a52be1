package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/bench/rig"
)

// stamps notes when the broker acknowledged each message, by operation id.
type stamps struct {
	events.Publisher
	mu    sync.Mutex
	acked map[string]int64 // Unix nanoseconds
}

func (s *stamps) Publish(ctx context.Context, records []events.Record) []error {
	errs := s.Publisher.Publish(ctx, records)
	now := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range records {
		if errs[i] == nil {
			s.acked[r.Header(events.HeaderOperationID)] = now
		}
	}
	return errs
}

// take gives the stamps so far.
func (s *stamps) take() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.acked
	s.acked = map[string]int64{}
	return all
}

// serveRelay is a relay's process: a line on stdin asks for the stamps, its end for the end.
func serveRelay(ctx context.Context, in io.Reader, out io.Writer, dsn, broker string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	k, err := dial(broker)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // the process ends
	s := &stamps{Publisher: k, acked: map[string]int64{}}
	r, err := outbox.NewRelay(pool, s, outbox.RelayConfig{Listen: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	var ask byte
	for {
		if _, err := fmt.Fscanf(in, "%c", &ask); err != nil {
			cancel()
			return <-done
		}
		if err := json.NewEncoder(out).Encode(s.take()); err != nil {
			cancel()
			return errors.Join(err, <-done)
		}
	}
}

const eventsPerSecond = 1000

// latencies measures commit to acknowledgement at a steady rate, with the relay in the process of the workers, and apart.
func (b *bench) latencies(ctx context.Context, r rig.Report) error {
	r["latency_events_per_s"] = eventsPerSecond
	during := 10 * time.Second
	if b.quick {
		during = 4 * time.Second
	}
	if _, err := b.pool.Exec(ctx, `TRUNCATE journeyman.outbox; CREATE TABLE IF NOT EXISTS room (operation_id text, offer text)`); err != nil {
		return err
	}
	k, err := dial(b.broker.Forgets)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	s := &stamps{Publisher: k, acked: map[string]int64{}}
	relay, err := outbox.NewRelay(b.pool, s, outbox.RelayConfig{Stager: b.stager})
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- relay.Run(run) }()
	err = b.latency(ctx, r, "commit_to_kafka", during, func() (map[string]int64, error) { return s.take(), nil })
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	p, err := startProcess("-serve-relay", b.db.DSN, "-brokers", b.broker.Forgets)
	if err != nil {
		return err
	}
	ringer, err := outbox.NewRinger(b.pool, outbox.RingerConfig{Stager: b.stager})
	if err != nil {
		return errors.Join(err, p.stop())
	}
	run, cancel = context.WithCancel(ctx)
	go func() { done <- ringer.Run(run) }()
	err = b.latency(ctx, r, "commit_to_kafka_apart", during, func() (map[string]int64, error) {
		if _, err := p.in.Write([]byte("?")); err != nil {
			return nil, err
		}
		var acked map[string]int64
		return acked, p.read(&acked)
	})
	cancel()
	return errors.Join(err, <-done, p.stop())
}

// latency commits transactions of one event at the rate, over eight connections, and reports when the broker had them.
func (b *bench) latency(ctx context.Context, r rig.Report, name string, during time.Duration, take func() (map[string]int64, error)) error {
	const writers = 8
	committed := make([]map[string]int64, writers)
	var late [writers]float64
	var wg sync.WaitGroup
	errs := make([]error, writers)
	warm := time.Second
	start := time.Now().Add(50 * time.Millisecond)
	for w := range writers {
		committed[w] = map[string]int64{}
		wg.Go(func() {
			for n := w; ; n += writers {
				at := time.Duration(n) * time.Second / eventsPerSecond
				if at >= warm+during {
					return
				}
				time.Sleep(time.Until(start.Add(at))) //nolint:forbidigo // the pace of an open loop
				id := fmt.Sprintf("%s-%d", name, n)
				q := &pgx.Batch{}
				q.Queue("BEGIN")
				q.Queue("INSERT INTO room VALUES ($1, $2)", id, "LH-1")
				if errs[w] = b.stager.Queue(q, events.Origin{OperationID: id, CorrelationID: id}, []events.Message{booking(n)}); errs[w] != nil {
					return
				}
				q.Queue("COMMIT")
				if errs[w] = b.pool.SendBatch(ctx, q).Close(); errs[w] != nil {
					return
				}
				now := time.Now()
				b.stager.Wake()
				if at >= warm {
					committed[w][id] = now.UnixNano()
					late[w] = max(late[w], now.Sub(start.Add(at)).Seconds()*1000)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	all := map[string]int64{}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) { //nolint:forbidigo // a benchmark waits for another process
		got, err := take()
		if err != nil {
			return err
		}
		for id, at := range got {
			all[id] = at
		}
		if len(all) >= int((warm+during).Seconds()*eventsPerSecond) || time.Now().After(deadline) {
			break
		}
	}
	var ms []float64
	for _, list := range committed {
		for id, at := range list {
			acked, ok := all[id]
			if !ok {
				return fmt.Errorf("%s was never acknowledged", id)
			}
			ms = append(ms, float64(acked-at)/1e6)
		}
	}
	p50, p99 := quantile(ms, 0.5), quantile(ms, 0.99)
	b.say("%-22s p50 %.2f ms  p99 %.2f ms  max %.1f ms  (%d events)", name, p50, p99, quantile(ms, 1), len(ms))
	r[name+"_p50_ms"], r[name+"_p99_ms"], r[name+"_max_ms"] = rig.Round(p50), rig.Round(p99), rig.Round(quantile(ms, 1))
	return nil
}

func booking(n int) events.Message {
	return events.Message{Type: "bench.room.booked", BusinessKey: fmt.Sprintf("booking-%04d", n%1000), Data: map[string]any{"room": fmt.Sprintf("LH-%d", n), "seats": 2, "note": "a window seat, and a cot for the child; late arrival, after ten in the evening"}}
}
