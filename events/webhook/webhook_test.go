package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if err := Migrate(t.Context(), pool, "other_schema"); err != nil {
		t.Fatal(err)
	}
	pgtest.Statements(t, pool, render("other_schema"), nil)
}

// E11: a message is signed, says when and what, and goes out once, after the commit.
func TestE11_SignedAndDeliveredOnce(t *testing.T) {
	w := setup(t, nil)
	id := w.stage("m1")
	w.stage("m1") // the same fact again
	w.pass(1)
	w.pass(0)
	got := w.p.taken()
	if len(got) != 1 {
		t.Fatalf("got %d messages, want 1", len(got))
	}
	if err := Verify(got[0].header, got[0].body, time.Now(), secret(t, "a")); err != nil {
		t.Error(err)
	}
	if want := `{"type":"operation.completed","timestamp":"2023-11-14T22:13:20Z","data":{"n":"m1"}}`; string(got[0].body) != want || got[0].header.Get(HeaderID) != id {
		t.Errorf("got %s under %s, want %s under %s", got[0].body, got[0].header.Get(HeaderID), want, id)
	}
	w.is(id, Delivered, "", 1)
	tx, err := w.pool.Begin(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.w.Stage(w.ctx, outbox.NewTx(tx), Message{ID: "m2", Tenant: "acme", Type: "x.y.done", Data: json.RawMessage(`{}`)}); n != 1 || err != nil {
		t.Errorf("stage: got %d, %v", n, err)
	}
	w.pass(0) // not committed
	if err := tx.Rollback(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.pass(0)
}

// E11: while a secret is changed a receiver may know the old or the new one.
func TestE11_SecretsRotate(t *testing.T) {
	w := setup(t, nil)
	w.dir.Set(Endpoint{ID: "acme", Tenant: "acme", URL: w.p.URL, Secrets: []Secret{secret(t, "n"), secret(t, "a")}})
	w.stage("m1")
	w.pass(1)
	m := w.p.taken()[0]
	for name, want := range map[string]bool{"n": true, "a": true, "x": false} {
		if err := Verify(m.header, m.body, time.Now(), secret(t, name)); (err == nil) != want {
			t.Errorf("secret %s: %v", name, err)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	t.Parallel()
	now, s := time.Now(), secret(t, "a")
	sign := func(edit func(h http.Header)) http.Header {
		h := http.Header{}
		Sign(h, "msg_1", now, []byte("{}"), s)
		edit(h)
		return h
	}
	for name, c := range map[string]struct {
		h    http.Header
		body string
		at   time.Time
	}{
		"another body":      {sign(func(http.Header) {}), "{ }", now},
		"another id":        {sign(func(h http.Header) { h.Set(HeaderID, "msg_2") }), "{}", now},
		"another time":      {sign(func(h http.Header) { h.Set(HeaderTimestamp, "1") }), "{}", time.Unix(1, 0)},
		"too old":           {sign(func(http.Header) {}), "{}", now.Add(Tolerance + 2*time.Second)},
		"from the future":   {sign(func(http.Header) {}), "{}", now.Add(-Tolerance - 2*time.Second)},
		"no signature":      {sign(func(h http.Header) { h.Del(HeaderSignature) }), "{}", now},
		"another version":   {sign(func(h http.Header) { h.Set(HeaderSignature, strings.Replace(h.Get(HeaderSignature), "v1", "v2", 1)) }), "{}", now},
		"no time":           {sign(func(h http.Header) { h.Del(HeaderTimestamp) }), "{}", now},
		"signature garbled": {sign(func(h http.Header) { h.Set(HeaderSignature, "v1,%%%") }), "{}", now},
	} {
		if err := Verify(c.h, []byte(c.body), c.at, s); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
	if err := Verify(sign(func(http.Header) {}), []byte("{}"), now, s); err != nil {
		t.Error(err)
	}
	// The example of the Standard Webhooks specification.
	example, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), example)
	if got, want := h.Get(HeaderSignature), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// E11: what is not taken is sent again by the schedule, under the same id and with a time of its own; then it is dead,
// shown, and sent again when a person says so.
func TestE11_ScheduleThenDeadThenSentAgain(t *testing.T) {
	w := setup(t, nil)
	w.p.say(status(http.StatusInternalServerError))
	id := w.stage("m1")
	w.pass(1)
	for _, wait := range []time.Duration{10 * time.Second, time.Minute, time.Hour} {
		w.advance(wait - time.Second)
		w.pass(0)
		w.advance(2 * time.Second)
		w.pass(1)
	}
	w.is(id, Dead, ReasonUsedUp, 4)
	w.advance(24 * time.Hour)
	w.pass(0)
	if len(w.dead) != 1 || w.dead[0] != "acme used_up" {
		t.Errorf("alerts: got %v", w.dead)
	}
	list, err := w.w.List(w.ctx, Filter{State: Dead, Tenant: "acme"})
	if err != nil || len(list) != 1 || list[0].ID != id || list[0].OperationID != "op_m1" {
		t.Errorf("dead letters: got %v, %v", list, err)
	}
	w.p.say(nil)
	if err := w.w.Resend(w.ctx, id, "", "fixed"); err == nil {
		t.Error("sent again by nobody")
	}
	if err := w.w.Resend(w.ctx, id, "ann", "they fixed it"); err != nil {
		t.Fatal(err)
	}
	w.pass(1)
	w.is(id, Delivered, "", 5)
	if len(w.acts) != 1 || w.acts[0] != (Act{Action: "webhook.resend", Target: id, Actor: "ann", Reason: "they fixed it", Before: Dead}) {
		t.Errorf("audit: got %+v", w.acts)
	}
	for _, m := range w.p.taken() {
		if m.header.Get(HeaderID) != id {
			t.Errorf("an attempt under another id: %s", m.header.Get(HeaderID))
		}
	}
}

// E11: whatever is not 2xx is a failure, a redirect is not followed, no answer is one too.
func TestE11_WhatIsNoSuccess(t *testing.T) {
	w := setup(t, func(c *Config) { c.Timeout = 300 * time.Millisecond })
	elsewhere := newPartner(t)
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": status(http.StatusTemporaryRedirect, "Location", elsewhere.URL), "server error": status(http.StatusBadGateway), "refused": status(http.StatusForbidden),
		"hangs":    func(http.ResponseWriter, *http.Request) { <-hang },
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"drips": func(out http.ResponseWriter, _ *http.Request) {
			out.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(out).Flush()
			<-hang
		},
	} {
		w.p.say(answer)
		id := w.stage(name)
		w.pass(1)
		d, log, err := w.w.Show(w.ctx, id)
		if want := name == "drips"; err != nil || (d.State == Delivered) != want || len(log) != 1 || (log[0].Error == "") != want {
			t.Errorf("%s: got %+v %+v %v", name, d, log, err)
		}
		w.dir.Set() // the rest of its attempts are not of interest
		w.advance(11 * time.Second)
		if name != "drips" {
			w.pass(1)
			w.is(id, Dead, ReasonUnknown, 2)
		}
		w.dir.Set(Endpoint{ID: "acme", Tenant: "acme", URL: w.p.URL, Secrets: []Secret{secret(t, "a")}})
	}
	if n := len(elsewhere.taken()); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
}

// E11: an answer of any size costs a few KiB.
func TestE11_AnswersAreReadUpToALimit(t *testing.T) {
	w := setup(t, nil)
	sent := make(chan int, 1)
	w.p.say(func(out http.ResponseWriter, _ *http.Request) {
		n := 0
		for chunk := make([]byte, 64<<10); n < 256<<20; {
			k, err := out.Write(chunk)
			n += k
			if err != nil {
				break
			}
		}
		sent <- n
	})
	id := w.stage("m1")
	w.pass(1)
	w.is(id, Delivered, "", 1)
	if n := <-sent; n >= 256<<20 {
		t.Error("all of it was read")
	}
}

// E11: Retry-After is kept to, seconds or date, and the endpoint's other messages wait with it.
func TestE11_RetryAfter(t *testing.T) {
	w := setup(t, nil)
	w.p.say(status(http.StatusTooManyRequests, "Retry-After", "600"))
	first := w.stage("m1")
	w.pass(1)
	second := w.stage("m2")
	w.advance(5 * time.Minute)
	w.pass(0)
	w.p.say(nil)
	w.advance(5*time.Minute + time.Second)
	w.pass(2)
	w.is(first, Delivered, "", 2)
	w.is(second, Delivered, "", 1)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "Mon, 30 Nov 2026 12:01:00 GMT": time.Minute, "Mon, 30 Nov 2026 11:00:00 GMT": 0} {
		if got, err := retryAfter(http.Header{"Retry-After": {text}}, now); got != want || err != nil {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "soon", "1.5"} {
		if _, err := retryAfter(http.Header{"Retry-After": {text}}, now); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestScheduleHasJitterAndAnEnd(t *testing.T) {
	t.Parallel()
	s := Schedule{10 * time.Second, time.Minute}
	for _, c := range []struct {
		attempts int
		spread   float64
		after    time.Duration
		want     time.Duration
		ok       bool
	}{
		{1, 0, 0, 8 * time.Second, true}, {1, 0.5, 0, 10 * time.Second, true}, {1, 1, 0, 12 * time.Second, true}, {2, 0.5, 0, time.Minute, true},
		{1, 0.5, time.Hour, time.Hour, true}, {1, 0.5, time.Second, 10 * time.Second, true}, {1, 0.5, 90 * 24 * time.Hour, 24 * time.Hour, true}, {3, 0.5, 0, 0, false}, {0, 0.5, 0, 0, false},
	} {
		if got, ok := s.Wait(c.attempts, c.spread, c.after); got != c.want || ok != c.ok {
			t.Errorf("%+v: got %v, %v", c, got, ok)
		}
	}
}

// E11: 410 stops an endpoint: what waits for it and what comes later is dead, nothing is sent until it is opened again.
func TestE11_GoneStops(t *testing.T) {
	w := setup(t, nil)
	w.p.say(status(http.StatusGone))
	first, second := w.stage("m1"), w.stage("m2")
	w.pass(1)
	third := w.stage("m3")
	w.advance(48 * time.Hour)
	w.pass(0)
	states, err := w.w.State(w.ctx)
	if err != nil || len(states) != 1 || states[0].GoneAt == nil || states[0].Dead != 3 || states[0].Pending != 0 {
		t.Errorf("state: got %+v, %v", states, err)
	}
	w.p.say(nil)
	if err := w.w.Resend(w.ctx, second, "ann", "it is back"); !errors.Is(err, ErrGone) {
		t.Errorf("sent to an endpoint that is gone: %v", err)
	}
	if err := w.w.Reopen(w.ctx, "acme", "ann", "it is back"); err != nil {
		t.Fatal(err)
	}
	w.pass(0)
	for _, id := range []string{first, second, third} {
		if err := w.w.Resend(w.ctx, id, "ann", "it is back"); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(3)
	w.is(first, Delivered, "", 2)
	w.is(second, Delivered, "", 1)
	w.is(third, Delivered, "", 1)
	if len(w.acts) != 4 || w.acts[0].Action != "webhook.reopen" {
		t.Errorf("audit: got %+v", w.acts)
	}
}

// E11: the filter is asked with the address that is about to be dialled, after names were resolved; what it refuses is not dialled.
func TestE11_FilteredWhenDialled(t *testing.T) {
	w := setup(t, func(c *Config) { c.Allow = PublicOnly })
	for _, host := range []string{"127.0.0.1", "localhost"} {
		w.dir.Set(Endpoint{ID: "acme", Tenant: "acme", URL: strings.Replace(w.p.URL, "127.0.0.1", host, 1), Secrets: []Secret{secret(t, "a")}})
		id := w.stage(host)
		w.pass(1)
		_, log, err := w.w.Show(w.ctx, id)
		if err != nil || len(log) != 1 || log[0].Status != 0 || !strings.Contains(log[0].Error, "is not") {
			t.Errorf("%s: got %+v, %v", host, log, err)
		}
	}
	if n := len(w.p.taken()); n != 0 {
		t.Errorf("it was dialled %d times", n)
	}
}

// A process that dies between the answer and its record sends again, under the same id; one that dies for ever ends too.
func TestE11_KilledBetweenAnswerAndRecord(t *testing.T) {
	w := setup(t, nil)
	id := w.stage("m1")
	for range 4 { // the whole schedule
		if _, err := w.w.take(w.ctx, "acme"); err != nil { // and here it died
			t.Fatal(err)
		}
		w.pass(0) // the lease holds
		w.advance(time.Minute)
	}
	w.p.say(status(http.StatusInternalServerError))
	w.pass(1)
	w.is(id, Dead, ReasonUsedUp, 5)
	second := w.stage("m2")
	old, err := w.w.take(w.ctx, "acme")
	if err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	w.p.say(nil)
	w.pass(1)
	w.is(second, Delivered, "", 2)
	if err := w.w.fail(w.ctx, old, answer{status: 500}); err != nil { // it was only slow: its word does not count any more
		t.Fatal(err)
	}
	w.is(second, Delivered, "", 2)
}

// Two processes send each message once, and a slow endpoint does not hold up another.
func TestE11_SendersShareTheWork(t *testing.T) {
	w := setup(t, nil)
	slow := newPartner(t)
	release := make(chan struct{})
	slow.say(func(http.ResponseWriter, *http.Request) { <-release })
	w.dir.Set(
		Endpoint{ID: "acme", Tenant: "acme", URL: w.p.URL, Secrets: []Secret{secret(t, "a")}},
		Endpoint{ID: "slow", Tenant: "acme", URL: slow.URL, Secrets: []Secret{secret(t, "a")}},
	)
	for i := range 30 {
		w.stage(strconv.Itoa(i))
	}
	done := make(chan error, 2)
	ctx, stop := context.WithCancel(w.ctx)
	for _, s := range []*Webhooks{w.w, w.another(nil)} {
		s.cfg.SweepEvery = 20 * time.Millisecond
		go func() { done <- s.Run(ctx) }()
	}
	seen := map[string]int{}
	w.eventually(func() bool { return len(w.p.taken()) >= 30 })
	close(release)
	w.eventually(func() bool { return len(slow.taken()) >= 30 })
	stop()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, m := range append(w.p.taken(), slow.taken()...) {
		seen[m.header.Get(HeaderID)]++
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
	if len(seen) != 60 {
		t.Errorf("got %d messages, want 60", len(seen))
	}
}

// A committed attempt that waits at a named point, so that a kill there can be played.
func TestE11_CrashPointsAreThere(t *testing.T) {
	w := setup(t, nil)
	id := w.stage("points")
	var seen []string
	for _, point := range []string{"webhook.before", "webhook.after"} {
		t.Cleanup(crash.Hook(point, func(got string) {
			if got == id {
				seen = append(seen, point)
			}
		}))
	}
	w.pass(1)
	if len(seen) != 2 {
		t.Errorf("got %v", seen)
	}
}

// E11: domain events go to those who want them, by type and tenant; replays and what the view holds back do not.
func TestE11_ForwardsDomainEvents(t *testing.T) {
	w := setup(t, nil)
	w.dir.Set(
		Endpoint{ID: "some", Tenant: "acme", URL: w.p.URL, Types: []string{"tour.booking.*"}, Secrets: []Secret{secret(t, "a")}},
		Endpoint{ID: "others", Tenant: "acme", URL: w.p.URL, Types: []string{"refund.*"}, Secrets: []Secret{secret(t, "a")}},
		Endpoint{ID: "strangers", Tenant: "other", URL: w.p.URL, Secrets: []Secret{secret(t, "a")}},
	)
	forward := w.w.Forward(func(m events.Received) (Message, bool) {
		var d struct{ Tenant string }
		_ = m.Decode(&d)
		return Message{Tenant: d.Tenant, Type: m.MessageType, At: m.OccurredAt, Data: m.Data}, m.MessageType != "tour.booking.held"
	})
	for i, c := range []struct {
		typ    string
		replay bool
		want   int
	}{{"tour.booking.confirmed", false, 1}, {"tour.booking.confirmed", true, 0}, {"tour.booking.held", false, 0}, {"payment.money.captured", false, 0}} {
		var m events.Received
		m.MessageID, m.MessageType, m.Replay, m.Data = string(rune('a'+i)), c.typ, c.replay, json.RawMessage(`{"tenant":"acme"}`)
		if err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error { return forward(w.ctx, outbox.NewTx(tx), m) }); err != nil {
			t.Fatal(err)
		}
		w.pass(c.want)
	}
}

// E11: attempts are visible over the API, to whom they belong.
func TestE11_AttemptsOverTheAPI(t *testing.T) {
	w := setup(t, nil)
	h := w.w.Handler(func(r *http.Request) (Caller, error) {
		switch r.Header.Get("Authorization") {
		case "partner":
			return Caller{Tenant: "acme", Name: "acme-client"}, nil
		case "stranger":
			return Caller{Tenant: "other", Name: "x"}, nil
		case "operator":
			return Caller{Name: "ann", Operator: true}, nil
		}
		return Caller{}, errors.New("nobody")
	})
	do := func(who, method, path, body string) (int, string) {
		r := httptest.NewRequestWithContext(w.ctx, method, path, strings.NewReader(body))
		r.Header.Set("Authorization", who)
		out := httptest.NewRecorder()
		h.ServeHTTP(out, r)
		return out.Code, out.Body.String()
	}
	w.p.say(status(http.StatusBadGateway))
	id := w.stage("m1")
	w.pass(1)
	one := "/v1/webhooks/deliveries/" + id
	for _, c := range []struct {
		who, method, path, body string
		status                  int
		holds                   string
	}{
		{"", "GET", one, "", 401, "Authentication"},
		{"partner", "GET", one, "", 200, `"status":502`},
		{"partner", "GET", "/v1/webhooks/deliveries?state=pending&operation=op_m1", "", 200, id},
		{"partner", "GET", "/v1/webhooks/deliveries?limit=0", "", 400, "limit"},
		{"stranger", "GET", one, "", 404, ""},
		{"stranger", "POST", one + "/resend", `{"reason":"x"}`, 404, ""},
		{"stranger", "GET", "/v1/webhooks/deliveries", "", 200, `{"deliveries":[]}`},
		{"partner", "POST", one + "/resend", `{}`, 400, "reason"},
		{"partner", "POST", one + "/resend", `{"reason":"lost"}`, 200, "pending"},
		{"partner", "GET", "/v1/webhooks/endpoints", "", 404, ""},
		{"partner", "POST", "/v1/webhooks/endpoints/acme/reopen", `{"reason":"x"}`, 404, ""},
		{"operator", "GET", "/v1/webhooks/endpoints", "", 200, `"failing_since":"2`},
		{"operator", "GET", one, "", 200, `"log":[`},
		{"operator", "POST", "/v1/webhooks/endpoints/acme/reopen", `{"reason":"x"}`, 200, "open"},
		{"operator", "POST", "/v1/webhooks/endpoints/nobody/reopen", `{"reason":"x"}`, 404, ""},
	} {
		code, text := do(c.who, c.method, c.path, c.body)
		if code != c.status || !strings.Contains(text, c.holds) || strings.Contains(text, `"m1"`) {
			t.Errorf("%s %s %s: got %d %s, want %d with %s and no payload", c.who, c.method, c.path, code, text, c.status, c.holds)
		}
	}
}

func TestStageRefuses(t *testing.T) {
	w := setup(t, func(c *Config) { c.MaxBody = 200 })
	for name, m := range map[string]Message{
		"no id": {Tenant: "acme", Type: "t", Data: json.RawMessage(`{}`)}, "no tenant": {ID: "1", Type: "t", Data: json.RawMessage(`{}`)}, "no type": {ID: "1", Tenant: "acme", Data: json.RawMessage(`{}`)},
		"no object": {ID: "1", Tenant: "acme", Type: "t", Data: json.RawMessage(`[]`)}, "too large": {ID: "1", Tenant: "acme", Type: "t", Data: json.RawMessage(`{"a":"` + strings.Repeat("x", 200) + `"}`)},
	} {
		err := pgx.BeginFunc(w.ctx, w.pool, func(tx pgx.Tx) error { _, err := w.w.Stage(w.ctx, outbox.NewTx(tx), m); return err })
		if err == nil || errors.Is(err, ErrTooLarge) != (name == "too large") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPurgeKeepsTheDeadLonger(t *testing.T) {
	w := setup(t, func(c *Config) { c.Schedule = Schedule{time.Second} })
	w.stage("m1")
	w.pass(1)
	w.p.say(status(http.StatusInternalServerError))
	w.stage("m2")
	w.pass(1)
	w.advance(2 * time.Second)
	w.pass(1)
	for _, c := range []struct {
		by   time.Duration
		want int64
	}{{29 * 24 * time.Hour, 0}, {2 * 24 * time.Hour, 1}, {300 * 24 * time.Hour, 0}, {60 * 24 * time.Hour, 1}} {
		w.advance(c.by)
		if n, err := w.w.Purge(w.ctx); n != c.want || err != nil {
			t.Errorf("after %v more: got %d, %v; want %d", c.by, n, err, c.want)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Schedule: Schedule{-1}, Timeout: time.Hour, Keep: 5, KeepDead: 1})
	for _, want := range []string{"Pool", "Directory", "Schedule[0]", "Timeout", "KeepDead"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "Mon, 30 Nov 2026 12:01:00 GMT", "99999999999999999999", "-0", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := retryAfter(http.Header{"Retry-After": {s}}, time.Unix(0, 0)); d < 0 || err != nil && d != 0 {
			t.Errorf("%q: %v, %v", s, d, err)
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add("msg", "1", "v1,AAAA v1,", "{}")
	s := secret(f, "a")
	f.Fuzz(func(t *testing.T, id, at, signature, body string) {
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {at}, "Webhook-Signature": {signature}}
		if err := Verify(h, []byte(body), time.Unix(1, 0), s); err == nil {
			t.Errorf("a signature out of nothing: %v", h)
		}
	})
}
