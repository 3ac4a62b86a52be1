package ticketing_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/zeebe"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

var secret = []byte("0123456789abcdef")

const reference = "op_a:ticketRequest"

type door struct {
	handler http.Handler
	pool    *pgxpool.Pool
}

func setup(t *testing.T) door {
	t.Helper()
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, err := range []error{zeebe.Migrate(t.Context(), pool, "journeyman"), ticketing.Migrate(t.Context(), pool, "")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	queue, err := zeebe.NewQueue("", "test")
	if err != nil {
		t.Fatal(err)
	}
	h, err := ticketing.NewCallback(ticketing.CallbackConfig{Pool: pool, Commands: queue, Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return door{h, pool}
}

func query(reference string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(reference))
	return url.Values{"reference": {reference}, "signature": {hex.EncodeToString(mac.Sum(nil))}}.Encode()
}

func (d door) post(query, body string) int {
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/callbacks/tickets?"+query, strings.NewReader(body)))
	return rec.Code
}

// messages lists the queued commands as "name key id variables".
func (d door) messages(t *testing.T) []string {
	t.Helper()
	rows, err := d.pool.Query(t.Context(), `SELECT kind, name, correlation_key, message_id, variables::text FROM journeyman.zeebe_command`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var kind, name, key, id, variables string
		if err := rows.Scan(&kind, &name, &key, &id, &variables); err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(variables)); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintln(kind, name, key, id, compact.String()))
	}
	return out
}

const answer = `{"reference":"op_a:ticketRequest","id":"TKT-1","booking":"acme:B-1","tickets":["TKT-1-1","TKT-1-2"]}`

// However often the airline answers, and however many answers come at once, the process gets one message.
func TestCallback_oneMessage(t *testing.T) {
	d := setup(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got := d.post(query(reference), answer); got != http.StatusNoContent {
				t.Errorf("status %d, want 204", got)
			}
		})
	}
	all.Wait()
	want := []string{"publish ticketing.ticket.issued op_a op_a:ticketRequest {\"tickets\":[\"TKT-1-1\",\"TKT-1-2\"]}\n"}
	if diff := cmp.Diff(want, d.messages(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCallback_refusals(t *testing.T) {
	d := setup(t)
	tests := []struct {
		name, query, body string
		want              int
	}{
		{"no signature", "reference=" + url.QueryEscape(reference), answer, http.StatusForbidden},
		{"signature of another request", strings.Replace(query("op_b:ticketRequest"), "op_b", "op_a", 1), answer, http.StatusForbidden},
		{"answer to another request", query("op_b:ticketRequest"), answer, http.StatusBadRequest},
		{"not JSON", query(reference), "<xml/>", http.StatusBadRequest},
		{"no tickets", query(reference), `{"reference":"op_a:ticketRequest","id":"TKT-1","tickets":[]}`, http.StatusBadRequest},
		{"empty ticket", query(reference), `{"reference":"op_a:ticketRequest","id":"TKT-1","tickets":[""]}`, http.StatusBadRequest},
		{"NUL in a ticket", query(reference), `{"reference":"op_a:ticketRequest","id":"TKT-1","tickets":["a\u0000"]}`, http.StatusBadRequest},
		{"no id", query(reference), `{"reference":"op_a:ticketRequest","tickets":["a"]}`, http.StatusBadRequest},
		{"too big", query(reference), `{"id":"` + strings.Repeat("x", 70<<10) + `"}`, http.StatusBadRequest},
	}
	for _, tt := range tests {
		if got := d.post(tt.query, tt.body); got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
	rec := httptest.NewRecorder()
	d.handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/callbacks/tickets?"+query(reference), nil))
	if rec.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: status %d, want 405", rec.Code)
	}
	if got := d.messages(t); got != nil {
		t.Errorf("messages %v, want none", got)
	}
}

// An answer that could not be committed is not lost: the airline is told to try again.
func TestCallback_databaseDown(t *testing.T) {
	d := setup(t)
	d.pool.Close()
	if got := d.post(query(reference), answer); got != http.StatusServiceUnavailable {
		t.Errorf("status %d, want 503", got)
	}
}

func TestNewCallback_namesEveryMissingField(t *testing.T) {
	t.Parallel()
	_, err := ticketing.NewCallback(ticketing.CallbackConfig{Secret: []byte("short"), Schema: "Bad Schema"})
	for _, want := range []string{"Pool", "Commands", "secret", "schema"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
