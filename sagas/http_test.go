package sagas

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestFirstRequest(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	r := w.post(srv, "a", `"k-1"`, goodTrip)
	if r.status != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202", r.status, r.body)
	}
	id := OperationID("agency", "trip", "k-1", 1)
	m := r.json(t)
	if m["operation_id"] != id || m["state"] != "in_progress" || r.header.Get("Location") != "/v1/operations/"+id || r.header.Get("Retry-After") != "5" {
		t.Errorf("got %s %v, want operation %s in progress", r.body, r.header, id)
	}
	p := m["progress"].(map[string]any)
	if p["current_step"] != "flight" || len(p["remaining_steps"].([]any)) != 3 || len(p["completed_steps"].([]any)) != 0 {
		t.Errorf("progress: got %v", p)
	}
	if m["partial_result"].(map[string]any)["hotel"].(map[string]any)["status"] != "pending" {
		t.Errorf("partial result: got %v", m["partial_result"])
	}
	if r.header.Get(HeaderReplayed) != "" {
		t.Error("the first answer is marked as a replay")
	}
	// The saga stands in the domain database, with its start message.
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command WHERE name = 'saga.start.trip' AND correlation_key = $1 AND message_id = $1 AND ttl_ms >= 3600000`, id); n != 1 {
		t.Errorf("start messages: got %d, want 1", n)
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record WHERE start_state = 'started'`); n != 1 {
		t.Errorf("records started: got %d, want 1", n)
	}
	// The status is there at once, on another process too.
	other := w.server(w.another(nil))
	if g := w.do(other, http.MethodGet, "/v1/operations/"+id, "a", ""); g.status != http.StatusAccepted {
		t.Errorf("status on another process: got %d, want 202", g.status)
	}
}

