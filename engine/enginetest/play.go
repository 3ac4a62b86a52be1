package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
)

// Play runs one test case, which [ParseScenarios] read, outside go test. The error tells the line and the instruction that
// failed, and what was there instead; ctx ends the case between two instructions.
func (s Scenarios) Play(ctx context.Context, c Scenario) error {
	p := &player{ctx: ctx}
	done := make(chan struct{})
	go func() { // Fatalf ends this goroutine, as it ends a test's
		defer close(done)
		defer p.finish()
		s.run(p, c, func(i int, step step) string {
			return fmt.Sprintf("line %d, instruction %d, %s", step.line, i+1, step.kind)
		}, ctx.Err)
	}()
	<-done
	return errors.Join(p.errs...)
}

// player is the testing.TB of a case that no test runs. Env uses nothing else of it.
type player struct {
	testing.TB
	ctx     context.Context //nolint:containedctx // as testing.TB has one
	cleanup []func()
	errs    []error
}

func (p *player) Helper()                  {}
func (p *player) Context() context.Context { return p.ctx }
func (p *player) Cleanup(f func())         { p.cleanup = append(p.cleanup, f) }

func (p *player) Errorf(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...)) //nolint:err113 // what a helper says
}

func (p *player) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// finish runs the clean-ups, last first, also those that others add, and when one ends the goroutine.
func (p *player) finish() {
	for len(p.cleanup) > 0 {
		last := p.cleanup[len(p.cleanup)-1]
		p.cleanup = p.cleanup[:len(p.cleanup)-1]
		done := make(chan struct{})
		go func() {
			defer close(done)
			last()
		}()
		<-done
	}
}
