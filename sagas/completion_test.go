package sagas

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/outbox"
)

// hooked is a world whose partner "agency" listens.
type hooked struct {
	*world
	hooks  *webhook.Webhooks
	secret webhook.Secret
	mu     sync.Mutex
	got    []*http.Request
	bodies [][]byte
	status int
}

func setupHooked(t *testing.T, maxBody int) *hooked {
	t.Helper()
	h := &hooked{status: http.StatusNoContent}
	srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got, h.bodies = append(h.got, r), append(h.bodies, body)
		out.WriteHeader(h.status)
	}))
	t.Cleanup(srv.Close)
	var err error
	if h.secret, err = webhook.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))); err != nil {
		t.Fatal(err)
	}
	h.world = setupWith(t, func(c *Config) {
		h.hooks, err = webhook.New(webhook.Config{
			Pool: c.Records, Schema: DefaultRecordSchema, Plaintext: true, MaxBody: maxBody, Schedule: webhook.Schedule{time.Second},
			Directory: webhook.NewEndpoints(webhook.Endpoint{ID: "agency", Tenant: "agency", URL: srv.URL, Secrets: []webhook.Secret{h.secret}}),
			Allow: func(to netip.AddrPort) error {
				if !to.Addr().IsLoopback() {
					return fmt.Errorf("%s is not this machine", to)
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Webhooks = h.hooks
	})
	if err := webhook.Migrate(h.ctx, h.records, DefaultRecordSchema); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *hooked) pass(want int) {
	h.Helper()
	if n, err := h.hooks.Pass(h.ctx); err != nil || n != want {
		h.Fatalf("webhooks: got %d, %v; want %d", n, err, want)
	}
}

// Issue 6, item 1: one signed webhook per end, when the answer is final, holding that answer. Nothing is told before.
func TestCompletionWebhook(t *testing.T) {
	h := setupHooked(t, 0)
	srv := h.server(h.s)
	for i, d := range []Decision{Completed, Failed, Expired} {
		key := string(d)
		body := strings.Replace(goodTrip, "B-1", "B-"+key, 1)
		id := h.post(srv, "a", key, body).json(t)["operation_id"].(string)
		h.pass(0)
		h.ended(id, d)
		h.deliver(true) // every event once more
		h.pass(1)
		h.pass(0)
		answer := h.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "")
		var m struct {
			Type string
			Data Completion
		}
		if err := webhook.Verify(h.got[i].Header, h.bodies[i], time.Now(), h.secret); err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal(h.bodies[i], &m); err != nil {
			t.Fatal(err)
		}
		if m.Type != "operation."+string(d) || m.Data.OperationID != id || m.Data.IdempotencyKey != key || m.Data.Location != "/v1/operations/"+id ||
			string(m.Data.Answer) != strings.TrimSpace(string(answer.body)) {
			t.Errorf("got %s, want the answer %s", h.bodies[i], answer.body)
		}
	}
}

// What cannot be delivered is seen by the operator, and sent again; an answer too large for a message is told without it.
func TestCompletionWebhookDeadAndSentAgain(t *testing.T) {
	h := setupHooked(t, 350)
	h.status = http.StatusBadGateway
	srv := h.server(h.s)
	id := h.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	h.ended(id, Completed)
	h.pass(1)
	h.advance(time.Minute)
	h.pass(1)
	dead, err := h.hooks.List(h.ctx, webhook.Filter{State: webhook.Dead, OperationID: id})
	if err != nil || len(dead) != 1 {
		t.Fatalf("dead letters: got %v, %v", dead, err)
	}
	h.status = http.StatusOK
	if err := h.hooks.Resend(h.ctx, dead[0].ID, "ann", "they were down"); err != nil {
		t.Fatal(err)
	}
	h.pass(1)
	if last := string(h.bodies[2]); strings.Contains(last, "answer") || !strings.Contains(last, id) {
		t.Errorf("got %s, want it without the answer", last)
	}
}

// The webhook is staged in the transaction that makes the record final, or not at all.
func TestCompletionWebhookCommitsWithTheAnswer(t *testing.T) {
	h := setupHooked(t, 0)
	srv := h.server(h.s)
	id := h.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	at := time.Now()
	data, err := json.Marshal(Progress{SagaID: id, SagaType: "trip", Tenant: "agency", Final: []byte("{}\n"), FinishedAt: &at})
	if err != nil {
		t.Fatal(err)
	}
	var m events.Received
	m.MessageType, m.MessageID, m.Data, m.Metadata.Sequence = EventCompleted, "e", data, 9
	tx, err := h.records.Begin(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.s.Apply(h.ctx, outbox.NewTx(tx), m); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(h.ctx); err != nil { // the consumer died
		t.Fatal(err)
	}
	h.pass(0)
	for range 2 {
		if err := pgx.BeginFunc(h.ctx, h.records, func(tx pgx.Tx) error { return h.s.Apply(h.ctx, outbox.NewTx(tx), m) }); err != nil {
			t.Fatal(err)
		}
	}
	h.pass(1)
}
