package inbox

import (
	"io"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/promtext"
	"github.com/vitrip/journeyman/outcome"
)

//nolint:gochecknoglobals // constant tables
var (
	meterHandled    = promtext.Family{Name: "journeyman_consumer_handler_duration_seconds", Help: "How long handlers took, by outcome.", Labels: []string{"type", "group", "outcome"}, Buckets: promtext.Seconds()}
	meterDuplicates = promtext.Family{Name: "journeyman_consumer_duplicates_total", Help: "Repeats that were absorbed.", Labels: []string{"type", "group"}}
	meterRetries    = promtext.Family{Name: "journeyman_consumer_retries_total", Help: "Attempts that will be made again.", Labels: []string{"type", "group"}}
	meterHeld       = promtext.Family{Name: "journeyman_consumer_held_total", Help: "Messages of strict orders that came before their turn.", Labels: []string{"type", "group"}}
	meterPoison     = promtext.Family{Name: "journeyman_consumer_poison_total", Help: "Messages that can never be handled, or used up their attempts.", Labels: []string{"type", "group", "reason"}}
	meterDead       = promtext.Family{Name: "journeyman_dlq_messages_total", Help: "Messages set aside: poison, and what waits for a person's decision.", Labels: []string{"type", "group", "reason"}}
)

// Meter counts what inboxes of this process do, by message type and group
// (spec V3, E14). Make one with [NewMeter] and give its [Meter.Hooks] to each inbox. Safe for concurrent use.
type Meter struct {
	catalog *events.Catalog
	meter   *promtext.Meter
}

// NewMeter makes a meter. Types that the catalog lacks are counted as "unknown": whoever sends them must not make series.
func NewMeter(catalog *events.Catalog) *Meter {
	return &Meter{catalog: catalog, meter: promtext.New(meterHandled, meterDuplicates, meterRetries, meterHeld, meterPoison, meterDead)}
}

func (m *Meter) known(messageType string) string {
	if len(m.catalog.Match(messageType)) == 0 {
		return "unknown"
	}
	return messageType
}

// Hooks gives the hooks of a group's inbox. Those of next are called too.
func (m *Meter) Hooks(group string, next Hooks) Hooks {
	own := next
	own.Handled = func(messageType string, class outcome.Class, took time.Duration) {
		m.meter.Observe(meterHandled, took.Seconds(), m.known(messageType), group, string(class))
		if next.Handled != nil {
			next.Handled(messageType, class, took)
		}
	}
	own.Duplicate = func(messageType string) {
		m.meter.Inc(meterDuplicates, m.known(messageType), group)
		if next.Duplicate != nil {
			next.Duplicate(messageType)
		}
	}
	own.Retrying = func(messageType string, attempt int, after time.Duration, err error) {
		m.meter.Inc(meterRetries, m.known(messageType), group)
		if next.Retrying != nil {
			next.Retrying(messageType, attempt, after, err)
		}
	}
	own.Held = func(messageType string, waitsFor int64) {
		m.meter.Inc(meterHeld, m.known(messageType), group)
		if next.Held != nil {
			next.Held(messageType, waitsFor)
		}
	}
	own.Dead = func(messageType, messageID, reason string, parked bool) {
		m.meter.Inc(meterDead, m.known(messageType), group, reason)
		if !parked {
			m.meter.Inc(meterPoison, m.known(messageType), group, reason)
		}
		if next.Dead != nil {
			next.Dead(messageType, messageID, reason, parked)
		}
	}
	return own
}

// WriteMetrics writes what was counted in the Prometheus text format.
func (m *Meter) WriteMetrics(w io.Writer) error { return m.meter.Write(w) }
