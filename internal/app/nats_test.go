package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/sagas"
)

// Variables with which the test binary starts itself as a relay that dies.
const (
	envRelay = "JOURNEYMAN_TEST_APP_RELAY" // DSN
	envNATS  = "JOURNEYMAN_TEST_APP_NATS"
	envArm   = "JOURNEYMAN_TEST_APP_ARM"
	envLog   = "JOURNEYMAN_TEST_APP_LOG"
)

func onNATS(pool *pgxpool.Pool, url string) app.Config {
	none := "http://127.0.0.1:1"
	return app.Config{
		Pool: pool, Gateway: "127.0.0.1:1", Plaintext: true, Cluster: "c", Env: "test", Schema: "try_domain", RecordSchema: "try_records",
		Transport: app.TransportNATS, NATS: nats.Config{URL: url, SessionTimeout: time.Second, AckTimeout: time.Second}, Replication: 1, RelayLease: time.Second, Concurrency: 2,
		Suppliers: app.Suppliers{Flight: none, Hotel: none, Transfer: none, Payment: none}, Callback: none, CallbackSecret: []byte(strings.Repeat("s", 16)),
	}
}

// relayChild is a process that only relays, until it is killed.
func relayChild(dsn string) {
	err := func() error {
		if err := crash.Arm(os.Getenv(envArm), os.Getenv(envLog)); err != nil {
			return err
		}
		pool, err := pgxpool.New(context.Background(), dsn)
		if err != nil {
			return err
		}
		a, err := app.New(onNATS(pool, os.Getenv(envNATS)))
		if err != nil {
			return err
		}
		return a.Relay(context.Background())
	}()
	fmt.Fprintln(os.Stderr, "relay ended:", err)
	os.Exit(3)
}

// TestNATS_O2_O3_relayKilled sends operations through outbox, JetStream and inbox while the relay's process is killed before
// a publish, after an acknowledged one, and after the delete: each gets its one final answer, and no key's order turns.
func TestNATS_O2_O3_relayKilled(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS server is not ready")
	}
	pool := pgtest.Pool(t)
	if err := app.Migrate(t.Context(), pool, "try_domain", "try_records"); err != nil {
		t.Fatal(err)
	}
	a, err := app.New(onNATS(pool, s.ClientURL()))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.EnsureTopics(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer func() {
		cancel()
		wg.Wait()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	wg.Go(func() {
		if err := a.Record(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("record consumer: %v", err)
		}
	})
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"t": {Tenant: "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	api, err := a.Handler(app.APIConfig{Auth: auth, Sandbox: true})
	if err != nil {
		t.Fatal(err)
	}
	post := func(n int) (int, []byte) {
		body := fmt.Sprintf(`{"booking":"B-%d","travellers":2,"segments":[{"id":"flight","kind":"flight","offer":"FL-100"},{"id":"hotel","kind":"hotel","offer":"HT-200","nights":3},{"id":"transfer","kind":"transfer","offer":"TR-300"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"}}`, n)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/operations/tour-booking", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k"+strconv.Itoa(n))
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		return w.Code, w.Body.Bytes()
	}
	const each = 8
	started := 0
	for i, point := range []string{"relay.publish.before", "relay.publish.acked", "relay.delete.after", ""} {
		for range each {
			if status, body := post(started); status != http.StatusAccepted {
				t.Fatalf("start %d: %d %s", started, status, body)
			}
			started++
		}
		killed := runRelay(t, pool, s.ClientURL(), point)
		if point == "" {
			defer killed() // the last one lives to the end
			break
		}
		if log := killed(); !strings.Contains(log, point) {
			t.Fatalf("relay %d was not killed at %s: %q", i, point, log)
		}
	}
	answers := map[int][]byte{}
	deadline := time.After(60 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for len(answers) < started {
		select {
		case <-deadline:
			t.Fatalf("%d of %d operations have their final answer", len(answers), started)
		case <-tick.C:
		}
		var done int
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM try_records.record WHERE final IS NOT NULL`).Scan(&done); err != nil {
			t.Fatal(err)
		}
		if done < started {
			continue
		}
		for n := range started {
			status, body := post(n)
			if status != http.StatusOK || !bytes.Contains(body, []byte(`"completed"`)) {
				t.Fatalf("repeat of %d: %d %s", n, status, body)
			}
			answers[n] = body
		}
	}
	inOrder(t, a, started)
	var left, dead int
	if err := pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM try_domain.outbox), (SELECT count(*) FROM try_records.inbox_dead)`).Scan(&left, &dead); err != nil || dead != 0 {
		t.Errorf("%d rows left in the outbox, %d dead letters, %v", left, dead, err)
	}
}

// runRelay starts a relay process that kills itself at a crash point, "" = never. What it gives waits for the end (or kills
// it) and returns what the process recorded.
func runRelay(t *testing.T, pool *pgxpool.Pool, url, point string) func() string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:noctx // ended below
	cmd.Env = append(os.Environ(), envRelay+"="+pool.Config().ConnString(), envNATS+"="+url, envArm+"="+point, envLog+"="+log)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return func() string {
		if point == "" {
			_ = cmd.Process.Kill()
		}
		stuck := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
		defer stuck.Stop()
		_ = cmd.Wait()
		text, _ := os.ReadFile(log) //nolint:errcheck // no log, no kill
		return string(text)
	}
}

// inOrder reads the stream from its beginning: each key's sequence never goes back, repeats aside, and no message is missing.
func inOrder(t *testing.T, a *app.App, keys int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := a.Subscriber().Subscribe(ctx, "order", "platform.saga.progress.v1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // reading is the test
	last, ended, repeats := map[string]int64{}, map[string]bool{}, 0
	ids := map[string]bool{}
	for len(ended) < keys {
		d, err := c.Fetch(ctx)
		if err != nil {
			t.Fatalf("%d of %d operations ended on the stream: %v", len(ended), keys, err)
		}
		var e events.Envelope
		if err := json.Unmarshal(d.Body, &e); err != nil {
			t.Fatal(err)
		}
		if ids[e.MessageID] {
			repeats++
			continue
		}
		ids[e.MessageID] = true
		if e.Metadata.Sequence <= last[d.Key] {
			t.Errorf("key %s: sequence %d after %d", d.Key, e.Metadata.Sequence, last[d.Key])
		}
		last[d.Key] = e.Metadata.Sequence
		ended[d.Key] = ended[d.Key] || e.MessageType == sagas.EventCompleted
		if !ended[d.Key] {
			delete(ended, d.Key)
		}
	}
	t.Logf("%d messages of %d keys, %d repeats on the stream", len(ids), keys, repeats)
}
