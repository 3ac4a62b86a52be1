package worker

import (
	"context"
	"runtime/debug"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/outcome"
)

// guarded runs f and turns a panic into a FATAL outcome (spec W3). The stack goes to the log, which is made only then.
func guarded[T any](log func() *zerolog.Logger, f func() (T, error)) (out T, err error) {
	defer func() {
		if v := recover(); v != nil {
			p := outcome.Panicked(v)
			log().Error().Str("reason", p.Reason).Str("stack", string(debug.Stack())).Msg("handler panicked")
			err = p
		}
	}()
	return f()
}

// classify reads a handler's error; a deadline of the handler's own context counts as such whatever the error says.
func classify(ctx context.Context, err error) *outcome.Error {
	e := outcome.Classify(err)
	if e != nil && e.Class == outcome.Retryable && ctx.Err() == context.DeadlineExceeded && e.Reason != outcome.ReasonUnknown { //nolint:errorlint // ctx.Err is never wrapped
		c := *e
		c.Reason = outcome.ReasonDeadline
		return &c
	}
	return e
}
