package app

import (
	"context"
	"fmt"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// build makes what needs each other: the sagas undo through the worker's
// runtime, and the worker passes the sagas' gate.
func (a *App) build() error {
	var err error
	var history *rest.Client
	if a.cfg.REST != "" {
		if history, err = rest.New(rest.Config{Base: a.cfg.REST}); err != nil {
			return err
		}
	}
	all, err := types(a.cfg)
	if err != nil {
		return err
	}
	a.sagas, err = sagas.New(sagas.Config{
		Domain: a.cfg.Pool, Schema: a.cfg.Schema, RecordSchema: a.cfg.RecordSchema, Stager: a.stager, Commands: a.queue, Sender: fastPath{a},
		Cluster: a.cfg.Cluster, Log: a.cfg.Log,
		Undo: func(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error) {
			return a.worker.Runtime().Undo(ctx, forwardOperationID, reason)
		},
		InstanceEnded: instanceEnded(history, a.cfg.Cluster),
	}, all...)
	if err != nil {
		return err
	}
	mux := worker.NewMux()
	a.sagas.Install(mux)
	if err := a.install(mux); err != nil {
		return err
	}
	cfg := worker.Config{
		Name: producer, Schema: a.cfg.Schema, MaxJobsActive: a.cfg.MaxJobsActive, Concurrency: a.cfg.Concurrency, Stager: a.stager, Saga: a.sagas.Hook(), PurgeUnless: a.sagas.PurgeUnless(),
		Elements: elements(history), JobTimeout: a.cfg.JobTimeout, CallTimeout: a.cfg.CallTimeout, Log: a.cfg.Log,
	}
	if a.worker, err = worker.New(a.conn, a.cfg.Pool, mux, cfg); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// fastPath sends through the worker's sender, which is made after those who use it.
type fastPath struct{ *App }

// Send tells the engine now; see [zeebe.Sender.Send].
func (f fastPath) Send(ctx context.Context, cmd *zeebe.Queued) error {
	return f.worker.Sender().Send(ctx, cmd)
}
