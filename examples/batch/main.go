// Batch: a worker that takes up to fifty waiting jobs of one type and does
// their work with one statement in one transaction. Each job keeps an outcome
// of its own: one bad reading does not take the others down.
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/batch
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

//go:embed meter.bpmn
var model []byte

const schema = `CREATE TABLE IF NOT EXISTS reading (operation text PRIMARY KEY, meter text NOT NULL, value float8 NOT NULL CHECK (value >= 0))`

// Reading is the task's input.
type Reading struct {
	Meter string  `json:"meter"`
	Value float64 `json:"value"`
}

type nothing struct{}

// record decides for each job first, and then writes for those that are good.
func record(ctx context.Context, tx *worker.Tx, jobs []worker.Job[Reading]) ([]worker.BatchEnd[nothing], error) {
	ends := make([]worker.BatchEnd[nothing], len(jobs))
	var operations, meters []string
	var values []float64
	for i, job := range jobs {
		if job.In.Value < 0 {
			ends[i].Err = worker.BusinessError("BAD_READING", "a meter does not run backwards")
			continue
		}
		operations, meters, values = append(operations, job.OperationID), append(meters, job.In.Meter), append(values, job.In.Value)
	}
	_, err := tx.Exec(ctx, `INSERT INTO reading (operation, meter, value) SELECT * FROM unnest($1::text[], $2::text[], $3::float8[])`, operations, meters, values)
	return ends, err
}

func handler() worker.Handler {
	return worker.Batch(50, record, worker.NotCompensable("a reading stands"), worker.Throws("BAD_READING"))
}

func main() {
	local.Main("batch", func(ctx context.Context, dsn string) error { return run(ctx, os.Stdout, dsn, 200) })
}

// run records n readings, the last of which is bad.
func run(ctx context.Context, out io.Writer, dsn string, n int) error {
	p, err := local.Open(ctx, dsn, "meter.bpmn", model, schema)
	if err != nil {
		return err
	}
	defer p.Close() //nolint:errcheck // the program ends
	keys := make([]int64, n)
	for i := range keys { // they wait before the worker starts
		value := float64(i)
		if i == n-1 {
			value = -1
		}
		if keys[i], err = p.Start(ctx, "meter", fmt.Sprintf("M-%d", i), map[string]any{"meter": fmt.Sprintf("M-%d", i), "value": value}); err != nil {
			return err
		}
	}
	mux := worker.NewMux()
	mux.Handle("meter.record", handler())
	if err := p.Work(ctx, mux); err != nil {
		return err
	}
	ends := map[string]int{}
	for _, key := range keys {
		end, err := p.End(ctx, key)
		if err != nil {
			return err
		}
		ends[end]++
	}
	var transactions int
	if err := p.Pool.QueryRow(ctx, `SELECT count(DISTINCT xmin::text) FROM reading`).Scan(&transactions); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d recorded, %d refused, in %d transactions\n", ends["recorded"], ends["refused"], transactions)
	return err
}
