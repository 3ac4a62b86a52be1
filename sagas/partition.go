package sagas

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Records lie in one partition per month of their start. A status read by id looks into each, so there must not be hundreds.

// partitionOf names the partition of a month.
func partitionOf(month time.Time) string { return "record_" + month.Format("200601") }

// makePartitions makes the partitions of this month and of those ahead. Rows that came before their partition was there
// are moved out of the rest partition. It waits for locks shortly only: traffic goes first, the next round tries again.
func (s *Sagas) makePartitions(ctx context.Context, conn *pgxpool.Conn, ahead int) (made []string, err error) {
	var now time.Time
	if err := conn.QueryRow(ctx, s.rec.now).Scan(&now); err != nil {
		return nil, err
	}
	first := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	for i := range ahead + 1 {
		month := first.AddDate(0, i, 0)
		name := partitionOf(month)
		var there bool
		if err := conn.QueryRow(ctx, s.rec.partitionThere, name).Scan(&there); err != nil {
			return made, err
		}
		if there {
			continue
		}
		if err := s.inDDL(ctx, conn, renderPartition(s.rec.makePartition, name, month, month.AddDate(0, 1, 0))); err != nil {
			return made, fmt.Errorf("%s: %w", name, err)
		}
		made = append(made, name)
	}
	return made, nil
}

// dropPartitions drops partitions whose month is past the year and that are empty. One that still holds records
// (running, or not archived yet) stays.
func (s *Sagas) dropPartitions(ctx context.Context, conn *pgxpool.Conn, after time.Duration) (dropped []string, err error) {
	rows, err := conn.Query(ctx, s.rec.oldPartitions, after)
	if err != nil {
		return nil, err
	}
	old, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		gone := false
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, renderPartition(s.rec.lockPartition, name, time.Time{}, time.Time{})); err != nil {
				return err
			}
			var empty bool
			if err := tx.QueryRow(ctx, renderPartition(s.rec.partitionEmpty, name, time.Time{}, time.Time{})).Scan(&empty); err != nil || !empty {
				return err
			}
			_, err := tx.Exec(ctx, renderPartition(s.rec.dropPartition, name, time.Time{}, time.Time{}))
			gone = err == nil
			return err
		})
		if err != nil {
			return dropped, fmt.Errorf("%s: %w", name, err)
		}
		if gone {
			dropped = append(dropped, name)
		}
	}
	return dropped, nil
}

func (s *Sagas) inDDL(ctx context.Context, conn *pgxpool.Conn, sql string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql) // several statements, no arguments: the simple protocol
		return err
	})
}

func renderPartition(sql, name string, from, to time.Time) string {
	return strings.NewReplacer("{{partition}}", name, "{{from}}", from.Format(time.DateOnly), "{{to}}", to.Format(time.DateOnly)).Replace(sql)
}
