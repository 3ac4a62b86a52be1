package order

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// House is the whole service in one process: API, worker, relay, record store. A bus between relay and records is left
// out: the relay hands the saga's events over directly.
type House struct {
	api    http.Handler
	sagas  *sagas.Sagas
	worker *worker.Worker
	relay  *outbox.Relay
}

// Build wires the service over a migrated database and a connection to the engine.
func Build(ctx context.Context, pool *pgxpool.Pool, conn *zeebe.Conn, cluster string, card, courier Remote, auth sagas.Authenticator, log zerolog.Logger) (*House, error) {
	if _, err := conn.Deploy(ctx, zeebe.Resource{Name: "order.bpmn", Content: Model}); err != nil {
		return nil, err
	}
	catalog, err := events.ParseCatalog(sagas.Catalog())
	if err != nil {
		return nil, err
	}
	stager, err := outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "shop", Instance: "shop-1", Env: "example"})
	if err != nil {
		return nil, err
	}
	queue, err := zeebe.NewQueue("", cluster)
	if err != nil {
		return nil, err
	}
	h := &House{}
	h.sagas, err = sagas.New(sagas.Config{
		Domain: pool, Stager: stager, Commands: queue, Cluster: cluster, Log: log,
		Undo: func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return h.worker.Runtime().Undo(ctx, id, reason)
		},
	}, Type())
	if err != nil {
		return nil, err
	}
	mux := worker.NewMux()
	h.sagas.Install(mux)
	RegisterOrder(mux, Handlers{Sagas: h.sagas, Card: card, Courier: courier})
	if err := CheckOrder(mux); err != nil {
		return nil, err
	}
	h.worker, err = worker.New(conn, pool, mux, worker.Config{MaxJobsActive: 32, Concurrency: 4, Stager: stager, Saga: h.sagas.Hook(), PurgeUnless: h.sagas.PurgeUnless(), Log: log})
	if err != nil {
		return nil, err
	}
	h.relay, err = outbox.NewRelay(pool, direct{pool, h.sagas}, outbox.RelayConfig{Stager: stager, Log: log})
	if err != nil {
		return nil, err
	}
	h.api, err = h.sagas.Handler(sagas.HTTPConfig{Auth: auth})
	return h, err
}

// Run works until ctx ends.
func (h *House) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{h.worker.Run, h.relay.Run, h.sagas.Run} {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// direct is a bus of one consumer: what is published is applied to the record store at once.
type direct struct {
	pool  *pgxpool.Pool
	sagas *sagas.Sagas
}

// Publish applies the saga's events, in order. What failed is published again.
func (d direct) Publish(ctx context.Context, records []events.Record) []error {
	errs := make([]error, len(records))
	failed := map[string]bool{}
	for i, r := range records {
		if failed[r.Key] {
			errs[i] = errors.New("an earlier one of this key failed")
			continue
		}
		env, err := events.ParseEnvelope(r.Body)
		if err == nil && r.Topic == "platform.saga.progress.v1" {
			err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
				return d.sagas.Apply(ctx, outbox.NewTx(tx), events.Received{Envelope: env, Attempt: 1})
			})
		}
		errs[i], failed[r.Key] = err, err != nil
	}
	return errs
}
