// Package sagatest runs a saga type in a test: its model on the embedded engine, a real PostgreSQL, the saga machinery, and
// handlers of its own or scripted ones in their place. A test says how steps end and looks at how the saga did: the final
// state and reason, what was undone in which order, and whether what stands in the ledger of the other systems is right.
//
//	var db workertest.Database
//
//	func TestMain(m *testing.M) { os.Exit(db.Main(m)) }
//
//	func TestNoCourier(t *testing.T) {
//		k := sagatest.Start(t, sagatest.Config{Database: &db, Types: []sagas.Type{order.Type()}, Models: map[string][]byte{"order.bpmn": order.Model}})
//		k.Script("courier.book", sagatest.Refuse("NO_COURIER"))
//		r := k.Run("order", "order-1", body)
//		r.Want("failed", "NO_COURIER", "paymentTake", "stockReserve") // undone in this order
//		k.Balanced()
//	}
//
// Records are moved without a bus: what sagas tell is applied in order as it is written.
package sagatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
	"github.com/vitrip/journeyman/zeebe"
)

// Cluster is the name of the engine in the rows of a [Kit].
const Cluster = "sagatest"

// Config says what to run. Database, Types and Models must be set.
type Config struct {
	Database *workertest.Database                                // its server; each kit has a database of its own there
	Types    []sagas.Type                                        // the saga types
	Models   map[string][]byte                                   // models to deploy, by file name
	Catalogs [][]byte                                            // catalogs of the events that OnStart, Result and handlers emit
	Migrate  func(ctx context.Context, pool *pgxpool.Pool) error // the domain's own tables; nil = none
	// Install registers handlers; nil = none. Tasks of the models that have none afterwards get scripted ones.
	Install func(mux *worker.Mux, s *sagas.Sagas) error
	// Producer is the service whose events these are, by the catalogs; "" = "sagatest".
	Producer string
	Timeout  time.Duration // of the whole test; 0 = a minute
}

// Kit is everything between a request and the other systems. Start one for each test.
type Kit struct {
	Pool  *pgxpool.Pool
	Sagas *sagas.Sagas

	t      testing.TB
	ctx    context.Context
	engine *engine.Engine
	api    *httptest.Server
	others others
}

// tenant is whose operations the tests start.
const tenant = "tester"

// Start runs a saga type until the test ends. Mistakes fail the test: a model the linter refuses, one that does not match its
// type or handlers ([sagas.CheckModel]), handlers that say nothing of compensation.
func Start(t testing.TB, cfg Config) *Kit {
	t.Helper()
	if cfg.Database == nil || len(cfg.Types) == 0 || len(cfg.Models) == 0 {
		t.Fatal("sagatest: Database, Types and Models must be set")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Producer == "" {
		cfg.Producer = "sagatest"
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cfg.Timeout)
	t.Cleanup(cancel)
	pool, err := pgxpool.New(ctx, cfg.Database.Own(t))
	if err != nil {
		t.Fatalf("sagatest: %v", err)
	}
	t.Cleanup(pool.Close)
	k := &Kit{Pool: pool, t: t, ctx: ctx, others: others{scripts: map[string][]Script{}, effects: map[string]*Effect{}}}
	if err := k.start(cfg); err != nil {
		t.Fatalf("sagatest: %v", err)
	}
	return k
}

func (k *Kit) start(cfg Config) error {
	migrate := []func(ctx context.Context, pool *pgxpool.Pool) error{
		func(ctx context.Context, pool *pgxpool.Pool) error { return outbox.Migrate(ctx, pool, "journeyman") },
		func(ctx context.Context, pool *pgxpool.Pool) error { return worker.Migrate(ctx, pool, "journeyman") },
		func(ctx context.Context, pool *pgxpool.Pool) error { return sagas.Migrate(ctx, pool, "") },
		func(ctx context.Context, pool *pgxpool.Pool) error { return sagas.MigrateRecords(ctx, pool, "") },
	}
	if cfg.Migrate != nil {
		migrate = append(migrate, cfg.Migrate)
	}
	for _, m := range migrate {
		if err := m(k.ctx, k.Pool); err != nil {
			return err
		}
	}
	models, err := parse(cfg.Models)
	if err != nil {
		return err
	}
	if k.engine, err = engine.Start(engine.Config{}); err != nil {
		return err
	}
	k.t.Cleanup(func() { _ = k.engine.Close() })
	conn, err := zeebe.Dial(zeebe.Config{Address: k.engine.Addr(), Plaintext: true, Cluster: Cluster})
	if err != nil {
		return err
	}
	k.t.Cleanup(func() { _ = conn.Close() })
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		if _, err := conn.Deploy(k.ctx, zeebe.Resource{Name: name, Content: cfg.Models[name]}); err != nil {
			return err
		}
	}
	return k.run(cfg, conn, models)
}

