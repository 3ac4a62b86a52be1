package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/rule"
)

// park holds a key because its row f cannot be published: the row and all later
// ones of the key that the scan saw move to outbox_parked in one transaction;
// rows that come later follow at the next scans (path rule 22). It gives the number of rows moved.
func (l *lane) park(ctx context.Context, key string, f failure, rows []*staged, leases map[int16]lease) (int, error) {
	var ids []int64
	for _, r := range rows {
		if r.key == key && r.id >= f.row.id {
			ids = append(ids, r.id)
		}
	}
	if rule.Off(22) {
		ids = nil
	}
	reason := cut(f.err.Error(), 1000)
	err := l.owned(ctx, f.row.shard, leases, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, l.sql.parkKey, key, f.row.shard, f.row.eventID, reason); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, l.sql.move, f.row.shard, ids)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("park key: %w", err)
	}
	l.tellParked(f, key, reason)
	return len(ids), nil
}

func (l *lane) tellParked(f failure, key, reason string) {
	l.stats.parked.Add(1)
	l.cfg.Log.Error().Str("business_key", key).Str("event_id", f.row.eventID).Str("topic", f.row.topic).Str("reason", reason).
		Msg("outbox relay: key parked, an operator must decide")
	if l.cfg.Hooks.Parked != nil {
		l.cfg.Hooks.Parked(key, f.row.eventID, reason)
	}
}

// moveParked moves rows whose key is parked already behind the parked ones.
func (l *lane) moveParked(ctx context.Context, rows []*staged, leases map[int16]lease) error {
	byShard := map[int16][]int64{}
	for _, r := range rows {
		byShard[r.shard] = append(byShard[r.shard], r.id)
	}
	for shard, ids := range byShard {
		err := l.owned(ctx, shard, leases, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, l.sql.move, shard, ids)
			return err
		})
		if err != nil {
			return fmt.Errorf("move rows of parked keys: %w", err)
		}
	}
	return nil
}

// owned runs fn in a transaction during which nobody can take the shard over. It does nothing when the shard is lost already.
func (l *lane) owned(ctx context.Context, shard int16, leases map[int16]lease, fn func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.ProduceTimeout)
	defer cancel()
	return pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, l.sql.own, shard, leases[shard].fence, l.cfg.Owner)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return fn(ctx, tx)
	})
}

// releaseEvery is how often a lane looks for keys that an operator released.
const releaseEvery = 500 * time.Millisecond

// releaseKeys publishes the parked rows of released keys, in order and before
// any newer row of the key: those keep moving behind the parked ones until none
// is left, and only this lane moves them. It reports whether it published any.
func (l *lane) releaseKeys(ctx context.Context, list []int16, leases map[int16]lease) (bool, error) {
	if time.Since(l.looked) < releaseEvery {
		return false, nil
	}
	l.looked = time.Now()
	rows, err := l.db.Query(ctx, l.sql.releasing, list)
	if err != nil {
		return false, fmt.Errorf("released keys: %w", err)
	}
	type released struct {
		Key   string
		Shard int16
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[released])
	if err != nil {
		return false, fmt.Errorf("released keys: %w", err)
	}
	any := false
	for _, k := range keys {
		done, err := l.drain(context.WithoutCancel(ctx), k.Key, k.Shard, leases)
		if err != nil {
			return any, fmt.Errorf("released key: %w", err)
		}
		any = any || done
	}
	if any {
		l.looked = time.Time{} // more may be left
	}
	return any, nil
}

// drain publishes one batch of a released key and ends the release when nothing is left.
func (l *lane) drain(ctx context.Context, key string, shard int16, leases map[int16]lease) (bool, error) {
	found, err := l.db.Query(ctx, l.sql.drain, key, l.cfg.Batch)
	if err != nil {
		return false, err
	}
	rows, err := collect(found)
	if err != nil {
		return false, err
	}
	if len(rows) == 0 {
		err := l.owned(ctx, shard, leases, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, l.sql.endRelease, key)
			return err
		})
		return true, err
	}
	acked, failed := l.publish(ctx, rows, leases)
	if len(acked) > 0 {
		if _, err := l.ackParked(ctx, key, acked, leases); err != nil {
			return false, err
		}
	}
	if f, bad := failed[key]; bad && l.permanent(f, time.Now()) {
		reason := cut(f.err.Error(), 1000)
		if _, err := l.db.Exec(ctx, l.sql.holdAgain, key, f.row.eventID, reason); err != nil {
			return false, err
		}
		l.tellParked(f, key, reason)
	}
	return len(acked) > 0, nil
}

func (l *lane) ackParked(ctx context.Context, key string, acked []*staged, leases map[int16]lease) (int, error) {
	ids := make([]int64, len(acked))
	for i, r := range acked {
		ids[i] = r.id
	}
	own, fences := fencesOf(acked, leases)
	var gone, ours int
	err := l.logged(ctx, func(ctx context.Context) error {
		return l.db.QueryRow(ctx, l.sql.ackParked, own, fences, l.cfg.Owner, key, ids, !l.cfg.NoEventLog).Scan(&gone, &ours)
	})
	if err != nil {
		return 0, fmt.Errorf("delete %d released rows: %w", len(acked), err)
	}
	l.published(slices.Clone(acked))
	return gone, nil
}

// cut shortens text to at most n bytes without cutting a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n]
}
