package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/operator/console"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

const hostile = `<script>alert("x")</script>'"><img src=x onerror=alert(1)>`

// site is a console over a rig.
type site struct {
	*operatortest.Rig
	h http.Handler
}

func open(t *testing.T, r *operatortest.Rig) site {
	t.Helper()
	h, err := console.New(console.Config{Desk: r.Desk, Actor: "console@test"})
	if err != nil {
		t.Fatal(err)
	}
	return site{Rig: r, h: h}
}

// ask sends a request as a browser on this machine would; change may alter it.
func (s site) ask(t *testing.T, method, target string, form url.Values, change ...func(*http.Request)) (status int, header http.Header, body string) {
	t.Helper()
	var in io.Reader
	if form != nil {
		in = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, in)
	r.Host = "127.0.0.1:8081"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// page gets a page and checks what holds for every one of them.
func (s site) page(t *testing.T, target string, wantStatus int, wants ...string) string {
	t.Helper()
	status, header, body := s.ask(t, http.MethodGet, target, nil)
	if status != wantStatus {
		t.Errorf("GET %s: status %d, want %d\n%s", target, status, wantStatus, body)
	}
	sound(t, target, header, body)
	for _, want := range wants {
		if !strings.Contains(body, want) {
			t.Errorf("GET %s lacks %q:\n%s", target, want, body)
		}
	}
	return body
}

// sound checks an HTML page: headers, no script and no inline style, no broken markup where it matters, no payload.
func sound(t *testing.T, target string, header http.Header, body string) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self';", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
	} {
		if !strings.HasPrefix(header.Get(name), want) {
			t.Errorf("%s: header %s is %q, want %q", target, name, header.Get(name), want)
		}
	}
	if strings.Contains(body, "s3cr3t") || strings.Contains(body, "tok_1") {
		t.Errorf("%s shows a payload", target)
	}
	for _, want := range []string{"<!doctype html>", "Open console.", "loopback address only", "console@test", `lang="en"`, `name="viewport"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s lacks %q", target, want)
		}
	}
	root, err := html.Parse(strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	labels := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script", "img", "style", "iframe", "object", "base":
			t.Errorf("%s has an element <%s>", target, n.Data)
		case "h1":
			labels++
		case "input", "select", "textarea":
			if n.Parent.Data != "label" {
				t.Errorf("%s: a field stands outside a label", target)
			}
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" {
				t.Errorf("%s: <%s> has an attribute %s", target, n.Data, a.Key)
			}
			if (a.Key == "href" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("%s: <%s> leads to %q", target, n.Data, a.Val)
			}
		}
	}
	if labels != 1 {
		t.Errorf("%s has %d headings of level 1, want one", target, labels)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := console.New(console.Config{Limit: -time.Second})
	for _, want := range []string{"Desk is nil", "Actor", "Limit"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want it to name %s", err, want)
		}
	}
}

// TestEmpty renders every page of a database in which nothing has happened, without an engine.
func TestEmpty(t *testing.T) {
	t.Parallel()
	s := open(t, operatortest.NewDatabase(t))
	s.page(t, "/sagas", 200, "No saga matches")
	s.page(t, "/sagas/op_none", 404, "not found")
	s.page(t, "/incidents", 503, operator.ErrNoEngine.Error())
	s.page(t, "/incidents/12", 503, operator.ErrNoEngine.Error())
	s.page(t, "/incidents/x", 404, "want a key of the engine")
	s.page(t, "/effects", 200, "Nothing: no effect stands")
	s.page(t, "/audit?verify=1", 200, "Nobody has acted yet", "The chain is whole: 0 rows")
	s.page(t, "/nowhere", 404, "there is no page /nowhere")
	s.page(t, "/sagas?state=happy", 422, "state &#34;happy&#34;: want one of")
	s.page(t, "/audit?before=x", 422, "before &#34;x&#34;")
	s.page(t, "/incidents?instance=x", 422, "process instance &#34;x&#34;")
	if status, header, _ := s.ask(t, http.MethodGet, "/", nil); status != 302 || header.Get("Location") != "/sagas" {
		t.Errorf("GET /: %d to %q, want the sagas", status, header.Get("Location"))
	}
	if status, header, css := s.ask(t, http.MethodGet, "/style.css", nil); status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/css") ||
		!strings.Contains(css, "prefers-color-scheme: dark") || !strings.Contains(css, ".bpmn .is-incident") {
		t.Errorf("GET /style.css: %d %q, want our style and the diagram's", status, header.Get("Content-Type"))
	}
}

// booking makes a saga whose flight is reserved and whose hotel waits for a person.
func booking(t *testing.T) (site, operator.Incident) {
	t.Helper()
	r := operatortest.New(t)
	r.Saga("op_1", "running", "", "1 min")
	r.Booking("op_1")
	r.Complete(r.Job(models.JobFlightReserve), `{"reservationId":"FL-1"}`)
	r.Step("op_1", "flightReserve:flight", "SUCCESS", "open", `{"minor":80000,"currency":"EUR"}`, 1)
	_, i := r.Incident(models.JobHotelReserve, "hotel API said 503")
	return open(t, r), i
}

func TestNormal(t *testing.T) {
	t.Parallel()
	s, i := booking(t)
	s.page(t, "/sagas", 200, `href="/sagas/op_1"`, "acme:op_1", "running")
	s.page(t, "/sagas?state=completed", 200, "No saga matches")
	body := s.page(t, "/sagas/op_1", 200, "<svg", "800.00 EUR", "secretToken", `href="/incidents/`+i.Key.String()+`"`, "hotel API said 503", "completed service task")
	for element, state := range map[string]string{"flightReserve": "completed", "hotelReserve": "incident", "transferReserve": "active"} {
		if !regexp.MustCompile(`class="bpmn-el serviceTask is-` + state + `" data-element="` + element + `"`).MatchString(body) {
			t.Errorf("the diagram does not paint %s as %s", element, state)
		}
	}
	s.page(t, "/incidents", 200, "hotelReserve", "JOB_NO_RETRIES", "hotel API said 503", "hotel.reserve", `action="/incidents/`+i.Key.String()+`/retry"`, `href="/sagas/op_1"`)
	s.page(t, "/incidents?instance="+i.ProcessInstanceKey.String(), 200, i.Key.String())
	s.page(t, "/incidents/"+i.Key.String(), 200, "hotel.reserve", "operationId", "set the retries of job "+i.JobKey.String())
	s.page(t, "/incidents/4711", 404, "not found")
	s.Run(`UPDATE {{schema}}.saga SET decision = 'failed', decided_at = {{schema}}.now()`)
	s.Run(`UPDATE {{schema}}.saga_step SET undo_state = 'stuck', undo_error = 'card expired', undo_at = {{schema}}.now()`)
	s.page(t, "/effects", 200, "800.00 EUR", "card expired", "a person is needed")
	s.page(t, "/sagas?stuck=1", 200, "stuck: undo stuck")
}

func TestRetry(t *testing.T) {
	t.Parallel()
	s, i := booking(t)
	target := "/incidents/" + i.Key.String() + "/retry"

	status, header, body := s.ask(t, http.MethodPost, target, url.Values{"reason": {"  "}, "retries": {"2"}})
	if status != 422 || !strings.Contains(body, "Not retried:") || !strings.Contains(body, `reason &#34;  &#34;: want 1 to 500`) || !strings.Contains(body, `value="2"`) {
		t.Errorf("retry without a reason: %d, want 422 that names the field and keeps the form\n%s", status, body)
	}
	sound(t, target, header, body)
	if status, _, body = s.ask(t, http.MethodPost, target, url.Values{"reason": {"go " + hostile}, "retries": {"many"}}); status != 422 || !strings.Contains(body, `retries &#34;many&#34;: want 1 to 100`) ||
		!strings.Contains(body, "go &lt;script&gt;") {
		t.Errorf("retry with bad retries: %d, want 422 that keeps the reason\n%s", status, body)
	}

	status, header, _ = s.ask(t, http.MethodPost, target, url.Values{"reason": {"hotel is back"}, "retries": {"2"}})
	if status != 303 || header.Get("Location") != "/incidents?audit=1" {
		t.Fatalf("retry: %d to %q, want 303 to /incidents?audit=1", status, header.Get("Location"))
	}
	body = s.page(t, "/incidents?audit=1", 200, "recorded as audit row 1", "retry pending, by console@test")
	if strings.Contains(body, target) {
		t.Error("an incident whose retry is on its way still offers one")
	}
	s.page(t, "/audit?verify=1", 200, "console@test", "incident.retry", "hotel is back", "The chain is whole: 1 rows")
	s.page(t, "/sagas/op_1", 200, "incident.retry by console@test")

	status, header, body = s.ask(t, http.MethodPost, target, url.Values{"reason": {"again"}})
	if status != 409 || !strings.Contains(body, "retried already") || !strings.Contains(body, "audit row 1") {
		t.Errorf("second retry: %d, want 409 that names the first\n%s", status, body)
	}
	sound(t, target, header, body)
	s.Deliver()
	s.page(t, "/incidents", 200, "Nothing waits for a person")
	s.page(t, "/incidents?all=1", 200, "RESOLVED", "retry delivered")
	if job := s.Job(models.JobHotelReserve); job.Retries != 2 {
		t.Errorf("job after the retry: %d retries, want 2", job.Retries)
	}
	if status, _, _ = s.ask(t, http.MethodPost, target, url.Values{"reason": {"again"}}); status != 409 {
		t.Errorf("retry of a resolved incident: %d, want 409", status)
	}
	if status, _, _ = s.ask(t, http.MethodPost, "/incidents/4711/retry", url.Values{"reason": {"go"}}); status != 404 {
		t.Errorf("retry of an unknown incident: %d, want 404", status)
	}
}

