package work

import (
	"io"
	"time"

	"github.com/vitrip/journeyman/internal/promtext"
)

//nolint:gochecknoglobals // constant tables
var (
	meterDone    = promtext.Family{Name: "journeyman_work_duration_seconds", Help: "How long items took that were done.", Labels: []string{"queue"}, Buckets: promtext.Seconds()}
	meterLate    = promtext.Family{Name: "journeyman_work_lateness_seconds", Help: "From when items were due until they were begun.", Labels: []string{"queue"}, Buckets: promtext.Seconds()}
	meterRetries = promtext.Family{Name: "journeyman_work_retries_total", Help: "Attempts that will be made again.", Labels: []string{"queue"}}
	meterDead    = promtext.Family{Name: "journeyman_work_dead_total", Help: "Items that went to the quarantine.", Labels: []string{"queue", "reason"}}
)

// Meter counts what runners of this process do, by queue (spec E14). Make one
// with [NewMeter] and give its [Meter.Hooks] to each runner. [WriteMetrics] tells how queues stand. Safe for concurrent use.
type Meter struct{ meter *promtext.Meter }

// NewMeter makes a meter.
func NewMeter() *Meter {
	return &Meter{promtext.New(meterDone, meterLate, meterRetries, meterDead)}
}

// Hooks gives the hooks of a runner. Those of next are called too.
func (m *Meter) Hooks(next Hooks) Hooks {
	own := next
	own.Done = func(queue string, late, took time.Duration) {
		m.meter.Observe(meterDone, took.Seconds(), queue)
		m.meter.Observe(meterLate, late.Seconds(), queue)
		if next.Done != nil {
			next.Done(queue, late, took)
		}
	}
	own.Retrying = func(queue string, attempt int, after time.Duration, err error) {
		m.meter.Inc(meterRetries, queue)
		if next.Retrying != nil {
			next.Retrying(queue, attempt, after, err)
		}
	}
	own.Dead = func(queue, id, reason string, parked bool) {
		m.meter.Inc(meterDead, queue, reason)
		if next.Dead != nil {
			next.Dead(queue, id, reason, parked)
		}
	}
	return own
}

// WriteMetrics writes what was counted in the Prometheus text format.
func (m *Meter) WriteMetrics(w io.Writer) error { return m.meter.Write(w) }
