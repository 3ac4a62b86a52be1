package events

import "slices"

// Class is one of six classes of events with their own guarantees (spec E4).
type Class string

// The six classes.
const (
	ClassDomain      Class = "domain"      // at least once, ordered per entity
	ClassAnalytical  Class = "analytical"  // at least once, best-effort order, small loss allowed under pressure
	ClassSaga        Class = "saga"        // effectively once by idempotent consumers, strictly ordered per saga
	ClassAudit       Class = "audit"       // at least once, append-only, ordered by time
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
