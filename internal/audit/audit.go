// Package audit checks a run of the demo from the outside: what the suppliers
// say was done to them, what stands in Kafka, what the engine's public API
// tells of its history, and what a witness inside the database saw being
// staged. It reads no table of the product and shares no code with it, so a
// fault of the product cannot hide itself here.
//
// [Examine] is a pure function over [Input]; the readers of the four sources
// stand in their own files.
package audit

import (
	"time"
)

// Effect is one line of a supplier's own ledger.
type Effect struct {
	Seq       int64     // position over all suppliers, 1-based
	Supplier  string    // who was acted upon
	Kind      string    // reserve, cancel, authorize, void, capture, refund, reinstate, ticket, withdraw
	Booking   string    // as the supplier was told
	Segment   string    // flight, hotel, transfer, payment, …
	Amount    int64     // minor units, 0 where the effect has none
	Currency  string    // ISO 4217
	Reference string    // operation id that caused it, as the supplier was told
	At        time.Time // the supplier's clock
}

// Staged is one outbox row as the witness saw it being committed.
type Staged struct {
	ID       string // message id
	Key      string // business key
	Sequence int64  // per business key
}

// Record is one record of the Kafka log that carries an event, in log order per partition.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	ID        string
	Key       string
	Sequence  int64
	Type      string
}

// Instance is one process instance of the engine's history.
type Instance struct {
	Key       int64
	ProcessID string
	State     string // ACTIVE, COMPLETED or TERMINATED
}

// Element is one element instance that carried an operation id.
type Element struct {
	Key         int64
	ElementID   string
	OperationID string
	State       string // ACTIVE, COMPLETED or TERMINATED
}

// Booking is what a partner asked for and the last answer it got over HTTP.
type Booking struct {
	Name      string // of the script
	Operation string // operation id given to the partner; "" when refused at the door
	Key       string // business key
	Type      string // operation type
	State     string // in_progress, completed, failed or expired
	Reason    string // of a failure
	Wrong     string // how it differs from the script's expectation, "" when it does not
}

// Input is everything the audit looks at.
type Input struct {
	Bookings []Booking
	Effects  []Effect
	Staged   []Staged
	Records  []Record

	Instances []Instance
	Elements  []Element
	Incidents int // active ones
	Jobs      int // all jobs the engine ever made

	Applied map[string]int // effects the consumer applied, by message id: each must be 1

	Kills   []string      // crash points that killed a worker process, in order, with repeats
	Planned []string      // crash points that the plan wanted
	Wall    time.Duration // duration of the run
}

// Report is the summary of a run. Field names are part of the command's JSON contract.
type Report struct {
	Bookings            int      `json:"bookings"`              // operations the API accepted
	Confirmed           int      `json:"confirmed"`             // tour bookings that ended completed
	Rejected            int      `json:"rejected"`              // ended failed, nothing had been done
	Compensated         int      `json:"compensated"`           // ended failed, what had been done was undone
	Cancelled           int      `json:"cancelled"`             // ended failed for a partner's cancel
	Expired             int      `json:"expired"`               // ended expired
	Refunds             int      `json:"refunds"`               // refund operations, whatever their end
	Jobs                int      `json:"jobs"`                  // engine history
	WorkerKills         int      `json:"worker_kills"`          // worker processes that died of SIGKILL
	KillPointsHit       int      `json:"kill_points_hit"`       // different points among them
	KillPointsPlanned   int      `json:"kill_points_planned"`   // different points the plan wanted
	KillPointsMissed    []string `json:"kill_points_missed"`    // planned and not hit
	DuplicatesDelivered int      `json:"duplicates_delivered"`  // Kafka records beyond the first of their id
	SideEffects         int      `json:"side_effects"`          // suppliers' ledger lines
	Repeated            int      `json:"side_effects_repeated"` // beyond the first per business effect
	OrphansMade         int      `json:"orphans_made"`          // effects whose element the engine had terminated
	OrphansOpen         int      `json:"orphans_open"`          // effects of failed sagas that still stand
	EventsCommitted     int      `json:"events_committed"`      // witness rows
	EventsInKafka       int      `json:"events_in_kafka"`       // different ids in the log
	EventsLost          int      `json:"events_lost"`           // committed and not in the log
	EventsPhantom       int      `json:"events_phantom"`        // in the log and never committed
	OrderViolations     int      `json:"order_violations"`      // per key: first sight of a sequence at or below an earlier one
	Stuck               int      `json:"stuck"`                 // unfinished operations and instances, active incidents
	Unexpected          int      `json:"unexpected"`            // bookings that ended otherwise than the script says
	WallSeconds         float64  `json:"wall_s"`
	Findings            []string `json:"findings"` // one line for each thing that is wrong; empty when clean
}

// Clean reports whether nothing is wrong.
func (r Report) Clean() bool { return len(r.Findings) == 0 }
