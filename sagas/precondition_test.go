package sagas

import (
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Of many forced retries that name the answer they saw, one starts the new attempt; the others are told that they lost.
func TestForceRetryLostRace(t *testing.T) {
	w := setup(t)
	a, b := w.server(w.s), w.server(w.another(nil))
	w.post(a, "a", "k", goodTrip)
	w.ended(id1("k"), Failed)
	seen := w.post(a, "a", "k", goodTrip).header.Get("ETag")
	if seen == "" {
		t.Fatal("the final answer has no ETag")
	}
	if r := w.post(a, "a", "k", goodTrip, HeaderForceRetry, "true", "If-Match", `"other"`); r.status != http.StatusPreconditionFailed || r.header.Get("ETag") != seen {
		t.Errorf("another state: got %d %v, want 412 with the present ETag", r.status, r.header)
	}
	if r := w.post(a, "a", "k", goodTrip, HeaderForceRetry, "true", "If-Match", "W/"+seen); r.status != http.StatusPreconditionFailed {
		t.Errorf("weak tag: got %d, want 412", r.status)
	}
	var (
		wg  sync.WaitGroup
		mu  sync.Mutex
		got = map[int]int{}
	)
	for i := range 16 {
		wg.Go(func() {
			srv := a
			if i%2 == 1 {
				srv = b
			}
			r := w.post(srv, "a", "k", goodTrip, HeaderForceRetry, "true", "If-Match", `"x", `+seen)
			mu.Lock()
			defer mu.Unlock()
			got[r.status]++
			if r.json(t)["operation_id"] != OperationID("agency", "trip", "k", 2) {
				t.Errorf("got %d %s, want the new attempt named", r.status, r.body)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(map[int]int{http.StatusAccepted: 1, http.StatusPreconditionFailed: 15}, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 2 {
		t.Errorf("sagas: got %d, want 2", n)
	}
}

func TestIfMatch(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	if r := w.post(srv, "a", "new", goodTrip, "If-Match", "*"); r.status != http.StatusPreconditionFailed {
		t.Errorf("first request with If-Match: got %d, want 412", r.status)
	}
	if r := w.post(srv, "a", "new", goodTrip, "If-Match", "no quotes"); r.status != http.StatusBadRequest {
		t.Errorf("malformed If-Match: got %d, want 400", r.status)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_key`); n != 0 {
		t.Errorf("keys: got %d, want 0", n)
	}
	first := w.post(srv, "a", "k", goodTrip).header.Get("ETag")
	path := "/v1/operations/" + id1("k")
	if r := w.do(srv, http.MethodPost, path+"/cancel", "a", "", "If-Match", `"old"`); r.status != http.StatusPreconditionFailed {
		t.Errorf("cancel of another state: got %d, want 412", r.status)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE name = 'saga.cancel'`); n != 0 {
		t.Errorf("cancel messages: got %d, want 0", n)
	}
	if r := w.do(srv, http.MethodPost, path+"/cancel", "a", "", "If-Match", first); r.status != http.StatusAccepted {
		t.Errorf("cancel of this state: got %d %s, want 202", r.status, r.body)
	}
	w.ended(id1("k"), Completed)
	if r := w.do(srv, http.MethodGet, path, "a", ""); r.header.Get("ETag") == first || r.header.Get("ETag") == "" {
		t.Errorf("the ETag %s did not move with the state", r.header.Get("ETag"))
	}
}

func TestIfMatchForms(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		`"a"`: {`"a"`}, `"a", "b"`: {`"a"`, `"b"`}, `W/"a","b"`: {`"b"`}, `"a,b"`: {`"a,b"`}, `*`: nil, ``: nil,
	} {
		tags, any, given, err := ifMatch(http.Header{"If-Match": {in}})
		if err != nil || !given || any != (in == "*") || !cmp.Equal(tags, want) {
			t.Errorf("%s: got %q, any %v, given %v, %v", in, tags, any, given, err)
		}
	}
	for _, in := range []string{`a`, `"a`, `"a" "b"`, `*, "a"`, `"a";q=1`, `W/`, `W/a`} {
		if _, _, _, err := ifMatch(http.Header{"If-Match": {in}}); err == nil {
			t.Errorf("%s: got no error", in)
		}
	}
}
