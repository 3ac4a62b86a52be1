package tourbooking

import "fmt"

// State is where a booking stands. There are exactly 14 (spec S3).
type State string

// The states.
const (
	Draft              State = "draft"               // written down, nothing promised
	Quoted             State = "quoted"              // the request was accepted, segments are being reserved
	Held               State = "held"                // every segment is reserved, the money is not settled
	PartiallyConfirmed State = "partially_confirmed" // some segments are reserved
	Confirmed          State = "confirmed"           // sold
	InTicketing        State = "ticketing"           // the airline was asked for tickets
	Ticketed           State = "ticketed"            // tickets are there
	Amending           State = "amending"            // a change is under way
	Cancelling         State = "cancelling"          // segments are being given back for a refund
	Cancelled          State = "cancelled"           // given back, or cancelled by the partner before it was sold
	Compensating       State = "compensating"        // given up, reservations are being released
	Compensated        State = "compensated"         // failed, and everything reserved was released
	Failed             State = "failed"              // failed before anything was reserved, or left to a person
	Expired            State = "expired"             // took too long, and was undone
)

// States lists all states.
func States() []State {
	return []State{
		Draft, Quoted, Held, PartiallyConfirmed, Confirmed, InTicketing, Ticketed,
		Amending, Cancelling, Cancelled, Compensating, Compensated, Failed, Expired,
	}
}

// Event is what moves a booking.
type Event string

// The events.
const (
	Quote              Event = "quote"                // the request was accepted
	SegmentConfirmed   Event = "segment_confirmed"    // a supplier confirmed, others are open
	SegmentsComplete   Event = "segments_complete"    // the last supplier confirmed
	PaymentAuthorized  Event = "payment_authorized"   // the money is blocked
	Confirm            Event = "confirm"              // the pivot
	GiveUp             Event = "give_up"              // the saga was decided against
	SegmentReleased    Event = "segment_released"     // a reservation or authorization was undone
	EndCompensated     Event = "end_compensated"      // the undo has ended: failed, something was released
	EndFailed          Event = "end_failed"           // the undo has ended: failed, nothing was released, or not all
	EndExpired         Event = "end_expired"          // the undo has ended: the deadline had passed
	EndCancelled       Event = "end_cancelled"        // the undo has ended: the partner had cancelled
	Reopen             Event = "reopen"               // another attempt after an end without a sale
	RequestTickets     Event = "request_tickets"      // the airline took the request
	IssueTickets       Event = "issue_tickets"        // tickets are there
	GiveUpTickets      Event = "give_up_tickets"      // ticketing was given up
	BeginAmendment     Event = "begin_amendment"      // a change begins
	EndAmendment       Event = "end_amendment"        // it is done, or was given up: confirmed
	EndAmendmentIssued Event = "end_amendment_issued" // the same, with tickets
	EndAmendmentAsked  Event = "end_amendment_asked"  // the same, while tickets are being issued
	BeginCancellation  Event = "begin_cancellation"   // a refund begins
	EndCancellation    Event = "end_cancellation"     // the refund was decided
	ResumeConfirmed    Event = "resume_confirmed"     // the refund was given up, the booking is as before
	ResumeTicketing    Event = "resume_ticketing"     // the same, while tickets are being issued
	ResumeTicketed     Event = "resume_ticketed"      // the same, with tickets
)

type move struct {
	state State
	event Event
}

