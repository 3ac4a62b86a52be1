package webhook

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func secret(t testing.TB, fill string) Secret {
	t.Helper()
	s, err := ParseSecret(secretPrefix + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, 32))))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// partner is a receiver that answers as it is told to and keeps what it took.
type partner struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc // nil = 204
	got    []received
}

type received struct {
	header http.Header
	body   []byte
}

func (p *partner) say(f http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *partner) taken() []received {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]received(nil), p.got...)
}

func status(code int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
	}
}

func newPartner(t testing.TB) *partner {
	t.Helper()
	p := &partner{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.got = append(p.got, received{r.Header.Clone(), body})
		answer := p.answer
		p.mu.Unlock()
		if answer == nil {
			answer = status(http.StatusNoContent)
		}
		answer(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// world is a database, a directory and a sender that may dial this machine.
type world struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	dir  *Endpoints
	w    *Webhooks
	p    *partner
	acts []Act
	dead []string
}

func loopback(to netip.AddrPort) error {
	if !to.Addr().IsLoopback() {
		return fmt.Errorf("address %s is not of this machine", to.Addr())
	}
	return nil
}

func setup(t *testing.T, edit func(*Config)) *world {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	w := &world{T: t, ctx: ctx, pool: pgtest.Pool(t), dir: NewEndpoints(), p: newPartner(t)}
	if err := Migrate(ctx, w.pool, ""); err != nil {
		t.Fatal(err)
	}
	w.dir.Set(Endpoint{ID: "acme", Tenant: "acme", URL: w.p.URL, Secrets: []Secret{secret(t, "a")}})
	w.w = w.another(edit)
	return w
}

func (w *world) another(edit func(*Config)) *Webhooks {
	w.Helper()
	cfg := Config{
		Pool: w.pool, Directory: w.dir, Allow: loopback, Plaintext: true, Schedule: Schedule{10 * time.Second, time.Minute, time.Hour}, Timeout: 5 * time.Second,
		Audit: func(_ context.Context, _ *outbox.Tx, a Act) error { w.acts = append(w.acts, a); return nil },
		Hooks: Hooks{Dead: func(endpoint, _, reason string) { w.dead = append(w.dead, endpoint+" "+reason) }},
	}
	if edit != nil {
		edit(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		w.Fatal(err)
	}
	s.spread = func() float64 { return 0.5 } // exactly the schedule
	w.Cleanup(s.client.CloseIdleConnections)
	return s
}

// stage stages a message of acme in a transaction of its own and gives its delivery's id.
func (w *world) stage(id string) string {
	w.Helper()
	err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error {
		_, err := w.w.Stage(w.ctx, outbox.NewTx(tx), Message{ID: id, Tenant: "acme", Type: "operation.completed", At: time.Unix(1700000000, 0), OperationID: "op_" + id, Data: json.RawMessage(`{"n":"` + id + `"}`)})
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return deliveryID(id, "acme")
}

func (w *world) pass(want int) {
	w.Helper()
	n, err := w.w.Pass(w.ctx)
	if err != nil || n != want {
		w.Fatalf("attempts: got %d, %v; want %d", n, err, want)
	}
}

func (w *world) advance(by time.Duration) {
	w.Helper()
	if err := postgres.AdvanceClock(w.ctx, w.pool, postgres.DefaultSchema, by); err != nil {
		w.Fatal(err)
	}
}

func (w *world) is(id, state, reason string, attempts int) {
	w.Helper()
	d, log, err := w.w.Show(w.ctx, id)
	if err != nil || d.State != state || d.Reason != reason || d.Attempts != attempts || len(log) != attempts {
		w.Errorf("got %s %q after %d attempts (%d in the log), %v; want %s %q after %d", d.State, d.Reason, d.Attempts, len(log), err, state, reason, attempts)
	}
}

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
