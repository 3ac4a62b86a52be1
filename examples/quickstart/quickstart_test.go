package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
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

// The second guest of the same name is the same operation: answered from the record, no second row.
func TestQuickstart(t *testing.T) {
	t.Parallel()
	ctx, dsn := context.Background(), db.Own(t)
	for range 2 {
		var out strings.Builder
		if err := run(ctx, &out, dsn, "Ada"); err != nil {
			t.Fatal(err)
		}
		if got, want := out.String(), "nth = 1\ntext = \"Hello, Ada\"\n"; got != want {
			t.Errorf("output %q, want %q", got, want)
		}
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var guests int
	if err := conn.QueryRow(ctx, `SELECT count(*) FROM guest`).Scan(&guests); err != nil || guests != 1 {
		t.Errorf("%d guests in the table (%v), want 1", guests, err)
	}
}

func TestQuickstart_withoutDatabase(t *testing.T) {
	t.Parallel()
	if err := run(context.Background(), os.Stdout, "", "Ada"); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("got %v, want an error that names DATABASE_URL", err)
	}
}
