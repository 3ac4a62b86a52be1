package dedup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// KeepMoney is how long business keys and result hashes of money operations stay (spec D3).
const KeepMoney = 7 * 365 * 24 * time.Hour

// Retention says how long an operation stays after its end.
type Retention struct {
	For  time.Duration // the whole row (spec D1)
	Keep time.Duration // business key, fingerprint, class and result hash, counted from the end; 0 = they go with the row
}

func (r Retention) keep() *time.Duration {
	if r.Keep == 0 {
		return nil
	}
	return &r.Keep
}

// Purging bounds a round of [Store.PurgeRound]; zero fields get the defaults named.
type Purging struct {
	Batch  int           // rows that one pass looks at, in a transaction of its own; 0 = 500
	Passes int           // of one round; 0 = 200
	Pause  time.Duration // between passes; 0 = 20 ms
	// Unless are SQL conditions on operation o under which a row stays: a command or an open saga that points to it (path rule 25).
	Unless []string
}

func (p Purging) withDefaults() Purging {
	if p.Batch == 0 {
		p.Batch = 500
	}
	if p.Passes == 0 {
		p.Passes = 200
	}
	if p.Pause == 0 {
		p.Pause = 20 * time.Millisecond
	}
	return p
}

// Purged is what a round did.
type Purged struct {
	Led     bool // false = another process is purging
	Seen    int64
	Slimmed int64 // money operations reduced to key and hashes (spec D3)
	Gone    int64
}

// purgeSlow bounds one pass: one that takes longer is given up and its rows are left for the next round.
const purgeSlow = "SET LOCAL statement_timeout TO '10s'"

// PurgeRound deletes operations whose retention is over, and old attempts (spec D4). One process at a time does it, elected by an
// advisory lock that its connection holds; when it dies the next one may at once. Every pass is a short transaction of its own that
// looks at a bounded number of rows, on from where the last one ended, and waits for no lock. What it has locked is held for that
// pass alone, so a claim of the same id waits for milliseconds at most.
func (s *Store) PurgeRound(ctx context.Context, pool *pgxpool.Pool, p Purging) (done Purged, err error) {
	p = p.withDefaults()
	pc, err := pool.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("purge operations: %w", err)
	}
	defer pc.Release()
	conn := pc.Conn()
	if err := conn.QueryRow(ctx, s.q.lead).Scan(&done.Led); err != nil {
		return done, fmt.Errorf("purge operations: %w", err)
	}
	if !done.Led {
		return done, nil
	}
	defer func() {
		uctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, uerr := conn.Exec(uctx, s.q.unlead); uerr != nil {
			_ = conn.Close(uctx) // the lock goes with it
		}
	}()
	at, id := time.Time{}, ""
	for n := range p.Passes {
		if n > 0 {
			select {
			case <-ctx.Done():
				return done, nil
			case <-time.After(p.Pause):
			}
		}
		one, err := s.purgePass(ctx, conn, p, &at, &id)
		done.Seen, done.Slimmed, done.Gone = done.Seen+one.Seen, done.Slimmed+one.Slimmed, done.Gone+one.Gone
		if err != nil {
			return done, fmt.Errorf("purge operations: %w", err)
		}
		if one.Seen < int64(p.Batch) {
			break
		}
	}
	if _, err := exec(ctx, conn, "purge payloads", s.q.purgeChecks, p.Batch); err != nil {
		return done, err
	}
	if _, err := exec(ctx, conn, "purge attempts", s.q.purgeAttempts, 7*24*time.Hour, p.Batch); err != nil {
		return done, err
	}
	_, err = exec(ctx, conn, "purge processes", s.q.purgeProcesses, 24*time.Hour)
	return done, err
}

// purgePass is one transaction of a round; at and id are where it begins and ended.
func (s *Store) purgePass(ctx context.Context, conn *pgx.Conn, p Purging, at *time.Time, id *string) (one Purged, err error) {
	var more strings.Builder
	for _, u := range p.Unless {
		more.WriteString(" AND NOT (" + u + ")")
	}
	b := &pgx.Batch{}
	b.Queue("SET LOCAL synchronous_commit TO off")
	b.Queue(purgeSlow)
	b.Queue(strings.ReplaceAll(s.q.purge, "{{unless}}", more.String()), p.Batch, *at, *id).QueryRow(func(row pgx.Row) error {
		var last *time.Time
		var lastID *string
		if err := row.Scan(&one.Seen, &one.Slimmed, &one.Gone, &last, &lastID); err != nil {
			return err
		}
		if last != nil {
			*at, *id = *last, *lastID
		}
		return nil
	})
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() })
	return one, err
}
