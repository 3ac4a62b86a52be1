package workertest_test

import (
	"fmt"
	"runtime"
	"testing"
)

// spyTB keeps what a helper fails with.
type spyTB struct {
	testing.TB
	said string
}

func (s *spyTB) Helper() {}

func (s *spyTB) Fatalf(format string, args ...any) {
	s.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// oneTest is one test of many in a benchmark: its clean-ups run at its own end.
type oneTest struct {
	testing.TB
	cleanup []func()
}

func (o *oneTest) Cleanup(f func()) { o.cleanup = append(o.cleanup, f) }

func (o *oneTest) end() {
	for _, f := range o.cleanup {
		f()
	}
}
