package suppliers

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
)

// ReservationRequest is the body of POST /reservations.
type ReservationRequest struct {
	Reference  string `json:"reference"`
	Booking    string `json:"booking"`
	Segment    string `json:"segment"` // the booking's own name of it, free text
	Offer      string `json:"offer"`
	Travellers int    `json:"travellers,omitempty"`
	Nights     int    `json:"nights,omitempty"`
}

// ReturnRequest is the body of POST /returns: take a segment back.
type ReturnRequest struct {
	Reference   string `json:"reference"`
	Booking     string `json:"booking"`
	Segment     string `json:"segment"`
	Reservation string `json:"reservation"` // the supplier's or the partner's reference of what is given back
	Amount      int64  `json:"amount"`
	Currency    string `json:"currency"`
}

// Thing is what the simulators answer about a reservation, a return, a ticket or a payment.
type Thing struct {
	ID        string   `json:"id"`
	Status    string   `json:"status"`
	Reference string   `json:"reference"`
	Amount    int64    `json:"amount"`
	Currency  string   `json:"currency,omitempty"`
	Tickets   []string `json:"tickets,omitempty"`
}

// reservations is a flight, hotel or transfer supplier.
type reservations struct {
	world      *World
	supplier   Supplier
	keys       *keys
	ignoreKeys bool

	mu      sync.Mutex
	reserve things
	returns things
}

// things are the records of one simulator of one kind, by id and by reference.
type things struct {
	byID  map[string]*thing
	byRef map[string][]*thing
}

type thing struct {
	Thing
	booking, segment string
}

func (t *things) add(x *thing) {
	if t.byID == nil {
		t.byID, t.byRef = map[string]*thing{}, map[string][]*thing{}
	}
	t.byID[x.ID] = x
	t.byRef[x.Reference] = append(t.byRef[x.Reference], x)
}

// latest is what a question by reference gives: the last thing made under it.
func (t *things) latest(reference string) *thing {
	list := t.byRef[reference]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

var offerPattern = regexp.MustCompile(`^(FL|HT|TR)-([0-9]{1,6})$`) //nolint:gochecknoglobals // compiled once

var offerPrefix = map[Supplier]string{Flight: "FL", Hotel: "HT", Transfer: "TR"} //nolint:gochecknoglobals // constant

// price reads an offer of this supplier: the number in it is the price in whole currency units.
func (r *reservations) price(offer string) (int64, bool) {
	m := offerPattern.FindStringSubmatch(offer)
	if m == nil || m[1] != offerPrefix[r.supplier] {
		return 0, false
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	return n * 100, err == nil
}

func (r *reservations) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /reservations", r.postReservation)
	mux.HandleFunc("GET /reservations", func(rw http.ResponseWriter, q *http.Request) { r.ask(rw, q, &r.reserve) })
	mux.HandleFunc("POST /reservations/{id}/cancel", func(rw http.ResponseWriter, q *http.Request) {
		r.end(rw, q, &r.reserve, Cancel, "cancelled")
	})
	mux.HandleFunc("POST /returns", r.postReturn)
	mux.HandleFunc("GET /returns", func(rw http.ResponseWriter, q *http.Request) { r.ask(rw, q, &r.returns) })
	mux.HandleFunc("POST /returns/{id}/reinstate", func(rw http.ResponseWriter, q *http.Request) {
		r.end(rw, q, &r.returns, Reinstate, "reinstated")
	})
}

// once honours the idempotency key, or ignores it where the supplier does.
func (r *reservations) once(q *http.Request, print string, act func() answer) func() answer {
	return func() answer {
		if r.ignoreKeys {
			return act()
		}
		return r.keys.once(q.Header.Get("Idempotency-Key"), print, act)
	}
}

func (r *reservations) postReservation(rw http.ResponseWriter, q *http.Request) {
	var in ReservationRequest
	if !r.world.read(rw, q, &in) {
		return
	}
	price, known := r.price(in.Offer)
	switch {
	case in.Reference == "" || in.Booking == "" || in.Segment == "":
		r.world.send(rw, refused(http.StatusBadRequest, "BAD_REQUEST", "reference, booking and segment must be set"), false)
		return
	case !known:
		r.world.send(rw, refused(http.StatusConflict, "OFFER_UNKNOWN", fmt.Sprintf("no offer %q", in.Offer)), false)
		return
	}
	key := q.Header.Get("Idempotency-Key")
	r.world.seam(rw, q, target{in.Booking, in.Segment, Action(Reserve)}, r.once(q, fmt.Sprintf("%+v", in), func() answer {
		x := &thing{Thing{Status: "confirmed", Reference: in.Reference, Amount: price, Currency: "EUR"}, in.Booking, in.Segment}
		return r.make(&r.reserve, x, Reserve, "R", key)
	}))
}

func (r *reservations) postReturn(rw http.ResponseWriter, q *http.Request) {
	var in ReturnRequest
	if !r.world.read(rw, q, &in) {
		return
	}
	if in.Reference == "" || in.Booking == "" || in.Segment == "" || in.Amount < 0 {
		r.world.send(rw, refused(http.StatusBadRequest, "BAD_REQUEST", "reference, booking and segment must be set, amount 0 or more"), false)
		return
	}
	r.mu.Lock()
	if x := r.reserve.byID[in.Reservation]; x != nil && x.booking == in.Booking {
		in.Segment = x.segment // two of one kind are told apart
	}
	r.mu.Unlock()
	key := q.Header.Get("Idempotency-Key")
	r.world.seam(rw, q, target{in.Booking, in.Segment, Action(Refund)}, r.once(q, fmt.Sprintf("%+v", in), func() answer {
		x := &thing{Thing{Status: "refunded", Reference: in.Reference, Amount: in.Amount, Currency: in.Currency}, in.Booking, in.Segment}
		return r.make(&r.returns, x, Refund, "B", key)
	}))
}

// make adds a thing and its effect.
func (r *reservations) make(to *things, x *thing, kind Kind, prefix, key string) answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.ID = fmt.Sprintf("%s%s-%d", offerPrefix[r.supplier], prefix, len(to.byID)+1)
	if err := r.world.ledger.add(x.effect(r.supplier, kind, key)); err != nil {
		return refused(http.StatusServiceUnavailable, "FULL", err.Error())
	}
	to.add(x)
	return answer{status: http.StatusCreated, body: x.Thing}
}

