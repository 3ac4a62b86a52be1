package order

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
	"github.com/vitrip/journeyman/zeebe"
)

var db = workertest.Database{Migrate: func(ctx context.Context, pool *pgxpool.Pool) error {
	return errors.Join(
		outbox.Migrate(ctx, pool, "journeyman"), worker.Migrate(ctx, pool, "journeyman"), sagas.Migrate(ctx, pool, ""), sagas.MigrateRecords(ctx, pool, ""), Migrate(ctx, pool),
	)
}}

func TestMain(m *testing.M) {
	code := db.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error())
		code = 1
	}
	os.Exit(code)
}

// remote acts once per key and keeps a ledger.
type remote struct {
	refuse string // what it does not do

	mu     sync.Mutex
	stands map[string]bool
	ledger []string
}

func (r *remote) Do(_ context.Context, key, what string) (string, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == r.refuse {
		return "", true, nil
	}
	if !r.stands[key] {
		r.stands[key] = true
		r.ledger = append(r.ledger, "do "+what)
	}
	return "R-" + what, false, nil
}

func (r *remote) Find(_ context.Context, key string) (string, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return "R", r.stands[key], nil
}

func (r *remote) Undo(_ context.Context, key string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stands[key] {
		delete(r.stands, key)
		r.ledger = append(r.ledger, "undo")
	}
	return nil
}

func (r *remote) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.ledger, ", ")
}

type shop struct {
	*testing.T
	pool          *pgxpool.Pool
	srv           *httptest.Server
	card, courier *remote
}

func open(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	pool, err := pgxpool.New(ctx, db.Own(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	eng, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	conn, err := zeebe.Dial(zeebe.Config{Address: eng.Addr(), Plaintext: true, Cluster: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"token": {Tenant: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{T: t, pool: pool, card: &remote{refuse: "empty", stands: map[string]bool{}}, courier: &remote{refuse: "the moon", stands: map[string]bool{}}}
	h, err := Build(ctx, pool, conn, "shop", s.card, s.courier, auth, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel))
	if err != nil {
		t.Fatal(err)
	}
	s.srv = httptest.NewServer(h.api)
	t.Cleanup(s.srv.Close)
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- h.Run(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// order sends a request and waits for its end.
func (s *shop) order(r Request) (status int, answer map[string]any) {
	s.Helper()
	body, err := json.Marshal(r)
	if err != nil {
		s.Fatal(err)
	}
	req, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.srv.URL+"/v1/operations/order", bytes.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer token", "Content-Type": "application/json", "Idempotency-Key": r.Order, "Prefer": "wait=20"} {
		req.Header.Set(name, value)
	}
	res, err := s.srv.Client().Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		s.Fatalf("%s: %v", text, err)
	}
	return res.StatusCode, answer
}

func (s *shop) stock() (n int) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), `SELECT quantity FROM shop.stock WHERE item = 'lamp'`).Scan(&n); err != nil {
		s.Fatal(err)
	}
	return n
}

func lamp(number string) Request {
	return Request{Order: number, Item: "lamp", Quantity: 3, Card: "visa", Amount: 4500, Address: "Main Street 1"}
}

func TestOrderCompletes(t *testing.T) {
	s := open(t)
	for range 2 { // the second is answered from the record
		status, a := s.order(lamp("1"))
		if status != http.StatusOK || a["state"] != "completed" || a["result"].(map[string]any)["parcel"] != "R-Main Street 1" {
			t.Errorf("got %d %v, want it completed with its parcel", status, a)
		}
	}
	if s.stock() != 7 || s.card.lines() != "do visa" || s.courier.lines() != "do Main Street 1" {
		t.Errorf("got %d in stock, card %q, courier %q; want each once", s.stock(), s.card.lines(), s.courier.lines())
	}
}

// Whoever refuses, all that was done before is undone, in reverse.
func TestOrderIsUndone(t *testing.T) {
	s := open(t)
	for code, c := range map[string]struct {
		edit   func(r *Request)
		undone []any
	}{
		CodeOutOfStock:   {func(r *Request) { r.Quantity = 11 }, nil},
		CodeCardDeclined: {func(r *Request) { r.Card = "empty" }, []any{ElementOrderStockReserve}},
		CodeNoCourier:    {func(r *Request) { r.Address = "the moon" }, []any{ElementOrderPaymentTake, ElementOrderStockReserve}},
	} {
		r := lamp(code)
		c.edit(&r)
		status, a := s.order(r)
		undone, _ := a["undone"].([]any)
		if status != http.StatusOK || a["state"] != "failed" || a["reason"].(map[string]any)["code"] != code || !slices.Equal(undone, c.undone) {
			t.Errorf("%s: got %d %v, want %v undone", code, status, a, c.undone)
		}
	}
	if s.stock() != 10 || s.card.lines() != "do visa, undo" || s.courier.lines() != "" {
		t.Errorf("got %d in stock, card %q, courier %q; want all given back", s.stock(), s.card.lines(), s.courier.lines())
	}
}

func TestBadOrder(t *testing.T) {
	s := open(t)
	if status, a := s.order(Request{Order: "1"}); status != http.StatusBadRequest || len(a["errors"].([]any)) != 5 {
		t.Errorf("got %d %v, want every field named", status, a)
	}
}

func TestModelIsClean(t *testing.T) {
	t.Parallel()
	m, err := bpmn.Parse(bytes.NewReader(Model))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range bpmn.Lint(m) {
		t.Errorf("%v", f)
	}
}
