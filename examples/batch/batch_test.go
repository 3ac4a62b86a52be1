package main

import (
	"fmt"
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

func TestBatch(t *testing.T) {
	const n = 200
	var out strings.Builder
	if err := run(t.Context(), &out, db.Own(t), n); err != nil {
		t.Fatal(err)
	}
	var recorded, refused, transactions int
	if _, err := fmt.Sscanf(out.String(), "%d recorded, %d refused, in %d transactions\n", &recorded, &refused, &transactions); err != nil || recorded != n-1 || refused != 1 || transactions >= n/2 {
		t.Errorf("got %q (%v), want %d recorded and 1 refused in far fewer transactions", out.String(), err, n-1)
	}
}

// The handler by itself: one call for both jobs, and the bad one does not take the good one down.
func TestRecord(t *testing.T) {
	b := db.Begin(t)
	b.Exec(schema)
	r := b.RunBatch(handler(),
		workertest.Job{Type: "meter.record", Input: Reading{Meter: "M", Value: 2.5}},
		workertest.Job{Type: "meter.record", Input: Reading{Meter: "M", Value: -1}})
	r[0].WantSuccess()
	r[1].WantCode("BAD_READING")
	if sum := workertest.Get[float64](b, `SELECT sum(value) FROM reading`); sum != 2.5 {
		t.Errorf("readings of %v, want 2.5", sum)
	}
}
