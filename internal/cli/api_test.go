package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/natstest"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// safeBuffer is written by a running command and read by the test.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a command that serves until the test ends.
type running struct {
	t    *testing.T
	errs *safeBuffer
	done chan int
}

// start runs a command line as a process would, and stops it by a signal at the end.
func start(t *testing.T, env map[string]string, args ...string) *running {
	t.Helper()
	r := &running{t: t, errs: &safeBuffer{}, done: make(chan int, 1)}
	signals := make(chan os.Signal, 1)
	go func() {
		r.done <- Main(args, Streams{
			In: strings.NewReader(""), Out: io.Discard, Err: r.errs, Getenv: func(name string) string { return env[name] },
			Signals: signals, Exit: func(int) {},
		})
	}()
	t.Cleanup(func() {
		signals <- syscall.SIGTERM
		if code := <-r.done; code != ExitDone {
			t.Errorf("%v ended with %d after a signal, want %d:\n%s", args, code, ExitDone, r.errs)
		}
	})
	return r
}

// address waits for the line that says where what is served.
func (r *running) address(what string) string {
	r.t.Helper()
	line := regexp.MustCompile(`(?m)^` + what + ` on (\S+)$`)
	var at string
	r.until("the address of "+what, func() bool {
		m := line.FindStringSubmatch(r.errs.String())
		if m != nil {
			at = m[1]
		}
		return m != nil
	})
	return at
}

func (r *running) until(what string, ok func() bool) {
	r.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for !ok() {
		select {
		case code := <-r.done:
			r.done <- code
			r.t.Fatalf("waiting for %s: the command ended with %d:\n%s", what, code, r.errs)
		case <-deadline:
			r.t.Fatalf("waited too long for %s:\n%s", what, r.errs)
		case <-tick.C:
		}
	}
}

// jetStream serves NATS in this process.
func jetStream(t *testing.T) string {
	t.Helper()
	return natstest.Serve(t)
}

// write puts a file into dir.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const testIssuer = "https://login.example"

// jwks makes a signing key, writes its public half into a file and gives a function that signs tokens of a tenant.
func jwks(t *testing.T, dir string) (file string, token func(tenant, scope string) string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	doc, err := json.Marshal(map[string]any{"keys": []map[string]string{{"kty": "EC", "kid": "k1", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}}})
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, dir, "keys.json", string(doc)), func(tenant, scope string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": testIssuer, "aud": "operations", "sub": "client", "tenant": tenant, "scope": scope, "exp": time.Now().Add(time.Hour).Unix(),
		})
		tok.Header["typ"], tok.Header["kid"] = "at+jwt", "k1"
		text, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

const tour = `{"booking":"B-1","travellers":2,"segments":[{"id":"flight","kind":"flight","offer":"FL-100"},{"id":"hotel","kind":"hotel","offer":"HT-200","nights":3},{"id":"transfer","kind":"transfer","offer":"TR-300"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"}}`

type reply struct {
	status int
	body   string
}

func call(t *testing.T, method, url, token, body string, headers ...string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, string(text)}
}