func parse(files map[string][]byte) (models []*bpmn.Definitions, err error) {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m, err := bpmn.Parse(bytes.NewReader(files[name]))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, f := range bpmn.Lint(m) {
			if f.Severity == bpmn.SeverityError {
				errs = append(errs, fmt.Errorf("%s: %v", name, f))
			}
		}
		models = append(models, m)
	}
	return models, errors.Join(errs...)
}

func (k *Kit) run(cfg Config, conn *zeebe.Conn, models []*bpmn.Definitions) error {
	catalogs := []*events.Catalog{}
	for _, text := range append([][]byte{sagas.Catalog()}, cfg.Catalogs...) {
		c, err := events.ParseCatalog(text)
		if err != nil {
			return err
		}
		catalogs = append(catalogs, c)
	}
	catalog, err := events.Merge(catalogs...)
	if err != nil {
		return err
	}
	stager, err := outbox.NewStager(outbox.Config{Catalog: catalog, Producer: cfg.Producer, Instance: "sagatest-1", Env: "test"})
	if err != nil {
		return err
	}
	queue, err := zeebe.NewQueue("", Cluster)
	if err != nil {
		return err
	}
	log := zerolog.New(zerolog.NewTestWriter(k.t)).Level(zerolog.WarnLevel)
	var w *worker.Worker
	k.Sagas, err = sagas.New(sagas.Config{
		Domain: k.Pool, Stager: stager, Commands: queue, Cluster: Cluster, Log: log, SweepEvery: 100 * time.Millisecond,
		Undo: func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return w.Runtime().Undo(ctx, id, reason)
		},
	}, cfg.Types...)
	if err != nil {
		return err
	}
	mux := worker.NewMux()
	k.Sagas.Install(mux)
	if cfg.Install != nil {
		if err := cfg.Install(mux, k.Sagas); err != nil {
			return err
		}
	}
	k.fakes(mux, models)
	if err := k.Sagas.CheckModels(mux.Declared(), models...); err != nil {
		return err
	}
	fast := outcome.Backoff{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond, Factor: 2, Floor: 5 * time.Millisecond}
	w, err = worker.New(conn, k.Pool, mux, worker.Config{
		MaxJobsActive: 32, Concurrency: 4, Stager: stager, Saga: k.Sagas.Hook(), PurgeUnless: k.Sagas.PurgeUnless(), Backoff: fast, UnknownBackoff: fast,
		SweepEvery: 100 * time.Millisecond, CallTimeout: time.Second, Log: log,
	})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(k.Pool, direct{k}, outbox.RelayConfig{Stager: stager, Log: log})
	if err != nil {
		return err
	}
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"token": {Tenant: tenant, Actor: events.Actor{ServiceClient: tenant}}})
	if err != nil {
		return err
	}
	api, err := k.Sagas.Handler(sagas.HTTPConfig{Auth: auth})
	if err != nil {
		return err
	}
	k.api = httptest.NewServer(api)
	running, stop := context.WithCancel(k.ctx)
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{w.Run, relay.Run, k.Sagas.Run} {
		all.Go(func() {
			if err := run(running); err != nil {
				k.t.Errorf("sagatest: %v", err)
			}
		})
	}
	k.t.Cleanup(func() { k.api.Close(); stop(); all.Wait() })
	return nil
}

// direct is a bus of one consumer: what is published is applied to the record store at once.
type direct struct{ k *Kit }