// moves is the whole machine: what is not in it is refused.
var moves = map[move]State{ //nolint:gochecknoglobals // a constant table
	{Draft, Quote}: Quoted,

	{Quoted, SegmentConfirmed}:             PartiallyConfirmed,
	{PartiallyConfirmed, SegmentConfirmed}: PartiallyConfirmed,
	{Quoted, SegmentsComplete}:             Held,
	{PartiallyConfirmed, SegmentsComplete}: Held,
	{Held, PaymentAuthorized}:              Held,
	{Held, Confirm}:                        Confirmed,

	{Draft, GiveUp}:              Compensating,
	{Quoted, GiveUp}:             Compensating,
	{PartiallyConfirmed, GiveUp}: Compensating,
	{Held, GiveUp}:               Compensating,

	// An orphan may be released before the give-up and after the end: it changes nothing but is told.
	{Quoted, SegmentReleased}:             Quoted,
	{PartiallyConfirmed, SegmentReleased}: PartiallyConfirmed,
	{Held, SegmentReleased}:               Held,
	{Confirmed, SegmentReleased}:          Confirmed,
	{InTicketing, SegmentReleased}:        InTicketing,
	{Ticketed, SegmentReleased}:           Ticketed,
	{Compensating, SegmentReleased}:       Compensating,
	{Compensated, SegmentReleased}:        Compensated,
	{Failed, SegmentReleased}:             Failed,
	{Expired, SegmentReleased}:            Expired,
	{Cancelled, SegmentReleased}:          Cancelled,
	{Cancelling, SegmentReleased}:         Cancelling,
	{Amending, SegmentReleased}:           Amending,

	{Compensating, EndCompensated}: Compensated,
	{Compensating, EndFailed}:      Failed,
	{Compensating, EndExpired}:     Expired,
	{Compensating, EndCancelled}:   Cancelled,

	{Compensated, Reopen}: Draft,
	{Failed, Reopen}:      Draft,
	{Expired, Reopen}:     Draft,
	{Cancelled, Reopen}:   Draft,

	{Confirmed, RequestTickets}:    InTicketing,
	{InTicketing, IssueTickets}:    Ticketed,
	{InTicketing, GiveUpTickets}:   Confirmed,
	{Confirmed, GiveUpTickets}:     Confirmed,
	{Cancelling, RequestTickets}:   Cancelling,
	{Cancelling, IssueTickets}:     Cancelling,
	{Cancelling, GiveUpTickets}:    Cancelling,
	{Cancelled, RequestTickets}:    Cancelled,
	{Cancelled, IssueTickets}:      Cancelled,
	{Cancelled, GiveUpTickets}:     Cancelled,
	{Confirmed, BeginAmendment}:    Amending,
	{InTicketing, BeginAmendment}:  Amending,
	{Ticketed, BeginAmendment}:     Amending,
	{Amending, RequestTickets}:     Amending,
	{Amending, IssueTickets}:       Amending,
	{Amending, GiveUpTickets}:      Amending,
	{Amending, EndAmendment}:       Confirmed,
	{Amending, EndAmendmentAsked}:  InTicketing,
	{Amending, EndAmendmentIssued}: Ticketed,

	{Confirmed, BeginCancellation}:   Cancelling,
	{InTicketing, BeginCancellation}: Cancelling,
	{Ticketed, BeginCancellation}:    Cancelling,
	{Cancelling, EndCancellation}:    Cancelled,
	{Cancelling, ResumeConfirmed}:    Confirmed,
	{Cancelling, ResumeTicketing}:    InTicketing,
	{Cancelling, ResumeTicketed}:     Ticketed,
}

// told is the domain event of each event (spec S3: each move emits one).
var told = map[Event]string{ //nolint:gochecknoglobals // a constant table
	Quote:              "tour.booking.quoted",
	SegmentConfirmed:   "tour.booking.segment_confirmed",
	SegmentsComplete:   "tour.booking.held",
	PaymentAuthorized:  "tour.booking.payment_authorized",
	Confirm:            "tour.booking.confirmed",
	GiveUp:             "tour.booking.compensation_started",
	SegmentReleased:    "tour.booking.segment_released",
	EndCompensated:     "tour.booking.compensated",
	EndFailed:          "tour.booking.failed",
	EndExpired:         "tour.booking.expired",
	EndCancelled:       "tour.booking.cancelled",
	Reopen:             "tour.booking.reopened",
	RequestTickets:     "tour.booking.ticketing_started",
	IssueTickets:       "tour.booking.ticketed",
	GiveUpTickets:      "tour.booking.ticketing_abandoned",
	BeginAmendment:     "tour.booking.amendment_started",
	EndAmendment:       "tour.booking.amended",
	EndAmendmentIssued: "tour.booking.amended",
	EndAmendmentAsked:  "tour.booking.amended",
	BeginCancellation:  "tour.booking.cancellation_started",
	EndCancellation:    "tour.booking.cancelled",
	ResumeConfirmed:    "tour.booking.resumed",
	ResumeTicketing:    "tour.booking.resumed",
	ResumeTicketed:     "tour.booking.resumed",
}

// MoveError says that a booking cannot make a move.
type MoveError struct {
	BusinessKey string
	State       State // "" when there is no such booking
	Event       Event
}

// Error names booking, state and event.
func (e *MoveError) Error() string {
	if e.State == "" {
		return fmt.Sprintf("booking %q: %s: no such booking", e.BusinessKey, e.Event)
	}
	return fmt.Sprintf("booking %q: %s is not allowed in state %s", e.BusinessKey, e.Event, e.State)
}

// Next gives the state after an event. ok is false when the event is not allowed in the state.
func Next(s State, e Event) (next State, ok bool) {
	next, ok = moves[move{s, e}]
	return next, ok
}
