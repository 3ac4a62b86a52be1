package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/sagas"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(envRelay); dsn != "" {
		relayChild(dsn)
	}
	code := pgtest.Main(m)
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	c, err := app.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tour.booking.confirmed", sagas.EventCompleted, "ticketing.ticket.recorded"} {
		if _, ok := c.Entry(name, 1); !ok {
			t.Errorf("%s is not in the catalog", name)
		}
	}
	if cls := c.Match("tour.booking.*")[0].Class; cls != events.ClassDomain {
		t.Errorf("tour events are of class %s", cls)
	}
}

func TestNew_refusesAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := app.New(app.Config{NATS: nats.Config{URL: "nats://127.0.0.1:1"}, Replication: -1, RetainEvery: -1})
	if err == nil {
		t.Fatal("an empty configuration was taken")
	}
	for _, field := range []string{"Pool", "Gateway", "Cluster", "Env", "Callback", "Suppliers.Flight", "Suppliers.Payment", "Brokers", "NATS.URL", "Replication", "RetainEvery"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("the error does not name %s: %v", field, err)
		}
	}
}

// TestNew connects to nothing: what cannot be reached shows when it is used, and Close leaves nothing behind.
func TestNew(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if err := app.Migrate(context.Background(), pool, "journeyman", "journeyman_records"); err != nil {
		t.Fatal(err)
	}
	cfg := app.Config{
		Pool: pool, Gateway: "127.0.0.1:1", Plaintext: true, REST: "http://127.0.0.1:1", Brokers: []string{"127.0.0.1:1"}, Cluster: "c", Env: "test",
		Suppliers: app.Suppliers{Flight: "http://127.0.0.1:1", Hotel: "http://127.0.0.1:1", Transfer: "http://127.0.0.1:1", Payment: "http://127.0.0.1:1"},
		Callback:  "http://127.0.0.1:1", CallbackSecret: []byte(strings.Repeat("s", 16)), Concurrency: 2, MaxJobsActive: 64,
		// Handlers keep what they did as long as configuration lets the answers stay: CheckModels refuses less (spec D1, I5).
		Limits: map[string]sagas.Limits{
			"refund": {Retention: 200 * 24 * time.Hour}, "tour-booking": {Retention: 60 * 24 * time.Hour}, "ticketing": {Retention: 100 * 24 * time.Hour},
			"amendment": {Retention: 60 * 24 * time.Hour}, "reservation": {Retention: 60 * 24 * time.Hour}, "data-export": {Retention: 60 * 24 * time.Hour},
		},
	}
	store, err := bucket.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cfg.Exports = app.ExportObjects(store)
	a, err := app.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.API(map[string]sagas.Principal{"token": {Tenant: "acme"}}); err != nil {
		t.Error(err)
	}
	if err := a.Deploy(context.Background()); err == nil {
		t.Error("deployed to nobody")
	}
	get := func(path string) string {
		w := httptest.NewRecorder()
		a.WorkerHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Body.String()
	}
	for path, want := range map[string]string{ // what is declared beside what is measured (spec W10)
		"/health":  `{"type":"flight.reserve","expectedPerSecond":5,"measuredPerSecond":0,"expectedCostMs":300,"measuredCostMs":0,`,
		"/metrics": `journeyman_worker_jobs_per_second{job_type="flight.reserve",value="expected"} 5`,
	} {
		if got := get(path); !strings.Contains(got, want) {
			t.Errorf("%s: want %s in %s", path, want, got)
		}
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	cfg.CallbackSecret = []byte("short")
	if _, err := app.New(cfg); err == nil || !strings.Contains(err.Error(), "secret") {
		t.Errorf("short secret: %v", err)
	}
}
