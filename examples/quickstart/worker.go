package main

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// Guest is the task's input, from the input mappings of greet.bpmn.
type Guest struct {
	Name string `json:"name"`
}

// Greeting is its output.
type Greeting struct {
	Text string `json:"text"`
	Nth  int    `json:"nth"`
}

// greet runs inside a transaction. The row, the recorded outcome and what the engine is told are one fact.
func greet(ctx context.Context, tx *worker.Tx, job worker.Job[Guest]) (Greeting, error) {
	var nth int
	err := tx.QueryRow(ctx, `INSERT INTO guest (name) VALUES ($1) RETURNING id`, job.In.Name).Scan(&nth)
	return Greeting{Text: "Hello, " + job.In.Name, Nth: nth}, err
}

// work serves the task until ctx ends.
func work(ctx context.Context, conn *zeebe.Conn, pool *pgxpool.Pool) error {
	mux := worker.NewMux()
	mux.Handle("guest.greet", worker.Transactional(greet, worker.NotCompensable("a greeting stands")))
	w, err := worker.New(conn, pool, mux, worker.Config{MaxJobsActive: 8, Concurrency: 4})
	if err != nil {
		return err
	}
	return w.Run(ctx)
}
