package operator_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// newDesk makes a desk that has a database of its own and no engine.
func newDesk(t *testing.T) (*operator.Desk, *operatortest.Rig) {
	t.Helper()
	r := operatortest.NewDatabase(t)
	return r.Desk, r
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
	d, _ := newDesk(t)
	if _, err := d.Incidents(t.Context(), operator.IncidentFilter{}); !errors.Is(err, operator.ErrNoEngine) {
		t.Errorf("Incidents without engine: %v, want ErrNoEngine", err)
	}
	if _, err := d.RetryIncident(t.Context(), operator.RetryRequest{Key: 1, Actor: "ann", Reason: "fixed"}); !errors.Is(err, operator.ErrNoEngine) {
		t.Errorf("RetryIncident without engine: %v, want ErrNoEngine", err)
	}
}

func TestRetryRefusesBadRequests(t *testing.T) {
	t.Parallel()
	d, rig := newDesk(t)
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
	if err := rig.Pool.QueryRow(t.Context(), `SELECT count(*) FROM `+operatortest.Schema+`.operator_audit`).Scan(&n); err != nil || n != 0 {
		t.Errorf("audit rows after refusals: %d, %v, want 0", n, err)
	}
}
