package sagas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
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

// world is a domain database and a record store that is another database, with two partners.
type world struct {
	testing.TB
	ctx     context.Context
	domain  *pgxpool.Pool
	records *pgxpool.Pool
	s       *Sagas
	stager  *outbox.Stager

	mu      sync.Mutex
	applied map[string]bool
	starts  int // calls of OnStart that committed or not
	refuse  error
}

const (
	cluster  = "test"
	instance = int64(2251799813685300)
)

type tripRequest struct {
	Booking string `json:"booking"`
	Hotel   struct {
		Offer  string `json:"offer"`
		Nights int    `json:"nights"`
	} `json:"hotel"`
	Segments []struct {
		Kind   string `json:"kind"`
		Amount int64  `json:"amount"`
	} `json:"segments"`
	Payment struct {
		Amount   int64  `json:"amount"`
		Currency string `json:"currency"`
	} `json:"payment"`
}

func parseTrip(_ context.Context, tenant string, body []byte) (Plan, error) {
	req, err := Decode[tripRequest](body)
	if err != nil {
		return Plan{}, err
	}
	var errs []error
	if req.Booking == "" {
		errs = append(errs, Invalid("booking", "is missing"))
	}
	if req.Hotel.Offer != "HT-200" {
		errs = append(errs, Invalid("hotel.offer", "is not an offer we know"))
	}
	if req.Payment.Amount < 0 {
		errs = append(errs, Invalid("payment.amount", "must be 0 or more"))
	}
	if err := errors.Join(errs...); err != nil {
		return Plan{}, err
	}
	return Plan{BusinessKey: tenant + ":" + req.Booking, Variables: map[string]any{"booking": req.Booking}, Partial: map[string]any{"hotel": map[string]any{"status": "pending"}}}, nil
}

const goodTrip = `{"booking":"B-1","hotel":{"offer":"HT-200","nights":3},"payment":{"amount":125000,"currency":"EUR"}}`

func trip(w *world) Type {
	return Type{
		Name: "trip", Timeout: 30 * time.Minute, Retention: 30 * 24 * time.Hour, Steps: []string{"flight", "hotel", "confirm"}, Parse: parseTrip,
		OnStart: func(context.Context, *outbox.Tx, Attempt) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.starts++
			return w.refuse
		},
		Result: func(_ context.Context, _ *outbox.Tx, a Attempt, e Ending) (any, error) {
			return map[string]any{"booking": a.Variables["booking"], "state": e.State}, nil
		},
		Partial: func(st worker.Step) (string, any) {
			return st.ElementID, map[string]any{"status": st.Class}
		},
		Docs: Docs{Reasons: map[string]string{"SOLD_OUT": "no room left"}, Segments: map[string][]string{"hotel": {"pending", "SUCCESS", "BUSINESS_ERROR"}}},
	}
}

func setup(t *testing.T) *world { return setupWith(t, nil) }

func setupWith(t testing.TB, edit func(*Config)) *world {
	t.Helper()
	if p, ok := t.(*testing.T); ok {
		p.Parallel()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	w := &world{TB: t, ctx: ctx, domain: pgtest.Pool(t), records: pgtest.Pool(t), applied: map[string]bool{}}
	for _, err := range []error{
		outbox.Migrate(ctx, w.domain, postgres.DefaultSchema), zeebe.Migrate(ctx, w.domain, postgres.DefaultSchema),
		dedup.Migrate(ctx, w.domain, postgres.DefaultSchema), Migrate(ctx, w.domain, ""),
		MigrateRecords(ctx, w.records, ""), inbox.Migrate(ctx, w.records, DefaultRecordSchema),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	catalog, err := events.ParseCatalog(Catalog())
	if err != nil {
		t.Fatal(err)
	}
	w.stager, err = outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "tester", Instance: "tester-1", Env: "test"})
	if err != nil {
		t.Fatal(err)
	}
	w.s = w.another(edit)
	return w
}

// another is a second process over the same databases.
func (w *world) another(edit func(*Config)) *Sagas {
	w.Helper()
	queue, err := zeebe.NewQueue("", cluster)
	if err != nil {
		w.Fatal(err)
	}
	cfg := Config{Domain: w.domain, Records: w.records, Stager: w.stager, Commands: queue, Cluster: cluster}
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(cfg, trip(w))
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// server gives the HTTP API of a process; tokens are "a" and "b" for tenants agency and broker.
func (w *world) server(s *Sagas) *httptest.Server {
	w.Helper()
	auth, err := NewStaticTokens(map[string]Principal{
		"a": {Tenant: "agency", Actor: events.Actor{ServiceClient: "agency-client"}}, "b": {Tenant: "broker"},
	})
	if err != nil {
		w.Fatal(err)
	}
	h, err := s.Handler(HTTPConfig{Auth: auth})
	if err != nil {
		w.Fatal(err)
	}
	srv := httptest.NewServer(h)
	w.Cleanup(srv.Close)
	return srv
}

type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.body, &m); err != nil {
		t.Fatalf("body %q: %v", r.body, err)
	}
	return m
}

