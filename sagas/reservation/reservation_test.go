package reservation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/reservation"
	"github.com/vitrip/journeyman/sagas/sagatest"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

var db workertest.Database //nolint:gochecknoglobals // one server for all tests

func TestMain(m *testing.M) { os.Exit(db.Main(m)) }

const (
	tenant    = "tester" // of the kit
	booked    = tenant + ":B-1"
	reserve   = suppliers.Action(suppliers.Reserve)
	authorize = suppliers.Action(suppliers.Authorize)
	capture   = suppliers.Action(suppliers.Capture)
)

var room = json.RawMessage(`{"booking":"B-1","segment":"hotel","offer":"HT-200","nights":3,"travellers":2,"payment":{"token":"tok_1","amount":60000,"currency":"EUR"}}`)

// stage is the saga with its own handlers and the suppliers' simulators over HTTP.
type stage struct {
	*sagatest.Kit
	t     *testing.T
	world *suppliers.World
}

func start(t *testing.T, sla time.Duration) *stage {
	t.Helper()
	t.Parallel()
	world, err := suppliers.Start(suppliers.Config{CallbackPause: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	client := func(s suppliers.Supplier) *supplier.Client {
		c, err := supplier.New(world.URL(s), 200*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	typ, err := reservation.Type(reservation.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	tickets, err := ticketing.Type(ticketing.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{models.Reservation, models.Ticketing} {
		if files[name], err = models.Read(name); err != nil {
			t.Fatal(err)
		}
	}
	flight := client(suppliers.Flight)
	k := sagatest.Start(t, sagatest.Config{
		Producer: "tour-workers", Database: &db, Types: []sagas.Type{typ, tickets}, Models: files, Catalogs: [][]byte{tourbooking.Catalog(), ticketing.Catalog()},
		Migrate: func(ctx context.Context, pool *pgxpool.Pool) error {
			return errors.Join(tourbooking.Migrate(ctx, pool, ""), ticketing.Migrate(ctx, pool, ""))
		},
		Install: func(mux *worker.Mux, s *sagas.Sagas) error {
			return errors.Join(reservation.Install(mux, reservation.Config{
				Flight: flight, Hotel: client(suppliers.Hotel), Transfer: client(suppliers.Transfer), Payment: client(suppliers.Payment),
				Sagas: s, Ticketing: ticketing.Plan, SLA: sla,
			}), ticketing.Install(mux, ticketing.Config{Flight: flight, Sagas: s, CallbackURL: "http://127.0.0.1:1/none", CallbackSecret: []byte("sixteen bytes or more")}))
		},
	})
	return &stage{k, t, world}
}

// want compares what happened at the suppliers, and where the booking stands.
func (st *stage) want(state tourbooking.State, effects map[string]int) {
	st.t.Helper()
	got := map[string]int{}
	for _, e := range st.world.Ledger() {
		got[e.Segment+" "+string(e.Kind)]++
	}
	if !maps.Equal(got, effects) {
		st.t.Errorf("effects: got %v, want %v", got, effects)
	}
	var now tourbooking.State
	if err := st.Pool.QueryRow(st.t.Context(), `SELECT state FROM journeyman.tour_booking WHERE business_key = $1`, booked).Scan(&now); err != nil || now != state {
		st.t.Errorf("the booking is %s (%v), want %s", now, err, state)
	}
}

func TestReservation_succeedsForEachSegment(t *testing.T) {
	for segment, body := range map[string]string{
		"flight":   `{"booking":"B-1","segment":"flight","offer":"FL-100","travellers":1,"payment":{"token":"tok_1","amount":60000,"currency":"EUR"}}`,
		"hotel":    string(room),
		"transfer": `{"booking":"B-1","segment":"transfer","offer":"TR-100","travellers":1,"payment":{"token":"tok_1","amount":60000,"currency":"EUR"}}`,
	} {
		t.Run(segment, func(t *testing.T) {
			st := start(t, 0)
			r := st.Run(reservation.TypeName, "k", json.RawMessage(body))
			r.Want("completed", "")
			var answer tourbooking.Result
			if err := json.Unmarshal(r.Answer, &answer); err != nil || answer.State != tourbooking.Confirmed || len(answer.Segments) != 1 || answer.Segments[0].Kind != segment {
				t.Errorf("answer %s, %v", r.Answer, err)
			}
			want, state := map[string]int{segment + " reserve": 1, "payment authorize": 1, "payment capture": 1}, tourbooking.Confirmed
			if segment == "flight" { // its ticketing is an operation of its own, started by the confirmation
				id := sagas.OperationID(tenant, ticketing.TypeName, r.OperationID, 1)
				st.Until("the tickets are asked for", func() bool { return st.world.Requests(booked, "flight", suppliers.Action(suppliers.Ticket)) > 0 })
				st.Until("the booking is in ticketing", func() bool {
					var n int
					err := st.Pool.QueryRow(t.Context(), `SELECT count(*) FROM journeyman.tour_booking WHERE state = 'ticketing'`).Scan(&n)
					return err == nil && n == 1
				})
				if _, err := st.Sagas.Show(t.Context(), id); err != nil {
					t.Error(err)
				}
				want["flight ticket"], state = 1, tourbooking.InTicketing
			}
			st.want(state, want)
		})
	}
}

// What is refused before the pivot leaves nothing behind; the booking number can be used again.
func TestReservation_refused(t *testing.T) {
	for name, c := range map[string]struct {
		segment string
		action  suppliers.Action
		says    string
		code    string
		undone  []string
		state   tourbooking.State
		effects map[string]int
	}{
		"no room":  {"hotel", reserve, "SOLD_OUT", "SOLD_OUT", nil, tourbooking.Failed, map[string]int{}},
		"no money": {"payment", authorize, "DECLINED", "PAYMENT_DECLINED", []string{"segmentReserve"}, tourbooking.Compensated, map[string]int{"hotel reserve": 1, "hotel cancel": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			st := start(t, 0)
			st.world.Script(booked, c.segment, c.action, suppliers.Refuse(c.says).Times(1))
			st.Run(reservation.TypeName, "k", room).Want("failed", c.code, c.undone...)
			st.want(c.state, c.effects)
			again := maps.Clone(c.effects)
			again["hotel reserve"]++
			again["payment authorize"], again["payment capture"] = 1, 1
			id := st.post("k", map[string]string{"X-Idempotency-Force-Retry": "true"}, http.StatusAccepted)
			st.Wait(id).Want("completed", "")
			st.want(tourbooking.Confirmed, again)
		})
	}
}

// Spec S4: the answer is lost and the supplier cannot be asked in time: a follow-up finds it, nothing is done twice.
func TestReservation_lostReply(t *testing.T) {
	for name, c := range map[string]struct {
		segment string
		action  suppliers.Action
	}{"room": {"hotel", reserve}, "authorization": {"payment", authorize}, "capture": {"payment", capture}} {
		t.Run(name, func(t *testing.T) {
			st := start(t, 500*time.Millisecond)
			st.world.Script(booked, c.segment, c.action, suppliers.TimeoutAfter())
			st.world.Script(booked, c.segment, suppliers.Ask, suppliers.Fail(10))
			st.Run(reservation.TypeName, "k", room).Want("completed", "")
			st.want(tourbooking.Confirmed, map[string]int{"hotel reserve": 1, "payment authorize": 1, "payment capture": 1})
		})
	}
}

// Spec I5: after five minutes it is over.
func TestReservation_expiresAfterFiveMinutes(t *testing.T) {
	st := start(t, 10*time.Minute) // the SLA must not end it before
	st.world.Script(booked, "hotel", reserve, suppliers.TimeoutBefore().Always())
	id := st.Post(reservation.TypeName, "k", room)
	st.Until("the hotel is asked", func() bool { return st.world.Requests(booked, "hotel", reserve) > 0 })
	st.Advance(4*time.Minute + 30*time.Second)
	if d, err := st.Sagas.Show(t.Context(), id); err != nil || d.Decision != sagas.Undecided {
		t.Errorf("after four and a half minutes: decided %q, %v", d.Decision, err)
	}
	st.Advance(31 * time.Second)
	st.Wait(id).Want("expired", "deadline")
	st.want(tourbooking.Expired, map[string]int{})
}

func TestReservation_cancelled(t *testing.T) {
	st := start(t, 0)
	st.world.Script(booked, "payment", authorize, suppliers.TimeoutBefore().Always())
	id := st.Post(reservation.TypeName, "k", room)
	st.Until("the money is asked for", func() bool { return st.world.Requests(booked, "payment", authorize) > 0 })
	st.Cancel(id)
	st.Until("it is given up", func() bool {
		d, err := st.Sagas.Show(t.Context(), id)
		return err == nil && d.Decision == sagas.Cancelled
	})
	st.Advance(time.Minute) // the lease of the call that was never answered
	st.Wait(id).Want("failed", "cancelled", "segmentReserve")
	st.want(tourbooking.Cancelled, map[string]int{"hotel reserve": 1, "hotel cancel": 1})
}

// The partner asks to wait, and the answer of the end is the answer of the first request.
func TestReservation_preferWait(t *testing.T) {
	st := start(t, 0)
	id := st.post("k", map[string]string{"Prefer": "wait=20"}, http.StatusOK)
	st.Wait(id).Want("completed", "")
	st.want(tourbooking.Confirmed, map[string]int{"hotel reserve": 1, "payment authorize": 1, "payment capture": 1})
}

func TestReservation_bookingExists(t *testing.T) {
	st := start(t, 0)
	st.Run(reservation.TypeName, "k", room).Want("completed", "")
	st.Run(reservation.TypeName, "other", room).Want("failed", tourbooking.CodeBookingExists)
	st.want(tourbooking.Confirmed, map[string]int{"hotel reserve": 1, "payment authorize": 1, "payment capture": 1})
}

// post sends the request of the room with headers of its own, and gives the operation's id.
func (st *stage) post(key string, headers map[string]string, want int) string {
	st.t.Helper()
	auth, err := sagas.NewStaticTokens(map[string]sagas.Principal{"token": {Tenant: tenant, Actor: events.Actor{ServiceClient: tenant}}})
	if err != nil {
		st.t.Fatal(err)
	}
	h, err := st.Sagas.Handler(sagas.HTTPConfig{Auth: auth})
	if err != nil {
		st.t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, "/v1/operations/"+reservation.TypeName, strings.NewReader(string(room)))
	req.Header.Set("Authorization", "Bearer token")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	var got struct {
		OperationID string `json:"operation_id"`
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != want {
		st.t.Fatalf("post: %d %s, want %d", rec.Code, rec.Body, want)
	}
	return got.OperationID
}

func TestParse(t *testing.T) {
	t.Parallel()
	typ, err := reservation.Type(reservation.TypeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if typ.Timeout != 5*time.Minute || typ.Retention != 30*24*time.Hour {
		t.Errorf("times %v, %v, want 5 min and 30 d (spec I5)", typ.Timeout, typ.Retention)
	}
	if p, err := typ.Parse(t.Context(), tenant, room); err != nil || p.BusinessKey != booked {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, body := range []string{
		`{}`, strings.Replace(string(room), "hotel", "boat", 1), strings.Replace(string(room), `"nights":3`, `"nights":0`, 1),
		strings.Replace(string(room), "HT-200", "FL-200", 1), strings.Replace(string(room), `"amount":60000`, `"amount":0`, 1),
		strings.Replace(string(room), `"hotel"`, `"transfer"`, 1),
	} {
		if _, err := typ.Parse(t.Context(), tenant, []byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
	if _, err := reservation.Type(reservation.TypeConfig{Timeout: time.Minute}); err == nil {
		t.Error("a time-out no longer than the SLA of a step was taken (spec I4)")
	}
	if err := reservation.Install(worker.NewMux(), reservation.Config{SLA: -1}); err == nil || fmt.Sprint(err) == "" {
		t.Error("an empty Config was taken")
	}
}
