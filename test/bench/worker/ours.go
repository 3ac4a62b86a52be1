package main

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

const catalog = `
domains: [bench]
messages:
  - {type: bench.room.reserved, class: domain, owner: bench, producers: [bench]}
`

// ours is this module's worker. group 1 = one job to a transaction; batch = the set-based handler.
type ours struct {
	*bench
	schema string
	group  int
	batch  int
	stager *outbox.Stager
}

// newOurs makes the tables of a schema.
func (b *bench) newOurs(ctx context.Context, schema string, group int) (*ours, error) {
	if err := errors.Join(dedup.Migrate(ctx, b.pool, schema), zeebe.Migrate(ctx, b.pool, schema), outbox.Migrate(ctx, b.pool, schema)); err != nil {
		return nil, err
	}
	c, err := events.ParseCatalog([]byte(catalog))
	if err != nil {
		return nil, err
	}
	o := &ours{bench: b, schema: schema, group: group}
	o.stager, err = outbox.NewStager(outbox.Config{Schema: schema, Catalog: c, Producer: "bench", Instance: "bench-1", Env: "bench"})
	return o, err
}

func (o *ours) mux(jobTypes ...string) *worker.Mux {
	mux := worker.NewMux()
	for _, t := range jobTypes {
		if o.batch > 0 {
			mux.Handle(t, worker.Batch(o.batch, reserveAll, worker.NotCompensable("bench")))
			continue
		}
		mux.Handle(t, worker.Transactional(reserve, worker.NotCompensable("bench")))
	}
	return mux
}

func reserve(ctx context.Context, tx *worker.Tx, j worker.Job[input]) (output, error) {
	out := output{Reservation: "R-" + j.OperationID}
	if _, err := tx.Exec(ctx, domainRow, j.OperationID, j.In.Offer, j.In.Seats, j.In.Amount.Minor); err != nil {
		return out, err
	}
	tx.Emit(message(j, out))
	return out, nil
}

func message(j worker.Job[input], out output) events.Message {
	return events.Message{Type: "bench.room.reserved", Data: reserved{
		Reservation: out.Reservation, Offer: j.In.Offer, Seats: j.In.Seats, Minor: j.In.Amount.Minor, Currency: j.In.Amount.Currency,
	}}
}

// reserveAll is the same work for many jobs with one statement.
func reserveAll(ctx context.Context, tx *worker.Tx, jobs []worker.Job[input]) ([]worker.BatchEnd[output], error) {
	n := len(jobs)
	ids, offers, seats, minors := make([]string, n), make([]string, n), make([]int, n), make([]int64, n)
	ends := make([]worker.BatchEnd[output], n)
	for i, j := range jobs {
		ids[i], offers[i], seats[i], minors[i] = j.OperationID, j.In.Offer, j.In.Seats, j.In.Amount.Minor
		ends[i].Out.Reservation = "R-" + j.OperationID
		ends[i].Events = []events.Message{message(j, ends[i].Out)}
	}
	_, err := tx.Exec(ctx, `INSERT INTO room (operation_id, offer, seats, minor) SELECT * FROM unnest($1::text[], $2::text[], $3::int[], $4::bigint[])`, ids, offers, seats, minors)
	return ends, err
}

func (o *ours) config() worker.Config {
	return worker.Config{
		MaxJobsActive: o.active, Concurrency: o.concurrency, Schema: o.schema, Group: o.group, Stager: o.stager, Control: o.control, Log: zerolog.Nop(),
	}
}

func (o *ours) run(ctx context.Context, jobType string, _ int, done func() error) error {
	conn, err := zeebe.Dial(zeebe.Config{Address: o.engine.addr, Plaintext: true})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is under way
	w, err := worker.New(conn, o.pool, o.mux(jobType), o.config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	err = done()
	cancel()
	return errors.Join(err, <-ended)
}
