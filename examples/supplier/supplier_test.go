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

// The answer is lost, and there is one reservation all the same.
func TestSupplier(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, db.Own(t), 1); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "reserved: 1 reservation at the hotel, 1 in our table; 1 answers were lost\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The handler by itself, in a transaction that is rolled back: no engine, a few milliseconds.
func TestReserve(t *testing.T) {
	b := db.Begin(t)
	b.Exec(`CREATE TABLE IF NOT EXISTS stay (reservation text PRIMARY KEY, hotel text NOT NULL)`)
	h := openHotel(1)
	defer h.Close()
	r := b.RunAfterLostAnswer(reserve(h.URL), workertest.Job{Type: "room.reserve", OperationID: "op-1", Input: Room{Hotel: "H-1"}}).WantSuccess()
	if id := workertest.Decode[Reservation](r).ID; id != "R-1" || h.reservations() != 1 {
		t.Errorf("reservation %s, %d at the hotel, want R-1 and 1", id, h.reservations())
	}
}
