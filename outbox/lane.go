package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
)

// maxWaves bounds how often one scan may publish when keys alternate between topics.
const maxWaves = 16

// maxScanBytes is about how much of bodies a lane holds at once, once it has seen how large they are.
const maxScanBytes = 16 << 20

// lane is one goroutine that relays the shards with shard % lanes == no.
// Nothing of it is shared but busy, which is held during a pass.
type lane struct {
	*Relay
	no     int
	busy   sync.Mutex
	woken  chan struct{}
	turn   int // rotates the order of shards, so that none starves behind a full one
	weight int // bytes of an average row in the last scan
	shares shares
	floors floors
	looked time.Time            // when released keys were last looked for
	slow   map[int16]slow       // shards that wait after a failure
	absent map[string]time.Time // topics unknown to the broker, since when
}

type slow struct {
	until time.Time
	tries int
}

// staged is a row as the relay sees it.
type staged struct {
	shard        int16
	id           int64
	eventID      string
	topic        string
	key          string
	seq          int64
	headers      []events.Header
	broken       error // why the headers cannot be published
	body         []byte
	occurred, at time.Time
	parked       bool
	acked        bool // by the broker
}

func (l *lane) run(ctx context.Context) {
	idle := time.NewTimer(0)
	defer idle.Stop()
	failures := 0
	for ctx.Err() == nil {
		more, err := l.pass(ctx)
		wait := l.cfg.Poll
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			wait = backoff(failures, l.cfg.MaxBackoff)
			l.cfg.Log.Warn().Err(err).Int("lane", l.no).Dur("retry_after", wait).Msg("outbox relay: pass failed")
			l.stats.errors.Add(1)
			more = false
		case err == nil:
			failures = 0
		}
		if more {
			continue
		}
		idle.Reset(wait)
		select {
		case <-ctx.Done():
		case <-l.woken:
		case <-idle.C:
		}
	}
}

// pass looks once at all shards of the lane and reports whether to look again at once.
func (l *lane) pass(ctx context.Context) (bool, error) {
	l.busy.Lock()
	defer l.busy.Unlock()
	list, leases := l.own.of(l.no, l.cfg.Lanes, time.Now(), l.cfg.ProduceTimeout)
	list = slices.DeleteFunc(list, func(s int16) bool { return time.Now().Before(l.slow[s].until) })
	if len(list) == 0 {
		return false, nil
	}
	l.turn++
	list = append(list[l.turn%len(list):], list[:l.turn%len(list)]...)
	released, err := l.releaseKeys(ctx, list, leases)
	if err != nil {
		return false, err
	}
	rows, sound, err := l.scan(ctx, list, leases)
	if err != nil || !sound {
		return err == nil, err
	}
	parked := []*staged{}
	rows = slices.DeleteFunc(rows, func(r *staged) bool {
		if r.parked {
			parked = append(parked, r)
		}
		return r.parked
	})
	// From here on work is finished even when ctx is cancelled: it is bounded by the produce time-out.
	ctx = context.WithoutCancel(ctx)
	if !rule.Off(22) {
		if err := l.moveParked(ctx, parked, leases); err != nil {
			return false, err
		}
	}
	acked, err := l.relay(ctx, rows, leases)
	if err != nil {
		return false, err
	}
	moved := len(parked) > 0 && !rule.Off(22)
	return acked > 0 || released || moved, nil
}

