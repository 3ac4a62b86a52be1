package worker

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/zeebe"
)

// Worker activates jobs of all types of its Mux and runs them.
type Worker struct {
	rt *Runtime
}

// New makes a worker. All mistakes in mux and cfg are reported at once.
func New(conn *zeebe.Conn, pool *pgxpool.Pool, mux *Mux, cfg Config) (*Worker, error) {
	return nil, nil
}

// Run works until ctx is cancelled, then drains (spec W11).
func (w *Worker) Run(ctx context.Context) error { return nil }

// Runtime gives the worker's runtime.
func (w *Worker) Runtime() *Runtime { return w.rt }

// Sender gives the worker's command sender.
func (w *Worker) Sender() *zeebe.Sender { return nil }
