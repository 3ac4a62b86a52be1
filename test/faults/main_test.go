package faults

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) {
	if is, err := asMember(); is {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
