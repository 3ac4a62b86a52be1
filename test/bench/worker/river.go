package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverArgs is a job of River with the same domain row.
type riverArgs struct {
	ID string `json:"id"`
	input
}

// Kind names the job.
func (riverArgs) Kind() string { return "reserve" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	b    *bench
	done chan struct{}
}

// Work writes the domain row and completes the job in one transaction, as River's documentation shows.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	tx, err := w.b.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // after a commit it says so
	if _, err := tx.Exec(ctx, domainRow, job.Args.ID, job.Args.Offer, job.Args.Seats, job.Args.Amount.Minor); err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	w.done <- struct{}{}
	return nil
}

type riverRun struct{ *bench }

func (r riverRun) migrate(ctx context.Context) error {
	m, err := rivermigrate.New(riverpgxv5.New(r.pool), nil)
	if err != nil {
		return err
	}
	_, err = m.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (r riverRun) load(ctx context.Context, prefix string, n int) error {
	c, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{})
	if err != nil {
		return err
	}
	for at := 0; at < n; at += 1000 {
		var many []river.InsertManyParams
		for i := at; i < min(n, at+1000); i++ {
			p, err := prepare([]byte(variables(fmt.Sprint(prefix, "-", i))))
			if err != nil {
				return err
			}
			many = append(many, river.InsertManyParams{Args: riverArgs{ID: p.in.OperationID, input: p.in.input}})
		}
		if _, err := c.InsertMany(ctx, many); err != nil {
			return err
		}
	}
	return nil
}

func (r riverRun) run(ctx context.Context, prefix string, n int, _ func() error) error {
	w := &riverWorker{b: r.bench, done: make(chan struct{}, n)}
	workers := river.NewWorkers()
	river.AddWorker(workers, w)
	c, err := river.NewClient(riverpgxv5.New(r.pool), &river.Config{
		Logger: slog.New(slog.DiscardHandler),
		// As many jobs fetched at once as the others hold; pool and transactions at once stay the same. Defaults wait 100 ms between fetches.
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: r.active, FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond}},
		Workers: workers,
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	err = nil
	limit := time.After(2 * time.Minute)
	for range n {
		select {
		case <-w.done:
		case <-limit:
			err = errors.New("river: not done in two minutes")
		}
		if err != nil {
			break
		}
	}
	r.stamp()
	return errors.Join(err, c.Stop(ctx))
}
