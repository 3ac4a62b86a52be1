package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/natstest"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/sagas"
)

// house is the application over a NATS server and a database of its own, as a sandbox.
type house struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	cfg  app.Config
	app  *app.App
	api  http.Handler
}

// open makes the house; edit changes its configuration. Nothing runs yet.
func open(t *testing.T, edit func(cfg *app.Config)) *house {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	h := &house{T: t, ctx: ctx, pool: pgtest.Pool(t)}
	if err := app.Migrate(ctx, h.pool, "try_domain", "try_records"); err != nil {
		t.Fatal(err)
	}
	h.cfg = onNATS(h.pool, natstest.Serve(t))
	edit(&h.cfg)
	h.app = h.another()
	if err := h.app.EnsureTopics(ctx); err != nil {
		t.Fatal(err)
	}
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"t": {Tenant: "acme"}})
	if err == nil {
		h.api, err = h.app.Handler(app.APIConfig{Auth: auth, Sandbox: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// another is one more process of the house.
func (h *house) another() *app.App {
	h.Helper()
	a, err := app.New(h.cfg)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		if err := a.Close(); err != nil {
			h.Error(err)
		}
	})
	return a
}

// run runs parts of it until the test ends or stop is called, which waits for their drain.
func (h *house) run(parts ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(h.ctx)
	var wg sync.WaitGroup
	for _, part := range parts {
		wg.Go(func() {
			if err := part(ctx); err != nil {
				h.Errorf("ended with %v", err)
			}
		})
	}
	stop = func() { cancel(); wg.Wait() }
	h.Cleanup(stop)
	return stop
}

// book posts an operation, again and again until it has its end.
func (h *house) book(key string) {
	h.Helper()
	h.eventually("the end of "+key, func() bool {
		body := `{"booking":"` + key + `","travellers":2,"segments":[{"id":"flight","kind":"flight","offer":"FL-100"},{"id":"hotel","kind":"hotel","offer":"HT-200","nights":3},{"id":"transfer","kind":"transfer","offer":"TR-300"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"}}`
		r := httptest.NewRequestWithContext(h.ctx, http.MethodPost, "/v1/operations/tour-booking", strings.NewReader(body))
		for name, value := range map[string]string{"Authorization": "Bearer t", "Content-Type": "application/json", "Idempotency-Key": key, "Prefer": "wait=5"} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		h.api.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusAccepted && w.Code != http.StatusTooManyRequests {
			h.Fatalf("%s: %d %s", key, w.Code, w.Body)
		}
		return w.Code == http.StatusOK && strings.Contains(w.Body.String(), `"completed"`)
	})
}

// schedule puts a message that is due at a time.
func (h *house) schedule(id string, at time.Time, m events.Message) {
	h.Helper()
	office, err := app.NewOffice(app.OfficeConfig{Pool: h.pool, Schema: h.cfg.Schema, RecordSchema: h.cfg.RecordSchema, Cluster: h.cfg.Cluster, Messages: h.cfg.Messages})
	if err != nil {
		h.Fatal(err)
	}
	store, err := work.NewStore(h.cfg.Schema, h.cfg.Messages.Keys)
	if err != nil {
		h.Fatal(err)
	}
	err = pgx.BeginFunc(h.ctx, h.pool, func(tx pgx.Tx) error {
		return store.Schedule(h.ctx, tx, office.Stager, id, at, events.Origin{OperationID: "op-" + id, BusinessKey: "B-1", CorrelationID: "c"}, m)
	})
	if err != nil {
		h.Fatal(err)
	}
}

// read gives the first records of a topic.
func (h *house) read(n int, topic string) []events.Delivery {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.ctx, 30*time.Second)
	defer cancel()
	c, err := h.app.Subscriber().Subscribe(ctx, "read-"+events.NewID(), topic)
	if err != nil {
		h.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	var got []events.Delivery
	for range n {
		d, err := c.Fetch(ctx)
		if err != nil {
			h.Fatalf("%d of %d records of %s: %v", len(got), n, topic, err)
		}
		got = append(got, d)
	}
	return got
}

func (h *house) eventually(what string, ok func() bool) {
	h.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-h.ctx.Done():
			h.Fatalf("waited in vain for %s", what)
		}
	}
}

