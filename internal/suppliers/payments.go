package suppliers

import (
	"fmt"
	"net/http"
	"sync"
)

// AuthorizationRequest is the body of POST /authorizations.
type AuthorizationRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"` // minor units, more than 0
	Currency  string `json:"currency"`
	Token     string `json:"token"`
}

// CaptureRequest is the body of POST /captures.
type CaptureRequest struct {
	Reference     string `json:"reference"`
	Authorization string `json:"authorization"`
}

// RefundRequest is the body of POST /refunds: pay money back.
type RefundRequest struct {
	Reference string `json:"reference"`
	Booking   string `json:"booking"`
	Amount    int64  `json:"amount"`
	Currency  string `json:"currency"`
}

// DeclinedToken is a payment token that is always declined.
const DeclinedToken = "tok_declined"

const paymentSegment = "payment"

type payments struct {
	world *World
	keys  *keys

	mu             sync.Mutex
	authorizations things
	captures       things
	refunds        things
}

func (p *payments) routes(mux *http.ServeMux) {
	ask := func(of *things) http.HandlerFunc {
		return func(rw http.ResponseWriter, q *http.Request) { askFor(p.world, rw, q, &p.mu, of) }
	}
	mux.HandleFunc("POST /authorizations", p.authorize)
	mux.HandleFunc("GET /authorizations", ask(&p.authorizations))
	mux.HandleFunc("POST /authorizations/{id}/void", p.void)
	mux.HandleFunc("POST /captures", p.capture)
	mux.HandleFunc("GET /captures", ask(&p.captures))
	mux.HandleFunc("POST /refunds", p.refund)
	mux.HandleFunc("GET /refunds", ask(&p.refunds))
}

// through honours the key and passes the seam.
func (p *payments) through(rw http.ResponseWriter, q *http.Request, booking string, kind Kind, print string, act func(key string) answer) {
	key := q.Header.Get("Idempotency-Key")
	p.world.seam(rw, q, target{booking, paymentSegment, Action(kind)}, func() answer {
		return p.keys.once(key, print, func() answer {
			p.mu.Lock()
			defer p.mu.Unlock()
			return act(key)
		})
	})
}

// add is called with mu held.
func (p *payments) add(to *things, x *thing, kind Kind, prefix, key string) answer {
	x.ID = fmt.Sprintf("%s-%d", prefix, len(to.byID)+1)
	if err := p.world.ledger.add(x.effect(Payment, kind, key)); err != nil {
		return refused(http.StatusServiceUnavailable, "FULL", err.Error())
	}
	to.add(x)
	return answer{status: http.StatusCreated, body: x.Thing}
}

func (p *payments) authorize(rw http.ResponseWriter, q *http.Request) {
	var in AuthorizationRequest
	if !p.world.read(rw, q, &in) {
		return
	}
	switch {
	case in.Reference == "" || in.Booking == "" || in.Amount <= 0 || len(in.Currency) != 3:
		p.world.send(rw, refused(http.StatusBadRequest, "BAD_REQUEST", "reference and booking must be set, amount more than 0, currency three letters"), false)
		return
	case in.Token == "" || in.Token == DeclinedToken:
		p.world.send(rw, refused(http.StatusConflict, "PAYMENT_DECLINED", "the card issuer declined"), false)
		return
	}
	p.through(rw, q, in.Booking, Authorize, fmt.Sprintf("%+v", in), func(key string) answer {
		x := &thing{Thing{Status: "authorized", Reference: in.Reference, Amount: in.Amount, Currency: in.Currency}, in.Booking, paymentSegment}
		return p.add(&p.authorizations, x, Authorize, "AUTH", key)
	})
}

// authorization finds one by id, or answers 404 and gives nil.
func (p *payments) authorization(rw http.ResponseWriter, id string) *thing {
	p.mu.Lock()
	x := p.authorizations.byID[id]
	p.mu.Unlock()
	if x == nil {
		p.world.send(rw, refused(http.StatusNotFound, "NOT_FOUND", "no authorization "+id), false)
	}
	return x
}

func (p *payments) void(rw http.ResponseWriter, q *http.Request) {
	x := p.authorization(rw, q.PathValue("id"))
	if x == nil {
		return
	}
	p.through(rw, q, x.booking, Void, q.URL.Path, func(key string) answer {
		switch x.Status {
		case "authorized":
			if err := p.world.ledger.add(x.effect(Payment, Void, key)); err != nil {
				return refused(http.StatusServiceUnavailable, "FULL", err.Error())
			}
			x.Status = "voided"
		case "captured":
			return refused(http.StatusConflict, "CAPTURED", "a captured amount cannot be voided")
		}
		return answer{status: http.StatusOK, body: x.Thing}
	})
}

func (p *payments) capture(rw http.ResponseWriter, q *http.Request) {
	var in CaptureRequest
	if !p.world.read(rw, q, &in) {
		return
	}
	of := p.authorization(rw, in.Authorization)
	if of == nil {
		return
	}
	p.through(rw, q, of.booking, Capture, fmt.Sprintf("%+v", in), func(key string) answer {
		if of.Status != "authorized" {
			return refused(http.StatusConflict, "CAPTURE_REFUSED", "the authorization is "+of.Status)
		}
		x := &thing{Thing{Status: "captured", Reference: in.Reference, Amount: of.Amount, Currency: of.Currency}, of.booking, paymentSegment}
		a := p.add(&p.captures, x, Capture, "CAP", key)
		if a.status == http.StatusCreated {
			of.Status = "captured"
		}
		return a
	})
}

func (p *payments) refund(rw http.ResponseWriter, q *http.Request) {
	var in RefundRequest
	if !p.world.read(rw, q, &in) {
		return
	}
	if in.Reference == "" || in.Booking == "" || in.Amount <= 0 || len(in.Currency) != 3 {
		p.world.send(rw, refused(http.StatusBadRequest, "BAD_REQUEST", "reference and booking must be set, amount more than 0, currency three letters"), false)
		return
	}
	p.through(rw, q, in.Booking, Refund, fmt.Sprintf("%+v", in), func(key string) answer {
		x := &thing{Thing{Status: "paid", Reference: in.Reference, Amount: in.Amount, Currency: in.Currency}, in.Booking, paymentSegment}
		return p.add(&p.refunds, x, Refund, "REF", key)
	})
}
