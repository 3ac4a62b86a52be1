package sagas

import (
	"encoding/json"
	"time"

	"github.com/vitrip/journeyman/events"
)

// Types of the saga-class events (spec S6). They share the topic platform.saga.progress.v1.
const (
	EventStarted       = "platform.saga.started"
	EventStepCompleted = "platform.saga.step_completed"
	EventStepFailed    = "platform.saga.step_failed"
	EventCompensating  = "platform.saga.compensation_started"
	EventCompensated   = "platform.saga.compensated"
	EventParked        = "platform.saga.parked"
	EventCompleted     = "platform.saga.completed"
	EventFailed        = "platform.saga.failed"
	EventExpired       = "platform.saga.expired"
)

// Events lists the types that the saga runtime stages: of package sagas' own [Catalog], for outbox.Config.Emits.
func Events() []string {
	return []string{
		EventStarted, EventStepCompleted, EventStepFailed, EventCompensating, EventCompensated, EventParked, EventCompleted, EventFailed, EventExpired,
		EventStuck, EventSLABreached,
	}
}

// Progress is the data of every saga-class event. It carries all that the record needs to move, so
// that the record store never reads the domain database.
type Progress struct {
	SagaID   string `json:"sagaId"`
	SagaType string `json:"sagaType"`
	Tenant   string `json:"tenant"`

	// Started.
	Record *NewRecord `json:"record,omitempty"`

	// Steps.
	Step    string          `json:"step,omitempty"` // "<elementId>" or "<elementId>:<n>"
	JobType string          `json:"jobType,omitempty"`
	Code    string          `json:"code,omitempty"`  // error code of a refusal, reason of an end
	Pivot   bool            `json:"pivot,omitempty"` // from here on the saga goes forward only
	Segment string          `json:"segment,omitempty"`
	Partial json.RawMessage `json:"partial,omitempty"`

	// Undo.
	Decision Decision `json:"decision,omitempty"`
	Undone   []string `json:"undone,omitempty"` // step names, in the order of undoing
	Open     []string `json:"open,omitempty"`   // step names left to a person

	// Ends. Final is the answer, stored and sent byte for byte.
	Final      []byte     `json:"final,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
}

// NewRecord lets the record store make the record of an operation that another saga started.
type NewRecord struct {
	Key         string         `json:"key"`
	Attempt     int            `json:"attempt"`
	BusinessKey string         `json:"businessKey"`
	Steps       []string       `json:"steps,omitempty"`
	Partial     map[string]any `json:"partial,omitempty"`
	StartedAt   time.Time      `json:"startedAt"`
	TimeoutAt   time.Time      `json:"timeoutAt"`
	EstimatedAt time.Time      `json:"estimatedAt"`
}

func (p Progress) message(typ, businessKey string) events.Message {
	return events.Message{Type: typ, Version: 1, Kind: events.KindEvent, BusinessKey: businessKey, Data: p}
}
