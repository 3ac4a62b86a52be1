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