// TestRefusesOtherSites: no other site may act through the operator's browser, and no other name may reach the console.
func TestRefusesOtherSites(t *testing.T) {
	t.Parallel()
	s, i := booking(t)
	target := "/incidents/" + i.Key.String() + "/retry"
	form := url.Values{"reason": {"go"}}
	for name, change := range map[string]func(*http.Request){
		"cross-site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same-site":   func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
		"old browser": func(r *http.Request) { r.Header.Del("Sec-Fetch-Site"); r.Header.Set("Origin", "http://evil.example") },
	} {
		status, header, body := s.ask(t, http.MethodPost, target, form, change)
		if status != 403 || !strings.Contains(body, "another site") {
			t.Errorf("%s: %d, want 403\n%s", name, status, body)
		}
		sound(t, name, header, body)
	}
	for _, host := range []string{"evil.example", "evil.example:8081", "10.0.0.1:8081", "localhost.evil.example", "127.0.0.1.evil.example", ""} {
		if status, _, _ := s.ask(t, http.MethodGet, "/sagas", nil, func(r *http.Request) { r.Host = host }); status != 421 {
			t.Errorf("host %q: %d, want 421", host, status)
		}
	}
	for _, host := range []string{"localhost", "localhost:8081", "127.0.0.1", "[::1]:8081", "[::1]", "127.1.2.3:80"} {
		if status, _, _ := s.ask(t, http.MethodGet, "/sagas", nil, func(r *http.Request) { r.Host = host }); status != 200 {
			t.Errorf("host %q: %d, want 200", host, status)
		}
	}
	if status, _, _ := s.ask(t, http.MethodPost, target, url.Values{"reason": {strings.Repeat("x", 20<<10)}}); status != 413 {
		t.Errorf("a form of 20 KiB: %d, want 413", status)
	}
	if status, _, _ := s.ask(t, http.MethodGet, target, nil); status != 404 && status != 405 {
		t.Errorf("GET of a retry: %d, want it refused", status)
	}
	var n int
	if err := s.Pool.QueryRow(t.Context(), `SELECT count(*) FROM `+operatortest.Schema+`.operator_audit`).Scan(&n); err != nil || n != 0 {
		t.Errorf("audit rows after refusals: %d, %v, want 0", n, err)
	}
}

