package sagas

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestPreferences(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]preference{
		"":                           {},
		"wait=7":                     {wait: 7 * time.Second, waitSet: true},
		"respond-async, wait=7":      {async: true, wait: 7 * time.Second, waitSet: true},
		`Wait = "7"; x=y`:            {wait: 7 * time.Second, waitSet: true},
		"wait=1, wait=9":             {wait: time.Second, waitSet: true},
		"wait=-1":                    {},
		"wait=soon, return=minimal":  {},
		"wait=99999999999999999999":  {},
		"handling=lenient; wait=100": {},
		"wait=0":                     {waitSet: true},
	} {
		if got := preferences(http.Header{"Prefer": {in}}); got != want {
			t.Errorf("%q: got %+v, want %+v", in, got, want)
		}
	}
}

// A request that prefers to wait gets the final answer when the operation ends in time, on whichever process it ends.
func TestPreferWait(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	answer := make(chan reply)
	go func() { answer <- w.post(srv, "a", "k", goodTrip, "Prefer", "respond-async, wait=15") }()
	w.eventually(func() bool { return w.count(w.domain, `SELECT count(*) FROM journeyman.saga`) == 1 })
	w.ended(id1("k"), Completed)
	r := <-answer
	if r.status != http.StatusOK || r.json(t)["state"] != "completed" || r.header.Get(HeaderReplayed) != "" {
		t.Errorf("the waiting first request: got %d %s %v, want the final answer, not marked as a replay", r.status, r.body, r.header)
	}
	if got := r.header.Values("Preference-Applied"); len(got) != 2 || got[0] != "respond-async" || got[1] != "wait=15" {
		t.Errorf("Preference-Applied: got %v", got)
	}
	// An ended operation is not waited for; nothing is said to be applied.
	if r := w.post(srv, "a", "k", goodTrip, "Prefer", "wait=15"); r.status != http.StatusOK || r.header.Get("Preference-Applied") != "" || r.header.Get(HeaderReplayed) != "true" {
		t.Errorf("after the end: got %d %v", r.status, r.header)
	}
}

// Longer wishes are cut, and where every place is taken nobody waits: the headers say so.
func TestPreferWaitIsBounded(t *testing.T) {
	w := setup(t)
	auth, err := NewStaticTokens(map[string]Principal{"a": {Tenant: "agency"}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := w.s.Handler(HTTPConfig{Auth: auth, MaxWait: time.Second, MaxWaiting: 1})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	begun := time.Now()
	r := w.post(srv, "a", "k", goodTrip, "Prefer", "wait=3600")
	if r.status != http.StatusAccepted || r.header.Get("Preference-Applied") != "wait=1" || time.Since(begun) < time.Second {
		t.Errorf("got %d %v after %v, want 202 after a second", r.status, r.header, time.Since(begun))
	}
	api := &api{Sagas: w.s, cfg: HTTPConfig{MaxWait: time.Second}, waiting: make(chan struct{})}
	out := httptest.NewRecorder()
	req := httptest.NewRequest(http.MethodGet, "/", nil)
	req.Header.Set("Prefer", "wait=1")
	api.settle(out, request{Request: req, whole: w.ctx}, record{State: stateInProgress})
	if got := out.Header().Get("Preference-Applied"); got != "" {
		t.Errorf("without a free place: Preference-Applied %q, want none", got)
	}
}
