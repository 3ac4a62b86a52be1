package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// TestCommit_Rule02: what the server answered to a COMMIT, and what is known from it.
func TestCommit_Rule02(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), pgtest.Pool(t)
	if _, err := pool.Exec(ctx, `CREATE TABLE thing (n int, UNIQUE (n) DEFERRABLE INITIALLY DEFERRED); INSERT INTO thing VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		first string // before the batch, its failure is passed over
		batch []string
		want  postgres.Fate
	}{
		"committed":           {batch: []string{`INSERT INTO thing VALUES (2)`}, want: postgres.Committed},
		"nothing to send":     {want: postgres.Committed},
		"aborted before":      {first: `SELECT 1/0`, want: postgres.NotCommitted},
		"statement fails":     {batch: []string{`INSERT INTO thing VALUES (3)`, `SELECT 1/0`}, want: postgres.NotCommitted},
		"first of them fails": {batch: []string{`SELECT 1/0`, `INSERT INTO thing VALUES (3)`}, want: postgres.NotCommitted},
		"commit is refused":   {batch: []string{`INSERT INTO thing VALUES (1)`}, want: postgres.RefusedAtCommit},
		"connection dies":     {batch: []string{`SELECT pg_terminate_backend(pg_backend_pid())`}, want: postgres.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(ctx) //nolint:errcheck // one of them is dead
			if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
				t.Fatal(err)
			}
			if c.first != "" {
				if _, err := conn.Exec(ctx, c.first); err == nil {
					t.Fatal("the first statement did not fail")
				}
			}
			b := &pgx.Batch{}
			for _, s := range c.batch {
				b.Queue(s)
			}
			f, err := postgres.Commit(ctx, conn, b)
			if f != c.want || (err == nil) != (c.want == postgres.Committed) {
				t.Errorf("got fate %d, %v; want %d", f, err, c.want)
			}
			if got := errors.Is(err, postgres.ErrAborted); got != (c.first != "") {
				t.Errorf("aborted: got %v of %v", got, err)
			}
			postgres.Rollback(ctx, conn)
			if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
				t.Errorf("after the rollback: status %c", conn.PgConn().TxStatus())
			}
		})
	}
}

// TestIsRefusal: a server may translate the severity that people read.
func TestIsRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR"}, true},
		{&pgconn.PgError{Severity: "ERROR"}, true},
		{&pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "FATAL"}, false},
		{errors.New("ERROR"), false},
		{nil, false},
	} {
		if got := postgres.IsRefusal(c.err); got != c.want {
			t.Errorf("%#v: got %v", c.err, got)
		}
	}
}
