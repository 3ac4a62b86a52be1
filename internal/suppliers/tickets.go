package suppliers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// TicketRequest is the body of POST /tickets.
type TicketRequest struct {
	Reference    string   `json:"reference"`
	Booking      string   `json:"booking"`
	Reservations []string `json:"reservations"` // each traveller gets a ticket for each
	Travellers   int      `json:"travellers"`
	Callback     string   `json:"callback"` // http or https address the answer is posted to
}

// TicketsIssued is what the flight supplier posts to the callback address. It may come twice.
type TicketsIssued struct {
	Reference string   `json:"reference"`
	ID        string   `json:"id"`
	Booking   string   `json:"booking"`
	Tickets   []string `json:"tickets"`
}

const (
	ticketSegment   = "flight"
	maxTravellers   = 99
	maxReservations = 20
)

// tickets is the ticketing part of the flight supplier: it takes requests now and answers later.
type tickets struct {
	world *World
	keys  *keys

	mu     sync.Mutex
	issued things
}

func (t *tickets) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /tickets", t.post)
	mux.HandleFunc("GET /tickets", func(rw http.ResponseWriter, q *http.Request) { askFor(t.world, rw, q, &t.mu, &t.issued) })
	mux.HandleFunc("POST /tickets/{id}/withdraw", t.withdraw)
}

func (t *tickets) post(rw http.ResponseWriter, q *http.Request) {
	var in TicketRequest
	if !t.world.read(rw, q, &in) {
		return
	}
	u, err := url.Parse(in.Callback)
	if in.Reference == "" || in.Booking == "" || len(in.Reservations) < 1 || len(in.Reservations) > maxReservations || in.Travellers < 1 || in.Travellers > maxTravellers || err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		t.world.send(rw, refused(http.StatusBadRequest, "BAD_REQUEST", "reference, booking and callback must be set, travellers from 1 to 99, reservations 1 to 20"), false)
		return
	}
	key := q.Header.Get("Idempotency-Key")
	t.world.seam(rw, q, target{in.Booking, ticketSegment, Action(Ticket)}, func() answer {
		return t.keys.once(key, fmt.Sprintf("%+v", in), func() answer { return t.issue(in, key) })
	})
}

func (t *tickets) issue(in TicketRequest, key string) answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := &thing{Thing{ID: fmt.Sprintf("TKT-%d", len(t.issued.byID)+1), Status: "requested", Reference: in.Reference}, in.Booking, ticketSegment}
	for i := range in.Travellers * len(in.Reservations) {
		x.Tickets = append(x.Tickets, fmt.Sprintf("%s-%d", x.ID, i+1))
	}
	if err := t.world.ledger.add(x.effect(Flight, Ticket, key)); err != nil {
		return refused(http.StatusServiceUnavailable, "FULL", err.Error())
	}
	t.issued.add(x)
	news := TicketsIssued{Reference: in.Reference, ID: x.ID, Booking: in.Booking, Tickets: x.Tickets}
	return answer{status: http.StatusAccepted, body: x.Thing, after: func(twice bool) {
		t.world.spawn(func() {
			t.world.post(in.Callback, news)
			if twice {
				t.world.post(in.Callback, news)
			}
		})
	}}
}

func (t *tickets) withdraw(rw http.ResponseWriter, q *http.Request) {
	t.mu.Lock()
	x := t.issued.byID[q.PathValue("id")]
	t.mu.Unlock()
	if x == nil {
		t.world.send(rw, refused(http.StatusNotFound, "NOT_FOUND", ""), false)
		return
	}
	key := q.Header.Get("Idempotency-Key")
	t.world.seam(rw, q, target{x.booking, ticketSegment, Action(Withdraw)}, func() answer {
		return t.keys.once(key, q.URL.Path, func() answer {
			t.mu.Lock()
			defer t.mu.Unlock()
			if x.Status != "withdrawn" {
				if err := t.world.ledger.add(x.effect(Flight, Withdraw, key)); err != nil {
					return refused(http.StatusServiceUnavailable, "FULL", err.Error())
				}
				x.Status = "withdrawn"
			}
			return answer{status: http.StatusOK, body: x.Thing}
		})
	})
}

// post sends a callback until it is answered 2xx, the attempts are used up or the world ends.
func (w *World) post(address string, news TicketsIssued) {
	body, err := json.Marshal(news)
	if err != nil {
		w.cfg.Log.Error().Err(err).Msg("callback cannot be encoded")
		return
	}
	for range w.cfg.CallbackAttempts {
		req, err := http.NewRequestWithContext(w.ctx, http.MethodPost, address, bytes.NewReader(body))
		if err != nil {
			w.cfg.Log.Error().Err(err).Msg("callback address is not usable")
			return
		}
		req.Header.Set("Content-Type", "application/json")
		if answered, err := w.client.Do(req); err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(answered.Body, maxBody))
			_ = answered.Body.Close()
			if answered.StatusCode/100 == 2 {
				return
			}
		}
		pause := time.NewTimer(w.cfg.CallbackPause)
		select {
		case <-w.ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
	w.cfg.Log.Error().Str("reference", news.Reference).Int("attempts", w.cfg.CallbackAttempts).Msg("callback was never taken")
}
