package main

import (
	"context"
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

// The new projection is right although the replay was stopped half way and sales went on.
func TestReplay(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, db.Own(t), 3000); err != nil {
		t.Fatal(err)
	}
	const want = `wrong: 9 customers spent 300000 cents after 3000 sales
a replay would deliver 3000 sales of 9 customers
stopped: paused
resumed: completed after 3000 sales
right: 9 customers spent 180600 cents after 3010 sales
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// The live handler passes over what the replay has counted, however often it comes.
func TestOverlap(t *testing.T) {
	ctx := context.Background()
	s, err := open(ctx, db.Own(t))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.sell(ctx, 45); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.pool.Exec(ctx, `DELETE FROM seen`); err != nil {
			t.Fatal(err)
		}
		if err := s.goLive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var cents int64
	if err := s.pool.QueryRow(ctx, `SELECT sum(cents) FROM spent_anew`).Scan(&cents); err != nil || cents != 2700 {
		t.Errorf("%d cents, %v; want 2700", cents, err)
	}
}
