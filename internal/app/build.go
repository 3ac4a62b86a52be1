package app

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// build makes what needs each other: the sagas undo through the worker's
// runtime, and the worker passes the sagas' gate.
func (a *App) build() error {
	var err error
	if a.sender, err = zeebe.NewSender(zeebe.SenderConfig{Pool: a.cfg.Pool, Gateway: a.conn, Queue: a.queue, Log: a.cfg.Log}); err != nil {
		return err
	}
	a.travel = newTravel(a.cfg)
	a.sagas, err = sagas.New(sagas.Config{
		Domain: a.cfg.Pool, Schema: a.cfg.Schema, RecordSchema: a.cfg.RecordSchema, Stager: a.stager, Commands: a.queue, Sender: a.sender,
		Cluster: a.cfg.Cluster, Log: a.cfg.Log,
		Undo: func(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error) {
			return a.worker.Runtime().Undo(ctx, forwardOperationID, reason)
		},
		InstanceEnded: a.instanceEnded(),
	}, a.travel.types()...)
	if err != nil {
		return err
	}
	mux := worker.NewMux()
	a.sagas.Install(mux)
	if err := a.travel.install(a, mux); err != nil {
		return err
	}
	cfg := worker.Config{
		Name: producer, Schema: a.cfg.Schema, MaxJobsActive: a.cfg.MaxJobsActive, Concurrency: a.cfg.Concurrency, Stager: a.stager, Saga: a.sagas.Hook(),
		Elements: a.elements(), JobTimeout: a.cfg.JobTimeout, CallTimeout: a.cfg.CallTimeout, Log: a.cfg.Log,
	}
	if a.worker, err = worker.New(a.conn, a.cfg.Pool, mux, cfg); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}
