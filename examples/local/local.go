// Package local is what the small examples stand on: an engine inside the
// program, a PostgreSQL that the caller names, and a worker. Quickstart shows
// the same without this package.
package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// Main runs an example with the database of the variable DATABASE_URL, for at most a minute.
func Main(name string, run func(ctx context.Context, dsn string) error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Place is an engine with a model, and the tables of a worker. Close it.
type Place struct {
	Pool *pgxpool.Pool

	engine *engine.Engine
	conn   *zeebe.Conn
	asks   *rest.Client
	stop   func() error
}

// Open connects, makes the worker's tables and those of schema, starts an engine and deploys a model.
func Open(ctx context.Context, dsn, name string, model []byte, schema string) (p *Place, err error) {
	if dsn == "" {
		return nil, errors.New("DATABASE_URL is empty, want a PostgreSQL connection string")
	}
	p = &Place{stop: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	if p.Pool, err = pgxpool.New(ctx, dsn); err != nil {
		return p, err
	}
	if err = worker.Migrate(ctx, p.Pool, ""); err != nil {
		return p, err
	}
	if _, err = p.Pool.Exec(ctx, schema); err != nil {
		return p, err
	}
	if p.engine, err = engine.Start(engine.Config{}); err != nil {
		return p, err
	}
	if p.conn, err = zeebe.Dial(zeebe.Config{Address: p.engine.Addr(), Plaintext: true, Cluster: name + "-" + p.engine.Incarnation()}); err != nil {
		return p, err
	}
	if p.asks, err = rest.New(rest.Config{Base: "http://" + p.engine.RESTAddr()}); err != nil {
		return p, err
	}
	_, err = p.conn.Deploy(ctx, zeebe.Resource{Name: name, Content: model})
	return p, err
}

// Work serves mux until Close. Lost answers are asked for after a tenth of a second, not one.
func (p *Place) Work(ctx context.Context, mux *worker.Mux) error {
	quick := outcome.Backoff{Min: 100 * time.Millisecond, Max: time.Second, Factor: 2}
	w, err := worker.New(p.conn, p.Pool, mux, worker.Config{MaxJobsActive: 200, Concurrency: 3, UnknownBackoff: quick})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	p.stop = func() error {
		cancel()
		return <-done
	}
	return nil
}

// Start starts an instance of a process for a business key, with its correlation variables.
func (p *Place) Start(ctx context.Context, process, businessKey string, variables map[string]any) (key int64, err error) {
	all := map[string]any{"businessKey": businessKey, "correlationId": businessKey, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	maps.Copy(all, variables)
	doc, err := json.Marshal(all)
	if err != nil {
		return 0, err
	}
	i, err := p.conn.CreateInstance(ctx, process, string(doc))
	return i.ProcessInstanceKey, err
}

// End waits for the end of an instance and gives the id of its end event. An incident is an error.
func (p *Place) End(ctx context.Context, key int64) (string, error) {
	of := rest.Filter{"processInstanceKey": rest.Key(key)}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := p.asks.ProcessInstance(ctx, key)
		if err == nil && state.HasIncident {
			found, err := p.asks.SearchIncidents(ctx, rest.Query{Filter: of})
			if err == nil && len(found.Items) > 0 {
				return "", fmt.Errorf("incident at %s: %s", found.Items[0].ElementID, found.Items[0].ErrorMessage)
			}
		}
		if err == nil && state.State == "COMPLETED" {
			ends, err := p.asks.SearchElementInstances(ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(key), "type": "END_EVENT"}})
			if err == nil && len(ends.Items) > 0 {
				return ends.Items[0].ElementID, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the process did not end: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// Close ends the worker, the engine and the connections.
func (p *Place) Close() error {
	errs := []error{p.stop()}
	if p.conn != nil {
		errs = append(errs, p.conn.Close())
	}
	if p.engine != nil {
		errs = append(errs, p.engine.Close())
	}
	if p.Pool != nil {
		p.Pool.Close()
	}
	return errors.Join(errs...)
}
