package sagas

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// What others got wrong with idempotency keys, one test each.

// laravel-idempotency#1, pay-connector#4460: both requests look, both find nothing, both run.
func TestKnownBug_CheckThenInsert(t *testing.T) {
	w := setup(t)
	a, b := w.server(w.s), w.server(w.another(nil))
	tx, err := w.records.Begin(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(w.ctx)                                                                            //nolint:errcheck // it may have been committed
	if _, err := tx.Exec(w.ctx, `LOCK TABLE journeyman_records.record_key IN SHARE MODE`); err != nil { // reads pass, inserts wait
		t.Fatal(err)
	}
	replies := make(chan reply, 2)
	go func() { replies <- w.post(a, "a", "k", goodTrip) }()
	go func() { replies <- w.post(b, "a", "k", goodTrip) }()
	w.eventually(func() bool {
		return w.count(w.records, `SELECT count(*) FROM pg_locks l JOIN pg_class c ON c.oid = l.relation WHERE c.relname = 'record_key' AND NOT l.granted`) == 2
	})
	if err := tx.Commit(w.ctx); err != nil {
		t.Fatal(err)
	}
	fresh := 0
	for range 2 {
		r := <-replies
		if r.status != http.StatusAccepted || r.json(t)["operation_id"] != id1("k") {
			t.Errorf("got %d %s, want the one operation", r.status, r.body)
		}
		if r.header.Get(HeaderReplayed) == "" {
			fresh++
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 || fresh != 1 || w.starts != 1 {
		t.Errorf("got %d sagas, %d fresh answers, %d starts; want 1 each", n, fresh, w.starts)
	}
}

// express-idempotency#32, sibyl#349: the process died with the claim; repeats got 409 for days.
func TestKnownBug_OrphanedInProgress(t *testing.T) {
	w := setup(t)
	print, err := fingerprint([]byte(goodTrip))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := parseTrip(w.ctx, "agency", []byte(goodTrip))
	if err != nil {
		t.Fatal(err)
	}
	if _, made, err := w.s.claim(w.ctx, w.s.types["trip"], "agency", "k", print, plan, origin{}); err != nil || !made { // and here it died
		t.Fatalf("claim: made %v, %v", made, err)
	}
	other := w.another(nil)
	if r := w.post(w.server(other), "a", "k", goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] != id1("k") {
		t.Errorf("a repeat at once: got %d %s, want 202", r.status, r.body)
	}
	w.advance(startGrace + time.Second)
	for range 2 {
		if err := other.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 {
		t.Errorf("sagas: got %d, want the orphan taken up once", n)
	}
}

// actor-ts#984: a handler that throws deletes the claim, and the repeat charges twice.
func TestKnownBug_ErrorDeletesTheClaim(t *testing.T) {
	w := setup(t)
	w.refuse = errors.New("the database of the hotel fell over")
	srv := w.server(w.s)
	if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202: the claim stands", r.status, r.body)
	}
	if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] != id1("k") || r.header.Get(HeaderReplayed) != "true" {
		t.Errorf("the repeat: got %d %s, want the same operation", r.status, r.body)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_key`); n != 1 {
		t.Errorf("keys: got %d, want 1", n)
	}
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
	w.advance(10 * time.Minute)
	for range 2 {
		if err := w.s.Sweep(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE name = 'saga.start.trip'`); n != 1 {
		t.Errorf("start messages: got %d, want 1", n)
	}
}

// hono-idempotency#92: a record completed without a body is a key that never answers again.
func TestKnownBug_CompletedWithoutBody(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	at := time.Now()
	for name, p := range map[string]Progress{
		"no body": {SagaID: id1("k"), SagaType: "trip", Tenant: "agency", FinishedAt: &at},
		"no time": {SagaID: id1("k"), SagaType: "trip", Tenant: "agency", Final: []byte("{}\n")},
	} {
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var m events.Received
		m.MessageType, m.MessageID, m.Data, m.Metadata.Sequence = EventCompleted, name, data, 9
		tx, err := w.records.Begin(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.s.Apply(w.ctx, outbox.NewTx(tx), m); outcome.ClassOf(err) != outcome.Fatal {
			t.Errorf("%s: got %v, want FATAL", name, err)
		}
		_ = tx.Rollback(w.ctx)
	}
	if r := w.post(srv, "a", "k", goodTrip); r.status != http.StatusAccepted {
		t.Errorf("got %d %s, want it in progress still", r.status, r.body)
	}
	// And where code fails to look, the table does.
	if _, err := w.records.Exec(w.ctx, `UPDATE journeyman_records.record SET state = 'completed'`); err == nil {
		t.Error("the table takes a completed record without an answer")
	}
}

// Truxify#4696: who comes while the first is being created waits 200 ms and then gets 409.
func TestKnownBug_SlowCreationIs409(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	held, release := make(chan struct{}), make(chan struct{})
	defer hookOnce("saga.started", id1("slow"), func() { close(held); <-release })()
	first := make(chan reply, 1)
	go func() { first <- w.post(srv, "a", "slow", goodTrip) }()
	<-held
	for range 3 {
		if r := w.post(srv, "a", "slow", goodTrip); r.status != http.StatusAccepted || r.json(t)["operation_id"] != id1("slow") {
			t.Errorf("during creation: got %d %s, want 202", r.status, r.body)
		}
	}
	close(release)
	if r := <-first; r.status != http.StatusAccepted {
		t.Errorf("the creating request: got %d", r.status)
	}
}

// globalpayments#94: requests at the same time answer with each other's keys.
func TestKnownBug_SharedKeyState(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	var wg sync.WaitGroup
	for i := range 24 {
		key, token, tenant := "k"+string(rune('a'+i/2)), "a", "agency"
		if i%2 == 1 {
			token, tenant = "b", "broker"
		}
		wg.Go(func() {
			want := OperationID(tenant, "trip", key, 1)
			r := w.post(srv, token, key, goodTrip)
			if r.status != http.StatusAccepted || r.json(t)["operation_id"] != want || r.header.Get("Location") != location(want) || r.header.Get(HeaderReplayed) != "" {
				t.Errorf("%s of %s: got %d %s %v", key, tenant, r.status, r.body, r.header)
			}
		})
	}
	wg.Wait()
}

// grimurrash#73: two headers joined by a proxy become a key of nobody.
func TestKnownBug_DuplicateHeadersJoined(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	for _, headers := range [][]string{
		{HeaderKey, "a", HeaderKey, "b"}, {HeaderKey, "a, b"}, {HeaderKey, `"a", "b"`}, {HeaderKey, "a,a"}, {HeaderKey, `"a"`, HeaderKey, `"a"`},
	} {
		if r := w.do(srv, http.MethodPost, "/v1/operations/trip", "a", goodTrip, headers...); r.status != http.StatusBadRequest {
			t.Errorf("%v: got %d, want 400", headers, r.status)
		}
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_key`); n != 0 {
		t.Errorf("keys: got %d, want 0", n)
	}
}