// TestAPI_I9_I10_I12_Sandbox is the partners' API as a user starts it: access tokens with keys from a file, sandbox, events over
// NATS JetStream, limits and webhook endpoints from files, metrics by their names, and records archived and deleted.
func TestAPI_I9_I10_I12_Sandbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig := operatortest.NewDatabase(t)
	pool := rig.Pool
	if err := app.Migrate(t.Context(), pool, operatortest.Schema, "try_records"); err != nil {
		t.Fatal(err)
	}
	rig.Saga("op_stuck", "starting", "", "20 min") // stuck and late, but before its deadline
	keys, token := jwks(t, dir)
	writeFile(t, dir, "acme.secret", "whsec_"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("s"), 32)))
	hooks := writeFile(t, dir, "hooks.yaml", "endpoints:\n  - {id: acme-1, tenant: acme, url: \"https://127.0.0.1:9/hooks\", types: [\"operation.*\"], secret_files: [acme.secret]}\n")
	limits := writeFile(t, dir, "limits.yaml", "tour-booking: {timeout: 20m, retention: 1d}\n")
	env := map[string]string{callbackSecret: strings.Repeat("s", 32)}
	r := start(t, env, "api", "--sandbox", "--dsn", pool.Config().ConnString(), "--schema", operatortest.Schema, "--record-schema", "try_records",
		"--transport", "nats", "--nats", jetStream(t), "--replication", "1", "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--issuer", testIssuer, "--audience", "operations", "--scope", "book", "--keys-file", keys,
		"--limits", limits, "--webhooks", hooks, "--archive", filepath.Join(dir, "cold"), "--retain-every", "50ms", "--log-level", "warn")
	api, metrics := r.address("API")+"/v1/operations/", r.address("metrics")+"/metrics"
	good := token("acme", "book")
	post := func(key string, headers ...string) reply {
		return call(t, http.MethodPost, api+"tour-booking", good, tour, append(headers, "Idempotency-Key", key)...)
	}

	if got := call(t, http.MethodPost, api+"tour-booking", "nonsense", tour, "Idempotency-Key", "k"); got.status != http.StatusUnauthorized {
		t.Errorf("a token that is none: %d, want 401", got.status)
	}
	if got := call(t, http.MethodPost, api+"tour-booking", token("acme", "read"), tour, "Idempotency-Key", "k"); got.status != http.StatusForbidden {
		t.Errorf("without the scope: %d, want 403", got.status)
	}
	first := post("k1", "X-Sandbox-Outcome", "failed:SOLD_OUT", "Prefer", "wait=20")
	for deadline := time.Now().Add(time.Minute); first.status == http.StatusAccepted && time.Now().Before(deadline); {
		first = post("k1", "Prefer", "wait=20") // waits in the server
	}
	if first.status != http.StatusOK || !strings.Contains(first.body, `"SOLD_OUT"`) {
		t.Fatalf("the end that was asked for: %d %s", first.status, first.body)
	}
	var answer struct {
		OperationID string `json:"operation_id"`
	}
	if err := json.Unmarshal([]byte(first.body), &answer); err != nil {
		t.Fatal(err)
	}
	if got := call(t, http.MethodGet, api+answer.OperationID, token("other", "book"), ""); got.status != http.StatusNotFound {
		t.Errorf("another tenant sees the operation: %d, want 404", got.status)
	}
	if got := call(t, http.MethodGet, r.address("API")+"/v1/webhooks/deliveries?operation="+answer.OperationID, good, ""); !strings.Contains(got.body, "acme-1") || !strings.Contains(got.body, "operation.failed") {
		t.Errorf("webhook attempts over the API: %d %s, want the completion", got.status, got.body)
	}

	// One of each that the alerts look at: forced, expired, too early, another payload, stuck, late.
	if got := post("k1", "X-Idempotency-Force-Retry", "true", "X-Sandbox-Outcome", "expired"); got.status != http.StatusAccepted {
		t.Errorf("force retry: %d %s", got.status, got.body)
	}
	post("k2", "X-Sandbox-Outcome", "in_progress")
	for range 3 {
		post("k2")
	}
	if got := call(t, http.MethodPost, api+"tour-booking", good, strings.Replace(tour, "B-1", "B-2", 1), "Idempotency-Key", "k2"); got.status != http.StatusUnprocessableEntity {
		t.Errorf("another payload: %d, want 422", got.status)
	}
	var page string
	r.until("the figures", func() bool {
		page = call(t, http.MethodGet, metrics, "", "").body
		return strings.Contains(page, "# TYPE journeyman_saga_stuck_total") && strings.Contains(page, "# TYPE journeyman_saga_sla_breaches_total") &&
			strings.Contains(page, "# TYPE journeyman_expired_operations_total") && strings.Contains(page, "# TYPE journeyman_sagas_stuck ") &&
			strings.Contains(page, `journeyman_consumer_lag{topic="platform.saga.progress.v1",group="operation-records"`)
	})
	checkAlerts(t, page)
	for _, want := range []string{
		"long_running_in_progress_polls_per_operation_count{", "idempotent_response_rate ", "force_retry_rate 0.", "expired_operation_rate 0.5", "polling_violations ",
		"journeyman_outbox_backlog ", "journeyman_outbox_published_total ", "journeyman_dead_letters{schema=\"try_records\",state=\"dead\"} 0", "journeyman_webhooks_pending ",
		"journeyman_metrics_failed 0",
	} {
		if !strings.Contains(page, "\n"+want) && !strings.HasPrefix(page, want) {
			t.Errorf("metrics lack %q:\n%s", want, page)
		}
	}
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(page, -1) {
		if seen[m[1]] {
			t.Errorf("metric %s is described twice", m[1])
		}
		seen[m[1]] = true
	}

	// Past the retention of the file the record goes to the archive, and past its year out of the store.
	for _, by := range []time.Duration{25 * time.Hour, 366 * 24 * time.Hour} {
		for _, schema := range []string{operatortest.Schema, "try_records"} {
			if err := postgres.AdvanceClock(t.Context(), pool, schema, by); err != nil {
				t.Fatal(err)
			}
		}
		r.until("the record to be archived, then deleted ("+by.String()+")", func() bool {
			objects, _ := filepath.Glob(filepath.Join(dir, "cold", "records", "*", "*", "*.jsonl"))
			var left int
			if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM try_records.record WHERE operation_id = $1`, answer.OperationID).Scan(&left); err != nil {
				t.Fatal(err)
			}
			return len(objects) > 0 && (by == 25*time.Hour || left == 0)
		})
	}
	if got := post("k1"); got.status != http.StatusGone {
		t.Errorf("a repeat after the retention: %d, want 410", got.status)
	}
}

// avroCatalog has one of the application's types in Avro.
const avroCatalog = `
domains: [ticketing]
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
`

// TestAPI_refusesByName starts nothing: each mistake is told by the name of its flag.
func TestAPI_refusesByName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys, _ := jwks(t, dir)
	folder := filepath.Join(dir, "keys")
	if err := seal.Generate(folder, "k1"); err != nil {
		t.Fatal(err)
	}
	dsn := pgtest.DSN(t) // some mistakes show only when the database was reached
	base := []string{
		"--dsn", dsn, "--zeebe", "127.0.0.1:1", "--cluster", "c", "--kafka", "127.0.0.1:1", "--flight", "http://127.0.0.1:1", "--hotel", "http://127.0.0.1:1",
		"--transfer", "http://127.0.0.1:1", "--payment", "http://127.0.0.1:1", "--callback", "http://127.0.0.1:1", "--log-level", "warn",
	}
	jwt := []string{"--listen", "127.0.0.1:0", "--issuer", testIssuer, "--audience", "a", "--keys-file", keys}
	tokens := writeFile(t, dir, "tokens.yaml", "s3cr3t: acme\n")
	for name, c := range map[string]struct {
		command string
		args    []string
		want    string
	}{
		"nobody authenticates":     {"api", []string{"--listen", "127.0.0.1:0"}, "--issuer or JOURNEYMAN_ISSUER"},
		"no audience":              {"api", []string{"--listen", "127.0.0.1:0", "--issuer", testIssuer, "--keys-file", keys}, "Audience"},
		"issuer in clear":          {"api", []string{"--listen", "127.0.0.1:0", "--issuer", "http://login.example", "--audience", "a"}, "https"},
		"keys twice":               {"api", append([]string{"--keys-url", "https://x.example/k"}, jwt...), "keys: both a file"},
		"tokens for the world":     {"api", []string{"--listen", ":8080", "--tokens", tokens}, "--tokens with --listen :8080"},
		"half a certificate":       {"api", append([]string{"--tls-cert", "x"}, jwt...), "--tls-cert and --tls-key"},
		"sandbox among the rest":   {"api", append([]string{"--sandbox"}, jwt...), "--sandbox: --schema is journeyman"},
		"unknown transport":        {"run", []string{"--transport", "pigeon"}, `--transport "pigeon"`},
		"nats without address":     {"run", []string{"--transport", "nats"}, "--nats or JOURNEYMAN_NATS"},
		"bad limits":               {"run", []string{"--limits", writeFile(t, dir, "bad.yaml", "tour-booking: {timeout: soon}\n")}, `--limits: operation limits`},
		"no such webhooks":         {"run", []string{"--webhooks", filepath.Join(dir, "none.yaml")}, "--webhooks: "},
		"no archive":               {"run", []string{"--archive", "ftp://x"}, "--archive: bucket"},
		"no time for an undo":      {"run", []string{"--undo-within", "0s"}, "--undo-within 0s: want more than 0"},
		"sasl without password":    {"run", []string{"--kafka-sasl", "PLAIN", "--kafka-tls"}, kafkaPassword},
		"no such authority":        {"run", []string{"--kafka-ca", filepath.Join(dir, "none.pem")}, "--kafka-ca: "},
		"oauth without secret":     {"run", []string{"--zeebe-oauth-url", "https://id.example/token", "--zeebe-client-id", "x"}, zeebeSecret},
		"a few connections":        {"run", []string{"--connections", "1"}, "--connections 1: want 4 or more"},
		"negative replication":     {"run", []string{"--replication", "-1"}, "--replication -1"},
		"encryption without keys":  {"run", []string{"--encrypt", "saga=at_rest"}, "--encrypt: want --keys"},
		"no such keys":             {"run", []string{"--keys", filepath.Join(dir, "none")}, "--keys: "},
		"unknown class":            {"run", []string{"--keys", folder, "--encrypt", "odd=at_rest"}, `class "odd"`},
		"no such catalog":          {"run", []string{"--catalog", filepath.Join(dir, "none.yaml")}, "--catalog "},
		"bad catalog":              {"run", []string{"--catalog", writeFile(t, dir, "odd.yaml", "messages: []\n")}, "messages: none"},
		"no registry":              {"run", []string{"--catalog", writeFile(t, dir, "avro.yaml", avroCatalog)}, "ticketing.ticket.recorded v1: wire confluent, but registry: missing"},
		"cache without registry":   {"run", []string{"--registry-cache", dir}, "want --registry or"},
		"half a registry user":     {"run", []string{"--registry", "http://127.0.0.1:1", "--registry-user", "ann"}, registryPassword},
		"no event archive":         {"run", []string{"--event-archive", "ftp://x"}, "--event-archive: bucket"},
		"negative lag":             {"run", []string{"--lag-every", "-1s"}, "LagEvery is -1s"},
		"several mistakes at once": {"run", []string{"--replication", "-1", "--relay-lease", "-1s"}, "--relay-lease -1s"},
	} {
		code, _, stderr := run(nil, append(append([]string{c.command}, base...), c.args...)...)
		if code != ExitUsage || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "s3cr3t") {
			t.Errorf("%s: %d, want %d and %q: %s", name, code, ExitUsage, c.want, stderr)
		}
	}
}