// TestHostile fills every text of every page with markup.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := operatortest.New(t)
	r.Saga("op_1", "compensating", "failed", "1 min")
	r.Booking("op_1")
	_, i := r.Incident(models.JobHotelReserve, hostile)
	r.Step("op_1", "flightReserve:flight", "SUCCESS", "stuck", `{"minor":1,"currency":"<b>"}`, 1)
	r.Operation("op_1:x", "op_1", `orphan = 'parked', orphaned_at = {{schema}}.now(), settled_at = {{schema}}.now()`)
	r.Operation("op_1:y", "op_1", `state = 'calling', reason = 'unknown'`)
	r.Run(`UPDATE {{schema}}.saga SET tenant = $1, type = $1, key = $1, business_key = $1, correlation_id = $1, reason = $1,
		actor = jsonb_build_object('userId', $1::text), variables = jsonb_build_object($1::text, 1)`, hostile)
	r.Run(`UPDATE {{schema}}.saga_step SET name = $1, job_type = $1, undo_type = $1, undo_error = $1, code = $1`, hostile)
	r.Run(`UPDATE {{schema}}.operation SET job_type = $1, message = $1, code = $1, policy = $1, business_key = $1`, hostile)
	for n, state := range []string{"pending", "gone", "parked"} {
		r.Run(`INSERT INTO {{schema}}.zeebe_command (cluster, kind, state, next_at, created_at, changed_at, job_key, operation_id, reason, last_code, last_error)
			VALUES ('default', 'complete', $1, now(), now(), now(), $2, 'op_1:x', $3, $3, $3)`, state, n+1, hostile)
	}
	s := open(t, r)
	if status, _, _ := s.ask(t, http.MethodPost, "/incidents/"+i.Key.String()+"/retry", url.Values{"reason": {hostile}}); status != 303 {
		t.Fatalf("retry: %d", status)
	}
	q := url.QueryEscape(hostile)
	for _, target := range []string{
		"/sagas", "/sagas?key=" + q, "/sagas/op_1", "/incidents", "/incidents?audit=1", "/incidents/" + i.Key.String(), "/effects", "/audit",
	} {
		body := s.page(t, target, 200)
		if !strings.Contains(body, "&lt;script&gt;") {
			t.Errorf("GET %s does not show the hostile text at all", target)
		}
	}
	s.page(t, "/sagas?state="+q, 422, "&lt;script&gt;")
	s.page(t, "/sagas/"+url.PathEscape(hostile), 404, "&lt;script&gt;")
	s.page(t, "/audit?before="+q, 422)
	r.Run(`INSERT INTO {{schema}}.saga SELECT $1, tenant, type, key, attempt, business_key, correlation_id, traceparent, actor, variables, cluster, NULL, decision, reason, state,
		started_at, deadline, begun_at, decided_at, closed_at FROM {{schema}}.saga`, "a/b?c#d%20"+hostile)
	links := regexp.MustCompile(`href="(/sagas/a[^"]*)"`).FindStringSubmatch(s.page(t, "/sagas", 200))
	if links == nil {
		t.Fatal("no link to the saga with the hostile id")
	}
	s.page(t, strings.ReplaceAll(links[1], "&#39;", "'"), 200, "No diagram", "not begun")
}

