// Quickstart: one task, one worker. worker.go is all that a service needs;
// this file starts an embedded engine beside it, so that nothing but a
// PostgreSQL is needed:
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/quickstart Ada
//
// Run it twice with the same name: the second run is answered from the record,
// and no second row is written.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

//go:embed greet.bpmn
var model []byte

func main() {
	name := "Ada"
	if len(os.Args) > 1 {
		name = os.Args[1]
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx, os.Stdout, os.Getenv("DATABASE_URL"), name); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, dsn, name string) (err error) {
	if dsn == "" {
		return errors.New("DATABASE_URL is empty, want a PostgreSQL connection string")
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := worker.Migrate(ctx, pool, "journeyman"); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `CREATE TABLE IF NOT EXISTS guest (id int GENERATED ALWAYS AS IDENTITY, name text NOT NULL)`); err != nil {
		return err
	}

	eng, err := engine.Start(engine.Config{Addr: "127.0.0.1:0", RESTAddr: "127.0.0.1:0", Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, eng.Close()) }()
	conn, err := zeebe.Dial(zeebe.Config{Address: eng.Addr(), Plaintext: true, Cluster: "quickstart-" + eng.Incarnation()})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the program ends
	if _, err := conn.Deploy(ctx, zeebe.Resource{Name: "greet.bpmn", Content: model}); err != nil {
		return err
	}

	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- work(working, conn, pool) }()

	variables, err := json.Marshal(map[string]string{
		"name": name, "businessKey": name, "correlationId": name, "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	if err != nil {
		stop()
		return errors.Join(err, <-done)
	}
	err = show(ctx, out, conn, eng.RESTAddr(), string(variables))
	stop()
	return errors.Join(err, <-done)
}
