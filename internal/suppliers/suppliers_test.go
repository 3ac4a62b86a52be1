package suppliers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/internal/suppliers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *suppliers.World {
	t.Helper()
	w, err := suppliers.Start(suppliers.Config{CallbackPause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// client gives up after the time that ctx allows; keep-alives are off so that no goroutine stays.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 10 * time.Second}
}

func post(ctx context.Context, c *http.Client, url, key string, body any) (int, suppliers.Thing, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, suppliers.Thing{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return 0, suppliers.Thing{}, err
	}
	req.Header.Set("Idempotency-Key", key)
	return do(c, req)
}

func get(ctx context.Context, c *http.Client, url string) (int, suppliers.Thing, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, suppliers.Thing{}, err
	}
	return do(c, req)
}

func do(c *http.Client, req *http.Request) (int, suppliers.Thing, error) {
	res, err := c.Do(req)
	if err != nil {
		return 0, suppliers.Thing{}, err
	}
	defer res.Body.Close()
	var out suppliers.Thing
	err = json.NewDecoder(res.Body).Decode(&out)
	return res.StatusCode, out, err
}

func room(booking string) suppliers.ReservationRequest {
	return suppliers.ReservationRequest{Reference: "ref-" + booking, Booking: booking, Segment: "hotel", Offer: "HT-200", Nights: 3}
}

func seat(booking string) suppliers.ReservationRequest {
	return suppliers.ReservationRequest{Reference: "ref-" + booking, Booking: booking, Segment: "flight", Offer: "FL-100"}
}

func kinds(w *suppliers.World) []string {
	var out []string
	for _, e := range w.Ledger() {
		out = append(out, fmt.Sprintf("%d %s %s %s %d", e.Seq, e.Supplier, e.Kind, e.Booking, e.Amount))
	}
	return out
}

func TestReservation_keysAreHonouredExceptByTheHotel(t *testing.T) {
	t.Parallel()
	w, c, ctx := start(t), client(t), t.Context()
	for range 3 {
		for url, body := range map[string]any{w.URL(suppliers.Flight): seat("a"), w.URL(suppliers.Hotel): room("a")} {
			if status, _, err := post(ctx, c, url+"/reservations", "key", body); err != nil || status != http.StatusCreated {
				t.Fatalf("post %s: %d, %v", url, status, err)
			}
		}
	}
	count := map[suppliers.Supplier]int{}
	for _, e := range w.Ledger() {
		count[e.Supplier]++
	}
	want := map[suppliers.Supplier]int{suppliers.Flight: 1, suppliers.Hotel: 3}
	if d := cmp.Diff(want, count); d != "" {
		t.Errorf("effects (-want +got):\n%s", d)
	}
	if status, _, err := post(ctx, c, w.URL(suppliers.Flight)+"/reservations", "key", seat("b")); err != nil || status != http.StatusUnprocessableEntity {
		t.Errorf("same key, other body: %d, %v, want 422", status, err)
	}
}

func TestReservation_askAndCancel(t *testing.T) {
	t.Parallel()
	w, c, ctx := start(t), client(t), t.Context()
	base := w.URL(suppliers.Transfer)
	in := suppliers.ReservationRequest{Reference: "r", Booking: "a", Segment: "transfer", Offer: "TR-30"}
	if status, _, err := get(ctx, c, base+"/reservations?reference=r"); err != nil || status != http.StatusNotFound {
		t.Fatalf("ask before: %d, %v, want 404", status, err)
	}
	_, made, err := post(ctx, c, base+"/reservations", "k", in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		status, got, err := post(ctx, c, fmt.Sprintf("%s/reservations/%s/cancel", base, made.ID), fmt.Sprintf("k:undo%d", i), nil)
		if err != nil || status != http.StatusOK || got.Status != "cancelled" {
			t.Fatalf("cancel %d: %d, %+v, %v", i, status, got, err)
		}
	}
	_, got, err := get(ctx, c, base+"/reservations?reference=r")
	if err != nil {
		t.Fatal(err)
	}
	want := suppliers.Thing{ID: made.ID, Status: "cancelled", Reference: "r", Amount: 3000, Currency: "EUR"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ask after (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"1 transfer reserve a 3000", "2 transfer cancel a 3000"}, kinds(w)); d != "" {
		t.Errorf("ledger (-want +got):\n%s", d)
	}
}

func TestPayment_fromAuthorizationToRefund(t *testing.T) {
	t.Parallel()
	w, c, ctx := start(t), client(t), t.Context()
	base := w.URL(suppliers.Payment)
	auth := suppliers.AuthorizationRequest{Reference: "p", Booking: "a", Amount: 500, Currency: "EUR", Token: suppliers.DeclinedToken}
	if status, _, err := post(ctx, c, base+"/authorizations", "k0", auth); err != nil || status != http.StatusConflict {
		t.Fatalf("declined token: %d, %v, want 409", status, err)
	}
	auth.Token = "tok_1"
	_, made, err := post(ctx, c, base+"/authorizations", "k1", auth)
	if err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		path, key string
		body      any
		status    int
	}{
		{"/captures", "k2", suppliers.CaptureRequest{Reference: "c", Authorization: made.ID}, http.StatusCreated},
		{"/captures", "k2", suppliers.CaptureRequest{Reference: "c", Authorization: made.ID}, http.StatusCreated},
		{"/captures", "k3", suppliers.CaptureRequest{Reference: "c", Authorization: made.ID}, http.StatusConflict},
		{"/authorizations/" + made.ID + "/void", "k4", nil, http.StatusConflict},
		{"/refunds", "k5", suppliers.RefundRequest{Reference: "r", Booking: "a", Amount: 500, Currency: "EUR"}, http.StatusCreated},
	}
	for _, s := range steps {
		if status, got, err := post(ctx, c, base+s.path, s.key, s.body); err != nil || status != s.status {
			t.Fatalf("%s %s: %d %+v, %v, want %d", s.path, s.key, status, got, err, s.status)
		}
	}
	want := []string{"1 payment authorize a 500", "2 payment capture a 500", "3 payment refund a 500"}
	if d := cmp.Diff(want, kinds(w)); d != "" {
		t.Errorf("ledger (-want +got):\n%s", d)
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	close(released)
	type result struct {
		Answers []int // 0 = no answer
		Effects int
	}
	tests := []struct {
		name   string
		script []suppliers.Behaviour
		want   result
	}{
		{"nothing", nil, result{[]int{201, 201}, 1}},
		{"refuse holds", []suppliers.Behaviour{suppliers.Refuse("SOLD_OUT")}, result{[]int{409, 409}, 0}},
		{"refuse once", []suppliers.Behaviour{suppliers.Refuse("SOLD_OUT").Times(1)}, result{[]int{409, 201}, 1}},
		{"fail twice", []suppliers.Behaviour{suppliers.Fail(2)}, result{[]int{500, 500}, 0}},
		{"time-out before", []suppliers.Behaviour{suppliers.TimeoutBefore()}, result{[]int{0, 201}, 1}},
		{"time-out after", []suppliers.Behaviour{suppliers.TimeoutAfter(), suppliers.TimeoutAfter()}, result{[]int{0, 0}, 1}},
		{"act then fail", []suppliers.Behaviour{suppliers.ActThenFail()}, result{[]int{500, 201}, 1}},
		{"late", []suppliers.Behaviour{suppliers.Late(released)}, result{[]int{201, 201}, 1}},
		{"lands late", []suppliers.Behaviour{suppliers.LandLate(released)}, result{[]int{201, 201}, 1}},
		{"twice", []suppliers.Behaviour{suppliers.Twice()}, result{[]int{201, 201}, 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w, c := start(t), client(t)
			w.Script("a", "flight", suppliers.Action(suppliers.Reserve), tt.script...)
			var got result
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				if len(tt.want.Answers) > len(got.Answers) && tt.want.Answers[len(got.Answers)] == 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithTimeout(ctx, 50*time.Millisecond)
					defer stop()
				}
				status, _, _ := post(ctx, c, w.URL(suppliers.Flight)+"/reservations", "k", seat("a"))
				cancel()
				got.Answers = append(got.Answers, status)
			}
			got.Effects = len(w.Ledger())
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestScript_landsAfterTheCallerHasGone(t *testing.T) {
	t.Parallel()
	w, c := start(t), client(t)
	release := make(chan struct{})
	w.Script("a", "hotel", suppliers.Action(suppliers.Reserve), suppliers.LandLate(release))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := post(ctx, c, w.URL(suppliers.Hotel)+"/reservations", "k", room("a")); err == nil {
		t.Fatal("the call was answered before its release")
	}
	if got := w.Ledger(); len(got) != 0 {
		t.Fatalf("effects before the release: %+v", got)
	}
	close(release)
	wait, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	if _, err := w.Await(wait, func(e suppliers.Effect) bool { return e.Kind == suppliers.Reserve }); err != nil {
		t.Fatalf("the call never landed: %v", err)
	}
}

func TestScript_whenHoldsBackARefusal(t *testing.T) {
	t.Parallel()
	w, c := start(t), client(t)
	release := make(chan struct{})
	w.Script("a", "flight", suppliers.Action(suppliers.Reserve), suppliers.Refuse("SOLD_OUT").When(release))
	answered := make(chan int, 1)
	go func() {
		status, _, _ := post(t.Context(), c, w.URL(suppliers.Flight)+"/reservations", "k", seat("a"))
		answered <- status
	}()
	deadline := time.Now().Add(5 * time.Second)
	for w.Requests("a", "flight", suppliers.Action(suppliers.Reserve)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the request never arrived")
		}
		runtime.Gosched()
	}
	select {
	case status := <-answered:
		t.Fatalf("answered %d before the release", status)
	default:
	}
	close(release)
	if status := <-answered; status != http.StatusConflict {
		t.Errorf("answered %d, want 409", status)
	}
}

func TestTickets_answerComesLaterAndTwice(t *testing.T) {
	t.Parallel()
	w, c := start(t), client(t)
	w.Script("a", "flight", suppliers.Action(suppliers.Ticket), suppliers.Twice())
	got := make(chan suppliers.TicketsIssued, 4)
	refuse := make(chan struct{}, 1)
	refuse <- struct{}{} // the first try is answered 503
	desk := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-refuse:
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		default:
		}
		var news suppliers.TicketsIssued
		if err := json.NewDecoder(r.Body).Decode(&news); err != nil {
			t.Error(err)
		}
		got <- news
	}))
	t.Cleanup(desk.Close)
	in := suppliers.TicketRequest{Reference: "t", Booking: "a", Reservations: []string{"FLR-1"}, Travellers: 2, Callback: desk.URL}
	if status, _, err := post(t.Context(), c, w.URL(suppliers.Flight)+"/tickets", "k", in); err != nil || status != http.StatusAccepted {
		t.Fatalf("post: %d, %v, want 202", status, err)
	}
	want := suppliers.TicketsIssued{Reference: "t", ID: "TKT-1", Booking: "a", Tickets: []string{"TKT-1-1", "TKT-1-2"}}
	for range 2 {
		select {
		case news := <-got:
			if d := cmp.Diff(want, news); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("no callback")
		}
	}
	if n := len(w.Ledger()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

func TestRequests_badOnesAreRefused(t *testing.T) {
	t.Parallel()
	w, c := start(t), client(t)
	flight, payment := w.URL(suppliers.Flight), w.URL(suppliers.Payment)
	tests := []struct {
		name, url string
		body      any
		want      int
	}{
		{"no reference", flight + "/reservations", suppliers.ReservationRequest{Booking: "a", Segment: "flight", Offer: "FL-1"}, 400},
		{"another supplier's offer", flight + "/reservations", suppliers.ReservationRequest{Reference: "r", Booking: "a", Segment: "flight", Offer: "HT-1"}, 409},
		{"unknown field", flight + "/reservations", map[string]any{"price": 1}, 400},
		{"too big", flight + "/reservations", map[string]any{"reference": string(bytes.Repeat([]byte("x"), 70<<10))}, 413},
		{"no amount", payment + "/authorizations", suppliers.AuthorizationRequest{Reference: "r", Booking: "a", Currency: "EUR", Token: "t"}, 400},
		{"unknown authorization", payment + "/captures", suppliers.CaptureRequest{Reference: "r", Authorization: "AUTH-9"}, 404},
		{"callback is no address", flight + "/tickets", suppliers.TicketRequest{Reference: "r", Booking: "a", Travellers: 1, Callback: "file:///etc"}, 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if status, _, err := post(t.Context(), c, tt.url, "k", tt.body); err != nil || status != tt.want {
				t.Errorf("%d, %v, want %d", status, err, tt.want)
			}
		})
	}
	if n := len(w.Ledger()); n != 0 {
		t.Errorf("%d effects, want none", n)
	}
}

func TestReservation_manyAtOnceWithOneKey(t *testing.T) {
	t.Parallel()
	w, c := start(t), client(t)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if status, _, err := post(t.Context(), c, w.URL(suppliers.Flight)+"/reservations", "k", seat("a")); err != nil || status != http.StatusCreated {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	all.Wait()
	if n := len(w.Ledger()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}
