package worker_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/worker"
)

// Middleware around every handler: a line in the log for each run of a function, and errors that say which one they come from.
func ExampleMux_Use() {
	log := zerolog.Nop()
	timed := func(ctx context.Context, run worker.Run, next func(context.Context) error) error {
		began := time.Now()
		err := next(ctx)
		log.Debug().Str("phase", string(run.Phase)).Str("job_type", run.Jobs[0].Type).Int("jobs", len(run.Jobs)).Dur("took", time.Since(began)).Err(err).Msg("ran")
		return err
	}
	named := func(ctx context.Context, run worker.Run, next func(context.Context) error) error {
		if err := next(ctx); err != nil {
			return fmt.Errorf("%s: %w", run.Phase, err)
		}
		return nil
	}
	mux := worker.NewMux()
	mux.Use(timed, named)
	mux.Handle("hotel.reserve", worker.Transactional(func(context.Context, *worker.Tx, worker.Job[struct{}]) (struct{}, error) {
		return struct{}{}, nil
	}, worker.NoEffect()))
	fmt.Println(mux.Types())
	// Output: [hotel.reserve]
}
