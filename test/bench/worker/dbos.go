package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/test/bench/rig"
)

// dbosRun is a DBOS workflow of one transactional step with the same domain row.
type dbosRun struct {
	*bench
	ctx    dbos.Context
	source *dbos.DataSource
}

type dbosInput struct {
	ID string
	In input
}

func (b *bench) newDBOS(ctx context.Context) (*dbosRun, error) {
	pool, err := rig.Pool(ctx, b.db.DSN, int(b.pool.Config().MaxConns)) // it closes its pool
	if err != nil {
		return nil, err
	}
	c, err := dbos.NewContext(ctx, dbos.Config{AppName: "bench", SystemDBPool: pool, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	d := &dbosRun{bench: b, ctx: c}
	if d.source, err = dbos.NewDataSource(c, pool); err != nil { // the system database's own pool: one transaction for both
		return nil, err
	}
	dbos.RegisterWorkflow(c, d.workflow, dbos.WithWorkflowName("reserve"))
	return d, dbos.Launch(c)
}

func (d *dbosRun) workflow(ctx dbos.Context, in dbosInput) (output, error) {
	return dbos.RunAsTransaction(ctx, d.source, func(ctx context.Context, tx dbos.Tx) (output, error) {
		_, err := tx.Exec(ctx, domainRow, in.ID, in.In.Offer, in.In.Seats, in.In.Amount.Minor)
		return output{Reservation: "R-" + in.ID}, err
	})
}

func (d *dbosRun) run(_ context.Context, prefix string, n int, _ func() error) error {
	var g errgroup.Group
	lanes := 4 * d.concurrency // more than connections: it is never the starter that is waited for
	for lane := range lanes {
		g.Go(func() error {
			for i := lane; i < n; i += lanes {
				p, err := prepare([]byte(variables(fmt.Sprint(prefix, "-", i))))
				if err != nil {
					return err
				}
				h, err := dbos.RunWorkflow(d.ctx, d.workflow, dbosInput{ID: p.in.OperationID, In: p.in.input}, dbos.WithWorkflowID(p.in.OperationID))
				if err != nil {
					return err
				}
				if _, err := h.GetResult(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (d *dbosRun) close() error {
	if err := dbos.Shutdown(d.ctx, 5*time.Second); err != nil {
		return errors.Join(errors.New("dbos"), err)
	}
	return nil
}