func catalogOf(t *testing.T, text string) *events.Catalog {
	t.Helper()
	c, err := events.ParseCatalog([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// binary has one of the application's types in Avro, and one beside them in Protobuf.
const binary = `
domains: [ticketing, tour]
messages:
  - type: ticketing.ticket.recorded
    class: domain
    owner: ticketing
    producers: [tour-workers]
    consumers: [booking-view]
    format: avro
    schema: {type: record, name: TicketRecorded, fields: [{name: booking, type: string}, {name: sagaId, type: string}, {name: number, type: string}]}
    operator_action: none
    pii: none
  - type: tour.note.added
    class: domain
    owner: tour
    producers: [tour-workers]
    consumers: [booking-view]
    format: protobuf
    message: tour.v1.NoteAdded
    schema: |
      syntax = "proto3";
      package tour.v1;
      message NoteAdded { string text = 1; }
    operator_action: none
    pii: none
`

// framedSagas are the saga's own events, which the record consumer reads, behind the frame of a registry's schema.
func framedSagas(t *testing.T) *events.Catalog {
	return catalogOf(t, strings.ReplaceAll(string(sagas.Catalog()), "    class: saga\n", "    class: saga\n    wire: confluent\n"))
}

// The application publishes and consumes what catalogs have in Avro, Protobuf and framed JSON, encrypted, over a rotation of
// keys: operations have their end, and nothing of their data can be read at the broker.
func TestMessages_E4_E5(t *testing.T) {
	t.Parallel()
	r := srfake.New()
	t.Cleanup(r.Close)
	keys := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(keys, "k1"); err != nil {
		t.Fatal(err)
	}
	h := open(t, func(cfg *app.Config) {
		dir, err := seal.OpenDir(keys)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Messages = app.Messages{
			Catalogs: []*events.Catalog{catalogOf(t, binary), framedSagas(t)}, Registry: &registry.Config{URLs: []string{r.URL()}},
			Encryption: map[events.Class]events.Encryption{events.ClassSaga: events.EncryptEndToEnd}, Keys: dir,
		}
		cfg.Background.Work = true
	})
	h.run(h.app.Relay, h.app.Record)
	h.book("k-1")
	if err := seal.Generate(keys, "k2"); err != nil {
		t.Fatal(err)
	}
	h.eventually("the processes to have read the new key", func() bool {
		id, err := h.cfg.Messages.Keys.Current()
		return err == nil && id == "k2"
	})
	h.book("k-2")
	sealed := h.read(2*2, "platform.saga.progress.v1")
	for n, d := range []events.Delivery{sealed[0], sealed[len(sealed)-1]} {
		want := fmt.Sprintf("k%d", n+1)
		if mode, ok := seal.Sealed(d.Body); !ok || mode != seal.EndToEnd || !strings.Contains(string(d.Body), want) || strings.Contains(string(d.Body), "acme") {
			t.Errorf("record %d is %q, want it encrypted under %s", n, d.Body, want)
		}
	}
	h.schedule("ticket", time.Now(), events.Message{Type: "ticketing.ticket.recorded", Data: map[string]any{"booking": "B-1", "sagaId": "S", "number": "N-7"}})
	h.schedule("note", time.Now(), events.Message{Type: "tour.note.added", Data: map[string]any{"text": "window seat"}})
	for topic, want := range map[string]string{"ticketing.ticket.recorded.v1": "N-7", "tour.note.added.v1": "window seat"} {
		d := h.read(1, topic)[0]
		if !events.Framed(d.Body) || json.Valid(d.Body) || !strings.Contains(string(d.Body), want) || d.Header(events.HeaderOperationID) == "" {
			t.Errorf("%s: body %q, headers %v", topic, d.Body, d.Headers)
		}
	}
}

// What a type needs and nobody gave is told at the start, by the type's name; nobody starts without.
func TestMessages_refused(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for name, c := range map[string]struct {
		messages app.Messages
		want     []string
	}{
		"no registry":      {app.Messages{Catalogs: []*events.Catalog{catalogOf(t, binary)}}, []string{"ticketing.ticket.recorded v1: wire confluent, but registry: missing", "tour.note.added v1"}},
		"registry is down": {app.Messages{Catalogs: []*events.Catalog{catalogOf(t, binary)}, Registry: &registry.Config{URLs: []string{"http://127.0.0.1:1"}, Timeout: time.Second}}, []string{"ticketing.ticket.recorded v1", events.ErrSchemaUnavailable.Error()}},
		"no keys":          {app.Messages{Encryption: map[events.Class]events.Encryption{events.ClassAudit: events.EncryptAtRest}}, []string{"Messages.Keys is nil"}},
		"unknown class":    {app.Messages{Encryption: map[events.Class]events.Encryption{"odd": events.EncryptAtRest}}, []string{`class "odd"`}},
		"incomplete entry": {app.Messages{Catalogs: []*events.Catalog{catalogOf(t, strings.ReplaceAll(binary, "    pii: none\n", ""))}}, []string{"ticketing.ticket.recorded v1: pii: missing"}},
		"no such registry": {app.Messages{Registry: &registry.Config{URLs: []string{"ftp://x"}}}, []string{"schema registry: urls"}},
	} {
		cfg := onNATS(pool, "nats://127.0.0.1:1")
		cfg.Messages = c.messages
		_, err := app.New(cfg)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error lacks %q: %v", name, want, err)
			}
		}
		if _, err := app.NewOffice(app.OfficeConfig{Pool: pool, Cluster: "c", Messages: c.messages}); err == nil {
			t.Errorf("%s: an office was made", name)
		}
	}
}