func TestConcurrentFirstRequests(t *testing.T) {
	w := setup(t)
	a, b := w.server(w.s), w.server(w.another(nil))
	var mu sync.Mutex
	got := map[int]int{}
	ids := map[any]bool{}
	started := 0
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			srv := a
			if i%2 == 1 {
				srv = b
			}
			r := w.post(srv, "a", "same", goodTrip)
			mu.Lock()
			defer mu.Unlock()
			got[r.status]++
			if r.status == http.StatusAccepted {
				ids[r.json(t)["operation_id"]] = true
				if r.header.Get(HeaderReplayed) == "" {
					started++
				}
			}
		})
	}
	wg.Wait()
	// Those that came after the first 202 was out are polls; a second one within a second is too fast.
	if got[http.StatusAccepted]+got[http.StatusTooManyRequests] != 64 || len(ids) != 1 || started != 1 {
		t.Errorf("got statuses %v, ids %v, %d fresh answers; want one start", got, ids, started)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 1 {
		t.Errorf("sagas: got %d, want 1", n)
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.zeebe_command`); n != 1 {
		t.Errorf("start messages: got %d, want 1", n)
	}
	if w.starts != 1 {
		t.Errorf("OnStart ran %d times, want 1", w.starts)
	}
}

// Twenty at once that all arrive while the operation is being created get its 202 (spec Z7).
func TestArrivalsDuringCreationAreNoPolls(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	held, release := make(chan struct{}), make(chan struct{})
	defer hookOnce("saga.started", OperationID("agency", "trip", "at-once", 1), func() { close(held); <-release })()
	var wg sync.WaitGroup
	statuses := make(chan int, 20)
	wg.Go(func() { statuses <- w.post(srv, "a", "at-once", goodTrip).status })
	<-held
	for range 19 {
		wg.Go(func() { statuses <- w.post(srv, "a", "at-once", goodTrip).status })
	}
	for range 19 {
		if got := <-statuses; got != http.StatusAccepted {
			t.Errorf("arrived during creation: got %d, want 202", got)
		}
	}
	close(release)
	wg.Wait()
	if got := <-statuses; got != http.StatusAccepted {
		t.Errorf("the creating request: got %d, want 202", got)
	}
	if m := w.s.Metrics(); m.TooManyRequests != 0 || m.Started != 1 {
		t.Errorf("metrics: got %+v", m)
	}
}

func TestTenantsDoNotMeet(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	a, b := w.post(srv, "a", "k", goodTrip).json(t), w.post(srv, "b", "k", strings.Replace(goodTrip, "B-1", "B-2", 1)).json(t)
	if a["operation_id"] == b["operation_id"] {
		t.Fatalf("both tenants got operation %v", a["operation_id"])
	}
	path := "/v1/operations/" + a["operation_id"].(string)
	if r := w.do(srv, http.MethodGet, path, "b", ""); r.status != http.StatusNotFound {
		t.Errorf("status by another tenant: got %d, want 404", r.status)
	}
	if r := w.do(srv, http.MethodPost, path+"/cancel", "b", ""); r.status != http.StatusNotFound {
		t.Errorf("cancel by another tenant: got %d, want 404", r.status)
	}
	if r := w.do(srv, http.MethodGet, path, "nobody", ""); r.status != http.StatusUnauthorized {
		t.Errorf("unknown token: got %d, want 401", r.status)
	}
}

func TestMismatch(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	first := w.post(srv, "a", "k", goodTrip).json(t)
	other := strings.Replace(goodTrip, "125000", "125001", 1)
	r := w.post(srv, "a", "k", other)
	if r.status != http.StatusUnprocessableEntity || r.json(t)["operation_id"] != first["operation_id"] || r.json(t)["type"] != problemURN+problemKeyReused {
		t.Errorf("got %d %s, want 422 with the operation", r.status, r.body)
	}
	if strings.Contains(string(r.body), "HT-200") || strings.Contains(string(r.body), "12500") {
		t.Errorf("the answer repeats payload: %s", r.body)
	}
	same := ` {"payment":{"currency":"EUR","amount":1.25e5}, "booking":"B-1", "segments": null, "hotel":{"nights":3.0,"offer":"HT-200"}}`
	if r := w.post(srv, "a", "k", same); r.status != http.StatusAccepted {
		t.Errorf("same JSON written otherwise: got %d %s, want 202", r.status, r.body)
	}
}

// Two payloads race for one key: one starts, the other is refused.
func TestMismatchRacing(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	for i := range 8 {
		key := "race-" + string(rune('a'+i))
		var wg sync.WaitGroup
		got := make([]reply, 2)
		for j, body := range []string{goodTrip, strings.Replace(goodTrip, "EUR", "USD", 1)} {
			wg.Go(func() { got[j] = w.post(srv, "a", key, body) })
		}
		wg.Wait()
		if s := got[0].status + got[1].status; s != http.StatusAccepted+http.StatusUnprocessableEntity {
			t.Errorf("got %d and %d, want 202 and 422", got[0].status, got[1].status)
		}
	}
	if n := w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 8 {
		t.Errorf("sagas: got %d, want 8", n)
	}
}

func TestBadBookings(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	deep := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)
	for name, c := range map[string]struct {
		body, field string
		status      int
		headers     []string
	}{
		"no key":              {goodTrip, HeaderKey, 400, []string{}},
		"empty key":           {goodTrip, HeaderKey, 400, []string{"Idempotency-Key", `""`}},
		"two keys":            {goodTrip, HeaderKey, 400, []string{"Idempotency-Key", "a", "Idempotency-Key", "a"}},
		"joined keys":         {goodTrip, HeaderKey, 400, []string{"Idempotency-Key", "a, b"}},
		"long key":            {goodTrip, HeaderKey, 400, []string{"Idempotency-Key", strings.Repeat("k", 256)}},
		"open quote":          {goodTrip, HeaderKey, 400, []string{"Idempotency-Key", `"abc`}},
		"bad force retry":     {goodTrip, HeaderForceRetry, 400, []string{"Idempotency-Key", "k", HeaderForceRetry, "maybe"}},
		"no booking":          {strings.Replace(goodTrip, `"booking":"B-1",`, "", 1), "booking", 400, nil},
		"unknown hotel":       {strings.Replace(goodTrip, "HT-200", "HT-999", 1), "hotel.offer", 400, nil},
		"negative price":      {strings.Replace(goodTrip, "125000", "-1", 1), "payment.amount", 400, nil},
		"price as text":       {strings.Replace(goodTrip, "125000", `"125000"`, 1), "payment.amount", 400, nil},
		"fractional price":    {strings.Replace(goodTrip, "125000", `12.5`, 1), "payment.amount", 400, nil},
		"huge price":          {strings.Replace(goodTrip, "125000", `99999999999999999999`, 1), "payment.amount", 400, nil},
		"2 MB":                {`{"booking":"` + strings.Repeat("x", 2<<20) + `"}`, "", 413, nil},
		"invalid UTF-8":       {strings.Replace(goodTrip, "B-1", "B-\xff", 1), "booking", 400, nil},
		"invalid UTF-8 name":  {strings.Replace(goodTrip, "hotel", "ho\xfftel", 1), "", 400, nil},
		"duplicate field":     {strings.Replace(goodTrip, `{"offer"`, `{"offer":"HT-100","offer"`, 1), "hotel.offer", 400, nil},
		"unknown field":       {strings.Replace(goodTrip, `"nights"`, `"knights"`, 1), "hotel.knights", 400, nil},
		"other case":          {strings.Replace(goodTrip, `"booking"`, `"Booking"`, 1), "Booking", 400, nil},
		"too deep":            {deep, "a" + strings.Repeat(".a", 31), 400, nil},
		"not JSON":            {`{"booking":`, "booking", 400, nil},
		"array":               {`[]`, "", 400, nil},
		"empty":               {``, "", 400, nil},
		"trailing data":       {goodTrip + "{}", "", 400, nil},
		"NUL":                 {strings.Replace(goodTrip, "B-1", `B-\u0000`, 1), "booking", 400, nil},
		"amount in a segment": {strings.Replace(goodTrip, `{`, `{"segments":[{"kind":"flight","amount":1},{"kind":"hotel","amount":"x"}],`, 1), "segments[1].amount", 400, nil},
	} {
		headers := c.headers
		if headers == nil {
			headers = []string{"Idempotency-Key", "bad"}
		}
		r := w.do(srv, http.MethodPost, "/v1/operations/trip", "a", c.body, headers...)
		if r.status != c.status || r.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d %s %s, want %d and a problem document", name, r.status, r.header.Get("Content-Type"), r.body, c.status)
			continue
		}
		errs, _ := r.json(t)["errors"].([]any)
		if len(errs) == 0 || errs[0].(map[string]any)["field"] != c.field {
			t.Errorf("%s: got %s, want field %q named", name, r.body, c.field)
		}
	}
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_key`) + w.count(w.domain, `SELECT count(*) FROM journeyman.saga`); n != 0 {
		t.Errorf("bad requests left %d rows", n)
	}
	// A refused body does not occupy its key.
	if r := w.post(srv, "a", "bad", goodTrip); r.status != http.StatusAccepted {
		t.Errorf("corrected request: got %d %s, want 202", r.status, r.body)
	}
	if r := w.do(srv, http.MethodPost, "/v1/operations/cruise", "a", goodTrip, "Idempotency-Key", "k"); r.status != http.StatusNotFound {
		t.Errorf("unknown type: got %d, want 404", r.status)
	}
	if r := w.do(srv, http.MethodDelete, "/v1/operations/trip", "a", ""); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") == "" {
		t.Errorf("DELETE: got %d, want 405 with Allow", r.status)
	}
}

func TestPollCadence(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	id := w.post(srv, "a", "k", goodTrip).json(t)["operation_id"].(string)
	w.advance(time.Hour) // arrivals are taken by the real clock: after creation either way
	get := func() reply { return w.do(srv, http.MethodGet, "/v1/operations/"+id, "a", "") }
	for _, want := range []string{"10", "20", "60", "60"} {
		r := get()
		if r.status != http.StatusAccepted || r.header.Get("Retry-After") != want || r.header.Get(HeaderReplayed) != "true" {
			t.Errorf("got %d, Retry-After %s, want 202 and %s", r.status, r.header.Get("Retry-After"), want)
		}
		w.advance(time.Minute)
	}
	if m := w.s.Metrics(); m.PollingViolations != 0 {
		t.Errorf("violations: got %d, want 0", m.PollingViolations)
	}
	get()
	w.advance(2 * time.Second)
	if r := get(); r.status != http.StatusAccepted {
		t.Errorf("early poll: got %d, want 202", r.status)
	}
	if r := get(); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1" {
		t.Errorf("second poll in a second: got %d %v, want 429", r.status, r.header)
	}
	if m := w.s.Metrics(); m.PollingViolations != 2 || m.TooManyRequests != 1 {
		t.Errorf("metrics: got %+v, want 2 violations, one of them refused", m)
	}
	if err := w.s.flushPolls(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := w.count(w.records, `SELECT polls::int * 100 + polling_violations::int FROM journeyman_records.record`); n != 602 {
		t.Errorf("stored polls and violations: got %d, want 6 and 2", n)
	}
}

// The cadence holds across API processes: it is counted in the record store (spec Z7).
func TestPollCadenceAcrossProcesses(t *testing.T) {
	w := setup(t)
	servers := []*httptest.Server{w.server(w.s), w.server(w.another(nil)), w.server(w.another(nil))}
	id := w.post(servers[0], "a", "k", goodTrip).json(t)["operation_id"].(string)
	w.advance(time.Minute)
	for i, want := range []string{"10", "20", "60", "60", "60"} { // each asks for longer, although no process sees two in a row
		r := w.do(servers[i%3], http.MethodGet, "/v1/operations/"+id, "a", "")
		if r.status != http.StatusAccepted || r.header.Get("Retry-After") != want {
			t.Errorf("poll %d: got %d, Retry-After %s, want 202 and %s", i, r.status, r.header.Get("Retry-After"), want)
		}
		w.advance(time.Minute)
	}
	answered := make(chan int, 30)
	var wg sync.WaitGroup
	for i := range 30 { // a flood over all of them: one a second is answered
		wg.Go(func() { answered <- w.post(servers[i%3], "a", "k", goodTrip).status })
	}
	start := time.Now()
	wg.Wait()
	close(answered)
	got := map[int]int{}
	for status := range answered {
		got[status]++
	}
	if most := 1 + int(time.Since(start)/time.Second); got[http.StatusAccepted] < 1 || got[http.StatusAccepted] > most || got[http.StatusAccepted]+got[http.StatusTooManyRequests] != 30 {
		t.Errorf("got %v, want at most %d answered and the others 429", got, most)
	}
	w.ended(id, Completed)
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_poll`); n != 0 {
		t.Errorf("an operation that ended left %d poll rows", n)
	}
}

// A request that another process gets while the operation is being created is no poll.
func TestArrivalAtAnotherProcessDuringCreation(t *testing.T) {
	w := setup(t)
	srv, other := w.server(w.s), w.server(w.another(nil))
	held, release := make(chan struct{}), make(chan struct{})
	defer hookOnce("saga.record.claimed", id1("made-elsewhere"), func() { close(held); <-release })()
	first := make(chan reply, 1)
	go func() { first <- w.post(srv, "a", "made-elsewhere", goodTrip) }()
	<-held
	for range 3 {
		if r := w.post(other, "a", "made-elsewhere", goodTrip); r.status != http.StatusAccepted || r.header.Get("Retry-After") != "5" {
			t.Errorf("got %d, Retry-After %s, want 202 and 5", r.status, r.header.Get("Retry-After"))
		}
	}
	close(release)
	<-first
	if n := w.count(w.records, `SELECT count(*) FROM journeyman_records.record_poll`); n != 0 {
		t.Errorf("got %d polls, want none", n)
	}
}