// scan reads the first rows of each shard. It is not sound when the server has recovered since the floors it began at were learned:
// then nothing of it may be published.
func (l *lane) scan(ctx context.Context, list []int16, leases map[int16]lease) (rows []*staged, sound bool, err error) {
	batch := l.cfg.Batch
	if l.weight > 0 {
		batch = max(min(batch, 16), min(batch, maxScanBytes/l.weight)) // large rows: fewer of them at once
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Lease)
	defer cancel()
	most := l.shares.rows(list, batch)
	var server incarnation
	var token pgtype.UUID
	var top, xmin int64
	b := &pgx.Batch{}
	b.Queue(l.sql.horizon).QueryRow(func(row pgx.Row) error { return row.Scan(&token, &server.started, &top, &xmin) })
	b.Queue(l.sql.scan, list, l.floors.of(list, leases), most, batch).Query(func(got pgx.Rows) (err error) {
		rows, err = collect(got)
		return err
	})
	if err := l.db.SendBatch(ctx, b).Close(); err != nil {
		return nil, false, fmt.Errorf("scan: %w", err)
	}
	if !token.Valid { // a new database, or a recovered one
		_, err := l.db.Exec(ctx, l.sql.mark, events.NewID())
		l.floors = floors{}
		return nil, false, err
	}
	server.token = token.Bytes
	if !l.floors.looked(server, top, xmin) {
		l.cfg.Log.Info().Int("lane", l.no).Msg("outbox relay: the server has recovered, looks for rows that are there again")
		return nil, false, nil
	}
	l.weight = 0
	for _, r := range rows {
		l.weight += len(r.body)
	}
	l.weight /= max(len(rows), 1)
	in, cut := inShards(rows), int16(-1)
	if len(rows) == batch {
		cut = rows[batch-1].shard
	}
	l.shares.scanned(list, most, in, cut)
	l.floors.scanned(list, in, cut < 0)
	return rows, true, nil
}

// relay publishes rows, which are in id order per shard, deletes what was
// acknowledged, and deals with what was not. It gives the number of
// rows that are gone from the front of their keys.
func (l *lane) relay(ctx context.Context, rows []*staged, leases map[int16]lease) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	crash.Point("relay.publish.before", topicsOf(rows))
	acked, failed := l.publish(ctx, rows, leases)
	crash.Point("relay.publish.acked", topicsOf(acked))
	gone := 0
	if len(acked) > 0 {
		var err error
		if gone, err = l.ack(ctx, rows, acked, leases); err != nil {
			return 0, err
		}
		crash.Point("relay.delete.after", topicsOf(acked))
	}
	moved, err := l.judge(ctx, rows, acked, failed, leases)
	return gone + moved, err
}

// failure is the first row of a key that was not taken.
type failure struct {
	row *staged
	err error
}

// publish sends rows in waves: a key's rows go out in order over all its
// topics, so a row is sent only when the one before it was acknowledged. Rows of
// one topic go in one wave, which is nearly always all there is.
func (l *lane) publish(ctx context.Context, rows []*staged, leases map[int16]lease) (acked []*staged, failed map[string]failure) {
	failed = map[string]failure{}
	now := time.Now()
	for _, wave := range wavesOf(rows) {
		wave = slices.DeleteFunc(wave, func(r *staged) bool {
			_, stopped := failed[r.key]
			return stopped || leases[r.shard].until.Sub(now) <= l.cfg.ProduceTimeout // a zombie must not publish
		})
		acked = append(acked, l.send(ctx, wave, failed)...)
		now = time.Now()
	}
	return acked, failed
}

// wavesOf parts rows so that a key's rows of different topics are in different waves, in order. Rows of a key that changes its topic
// too often are left to the next scan.
func wavesOf(rows []*staged) [][]*staged {
	if !slices.ContainsFunc(rows, func(r *staged) bool { return r.topic != rows[0].topic }) {
		return [][]*staged{slices.Clone(rows)}
	}
	type last struct {
		topic string
		wave  int
	}
	lasts := map[string]last{}
	waves := make([][]*staged, 1, maxWaves)
	for _, r := range rows {
		p, seen := lasts[r.key]
		if seen && p.topic != r.topic {
			p.wave++
		}
		lasts[r.key] = last{r.topic, p.wave}
		if p.wave >= maxWaves {
			continue // and all later rows of the key: the next scan takes them
		}
		if p.wave == len(waves) {
			waves = append(waves, nil)
		}
		waves[p.wave] = append(waves[p.wave], r)
	}
	return waves
}

