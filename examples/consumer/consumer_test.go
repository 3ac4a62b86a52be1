package main

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/worker/workertest"
)

var db workertest.Database

func TestMain(m *testing.M) {
	code := db.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}

// Both versions are billed, each by its own type, and reminded of when that is due, once; the third is a dead letter (spec E6, E14).
func TestConsumer_E6(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, db.Own(t)); err != nil {
		t.Fatal(err)
	}
	const want = `B-1: invoice of 19900 EUR, reminded once after a second
B-2: invoice of 25000 CHF, reminded once after a second
B-3: dead letter, FATAL_ERROR (version): bookings.booking.confirmed version 3: the handler knows [1 2]
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
