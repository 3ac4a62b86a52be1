package ticketing

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of ticketing.
const TypeName = "ticketing"

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the ticketing events, for events.ParseCatalog.
func Catalog() []byte { return append([]byte(nil), catalog...) }

// retention is how long the answer of a ticketing is kept (spec I5).
const retention = 90 * 24 * time.Hour

// TypeConfig is for [Type]. The zero value works.
type TypeConfig struct {
	Schema  string        // "" = "journeyman"
	Timeout time.Duration // of the saga; 0 = 24 h (spec I5)
}

// Type describes the ticketing saga to package sagas.
//
// Errors: a bad schema name.
func Type(cfg TypeConfig) (sagas.Type, error) {
	b, err := tourbooking.NewBookings(cfg.Schema)
	if err != nil {
		return sagas.Type{}, fmt.Errorf("ticketing: %w", err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 24 * time.Hour
	}
	t := ticketingType{bookings: b}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessTicketing,
		Timeout: cfg.Timeout, Retention: retention, Estimate: min(time.Hour, cfg.Timeout),
		Steps: []string{ElementTicketingTicketRequest, ElementTicketingTicketRecord},
		Parse: parse, Result: t.result, Partial: partial, Docs: docs(),
	}, nil
}

// Plan is the ticketing of a confirmed booking, as the confirmation starts it: it is a tourbooking.TicketingPlan.
func Plan(businessKey, booking string, travellers int, reservations []string) sagas.StartRequest {
	return sagas.StartRequest{Type: TypeName, Plan: sagas.Plan{
		BusinessKey: businessKey,
		Variables:   map[string]any{"booking": booking, "travellers": travellers, "reservations": reservations},
	}}
}

// parse refuses every request: ticketing begins with the confirmation of a booking and in no other way.
func parse(context.Context, string, []byte) (sagas.Plan, error) {
	return sagas.Plan{}, sagas.Invalid("", "is not accepted: ticketing is started by the confirmation of a booking")
}

type ticketingType struct{ bookings *tourbooking.Bookings }

// Result is what the final answer of a ticketing shows.
type Result struct {
	Booking string            `json:"booking"`
	State   tourbooking.State `json:"state"` // of the booking
}

// result moves the booking of a ticketing that was given up back to confirmed.
func (t ticketingType) result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	booking, _ := a.Variables["booking"].(string)
	if e.Decision == sagas.Completed {
		return Result{Booking: booking, State: tourbooking.Ticketed}, nil
	}
	k, err := t.bookings.Move(ctx, tx, a.BusinessKey, tourbooking.GiveUpTickets, tourbooking.Detail{Reason: e.Code})
	if err != nil {
		return nil, tourbooking.FatalIfRefused(err)
	}
	return Result{Booking: booking, State: k.State}, nil
}

// view is what a partner sees of ticketing while it runs.
type view struct {
	Status string `json:"status"`
	Code   string `json:"code,omitempty"`
}

func partial(s worker.Step) (segment string, v any) {
	status, ok := map[string]string{
		JobTicketRequest: "asked", JobTicketFollowUp: "asked", JobTicketRecord: "issued",
	}[s.Type]
	if !ok {
		return "", nil
	}
	if s.Class != outcome.Success {
		return "tickets", view{Status: "failed", Code: s.Code}
	}
	return "tickets", view{Status: status}
}

// tickets is how numbers travel in process variables.
func ticketVariables(numbers []string) (string, error) {
	text, err := json.Marshal(map[string]any{"tickets": numbers})
	return string(text), err
}
