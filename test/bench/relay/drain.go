package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/bench/rig"
)

const batch = 1000

// sink acknowledges everything at once.
type sink struct{}

func (sink) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

// drain empties the outbox with one relay and gives rows per second.
func (b *bench) drain(ctx context.Context, pub events.Publisher, rows, lanes int, log bool) (float64, error) {
	r, err := outbox.NewRelay(b.pool, pub, outbox.RelayConfig{Lanes: lanes, Batch: batch, NoEventLog: !log})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	began := time.Now()
	go func() { done <- r.Run(ctx) }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for r.Stats().Published < int64(rows) {
		select {
		case err := <-done:
			cancel()
			return 0, fmt.Errorf("relay ended: %w", err)
		case <-ctx.Done():
			cancel()
			return 0, ctx.Err()
		case <-tick.C:
		}
	}
	took := time.Since(began)
	cancel()
	return float64(rows) / took.Seconds(), <-done
}

// readAndDelete is the limit: one connection, rows by primary key, no order of shards, no fence, no log, no broker.
func (b *bench) readAndDelete(ctx context.Context, rows int) (float64, error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET synchronous_commit = off`); err != nil {
		return 0, err
	}
	defer conn.Exec(ctx, `RESET synchronous_commit`) //nolint:errcheck // the run is over
	began := time.Now()
	shard, id := int16(-1), int64(0) // of the last row read: what was deleted is not crossed again
	for left := rows; left > 0; {
		res, err := conn.Query(ctx, `
			SELECT shard, id, event_id::text, topic, business_key, seq, headers, body, occurred_at, created_at FROM journeyman.outbox
			WHERE (shard, id) > ($2, $3) ORDER BY shard, id LIMIT $1`, batch, shard, id)
		if err != nil {
			return 0, err
		}
		type row struct {
			shard        int16
			id, seq      int64
			event        string
			topic, key   string
			headers      []string
			body         []byte
			occurred, at time.Time
		}
		list, err := pgx.CollectRows(res, func(c pgx.CollectableRow) (r row, err error) {
			return r, c.Scan(&r.shard, &r.id, &r.event, &r.topic, &r.key, &r.seq, &r.headers, &r.body, &r.occurred, &r.at)
		})
		if err != nil {
			return 0, err
		}
		shards, ids := make([]int16, len(list)), make([]int64, len(list))
		for i, r := range list {
			shards[i], ids[i] = r.shard, r.id
			shard, id = r.shard, r.id
		}
		tag, err := conn.Exec(ctx, `DELETE FROM journeyman.outbox o USING unnest($1::smallint[], $2::bigint[]) k(shard, id) WHERE o.shard = k.shard AND o.id = k.id`, shards, ids)
		if err != nil {
			return 0, err
		}
		if tag.RowsAffected() == 0 {
			return 0, fmt.Errorf("%d rows are missing", left)
		}
		left -= int(tag.RowsAffected())
	}
	return float64(rows) / time.Since(began).Seconds(), nil
}

// drains compares the relay with the limit and with watermill's forwarder, in alternating runs.
func (b *bench) drains(ctx context.Context, r rig.Report) error {
	if err := b.keys(ctx); err != nil {
		return err
	}
	k, err := dial(b.broker.Forgets)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	rates := series{}
	type entrant struct {
		name string
		run  func() (float64, error)
	}
	ours := func(name string, pub events.Publisher, lanes int, log bool) entrant {
		return entrant{name, func() (float64, error) { return b.drain(ctx, pub, b.rows, lanes, log) }}
	}
	limit := entrant{"limit", func() (float64, error) { return b.readAndDelete(ctx, b.rows) }}
	var all []entrant
	if b.wants("drain") {
		all = []entrant{
			limit, ours("no_broker", sink{}, 1, false), ours("one_lane", k, 1, false), ours("four_lanes", k, 4, false),
			limit, ours("one_lane_log", k, 1, true), ours("four_lanes_log", k, 4, true), limit,
		}
	} else {
		all = []entrant{ours("four_lanes_log", k, 4, true)}
	}
	for i := range b.rounds + 1 {
		var limits []float64
		for _, e := range all {
			rows := b.rows
			if i == 0 { // warm: connections, plans, the view of the cluster
				b.rows = 5000
			}
			err := b.fill(ctx, b.rows)
			var rate float64
			if err == nil {
				rate, err = e.run()
			}
			b.rows = rows
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			if i > 0 {
				b.say("%-16s %7.0f rows/s", e.name, rate)
				if e.name == limit.name {
					limits = append(limits, rate)
					continue
				}
				rates[e.name] = append(rates[e.name], rate)
			}
		}
		if len(limits) > 0 { // it swings more than what is measured against it: of each round the middle one counts
			rates[limit.name] = append(rates[limit.name], quantile(limits, 0.5))
		}
		if b.wants("watermill") && i > 0 {
			rate, err := b.watermill(ctx, max(2000, b.rows/10), i)
			if err != nil {
				return fmt.Errorf("watermill: %w", err)
			}
			b.say("%-16s %7.0f rows/s", "watermill", rate)
			rates["watermill"] = append(rates["watermill"], rate)
		}
	}
	for name, v := range rates {
		r["rows_per_s_"+name] = rig.Round(quantile(v, 0.5))
	}
	for _, name := range []string{"no_broker", "one_lane", "four_lanes", "one_lane_log", "four_lanes_log"} {
		if len(rates["limit"]) > 0 {
			r["drain_ratio_"+name] = rig.Round(rates.ratio(name, "limit"))
		}
	}
	if b.wants("watermill") { // both keep what was published: the forwarder marks rows, the relay writes its log
		r["drain_ratio_vs_watermill"] = rig.Round(rates.ratio("four_lanes_log", "watermill"))
		if b.wants("drain") {
			r["drain_ratio_vs_watermill_one_lane"] = rig.Round(rates.ratio("one_lane_log", "watermill"))
		}
	}
	return nil
}

// backlogs compares drains of a large backlog, and of one under an old snapshot, with those of a small one.
func (b *bench) backlogs(ctx context.Context, r rig.Report) error {
	if err := b.keys(ctx); err != nil {
		return err
	}
	k, err := dial(b.broker.Forgets)
	if err != nil {
		return err
	}
	defer k.Close() //nolint:errcheck // measured
	const lanes = 2 // the relay's default
	rates := series{}
	rounds := max(1, b.rounds-1)
	for i := range rounds + 1 {
		for _, c := range []struct {
			name string
			rows int
			old  bool
		}{{"small", b.rows, false}, {"large", b.backlog, false}, {"snapshot", b.rows, true}, {"large_snapshot", b.backlog, true}} {
			if i == 0 && c.name != "small" {
				continue // warm
			}
			if err := b.fill(ctx, c.rows); err != nil {
				return err
			}
			release := func() {}
			if c.old {
				if release, err = b.snapshot(ctx); err != nil {
					return err
				}
			}
			rate, err := b.drain(ctx, k, c.rows, lanes, false)
			release()
			if err != nil {
				return err
			}
			if i > 0 {
				b.say("backlog %-15s %7.0f rows/s", c.name, rate)
				rates[c.name] = append(rates[c.name], rate)
			}
		}
	}
	r["backlog_ratio"], r["snapshot_ratio"], r["backlog_snapshot_ratio"] = rig.Round(rates.ratio("large", "small")), rig.Round(rates.ratio("snapshot", "small")), rig.Round(rates.ratio("large_snapshot", "small"))
	return nil
}

// snapshot opens a transaction that keeps all dead rows from being removed.
func (b *bench) snapshot(ctx context.Context) (release func(), err error) {
	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "SELECT count(*) FROM journeyman.outbox_shard"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			conn.Release()
			return nil, err
		}
	}
	return func() {
		_, _ = conn.Exec(ctx, "ROLLBACK")
		conn.Release()
	}, nil
}
