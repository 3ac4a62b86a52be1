package events

import "slices"

// Class is one of six classes of events with their own guarantees (spec E4).
type Class string

// The six classes.
const (
	ClassDomain      Class = "domain"      // at least once, ordered per entity
	ClassAnalytical  Class = "analytical"  // at least once, best-effort order, small loss allowed under pressure
	ClassSaga        Class = "saga"        // effectively once by idempotent consumers, strictly ordered per saga
	ClassAudit       Class = "audit"       // at least once, append-only, chained by hashes, ordered by time
	ClassOperational Class = "operational" // at least once, best-effort order
	ClassCompliance  Class = "compliance"  // at least once, immutable, ordered by time
)

// Classes lists the six classes.
func Classes() []Class {
	return []Class{ClassDomain, ClassAnalytical, ClassSaga, ClassAudit, ClassOperational, ClassCompliance}
}

// Valid reports whether c is one of the six.
func (c Class) Valid() bool { return slices.Contains(Classes(), c) }

// Ordered reports whether consumers must keep the order of a business key, retries included.
func (c Class) Ordered() bool { return c != ClassAnalytical && c != ClassOperational }

// Guarantees says in a sentence what the class promises, for readers of documents.
func (c Class) Guarantees() string {
	switch c {
	case ClassDomain:
		return "at least once, in order per business key"
	case ClassAnalytical:
		return "at least once, order as good as it gets; dropped and counted while the outbox's backlog is above its limit"
	case ClassSaga:
		return "effectively once by idempotent consumers, strictly in order per business key: a consumer holds what comes before its predecessor"
	case ClassAudit:
		return "at least once, in the append-only ledger and its write-once archive, each message chained to the one before by its hash"
	case ClassOperational:
		return "at least once, order as good as it gets"
	case ClassCompliance:
		return "at least once, in the append-only ledger: never changed, never removed, never written again under its id"
	}
	return ""
}

// Sheds reports whether messages may be dropped under pressure.
func (c Class) Sheds() bool { return c == ClassAnalytical }

// Chained reports whether messages are linked by hashes, so that tampering is evident.
func (c Class) Chained() bool { return c == ClassAudit }

// Immutable reports whether messages are kept in the append-only ledger (package outbox) beside the event log.
func (c Class) Immutable() bool { return c == ClassAudit || c == ClassCompliance }

// Encryption says how the bodies of a class are kept (spec E4).
type Encryption string

// The ways to keep bodies. Headers, among them ids and the business key, are never encrypted.
const (
	EncryptNone     Encryption = ""           // as they are
	EncryptAtRest   Encryption = "at_rest"    // encrypted in every table; the broker gets them clear
	EncryptEndToEnd Encryption = "end_to_end" // encrypted at the broker too; consumers need the keys
)

// retentionDays is the default of the class (spec Z13).
func (c Class) retentionDays(financial bool) int {
	switch {
	case financial, c == ClassAudit, c == ClassCompliance:
		return sevenYears
	case c == ClassAnalytical:
		return 30
	default:
		return 365
	}
}

const sevenYears = 2557 // days
