package sagas

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/crash"
)

// Retention says what becomes of records (spec I9). Archive must be set.
type Retention struct {
	Archive Archive
	// Delete is how long after its end a record is deleted, archived and past its retention; 0 = 365 days. Its key stays:
	// a repeat is answered 410 for ever and never runs again. Of a type that moves money (or is not known here) the business
	// key and the hash of the answer stay for Money.
	Delete time.Duration
	Money  time.Duration // 0 = 7 years

	Batch   int // records per transaction and object; 0 = 500
	Batches int // transactions of a kind per round; 0 = 20. What is left is for the next round
	Ahead   int // months whose partitions are made ahead; 0 = 2
}

// Retained is what a round did.
type Retained struct {
	Leader           bool // false: another process is at it, and nothing was done
	Made, Dropped    []string
	Archived, Delete int
	Money            int // rows of money operations past their time
}

func (r Retention) withDefaults() (Retention, error) {
	if r.Archive == nil {
		return r, errors.New("retention: Archive is nil, want where records go when their retention ends")
	}
	if r.Delete < 0 || r.Money < 0 || r.Batch < 0 || r.Batches < 0 || r.Ahead < 0 {
		return r, errors.New("retention: Delete, Money, Batch, Batches and Ahead must not be negative")
	}
	const day = 24 * time.Hour
	if r.Delete == 0 {
		r.Delete = 365 * day
	}
	if r.Money == 0 {
		r.Money = 7 * 366 * day
	}
	if r.Batch == 0 {
		r.Batch = 500
	}
	if r.Batches == 0 {
		r.Batches = 20
	}
	if r.Ahead == 0 {
		r.Ahead = 2
	}
	return r, nil
}

// RunRetention does a round every so often until ctx ends, then gives nil. Any number of processes may run it: one
// works at a time. Errors are logged and tried again.
func (s *Sagas) RunRetention(ctx context.Context, r Retention, every time.Duration) error {
	if _, err := r.withDefaults(); err != nil {
		return err
	}
	if every <= 0 {
		return fmt.Errorf("retention: every is %v, want more than 0", every)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if _, err := s.Retain(ctx, r); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("retention round failed, will run again")
		}
		timer.Reset(every/2 + rand.N(every)) //nolint:gosec // jitter
	}
}

// Retain does one bounded round: partitions ahead, records past their retention to the archive, records past their year
// deleted, empty old partitions dropped. It may be stopped anywhere and run again. The leader's lock belongs to the
// connection all its transactions run on: who loses it can commit nothing more.
func (s *Sagas) Retain(ctx context.Context, r Retention) (done Retained, err error) {
	r, err = r.withDefaults()
	if err != nil {
		return done, err
	}
	conn, err := s.cfg.Records.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("retention: %w", err)
	}
	defer conn.Release()
	if err := conn.QueryRow(ctx, s.rec.lead).Scan(&done.Leader); err != nil || !done.Leader {
		return done, wrap("retention: leader", err)
	}
	defer func() {
		if _, unlockErr := conn.Exec(context.WithoutCancel(ctx), s.rec.unlead); unlockErr != nil {
			_ = conn.Conn().Close(context.WithoutCancel(ctx)) // the lock ends with the session
			err = errors.Join(err, fmt.Errorf("retention: give up the lead: %w", unlockErr))
		}
	}()
	var errs []error
	done.Made, err = s.makePartitions(ctx, conn, r.Ahead)
	errs = append(errs, wrap("make partitions", err))
	for range r.Batches {
		n, err := s.archiveBatch(ctx, conn, r)
		done.Archived += n
		if errs = append(errs, wrap("archive records", err)); err != nil || n < r.Batch {
			break
		}
	}
	for range r.Batches {
		var n int
		err := conn.QueryRow(ctx, s.rec.remove, r.Delete, r.Batch, s.withoutMoney(), r.Money).Scan(&n)
		done.Delete += n
		if errs = append(errs, wrap("delete records", err)); err != nil || n < r.Batch {
			break
		}
	}
	tag, err := conn.Exec(ctx, s.rec.removeMoney, r.Batch)
	done.Money = int(tag.RowsAffected())
	errs = append(errs, wrap("delete money rows", err))
	_, err = conn.Exec(ctx, s.rec.pollPurge, r.Batch)
	errs = append(errs, wrap("delete poll times", err))
	done.Dropped, err = s.dropPartitions(ctx, conn, r.Delete)
	errs = append(errs, wrap("drop partitions", err))
	return done, errors.Join(errs...)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// withoutMoney are the types of which nothing must stay.
func (s *Sagas) withoutMoney() []string {
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		if !s.types[name].Money {
			names = append(names, name)
		}
	}
	return names
}

// archiveBatch writes one object of records past their retention and takes their contents out of the store. When the
// process dies after the Put the object is written again, under the same name if the batch is the same.
func (s *Sagas) archiveBatch(ctx context.Context, conn *pgxpool.Conn, r Retention) (n int, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.rec.archivable, r.Batch)
		if err != nil {
			return err
		}
		var (
			ids     []string
			content bytes.Buffer
			month   string
		)
		for rows.Next() {
			var id, line, at string
			if err := rows.Scan(&id, &at, &line); err != nil {
				return err
			}
			if month == "" {
				month = at
			}
			ids = append(ids, id)
			content.WriteString(line)
			content.WriteByte('\n')
		}
		if err := rows.Err(); err != nil || len(ids) == 0 {
			return err
		}
		sum := sha256.Sum256(content.Bytes())
		name := "records/" + month + "/" + hex.EncodeToString(sum[:]) + ".jsonl"
		if err := r.Archive.Put(ctx, name, content.Bytes()); err != nil {
			return err
		}
		crash.Point("saga.archive.put", name)
		tag, err := tx.Exec(ctx, s.rec.archived, ids, name)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}
