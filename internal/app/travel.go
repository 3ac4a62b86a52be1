package app

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/export"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/reservation"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
)

// ticketsPath is where the airline posts issued tickets.
const ticketsPath = "/v1/callbacks/tickets"

// clients are the HTTP clients of the four suppliers.
type clients struct{ flight, hotel, transfer, payment *supplier.Client }

func (a *App) dialSuppliers() (c clients, err error) {
	s := a.cfg.Suppliers
	for _, d := range []struct {
		base string
		to   **supplier.Client
	}{{s.Flight, &c.flight}, {s.Hotel, &c.hotel}, {s.Transfer, &c.transfer}, {s.Payment, &c.payment}} {
		if *d.to, err = supplier.New(d.base, a.cfg.CallTimeout); err != nil {
			return c, err
		}
	}
	return c, nil
}

// types are the saga types of the application, with or without the data export.
func types(schema string, exports bool) ([]sagas.Type, error) {
	tour, err := tourbooking.Type(tourbooking.TypeConfig{Schema: schema})
	if err != nil {
		return nil, err
	}
	back, err := refund.Type(refund.TypeConfig{Schema: schema})
	if err != nil {
		return nil, err
	}
	tickets, err := ticketing.Type(ticketing.TypeConfig{Schema: schema})
	if err != nil {
		return nil, err
	}
	change, err := amendment.Type(amendment.TypeConfig{Schema: schema})
	if err != nil {
		return nil, err
	}
	single, err := reservation.Type(reservation.TypeConfig{Schema: schema})
	if err != nil {
		return nil, err
	}
	all := []sagas.Type{tour, back, tickets, change, single}
	if !exports {
		return all, nil
	}
	files, err := export.Type(export.TypeConfig{Schema: schema, Datasets: datasets()})
	return append(all, files), err
}

// datasets are what partners may export.
func datasets() []export.Dataset { return []export.Dataset{export.Operations(), export.Bookings()} }

// install registers the handlers of the travel sagas.
func (a *App) install(mux *worker.Mux) error {
	c, err := a.dialSuppliers()
	if err != nil {
		return err
	}
	err = tourbooking.Install(mux, tourbooking.Config{
		Schema: a.cfg.Schema, Flight: c.flight, Hotel: c.hotel, Transfer: c.transfer, Payment: c.payment, Sagas: a.sagas, Ticketing: ticketing.Plan,
		Retain: a.sagas.RetentionOf(tourbooking.TypeName),
	})
	if err != nil {
		return err
	}
	err = refund.Install(mux, refund.Config{
		Schema: a.cfg.Schema, Flight: c.flight, Hotel: c.hotel, Transfer: c.transfer, Payment: c.payment, Sagas: a.sagas,
		Retain: a.sagas.RetentionOf(refund.TypeName),
	})
	if err != nil {
		return err
	}
	err = amendment.Install(mux, amendment.Config{
		Schema: a.cfg.Schema, Hotel: c.hotel, Transfer: c.transfer, Payment: c.payment, Sagas: a.sagas, Retain: a.sagas.RetentionOf(amendment.TypeName),
	})
	if err != nil {
		return err
	}
	err = reservation.Install(mux, reservation.Config{
		Schema: a.cfg.Schema, Flight: c.flight, Hotel: c.hotel, Transfer: c.transfer, Payment: c.payment, Sagas: a.sagas, Ticketing: ticketing.Plan,
		Retain: a.sagas.RetentionOf(reservation.TypeName),
	})
	if err != nil {
		return err
	}
	if a.cfg.Exports != nil {
		a.exports, err = export.New(export.Config{
			Pool: a.cfg.Pool, Schema: a.cfg.Schema, Objects: a.cfg.Exports, Sagas: a.sagas, Catalog: a.catalog, Datasets: datasets(),
			Retain: a.sagas.RetentionOf(export.TypeName),
		})
		if err != nil {
			return err
		}
		a.exports.Install(mux)
	}
	return ticketing.Install(mux, ticketing.Config{
		Schema: a.cfg.Schema, Flight: c.flight, Sagas: a.sagas, CallbackURL: a.cfg.Callback + ticketsPath, CallbackSecret: a.cfg.CallbackSecret,
		Retain: a.sagas.RetentionOf(ticketing.TypeName),
	})
}

// expireEvery is how often exports are looked for whose time has come. They lie there for weeks.
const expireEvery = 10 * time.Minute

// expire deletes exports whose time has come, until ctx ends.
func (a *App) expire(ctx context.Context) error { return a.exports.Run(ctx, expireEvery, a.cfg.Log) }

// callbacks are the addresses that suppliers call.
func (a *App) callbacks(mux *http.ServeMux) error {
	tickets, err := ticketing.NewCallback(ticketing.CallbackConfig{
		Pool: a.cfg.Pool, Schema: a.cfg.Schema, Commands: a.queue, Sender: fastPath{a}, Secret: a.cfg.CallbackSecret, Log: a.cfg.Log,
	})
	if err != nil {
		return err
	}
	mux.Handle(ticketsPath, tickets)
	return nil
}

func migrateTravel(ctx context.Context, pool *pgxpool.Pool, schema string) error {
	if err := tourbooking.Migrate(ctx, pool, schema); err != nil {
		return err
	}
	if err := refund.Migrate(ctx, pool, schema); err != nil {
		return err
	}
	if err := export.Migrate(ctx, pool, schema); err != nil {
		return err
	}
	return ticketing.Migrate(ctx, pool, schema)
}

func catalogs() map[string][]byte {
	return map[string][]byte{
		"sagas": sagas.Catalog(), "tour booking": tourbooking.Catalog(), "refund": refund.Catalog(), "ticketing": ticketing.Catalog(),
		"operator": operator.Catalog(),
	}
}