// send publishes one wave and notes the first failure of each key.
func (l *lane) send(ctx context.Context, wave []*staged, failed map[string]failure) (acked []*staged) {
	records := make([]events.Record, 0, len(wave))
	good := make([]*staged, 0, len(wave))
	for _, r := range wave {
		if _, stopped := failed[r.key]; stopped {
			continue
		}
		rec, err := r.record(l.cfg.Keys)
		if err != nil {
			failed[r.key] = failure{r, &events.PublishError{Fault: events.Permanent, Err: err}}
			continue
		}
		records, good = append(records, rec), append(good, r)
	}
	if len(records) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ProduceTimeout)
	defer cancel()
	errs := l.pub.Publish(ctx, records)
	acked = make([]*staged, 0, len(good))
	for i, r := range good {
		var err error
		if i < len(errs) {
			err = errs[i]
		} else {
			err = errors.New("publisher gave no answer for the record")
		}
		switch _, stopped := failed[r.key]; {
		case stopped: // the prefix rule: nothing of a key after its first failure, whatever the publisher says
		case err != nil:
			failed[r.key] = failure{r, err}
		default:
			r.acked = true
			acked = append(acked, r)
		}
	}
	return acked
}

// record finalises the row's body and headers.
func (s *staged) record(keys seal.Keys) (events.Record, error) {
	body, encrypted, err := seal.Wire(keys, s.body, s.eventID, s.occurred, s.seq)
	if err != nil {
		return events.Record{}, err
	}
	if s.broken != nil {
		return events.Record{}, s.broken
	}
	h := s.headers
	h = append(h, events.Header{Name: events.HeaderOccurredAt, Value: s.occurred.UTC().Format(events.TimeFormat)},
		events.Header{Name: events.HeaderSequence, Value: strconv.FormatInt(s.seq, 10)})
	if encrypted {
		h = append(h, events.Header{Name: events.HeaderEncryption, Value: seal.Scheme})
	}
	return events.Record{Topic: s.topic, Key: s.key, Headers: h, Body: body}, nil
}

// ack deletes exactly the acknowledged rows and logs them in the same statement
// (path rule 23), as long as the shards are still ours. A missing day of the
// event log is made and the statement tried once more. It gives how many are gone; rows are those of the scan.
func (l *lane) ack(ctx context.Context, rows, acked []*staged, leases map[int16]lease) (int, error) {
	sql := l.sql.ack
	if l.cfg.NoEventLog || rule.Off(23) {
		sql = l.sql.ackUnlogged
	}
	at, ids := make([]int16, len(acked)), make([]int64, len(acked))
	for i, r := range acked {
		at[i], ids[i] = r.shard, r.id
	}
	own, fences := fencesOf(acked, leases)
	var gone, ours int
	var xid int64
	err := l.logged(ctx, func(ctx context.Context) error {
		return l.db.QueryRow(ctx, sql, own, fences, l.cfg.Owner, at, ids).Scan(&gone, &ours, &xid)
	})
	if err != nil {
		return 0, fmt.Errorf("delete %d acknowledged rows: %w", len(acked), err)
	}
	if ours < len(own) {
		l.cfg.Log.Warn().Int("shards", len(own)-ours).Msg("outbox relay: shards were taken over while publishing")
		l.stats.lost.Add(int64(len(own) - ours))
	}
	l.floors.deleted(xid, rows)
	if rule.Off(24) {
		l.floors.skipTo(acked)
	}
	l.published(acked)
	return gone, nil
}

func fencesOf(rows []*staged, leases map[int16]lease) (own []int16, fences []int64) {
	for _, r := range rows {
		if !slices.Contains(own, r.shard) {
			own, fences = append(own, r.shard), append(fences, leases[r.shard].fence)
		}
	}
	return own, fences
}

func topicsOf(rows []*staged) string {
	var list []string
	for _, r := range rows {
		if !slices.Contains(list, r.topic) {
			list = append(list, r.topic)
		}
	}
	return strings.Join(list, ",")
}