// end cancels or reinstates. Ending twice is no second effect.
func (r *reservations) end(rw http.ResponseWriter, q *http.Request, of *things, kind Kind, status string) {
	r.mu.Lock()
	x := of.byID[q.PathValue("id")]
	r.mu.Unlock()
	if x == nil {
		r.world.send(rw, refused(http.StatusNotFound, "NOT_FOUND", ""), false)
		return
	}
	key := q.Header.Get("Idempotency-Key")
	r.world.seam(rw, q, target{x.booking, x.segment, Action(kind)}, r.once(q, q.URL.Path, func() answer {
		r.mu.Lock()
		defer r.mu.Unlock()
		if x.Status != status {
			if err := r.world.ledger.add(x.effect(r.supplier, kind, key)); err != nil {
				return refused(http.StatusServiceUnavailable, "FULL", err.Error())
			}
			x.Status = status
		}
		return answer{status: http.StatusOK, body: x.Thing}
	}))
}

func (r *reservations) ask(rw http.ResponseWriter, q *http.Request, of *things) {
	askFor(r.world, rw, q, &r.mu, of)
}

// askFor answers a question by reference: 200 with the latest thing, or 404.
func askFor(w *World, rw http.ResponseWriter, q *http.Request, mu *sync.Mutex, of *things) {
	query := q.URL.Query()
	t := target{query.Get("booking"), query.Get("segment"), Ask}
	w.seam(rw, q, t, func() answer {
		mu.Lock()
		defer mu.Unlock()
		x := of.latest(query.Get("reference"))
		if x == nil {
			return refused(http.StatusNotFound, "NOT_FOUND", "nothing under this reference")
		}
		return answer{status: http.StatusOK, body: x.Thing}
	})
}

func (x *thing) effect(s Supplier, k Kind, key string) Effect {
	return Effect{
		Supplier: s, Kind: k, Booking: x.booking, Segment: x.segment, Amount: x.Amount, Currency: x.Currency,
		Key: key, Reference: x.Reference, ID: x.ID,
	}
}
