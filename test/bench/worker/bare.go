package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// bare runs the same statements with no Zeebe at all, in two pipelined round trips: the most that PostgreSQL and pgx give.
type bare struct{ *bench }

func (b bare) run(ctx context.Context, prefix string, n int, _ func() error) error {
	var g errgroup.Group
	for lane := range b.concurrency {
		g.Go(func() error {
			conn, err := b.pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer conn.Release()
			for i := lane; i < n; i += b.concurrency {
				p, err := prepare([]byte(variables(fmt.Sprint(prefix, "-", i))))
				if err != nil {
					return err
				}
				if err := twoTrips(ctx, conn.Conn(), p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func twoTrips(ctx context.Context, conn *pgx.Conn, p prepared) error {
	first, won := &pgx.Batch{}, false
	first.Queue("BEGIN")
	first.Queue(handClaim, p.in.OperationID, p.in.BusinessKey, p.hash, 1, p.in.Traceparent).QueryRow(func(row pgx.Row) error {
		var one int
		err := row.Scan(&one)
		won = err == nil
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	if err := conn.SendBatch(ctx, first).Close(); err != nil {
		return err
	}
	if !won {
		return errSeen
	}
	second := &pgx.Batch{}
	second.Queue(domainRow, p.in.OperationID, p.in.Offer, p.in.Seats, p.in.Amount.Minor)
	second.Queue(handOutbox, p.event.ID, "bench.room", p.in.BusinessKey, p.headers, p.body)
	second.Queue(handFinish, p.in.OperationID, p.result)
	second.Queue("COMMIT")
	return conn.SendBatch(ctx, second).Close()
}