func (w *world) do(srv *httptest.Server, method, path, token, body string, headers ...string) reply {
	w.Helper()
	req, err := http.NewRequestWithContext(w.ctx, method, srv.URL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		w.Error(err)
		return reply{}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.Error(err)
	}
	w.documented(method, path, res, text)
	return reply{res.StatusCode, res.Header, text}
}

// documented compares an answer with the route table, which the OpenAPI document is compared with.
func (w *world) documented(method, path string, res *http.Response, body []byte) {
	w.Helper()
	for _, r := range routes() {
		if r.method != method || strings.Count(r.path, "/") != strings.Count(path, "/") || strings.HasSuffix(r.path, "/cancel") != strings.HasSuffix(path, "/cancel") {
			continue
		}
		types, ok := r.answers[res.StatusCode]
		if !ok {
			w.Errorf("%s %s answered %d, which the route does not list", method, r.path, res.StatusCode)
		}
		var p Problem
		if res.Header.Get("Content-Type") == "application/problem+json" {
			if err := json.Unmarshal(body, &p); err != nil || p.Status != res.StatusCode || !slices.Contains(types, strings.TrimPrefix(p.Type, problemURN)) {
				w.Errorf("%s %s answered %s, want one of %v", method, r.path, body, types)
			}
		}
	}
}

func (w *world) post(srv *httptest.Server, token, key, body string, headers ...string) reply {
	w.Helper()
	return w.do(srv, http.MethodPost, "/v1/operations/trip", token, body, append([]string{"Idempotency-Key", key}, headers...)...)
}

// begun starts a saga of the agency under the key and binds it to the instance.
func (w *world) begun(key string) string {
	w.Helper()
	id := OperationID("agency", "trip", key, 1)
	if err := w.s.start(w.ctx, attempt{
		ID: id, Tenant: "agency", Type: "trip", Key: key, Number: 1, origin: origin{}.withDefaults(id),
		Plan: Plan{BusinessKey: "agency:B-" + key, Variables: map[string]any{"booking": "B-" + key}},
	}); err != nil {
		w.Fatal(err)
	}
	if err := w.bind(id, instance); err != nil {
		w.Fatal(err)
	}
	return id
}

func (w *world) meta(sagaID, element, jobType string) worker.Meta {
	row, err := scanSaga(w.domain.QueryRow(w.ctx, w.s.sql.readSaga, sagaID))
	if err != nil {
		w.Error(err)
	}
	return worker.Meta{
		Key: 1, Type: jobType, Cluster: cluster, ProcessID: "trip", ProcessInstanceKey: instance, ElementID: element, Retries: 3,
		Tenant: row.Tenant, BusinessKey: row.BusinessKey, OperationID: sagaID + ":" + element, CorrelationID: row.CorrelationID, SagaID: sagaID,
	}
}

func (w *world) bind(sagaID string, key int64) error {
	m := w.meta(sagaID, "begin", JobBegin)
	m.ProcessInstanceKey = key
	return w.machinery(m, func(tx *outbox.Tx) error {
		_, err := w.s.jobBegin(w.ctx, tx, worker.Job[beginIn]{Meta: m})
		return err
	})
}

// machinery runs a machinery job in one transaction, as a worker does.
func (w *world) machinery(m worker.Meta, fn func(tx *outbox.Tx) error) error {
	return w.s.inDomain(w.ctx, events.Origin{OperationID: m.OperationID, BusinessKey: m.BusinessKey, CorrelationID: m.CorrelationID}, fn)
}

func (w *world) giveUp(sagaID string, d Decision) (out giveUpOut, err error) {
	m := w.meta(sagaID, "giveUp-"+string(d), JobGiveUp)
	m.Headers = map[string]string{"reason": string(d)}
	err = w.machinery(m, func(tx *outbox.Tx) error {
		out, err = w.s.jobGiveUp(w.ctx, tx, worker.Job[giveUpIn]{Meta: m})
		return err
	})
	return out, err
}

func (w *world) close(sagaID string, in closeIn) (out closeOut, err error) {
	m := w.meta(sagaID, "close", JobClose)
	err = w.machinery(m, func(tx *outbox.Tx) error {
		out, err = w.s.jobClose(w.ctx, tx, worker.Job[closeIn]{Meta: m, In: in})
		return err
	})
	return out, err
}

// step is one forward step as a worker runs it: two round trips around what handler does.
type step struct {
	element string
	undo    string // job type of the compensation
	pivot   bool
	class   outcome.Class
	code    string
	amount  string
	handler func(tx *outbox.Tx) error // between the two round trips
	before  func()                    // before the second
}

