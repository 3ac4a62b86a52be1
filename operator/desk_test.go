package operator_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// migrate brings all tables that the desk reads into a new database, in a schema that is not the default.
func migrate(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx := t.Context()
	for _, m := range []func() error{
		func() error { return zeebe.Migrate(ctx, pool, schema) },
		func() error { return dedup.Migrate(ctx, pool, schema) },
		func() error { return outbox.Migrate(ctx, pool, schema) },
		func() error { return sagas.Migrate(ctx, pool, schema) },
		func() error { return operator.Migrate(ctx, pool, schema) },
	} {
		if err := m(); err != nil {
			t.Fatal(err)
		}
	}
}

const schema = "jm_test"

func newDesk(t *testing.T, cfg operator.Config) (*operator.Desk, *pgxpool.Pool) {
	t.Helper()
	if cfg.Pool == nil {
		cfg.Pool = pgtest.Pool(t)
		migrate(t, cfg.Pool)
	}
	cfg.Schema = schema
	d, err := operator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d, cfg.Pool
}

// run executes statements with {{schema}} replaced.
func run(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), strings.ReplaceAll(sql, "{{schema}}", schema), args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := operator.New(operator.Config{Schema: "No Schema", BeginWithin: -time.Second, UndoWithin: -1})
	for _, want := range []string{"Pool is nil", `"No Schema"`, "BeginWithin", "UndoWithin"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want it to name %s", err, want)
		}
	}
}

func TestWithoutEngine(t *testing.T) {
	t.Parallel()
	d, _ := newDesk(t, operator.Config{})
	if _, err := d.Incidents(t.Context(), operator.IncidentFilter{}); !errors.Is(err, operator.ErrNoEngine) {
		t.Errorf("Incidents without engine: %v, want ErrNoEngine", err)
	}
	if _, err := d.RetryIncident(t.Context(), operator.RetryRequest{Key: 1, Actor: "ann", Reason: "fixed"}); !errors.Is(err, operator.ErrNoEngine) {
		t.Errorf("RetryIncident without engine: %v, want ErrNoEngine", err)
	}
}

func TestRetryRefusesBadRequests(t *testing.T) {
	t.Parallel()
	d, pool := newDesk(t, operator.Config{})
	good := operator.RetryRequest{Key: 2251799813685300, Actor: "ann", Reason: "the supplier is back"}
	for name, c := range map[string]struct {
		change func(*operator.RetryRequest)
		want   string
	}{
		"no key":          {func(r *operator.RetryRequest) { r.Key = 0 }, `incident "": want a key`},
		"no reason":       {func(r *operator.RetryRequest) { r.Reason = " \n" }, `want 1 to 500 characters that say why`},
		"long reason":     {func(r *operator.RetryRequest) { r.Reason = strings.Repeat("é", 501) }, `want at most 500 characters, got 501`},
		"reason with NUL": {func(r *operator.RetryRequest) { r.Reason = "a\x00b" }, `want no control characters`},
		"not UTF-8":       {func(r *operator.RetryRequest) { r.Reason = "a\xff" }, `want valid UTF-8`},
		"no actor":        {func(r *operator.RetryRequest) { r.Actor = "" }, `actor "": want`},
		"retries":         {func(r *operator.RetryRequest) { r.Retries = -1 }, `retries "-1": want 1 to 100`},
	} {
		r := good
		c.change(&r)
		_, err := d.RetryIncident(t.Context(), r)
		var field *operator.FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	var n int
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM `+schema+`.operator_audit`).Scan(&n); err != nil || n != 0 {
		t.Errorf("audit rows after refusals: %d, %v, want 0", n, err)
	}
}
