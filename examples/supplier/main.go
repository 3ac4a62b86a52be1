// Supplier: a worker that calls another system, and what it does when the
// answer is lost. Nobody knows then whether the room is reserved: calling
// again could reserve a second one, giving up could lose the first. So the
// worker asks.
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/supplier
//
// worker.go is the handler, hotel.go the other system.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/vitrip/journeyman/examples/local"
	"github.com/vitrip/journeyman/worker"
)

//go:embed room.bpmn
var model []byte

func main() {
	local.Main("supplier", func(ctx context.Context, dsn string) error { return run(ctx, os.Stdout, dsn, 1) })
}

// run reserves one room at a hotel that loses its first answers.
func run(ctx context.Context, out io.Writer, dsn string, lost int64) error {
	p, err := local.Open(ctx, dsn, "room.bpmn", model, `CREATE TABLE IF NOT EXISTS stay (reservation text PRIMARY KEY, hotel text NOT NULL)`)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // the program ends
	hotel := openHotel(lost)
	defer hotel.Close()

	mux := worker.NewMux()
	mux.Handle("room.reserve", reserve(hotel.URL))
	if err := p.Work(ctx, mux); err != nil {
		return err
	}
	key, err := p.Start(ctx, "room", "Ada", map[string]any{"hotel": "H-1"})
	if err != nil {
		return err
	}
	end, err := p.End(ctx, key)
	if err != nil {
		return err
	}
	var stays int
	if err := p.Pool.QueryRow(ctx, `SELECT count(*) FROM stay`).Scan(&stays); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s: %d reservation at the hotel, %d in our table; %d answers were lost\n", end, hotel.reservations(), stays, lost)
	return err
}
