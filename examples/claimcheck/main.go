// Claim check: a document that is too large for a process variable stays in
// the database, and the process carries what finds it again: a reference and
// a checksum. Variables are copied with every step and kept in the engine's
// history; a few kilobytes are a sound limit for all of them together.
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/claimcheck
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

//go:embed report.bpmn
var model []byte

func main() {
	local.Main("claimcheck", func(ctx context.Context, dsn string) error { return run(ctx, os.Stdout, dsn, 20_000) })
}

// run has a report of so many lines written by one task and sent by the next.
func run(ctx context.Context, out io.Writer, dsn string, lines int) error {
	p, err := local.Open(ctx, dsn, "report.bpmn", model, schema)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // the program ends
	outbox := &outgoing{}
	mux := worker.NewMux()
	mux.Handle("report.write", writing())
	mux.Handle("report.send", sending(outbox.send))
	if err := p.Work(ctx, mux); err != nil {
		return err
	}
	key, err := p.Start(ctx, "report", "R-1", map[string]any{"lines": lines})
	if err != nil {
		return err
	}
	if _, err := p.End(ctx, key); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "a report of %d bytes was sent; the process carried %d bytes of it\n", outbox.bytes.Load(), outbox.carried.Load())
	return err
}