func TestSlowDatabaseIsBounded(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	h, err := console.New(console.Config{Desk: r.Desk, Actor: "console@test", Limit: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := r.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // ends the lock
	if _, err := tx.Exec(t.Context(), `LOCK TABLE `+operatortest.Schema+`.saga`); err != nil {
		t.Fatal(err)
	}
	s := site{Rig: r, h: h}
	if status, _, _ := s.ask(t, http.MethodGet, "/sagas", nil); status != 503 {
		t.Errorf("a page over a locked table: %d, want 503", status)
	}
}

func TestCheckListen(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"127.0.0.1:8081", "127.0.0.1:0", "[::1]:8081", "localhost:8081", "LocalHost:1", "127.9.9.9:80", "[::ffff:127.0.0.1]:80"} {
		if err := console.CheckListen(good); err != nil {
			t.Errorf("CheckListen(%q): %v, want it allowed", good, err)
		}
	}
	for _, bad := range []string{":8081", "0.0.0.0:8081", "[::]:8081", "10.0.0.5:8081", "192.168.1.2:80", "example.com:80", "localhost.example.com:80", "8081", "", "127.0.0.1", "[fe80::1%lo]:80", "[::1%lo]:80", "[::ffff:10.0.0.1]:80"} {
		err := console.CheckListen(bad)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("CheckListen(%q): %v, want it refused by name", bad, err)
		}
	}
}
