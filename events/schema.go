package events

// Schemas checks the data part of messages against the schemas of a catalog.
// Package events/schema/json makes one.
type Schemas interface {
	// Check refuses data that breaks the schema of its type and version, naming
	// the fields and never a value. A type without schema takes everything.
	// Safe for concurrent use.
	Check(messageType string, version int, data []byte) error
}
