package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator/console"
)

// guarded is a console where people sign in, reached as ops.example.
func guarded(t *testing.T, r *operatortest.Rig, edit func(*console.SignIn)) http.Handler {
	t.Helper()
	in := &console.SignIn{Hosts: []string{"ops.example"}, Check: func(_ context.Context, token string) (console.Person, error) {
		switch token {
		case "viewer-token":
			return console.Person{Name: "vera", Role: console.RoleViewer}, nil
		case "operator-token":
			return console.Person{Name: "otto", Role: console.RoleOperator}, nil
		case "ended-token":
			return console.Person{Name: "eve", Role: console.RoleOperator, Until: time.Now().Add(-time.Second)}, nil
		case "no-role":
			return console.Person{Name: "nora"}, nil
		case "outage":
			return console.Person{}, errors.New("issuer down: s3cr3t")
		}
		return console.Person{}, console.ErrDenied
	}}
	if edit != nil {
		edit(in)
	}
	h, err := console.New(console.Config{Desk: r.Desk, SignIn: in})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// browser keeps the cookie of one console.
type browser struct {
	t      *testing.T
	h      http.Handler
	cookie *http.Cookie
}

func (b *browser) ask(method, target string, form url.Values, change ...func(*http.Request)) *http.Response {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(form.Encode()))
	r.Host = "ops.example"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	b.h.ServeHTTP(w, r)
	res := w.Result()
	for _, c := range res.Cookies() {
		b.cookie = c
	}
	return res
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *browser) signIn(token string) *http.Response {
	b.t.Helper()
	return b.ask(http.MethodPost, "/signin", url.Values{"token": {token}})
}

// csrf reads the session's secret off a page.
func (b *browser) csrf(target string) string {
	b.t.Helper()
	m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(body(b.t, b.ask(http.MethodGet, target, nil)))
	if m == nil {
		b.t.Fatalf("no form on %s", target)
	}
	return m[1]
}

// TestSignIn_P3: nothing is shown or done without a session; the cookie is one that scripts and other sites cannot use.
func TestSignIn_P3(t *testing.T) {
	t.Parallel()
	h := guarded(t, operatortest.NewDatabase(t), nil)
	for _, target := range []string{"/", "/sagas", "/sagas/x", "/incidents", "/incidents/1", "/effects", "/audit", "/delivery"} {
		b := &browser{t: t, h: h}
		if res := b.ask(http.MethodGet, target, nil); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/signin" {
			t.Errorf("GET %s without a session: %d to %q, want the sign-in", target, res.StatusCode, res.Header.Get("Location"))
		}
	}
	for _, target := range []string{"/incidents/1/retry", "/remediate/x", "/signout"} {
		b := &browser{t: t, h: h}
		if res := b.ask(http.MethodPost, target, url.Values{"reason": {"x"}}); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("POST %s without a session: %d, want 401", target, res.StatusCode)
		}
	}
	for token, want := range map[string]int{"": 403, "nobody": 403, "no-role": 403, "outage": 503, strings.Repeat("x", 9<<10): 403} {
		b := &browser{t: t, h: h}
		res := b.signIn(token)
		if text := body(t, res); res.StatusCode != want || b.cookie != nil || strings.Contains(text, "s3cr3t") {
			t.Errorf("sign-in with %.20q: %d, cookie %v, want %d and none", token, res.StatusCode, b.cookie, want)
		}
	}
	b := &browser{t: t, h: h}
	if res := b.signIn("viewer-token"); res.StatusCode != http.StatusSeeOther || b.cookie == nil {
		t.Fatalf("sign-in: %d", res.StatusCode)
	}
	if c := b.cookie; !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || !strings.HasPrefix(c.Name, "__Host-") || len(c.Value) < 40 {
		t.Errorf("cookie: %+v", c)
	}
	if text := body(t, b.ask(http.MethodGet, "/sagas", nil)); !strings.Contains(text, "Signed in as <b>vera</b>, viewer") || strings.Contains(text, "Open console") {
		t.Errorf("page of somebody signed in:\n%s", text)
	}
	old := *b.cookie
	if res := b.ask(http.MethodPost, "/signout", url.Values{"csrf": {"wrong"}}); res.StatusCode != http.StatusForbidden {
		t.Errorf("sign-out with another's secret: %d, want 403", res.StatusCode)
	}
	if res := b.ask(http.MethodPost, "/signout", url.Values{"csrf": {b.csrf("/sagas")}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("sign-out: %d", res.StatusCode)
	}
	b.cookie = &old
	if res := b.ask(http.MethodGet, "/sagas", nil); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the old cookie after the sign-out: %d, want the sign-in", res.StatusCode)
	}
	if e := (&browser{t: t, h: h}); e.signIn("ended-token").StatusCode != http.StatusSeeOther || e.ask(http.MethodGet, "/sagas", nil).StatusCode != http.StatusSeeOther {
		t.Error("a session outlives its token")
	}
	for _, host := range []string{"evil.example", "ops.example.evil.example", ""} {
		if res := b.ask(http.MethodGet, "/signin", nil, func(r *http.Request) { r.Host = host }); res.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("host %q: %d, want 421", host, res.StatusCode)
		}
	}
	if res := b.ask(http.MethodPost, "/signin", url.Values{"token": {"viewer-token"}}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); res.StatusCode != http.StatusForbidden {
		t.Errorf("a sign-in from another site: %d, want 403", res.StatusCode)
	}
}

