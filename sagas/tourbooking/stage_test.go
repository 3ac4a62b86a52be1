package tourbooking_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if n := runtime.GOMAXPROCS(0); flag.Lookup("test.parallel").Value.String() == strconv.Itoa(n) { // not asked for otherwise
		_ = flag.Set("test.parallel", strconv.Itoa(3*n)) // they wait for servers and timers more than they compute
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const (
	tenant  = "acme"
	cluster = "test"
)

var callbackSecret = []byte("a secret of sixteen bytes or more")

// stage is everything between a request and the suppliers: real PostgreSQL, the embedded engine, workers, the
// saga machinery and the simulators over HTTP. Only Kafka is missing: nothing here reads from it.
type stage struct {
	*testing.T
	ctx   context.Context
	pool  *pgxpool.Pool
	world *suppliers.World
	eng   *engine.Engine
	sagas *sagas.Sagas
	work  *worker.Worker
	api   *httptest.Server
}

// short is how quickly a stage gives up on a supplier, so that unknown results are a matter of moments.
type short struct {
	call time.Duration // one request; 0 = 2 s
	sla  time.Duration // 0 = the handlers' default
}

func catalog(t testing.TB) *events.Catalog {
	t.Helper()
	var all []*events.Catalog
	for name, text := range map[string][]byte{
		"sagas": sagas.Catalog(), "tourbooking": tourbooking.Catalog(), "refund": refund.Catalog(), "ticketing": ticketing.Catalog(),
	} {
		c, err := events.ParseCatalog(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, c)
	}
	c, err := events.Merge(all...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func migrated(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, ctx := pgtest.Pool(t), t.Context()
	for _, err := range []error{
		zeebe.Migrate(ctx, pool, postgres.DefaultSchema), dedup.Migrate(ctx, pool, postgres.DefaultSchema),
		outbox.Migrate(ctx, pool, postgres.DefaultSchema), sagas.Migrate(ctx, pool, ""), sagas.MigrateRecords(ctx, pool, ""),
		inbox.Migrate(ctx, pool, sagas.DefaultRecordSchema),
		tourbooking.Migrate(ctx, pool, ""), refund.Migrate(ctx, pool, ""), ticketing.Migrate(ctx, pool, ""),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

// parsed are the models of all travel sagas.
func parsed(t testing.TB) (all []*bpmn.Definitions) {
	t.Helper()
	for _, name := range models.Names() {
		text, err := models.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := bpmn.Parse(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func setup(t *testing.T, quick short) *stage {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	st := &stage{T: t, ctx: ctx, pool: migrated(t)}
	st.must(func() (err error) {
		st.world, err = suppliers.Start(suppliers.Config{CallbackPause: 20 * time.Millisecond})
		return err
	})
	t.Cleanup(func() { _ = st.world.Close() })
	st.must(func() (err error) { st.eng, err = engine.Start(engine.Config{}); return err })
	t.Cleanup(func() { _ = st.eng.Close() })
	conn, err := zeebe.Dial(zeebe.Config{Address: st.eng.Addr(), Plaintext: true, Cluster: cluster})
	st.must(func() error { return err })
	t.Cleanup(func() { _ = conn.Close() })
	for _, name := range models.Names() {
		text, err := models.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Deploy(ctx, zeebe.Resource{Name: name, Content: text}); err != nil {
			t.Fatalf("deploy %s: %v", name, err)
		}
	}
	st.build(conn, quick)
	return st
}

func (st *stage) must(f func() error) {
	st.Helper()
	if err := f(); err != nil {
		st.Fatal(err)
	}
}

func (st *stage) build(conn *zeebe.Conn, quick short) {
	st.Helper()
	stager, err := outbox.NewStager(outbox.Config{Catalog: catalog(st), Producer: "tour-workers", Instance: "test-1", Env: "test"})
	st.must(func() error { return err })
	queue, err := zeebe.NewQueue("", cluster)
	st.must(func() error { return err })
	sender, err := zeebe.NewSender(zeebe.SenderConfig{Pool: st.pool, Gateway: conn, Queue: queue})
	st.must(func() error { return err })

	tour, err := tourbooking.Type(tourbooking.TypeConfig{})
	st.must(func() error { return err })
	back, err := refund.Type(refund.TypeConfig{})
	st.must(func() error { return err })
	tickets, err := ticketing.Type(ticketing.TypeConfig{})
	st.must(func() error { return err })
	change, err := amendment.Type(amendment.TypeConfig{})
	st.must(func() error { return err })
	st.sagas, err = sagas.New(sagas.Config{
		Domain: st.pool, Stager: stager, Commands: queue, Sender: sender, Cluster: cluster,
		Undo: func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return st.work.Runtime().Undo(ctx, id, reason)
		},
	}, tour, back, tickets, change)
	st.must(func() error { return err })

	door, err := ticketing.NewCallback(ticketing.CallbackConfig{Pool: st.pool, Commands: queue, Sender: sender, Secret: callbackSecret})
	st.must(func() error { return err })
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"a": {Tenant: tenant, Actor: events.Actor{ServiceClient: "acme-shop"}}})
	st.must(func() error { return err })
	operations, err := st.sagas.Handler(sagas.HTTPConfig{Auth: auth})
	st.must(func() error { return err })
	routes := http.NewServeMux()
	routes.Handle("/", operations)
	routes.Handle("/callbacks/tickets", door)
	st.api = httptest.NewServer(routes)
	st.Cleanup(st.api.Close)

	if quick.call == 0 {
		quick.call = 2 * time.Second
	}
	client := func(s suppliers.Supplier) *supplier.Client {
		c, err := supplier.New(st.world.URL(s), quick.call)
		st.must(func() error { return err })
		st.Cleanup(c.Close)
		return c
	}
	flight, hotel, transfer, payment := client(suppliers.Flight), client(suppliers.Hotel), client(suppliers.Transfer), client(suppliers.Payment)
	mux := worker.NewMux()
	st.sagas.Install(mux)
	for _, err := range []error{
		tourbooking.Install(mux, tourbooking.Config{
			Flight: flight, Hotel: hotel, Transfer: transfer, Payment: payment, Sagas: st.sagas, Ticketing: ticketing.Plan, SLA: quick.sla,
		}),
		refund.Install(mux, refund.Config{Flight: flight, Hotel: hotel, Transfer: transfer, Payment: payment, Sagas: st.sagas, SLA: quick.sla}),
		amendment.Install(mux, amendment.Config{Hotel: hotel, Transfer: transfer, Payment: payment, Sagas: st.sagas, SLA: quick.sla}),
		ticketing.Install(mux, ticketing.Config{
			Flight: flight, Sagas: st.sagas, CallbackURL: st.api.URL + "/callbacks/tickets", CallbackSecret: callbackSecret, SLA: quick.sla,
		}),
	} {
		st.must(func() error { return err })
	}
	st.must(func() error { return st.sagas.CheckModels(mux.Declared(), parsed(st)...) })
	fast := outcome.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond, Factor: 2, Floor: 10 * time.Millisecond}
	st.work, err = worker.New(conn, st.pool, mux, worker.Config{
		MaxJobsActive: 64, Concurrency: 4, Stager: stager, Saga: st.sagas.Hook(), PurgeUnless: st.sagas.PurgeUnless(),
		Backoff: fast, UnknownBackoff: fast, SweepEvery: 200 * time.Millisecond,
	})
	st.must(func() error { return err })
	ctx, cancel := context.WithCancel(st.ctx)
	var all sync.WaitGroup
	for _, run := range []func(context.Context) error{st.work.Run, sender.Run, st.sagas.Run} {
		all.Go(func() {
			if err := run(ctx); err != nil {
				st.Error(err)
			}
		})
	}
	st.Cleanup(func() { cancel(); all.Wait() })
}

const goodTour = `{"booking":"B-1","travellers":2,"segments":[{"id":"flight","kind":"flight","offer":"FL-100"},{"id":"hotel","kind":"hotel","offer":"HT-200","nights":3},
		{"id":"transfer","kind":"transfer","offer":"TR-300"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"}}`

// booked is the key under which suppliers know the booking of goodTour.
const booked = tenant + ":B-1"

// post starts an operation and gives its id.
func (st *stage) post(typ, key, body string) string {
	st.Helper()
	req, err := http.NewRequestWithContext(st.ctx, http.MethodPost, st.api.URL+"/v1/operations/"+typ, strings.NewReader(body))
	st.must(func() error { return err })
	req.Header.Set("Authorization", "Bearer a")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := st.api.Client().Do(req)
	st.must(func() error { return err })
	defer res.Body.Close()
	var got struct {
		OperationID string `json:"operation_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil || res.StatusCode != http.StatusAccepted {
		st.Fatalf("post %s: status %d, %v", typ, res.StatusCode, err)
	}
	return got.OperationID
}

func (st *stage) cancel(id string) {
	st.Helper()
	req, err := http.NewRequestWithContext(st.ctx, http.MethodPost, st.api.URL+"/v1/operations/"+id+"/cancel", nil)
	st.must(func() error { return err })
	req.Header.Set("Authorization", "Bearer a")
	res, err := st.api.Client().Do(req)
	st.must(func() error { return err })
	_ = res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		st.Fatalf("cancel: status %d", res.StatusCode)
	}
}

// eventually waits for a condition on the real world, with the stage's deadline.
func (st *stage) eventually(what string, ok func() bool) {
	st.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-st.ctx.Done():
			st.Fatalf("not in time: %s", what)
		}
	}
}

// ended waits until a saga is closed.
func (st *stage) ended(id string) sagas.Detail {
	st.Helper()
	var d sagas.Detail
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		var err error
		if d, err = st.sagas.Show(st.ctx, id); err != nil && st.ctx.Err() == nil {
			st.Fatal(err)
		}
		if d.ClosedAt != nil {
			return d
		}
		select {
		case <-tick.C:
		case <-st.ctx.Done():
			st.Fatalf("saga is still %s, decided %q because %s; ledger %+v; effects %v", d.State, d.Decision, d.Reason, d.Steps, st.effects())
		}
	}
}

// bookingState reads the state of the booking of goodTour.
func (st *stage) bookingState() tourbooking.State {
	st.Helper()
	var s tourbooking.State
	if err := st.pool.QueryRow(st.ctx, `SELECT state FROM journeyman.tour_booking WHERE business_key = $1`, booked).Scan(&s); err != nil {
		st.Fatal(err)
	}
	return s
}

// effects counts what happened at the suppliers, as "segment kind" → times.
func (st *stage) effects() map[string]int {
	out := map[string]int{}
	for _, e := range st.world.Ledger() {
		out[e.Segment+" "+string(e.Kind)]++
	}
	return out
}

// told gives the types of the domain's own events of the booking, in order.
func (st *stage) told(prefix string) []string {
	st.Helper()
	rows, err := st.pool.Query(st.ctx, `SELECT type FROM journeyman.outbox WHERE business_key = $1 ORDER BY seq`, booked)
	st.must(func() error { return err })
	defer rows.Close()
	var out []string
	for rows.Next() {
		var typ string
		st.must(func() error { return rows.Scan(&typ) })
		if strings.HasPrefix(typ, prefix) {
			out = append(out, typ)
		}
	}
	return out
}
