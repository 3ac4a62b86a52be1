package app

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events/webhook"
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
		if history, err = rest.New(rest.Config{Base: a.cfg.REST, Token: a.token}); err != nil {
			return err
		}
	}
	all, err := types(a.cfg.Schema, a.cfg.Exports != nil)
	if err != nil {
		return err
	}
	var told sagas.Webhooks
	if a.cfg.Webhooks != nil {
		if a.hooks, err = webhook.New(webhook.Config{Pool: a.cfg.Pool, Schema: a.recordSchema(), Directory: a.cfg.Webhooks, Keys: a.keys, Log: a.cfg.Log}); err != nil {
			return err
		}
		told = a.hooks
	}
	a.sagas, err = sagas.New(sagas.Config{
		Domain: a.cfg.Pool, Schema: a.cfg.Schema, RecordSchema: a.cfg.RecordSchema, Stager: a.stager, Commands: a.queue, Sender: fastPath{a},
		Keys: a.keys, KeysOpenOnly: !a.sealsRecords(), Cluster: a.cfg.Cluster, Webhooks: told, Limits: a.cfg.Limits, Log: a.cfg.Log,
		BeginWithin: a.cfg.BeginWithin, UndoWithin: a.cfg.UndoWithin, ManualWithin: a.cfg.ManualWithin,
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
	if err := a.checkModels(mux); err != nil {
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

// checkModels compares every saga with its model: what does not match would show only when something has to be undone.
func (a *App) checkModels(mux *worker.Mux) error {
	var all []*bpmn.Definitions
	for _, name := range models.Names() {
		text, err := models.Read(name)
		if err != nil {
			return err
		}
		m, err := bpmn.Parse(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("model %s: %w", name, err)
		}
		all = append(all, m)
	}
	return a.sagas.CheckModels(mux.Declared(), all...)
}