// TestRoles_P3: a viewer looks, an operator acts under their own name; a form without the session's secret is refused, and what
// a viewer tries is audited.
func TestRoles_P3(t *testing.T) {
	t.Parallel()
	r := operatortest.New(t)
	r.Saga("op_1", "manual", "failed", "1 min")
	r.Booking("op_1")
	_, i := r.Incident(models.JobHotelReserve, "503")
	h := guarded(t, r, nil)
	vera, otto := &browser{t: t, h: h}, &browser{t: t, h: h}
	vera.signIn("viewer-token")
	otto.signIn("operator-token")
	retry := "/incidents/" + i.Key.String() + "/retry"

	for _, target := range []string{"/incidents", "/incidents/" + i.Key.String(), "/sagas/op_1"} {
		if text := body(t, vera.ask(http.MethodGet, target, nil)); strings.Contains(text, "/retry\"") || strings.Contains(text, "/remediate/") {
			t.Errorf("%s offers a viewer an act", target)
		}
	}
	secret := vera.csrf("/sagas")
	for _, target := range []string{retry, "/remediate/op_1"} {
		if res := vera.ask(http.MethodPost, target, url.Values{"reason": {"x"}, "outcome": {"failed"}, "csrf": {secret}}); res.StatusCode != http.StatusForbidden {
			t.Errorf("%s of a viewer: %d, want 403", target, res.StatusCode)
		}
	}
	for _, csrf := range []string{"", secret} { // none, and another session's
		if res := otto.ask(http.MethodPost, retry, url.Values{"reason": {"x"}, "csrf": {csrf}}); res.StatusCode != http.StatusForbidden {
			t.Errorf("retry with secret %q: %d, want 403", csrf, res.StatusCode)
		}
	}
	if res := otto.ask(http.MethodPost, retry, url.Values{"reason": {"hotel is back"}, "csrf": {otto.csrf("/incidents")}}); res.StatusCode != http.StatusSeeOther {
		t.Errorf("retry: %d", res.StatusCode)
	}
	if text := body(t, otto.ask(http.MethodGet, "/sagas/op_1", nil)); !strings.Contains(text, `action="/remediate/op_1"`) {
		t.Error("a saga that was left to a person offers no way to close it")
	}
	rows, err := r.Desk.Audit(t.Context(), "", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range rows {
		got = append(got, row.Actor+" "+row.Action)
	}
	if want := "otto incident.retry,vera saga.remediate.refused,vera incident.retry.refused"; strings.Join(got, ",") != want {
		t.Errorf("audit: %v, want %s", got, want)
	}
	// Without Config.Sagas the act is refused as a server fault, never done.
	if res := otto.ask(http.MethodPost, "/remediate/op_1", url.Values{"reason": {"x"}, "outcome": {"failed"}, "csrf": {otto.csrf("/sagas")}}); res.StatusCode != http.StatusInternalServerError {
		t.Errorf("remediate without sagas: %d, want 500", res.StatusCode)
	}
	if s, err := r.Desk.Saga(t.Context(), "op_1"); err != nil || s.State != "manual" {
		t.Errorf("saga: %s, %v", s.State, err)
	}
}

func TestSignInConfig_refuses(t *testing.T) {
	t.Parallel()
	_, err := console.New(console.Config{SignIn: &console.SignIn{Hosts: []string{"https://x"}, Keep: -1}})
	for _, want := range []string{"Check is nil", "Keep", `"https://x"`, "Desk is nil"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v, want it to name %s", err, want)
		}
	}
}
