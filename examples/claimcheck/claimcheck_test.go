package main

import (
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/outcome"
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

func TestClaimCheck(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, db.Own(t), 20_000); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a report of 420000 bytes was sent; the process carried 109 bytes of it\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A document that was changed, or is gone, is not sent.
func TestRedeem(t *testing.T) {
	b := db.Begin(t)
	b.Exec(schema)
	r := b.Run(writing(), workertest.Job{Type: "report.write", OperationID: "op-1", Input: order{Lines: 2}}).WantSuccess()
	send := func() workertest.Result {
		return b.Run(sending(func(Claim, string) {}), workertest.Job{Type: "report.send", Input: workertest.Decode[written](r)})
	}
	if n := workertest.Decode[sent](send().WantSuccess()).Bytes; n != 42 {
		t.Errorf("%d bytes sent, want 42", n)
	}
	b.Exec(`UPDATE document SET body = 'x'`)
	send().Want(outcome.Fatal, "")
	b.Exec(`DELETE FROM document`)
	send().Want(outcome.Fatal, "")
}