func (w *world) run(sagaID string, st step) error {
	m := w.meta(sagaID, st.element, st.element+".do")
	if st.class == "" {
		st.class = outcome.Success
	}
	hook := w.s.Hook()
	tx, err := w.domain.Begin(w.ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(w.ctx)
	b := &pgx.Batch{}
	check := hook.QueueEnter(b, m)
	if err := tx.SendBatch(w.ctx, b).Close(); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	otx := outbox.NewTx(tx)
	if st.handler != nil {
		if err := st.handler(otx); err != nil {
			return err
		}
	}
	if st.before != nil {
		st.before()
	}
	ws := worker.Step{Meta: m, Undo: st.undo, Pivot: st.pivot, Class: st.class, Code: st.code, Amount: json.RawMessage(st.amount)}
	b = &pgx.Batch{}
	if err := w.stager.Queue(b, events.Origin{OperationID: m.OperationID, BusinessKey: m.BusinessKey}, append(hook.Messages(m, ws), otx.Messages()...), m.BusinessKey); err != nil {
		return err
	}
	hook.QueueStep(b, ws)
	if err := tx.SendBatch(w.ctx, b).Close(); err != nil {
		return err
	}
	return tx.Commit(w.ctx)
}

// undo is what worker.Runtime.Undo does for a committed effect: marks it in the undo's own transaction.
func (w *world) undo(log *[]string) undoFunc {
	return func(ctx context.Context, id, _ string) (worker.UndoResult, error) {
		b := &pgx.Batch{}
		w.s.Hook().QueueUndone(b, worker.Meta{SagaID: id[:29]}, id)
		if err := w.domain.SendBatch(ctx, b).Close(); err != nil {
			return worker.UndoResult{}, err
		}
		*log = append(*log, stepName(id[:29], id, id))
		return worker.UndoResult{OperationID: id + ":undo", Outcome: outcome.Success}, nil
	}
}

func (w *world) saga(sagaID string) Saga {
	w.Helper()
	row, err := scanSaga(w.domain.QueryRow(w.ctx, w.s.sql.readSaga, sagaID))
	if err != nil {
		w.Fatal(err)
	}
	return row
}

func (w *world) count(db *pgxpool.Pool, sql string, args ...any) (n int) {
	w.Helper()
	if err := db.QueryRow(w.ctx, sql, args...).Scan(&n); err != nil {
		w.Fatal(err)
	}
	return n
}

// deliver is relay and consumer in one: it applies what was staged, in order. With again it delivers everything once more.
func (w *world) deliver(again bool) {
	w.Helper()
	rows, err := w.domain.Query(w.ctx, `SELECT event_id::text, body, occurred_at, seq FROM journeyman.outbox ORDER BY business_key, seq`)
	if err != nil {
		w.Fatal(err)
	}
	type row struct {
		id   string
		body []byte
		at   time.Time
		seq  int64
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) {
		var x row
		return x, r.Scan(&x.id, &x.body, &x.at, &x.seq)
	})
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range all {
		if w.applied[r.id] && !again {
			continue
		}
		w.applied[r.id] = true
		body, err := events.Finalise(r.body, r.at, r.seq)
		if err != nil {
			w.Fatal(err)
		}
		env, err := events.ParseEnvelope(body)
		if err != nil {
			w.Fatal(err)
		}
		if !strings.HasPrefix(env.MessageType, "platform.saga.") {
			continue // what Routes does not ask for
		}
		err = pgx.BeginFunc(w.ctx, w.records, func(tx pgx.Tx) error {
			return w.s.Apply(w.ctx, outbox.NewTx(tx), events.Received{Envelope: env, Attempt: 1})
		})
		if err != nil {
			w.Fatalf("apply %s %s: %v", env.MessageType, strconv.FormatInt(r.seq, 10), err)
		}
	}
}

func (w *world) advance(by time.Duration) {
	w.Helper()
	for db, schema := range map[*pgxpool.Pool]string{w.domain: postgres.DefaultSchema, w.records: DefaultRecordSchema} {
		if err := postgres.AdvanceClock(w.ctx, db, schema, by); err != nil {
			w.Fatal(err)
		}
	}
}

func code(err error) string {
	var o *outcome.Error
	if errors.As(err, &o) {
		return o.Code
	}
	return ""
}

// ended drives an operation of the agency, started over HTTP, to its end and delivers what that tells.
func (w *world) ended(id string, d Decision) {
	w.Helper()
	if err := w.bind(id, instance); err != nil {
		w.Fatal(err)
	}
	w.mustRun(id, step{element: "hotel", undo: "hotel.cancel"})
	if d == Completed {
		w.mustRun(id, w.confirm(id))
	} else {
		if _, err := w.giveUp(id, d); err != nil {
			w.Fatal(err)
		}
		w.undoAll(id)
	}
	w.mustClose(id, closeIn{})
	w.deliver(false)
}

func id1(key string) string { return OperationID("agency", "trip", key, 1) }

// eventually waits for a condition that other goroutines make true.
func (w *world) eventually(cond func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-w.ctx.Done():
			w.Fatal("it never came true")
		case <-tick.C:
		}
	}
}