// Publish applies the saga's events, in order. What failed is published again.
func (d direct) Publish(ctx context.Context, records []events.Record) []error {
	errs := make([]error, len(records))
	failed := map[string]bool{}
	for i, r := range records {
		if failed[r.Key] {
			errs[i] = errors.New("an earlier one of this key failed")
			continue
		}
		env, err := events.ParseEnvelope(r.Body)
		if err == nil && events.Match("platform.saga.*", env.MessageType) {
			err = pgx.BeginFunc(ctx, d.k.Pool, func(tx pgx.Tx) error {
				return d.k.Sagas.Apply(ctx, outbox.NewTx(tx), events.Received{Envelope: env, Attempt: 1})
			})
		}
		errs[i], failed[r.Key] = err, err != nil
	}
	return errs
}

// Result is how an operation ended, as a partner sees it.
type Result struct {
	OperationID string `json:"operation_id"`
	State       string `json:"state"`
	Reason      struct{ Code string }
	Undone      []string        `json:"undone"`
	Open        []string        `json:"open"`
	Answer      json.RawMessage `json:"result"`

	t testing.TB
}

// Post starts an operation, or polls it, and gives its id.
func (k *Kit) Post(typ, key string, body any) string {
	k.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		k.t.Fatalf("sagatest: body: %v", err)
	}
	status, answer := k.do(http.MethodPost, "/v1/operations/"+typ, key, text)
	var r Result
	if err := json.Unmarshal(answer, &r); err != nil || status != http.StatusAccepted && status != http.StatusOK {
		k.t.Fatalf("sagatest: start %s: %d %s", typ, status, answer)
	}
	return r.OperationID
}

// Run starts an operation and waits for its end.
func (k *Kit) Run(typ, key string, body any) Result {
	k.t.Helper()
	return k.Wait(k.Post(typ, key, body))
}

// Wait waits for the end of an operation.
func (k *Kit) Wait(operationID string) Result {
	k.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := k.Sagas.Show(k.ctx, operationID)
		if err == nil && d.ClosedAt != nil {
			if status, answer := k.do(http.MethodGet, "/v1/operations/"+operationID, "", nil); status == http.StatusOK {
				r := Result{t: k.t}
				if err := json.Unmarshal(answer, &r); err != nil {
					k.t.Fatalf("sagatest: answer %s: %v", answer, err)
				}
				return r
			}
		}
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			k.t.Fatalf("sagatest: operation %s did not end: state %s, decided %q because %q; ledger %+v; %v", operationID, d.State, d.Decision, d.Reason, d.Steps, err)
		}
	}
}

// Until waits for a condition that the running saga makes true.
func (k *Kit) Until(what string, ok func() bool) {
	k.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			k.t.Fatalf("sagatest: not in time: %s", what)
		}
	}
}

// Cancel asks for a cancel, as a partner does.
func (k *Kit) Cancel(operationID string) {
	k.t.Helper()
	if status, answer := k.do(http.MethodPost, "/v1/operations/"+operationID+"/cancel", "", nil); status != http.StatusAccepted && status != http.StatusOK {
		k.t.Fatalf("sagatest: cancel: %d %s", status, answer)
	}
}

// Advance moves the clocks of engine and database: timers fire, deadlines pass.
func (k *Kit) Advance(by time.Duration) {
	k.t.Helper()
	if err := advance(k.ctx, k.Pool, by); err != nil {
		k.t.Fatalf("sagatest: %v", err)
	}
	if err := k.engine.AdvanceClock(by); err != nil {
		k.t.Fatalf("sagatest: %v", err)
	}
}

func (k *Kit) do(method, path, key string, body []byte) (int, []byte) {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.ctx, method, k.api.URL+path, bytes.NewReader(body))
	if err != nil {
		k.t.Fatalf("sagatest: %v", err)
	}
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set(sagas.HeaderKey, key)
	}
	res, err := k.api.Client().Do(req)
	if err != nil {
		k.t.Fatalf("sagatest: %v", err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(res.Body)
	if err != nil {
		k.t.Fatalf("sagatest: %v", err)
	}
	return res.StatusCode, text
}

// Want compares the end of an operation: state, reason code ("" when it completed) and the steps that were undone, in order.
func (r Result) Want(state, code string, undone ...string) {
	r.t.Helper()
	if r.State != state || r.Reason.Code != code || !slices.Equal(r.Undone, undone) {
		r.t.Errorf("operation %s: got %s %q, undone %v; want %s %q, undone %v", r.OperationID, r.State, r.Reason.Code, r.Undone, state, code, undone)
	}
}
