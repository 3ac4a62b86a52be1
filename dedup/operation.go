package dedup

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/vitrip/journeyman/outcome"
)

// State is where an operation stands.
type State string

// The states; see the package comment.
const (
	Claimed State = "claimed" // somebody may run it; of external work: certain that the other system did nothing
	Calling State = "calling" // stored before the call: the other system may have acted
	Called  State = "called"  // the call's result is stored, to be settled
	Undoing State = "undoing" // refused after the effect: the outcome is stored, the undo runs first (path rule 17)
	Done    State = "done"    // the outcome is stored
	Revoked State = "revoked" // its undo came: a later claim has no effect (path rule 11)
)

// Effect is what is known of an effect at another system.
type Effect string

// The three. Transactional operations have none: their effect is the commit.
const (
	EffectNone  Effect = "none"
	EffectMaybe Effect = "maybe"
	EffectKnown Effect = "known"
)

// Orphan states: an effect whose element was terminated before the answer came.
const (
	OrphanOpen   = "open"
	OrphanUndone = "undone"
	OrphanParked = "parked"
)

// Outcome is how an operation ended.
type Outcome struct {
	Class     outcome.Class
	Reason    string
	Code      string
	Message   string
	Variables json.RawMessage // JSON object, nil = none
}

// JobContext is the job that an operation's outcome is told to.
type JobContext struct {
	Cluster            string
	JobKey             int64
	ProcessInstanceKey int64
	ElementInstanceKey int64
	ElementID          string
}

// Operation is a row of the table.
type Operation struct {
	OperationID string
	Tenant      string
	BusinessKey string
	JobType     string
	SagaID      string
	Fingerprint Fingerprint
	State       State
	Effect      Effect
	Outcome
	ResultHash []byte
	Bytes      int
	Attempts   int
	Fence      int64
	Owner      string
	LeaseUntil time.Time // zero = no lease
	Leased     bool      // the lease has an owner and has not run out, by the database's clock when read
	Input      json.RawMessage
	CallResult json.RawMessage
	Payload    json.RawMessage // an output too large for the engine, which got a claim check instead
	Meta       json.RawMessage
	JobContext
	UndoType        string
	Policy          string
	CalledAt        time.Time
	AnsweredAt      time.Time // zero = not acknowledged, or not an answer that needs it
	AnsweredJobKey  int64
	OperatorRetries int
	UndoneAt        time.Time
	Orphan          string
	OrphanedAt      time.Time
	CreatedAt       time.Time
	SettledAt       time.Time
	ExpiresAt       time.Time
	Keep            time.Duration // of a money operation: business key and result hash stay this long after its end (spec D3); 0 = none
	SlimmedAt       time.Time     // since when only key, fingerprint, class and hashes are left
	AskAt           time.Time     // when the other system is asked again, or what landed late is undone; zero = never
	AskFrom         time.Time
	Asked           int       // times it said again that nothing happened
	AsksOverAt      time.Time // since when it is not asked any more: that the call lands later cannot be ruled out; zero = it is, or never was
	AskUntil        time.Time // it is asked until then, as a person said; zero = as long as the call can land
	DismissedAt     time.Time // when a person settled what AsksOverAt says; zero = nobody has
	ReadAt          time.Time // database time of this read
}

const columns = `o.operation_id, o.tenant, o.business_key, o.job_type, o.saga_id, o.fingerprint, o.fingerprint_fields, o.state, o.effect,
	o.class, o.reason, o.code, o.message, o.variables, o.result_hash, o.bytes, o.attempts, o.fence, o.owner, o.lease_until,
	coalesce(o.owner <> '' AND o.lease_until > {{schema}}.now(), false), o.input, o.call_result, o.payload, o.meta, o.cluster, o.job_key,
	o.process_instance_key, o.element_instance_key, o.element_id, o.undo_type, o.policy, o.called_at, o.answered_at, o.answered_job_key,
	o.operator_retries, o.undone_at, o.orphan, o.orphaned_at, o.created_at, o.settled_at, o.expires_at,
	o.keep, o.slimmed_at, o.ask_at, o.ask_from, o.asked, o.asks_over_at, o.ask_until, o.dismissed_at, {{schema}}.now()`

func scan(row pgx.CollectableRow) (Operation, error) {
	var o Operation
	var state, effect, class string
	var lease, called, answered, undone, orphaned, settled, expires, slimmed, ask, from, over, until, dismissed *time.Time
	var keep pgtype.Interval
	err := row.Scan(&o.OperationID, &o.Tenant, &o.BusinessKey, &o.JobType, &o.SagaID, &o.Fingerprint.Sum, &o.Fingerprint.Fields, &state, &effect,
		&class, &o.Reason, &o.Code, &o.Message, &o.Variables, &o.ResultHash, &o.Bytes, &o.Attempts, &o.Fence, &o.Owner, &lease,
		&o.Leased, &o.Input, &o.CallResult, &o.Payload, &o.Meta, &o.Cluster, &o.JobKey, &o.ProcessInstanceKey, &o.ElementInstanceKey, &o.ElementID,
		&o.UndoType, &o.Policy, &called, &answered, &o.AnsweredJobKey, &o.OperatorRetries, &undone, &o.Orphan, &orphaned, &o.CreatedAt,
		&settled, &expires, &keep, &slimmed, &ask, &from, &o.Asked, &over, &until, &dismissed, &o.ReadAt)
	o.State, o.Effect, o.Class = State(state), Effect(effect), outcome.Class(class)
	for dst, src := range map[*time.Time]*time.Time{
		&o.LeaseUntil: lease, &o.CalledAt: called, &o.AnsweredAt: answered, &o.UndoneAt: undone, &o.OrphanedAt: orphaned, &o.SettledAt: settled, &o.ExpiresAt: expires,
		&o.SlimmedAt: slimmed, &o.AskAt: ask, &o.AskFrom: from, &o.AsksOverAt: over,
		&o.AskUntil: until, &o.DismissedAt: dismissed,
	} {
		if src != nil {
			*dst = *src
		}
	}
	o.Keep = time.Duration(keep.Microseconds)*time.Microsecond + time.Duration(keep.Days+30*keep.Months)*24*time.Hour
	return o, err
}
