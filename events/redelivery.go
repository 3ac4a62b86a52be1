package events

import (
	"context"
	"time"
)

// Transport headers of a message that is delivered again on purpose, under its
// own id and with its own body (spec E9, Z12). Checks of a key's sequence do not
// apply to such a message: it stands out of its place by intent.
const (
	HeaderReplayID    = "replay_id"    // the replay or redrive behind it, a UUID
	HeaderReplayMode  = "replay_mode"  // one of ReplayMode
	HeaderReplayGroup = "replay_group" // the consumer group it is meant for; others pass over it. None means all
	HeaderPublishedAt = "published_at" // when it was first published, in TimeFormat
	HeaderRedriveID   = "redrive_id"   // set when it was given back from a dead-letter table: a refusal puts it there again
	HeaderCausationID = "causation_id" // messageId of the message that an edited one stands for
)

// ReplayMode says what a consumer group does with a message it may have handled before.
type ReplayMode string

// The two modes.
const (
	// ReplayMissing: only groups that have not handled the message handle it.
	// A group that may have forgotten it (spec E10) treats it as ReplayAgain.
	ReplayMissing ReplayMode = "missing"
	// ReplayAgain: a group handles the message once more for this replay, if its
	// handler takes replays; otherwise it passes over it.
	ReplayAgain ReplayMode = "again"
)

// Valid reports whether m is one of the two.
func (m ReplayMode) Valid() bool { return m == ReplayMissing || m == ReplayAgain }

// Redelivery is what the headers of a message that is delivered again say. The zero value means that it is not.
type Redelivery struct {
	ID        string
	Mode      ReplayMode
	Group     string    // "" means all groups
	Published time.Time // zero when unknown
}

// RedeliveryOf reads the headers. A mode that is not known counts as [ReplayAgain], the careful one.
func RedeliveryOf(r Record) Redelivery {
	d := Redelivery{ID: r.Header(HeaderReplayID)}
	if d.ID == "" {
		return Redelivery{}
	}
	d.Mode, d.Group = ReplayMode(r.Header(HeaderReplayMode)), r.Header(HeaderReplayGroup)
	if !d.Mode.Valid() {
		d.Mode = ReplayAgain
	}
	if at, err := time.Parse(TimeFormat, r.Header(HeaderPublishedAt)); err == nil {
		d.Published = at
	}
	return d
}

// Mark gives a copy of the record with the headers of d in place of such headers that it has.
func (d Redelivery) Mark(r Record) Record {
	headers := make([]Header, 0, len(r.Headers)+4)
	for _, h := range r.Headers {
		switch h.Name {
		case HeaderReplayID, HeaderReplayMode, HeaderReplayGroup, HeaderPublishedAt:
		default:
			headers = append(headers, h)
		}
	}
	headers = append(headers, Header{Name: HeaderReplayID, Value: d.ID}, Header{Name: HeaderReplayMode, Value: string(d.Mode)})
	if d.Group != "" {
		headers = append(headers, Header{Name: HeaderReplayGroup, Value: d.Group})
	}
	if !d.Published.IsZero() {
		headers = append(headers, Header{Name: HeaderPublishedAt, Value: d.Published.UTC().Format(TimeFormat)})
	}
	r.Headers = headers
	return r
}

// Span is a stretch of one partition, from First up to and without End.
type Span struct {
	Topic      string
	Partition  int
	First, End int64
}

// SpanReader reads what a transport still holds, beside all groups. Package
// events/kafka has one.
type SpanReader interface {
	// Spans gives the stretch of each partition of the topics whose records the
	// broker got from one time on and before another, as far as it still has
	// them, by topic and partition. Zero times mean no bound. Empty ones are left out.
	Spans(ctx context.Context, from, until time.Time, topics ...string) ([]Span, error)
	// ReadSpan gives the records of a span in order to fn, which ends the reading by an error.
	ReadSpan(ctx context.Context, s Span, fn func(Delivery) error) error
}
