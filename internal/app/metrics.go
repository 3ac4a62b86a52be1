package app

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
)

// gaugesFor is how long what was counted in the database is shown before it is counted again.
const gaugesFor = 10 * time.Second

// gauges are figures of the database, the same in every process.
type gauges struct {
	mu   sync.Mutex
	at   time.Time
	text []byte
}

// MetricsHandler serves GET /metrics in the Prometheus text format: operations (spec I10), workers, outbox, consumer groups, durable
// work, dead letters and webhooks. It asks for no credentials and shows no ids: serve it on a listener of its own.
func (a *App) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		counted := httptest.NewRecorder()
		a.sagas.MetricsHandler().ServeHTTP(counted, r)
		b.Write(counted.Body.Bytes())
		writeRates(&b, a.sagas.Metrics())
		_ = a.worker.Health().WriteMetrics(&b) // a buffer takes everything
		if relay := a.relay.Load(); relay != nil {
			writeRelay(&b, relay.Stats())
		}
		a.writeDelivery(&b)
		b.Write(a.databaseGauges(r.Context()))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(b.Bytes())
	})
}

// metric writes one sample without labels under its head.
func metric(b *bytes.Buffer, name, kind, help string, value float64) {
	head(b, name, kind, help)
	sample(b, name, "", value)
}

func head(b *bytes.Buffer, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func sample(b *bytes.Buffer, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	fmt.Fprintf(b, "%s%s %s\n", name, labels, strconv.FormatFloat(value, 'g', -1, 64))
}

// writeRates gives the rates of spec I10 under their own names, of this process since it started. Rules in deploy/alerts
// compute them over all processes and a window of time.
func writeRates(b *bytes.Buffer, m sagas.Metrics) {
	ended := int64(0)
	for _, n := range m.Ended {
		ended += n
	}
	attempts := m.Started + m.ForceRetries
	metric(b, "idempotent_response_rate", "gauge", "Repeats answered correctly / repeats, since the process started; 1 before the first.", ratio(m.RepeatsAnswered, m.Repeats, 1))
	metric(b, "force_retry_rate", "gauge", "Attempts by force retry / attempts, since the process started.", ratio(m.ForceRetries, attempts, 0))
	metric(b, "expired_operation_rate", "gauge", "Operations that ended expired / operations that ended, since the process started.", ratio(m.Ended[string(sagas.Expired)], ended, 0))
	metric(b, "polling_violations", "counter", "Polls earlier than Retry-After said, since the process started.", float64(m.PollingViolations))
}

func ratio(part, whole int64, without float64) float64 {
	if whole == 0 {
		return without
	}
	return float64(part) / float64(whole)
}

func writeRelay(b *bytes.Buffer, s outbox.Stats) {
	metric(b, "journeyman_outbox_published_total", "counter", "Events that the relay of this process published.", float64(s.Published))
	metric(b, "journeyman_outbox_publish_failures_total", "counter", "Keys that failed in a publish, each time counted.", float64(s.Failures))
	metric(b, "journeyman_outbox_keys_parked_total", "counter", "Keys that this relay parked.", float64(s.Parked))
	metric(b, "journeyman_outbox_shards", "gauge", "Shards that the relay of this process owns.", float64(s.Shards))
	paused := 0.0
	if s.Paused {
		paused = 1
	}
	metric(b, "journeyman_outbox_paused", "gauge", "1 while nothing can be published.", paused)
}

// databaseGauges counts what waits, at most every few seconds. What cannot be counted is left out, and that is counted.
func (a *App) databaseGauges(ctx context.Context) []byte {
	a.gauges.mu.Lock()
	defer a.gauges.mu.Unlock()
	if time.Since(a.gauges.at) < gaugesFor {
		return a.gauges.text
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // the figures are everybody's
	defer cancel()
	var b bytes.Buffer
	failed := 0
	for _, count := range []func(context.Context, *bytes.Buffer) error{a.countOutbox, a.countDead, a.countWebhooks, a.countWork, a.countLate} {
		var part bytes.Buffer
		if err := count(ctx, &part); err != nil {
			failed++
			a.cfg.Log.Warn().Err(err).Msg("metrics: could not count")
			continue
		}
		b.Write(part.Bytes())
	}
	metric(&b, "journeyman_metrics_failed", "gauge", "Groups of metrics that could not be counted just now.", float64(failed))
	a.gauges.text, a.gauges.at = b.Bytes(), time.Now()
	return a.gauges.text
}

func (a *App) countOutbox(ctx context.Context, b *bytes.Buffer) error {
	backlog, err := outbox.NewDesk(a.schema()).Backlog(ctx, a.cfg.Pool)
	if err != nil {
		return err
	}
	metric(b, "journeyman_outbox_backlog", "gauge", "Rows that wait to be published; over all processes.", float64(backlog.Rows))
	metric(b, "journeyman_outbox_oldest_age_seconds", "gauge", "Age of the oldest row that waits; over all processes.", backlog.Oldest.Seconds())
	metric(b, "journeyman_outbox_parked_keys", "gauge", "Keys held until an operator decides; over all processes.", float64(backlog.ParkedKeys))
	return nil
}

func (a *App) countDead(ctx context.Context, b *bytes.Buffer) error {
	head(b, "journeyman_dead_letters", "gauge", "Messages set aside that wait for a person, by state; over all processes.")
	for _, schema := range []string{a.schema(), a.recordSchema()} {
		desk, err := deadletter.New(deadletter.Config{DB: a.cfg.Pool, Schema: schema})
		if err != nil {
			return err
		}
		depth, err := desk.Depth(ctx)
		if err != nil {
			return err
		}
		store := "schema=" + strconv.Quote(schema)
		sample(b, "journeyman_dead_letters", store+`,state="dead"`, float64(depth.Dead))
		sample(b, "journeyman_dead_letters", store+`,state="parked"`, float64(depth.Parked))
	}
	return nil
}

// countLate counts calls that other systems had not seen when they were undone (path rule 11).
func (a *App) countLate(ctx context.Context, b *bytes.Buffer) error {
	store, err := dedup.New(a.schema())
	if err != nil {
		return err
	}
	c, err := store.LateCounts(ctx, a.cfg.Pool)
	if err != nil {
		return err
	}
	metric(b, "journeyman_late_calls_asked", "gauge", "Undone calls that other systems had not seen and are asked about again; over all processes.", float64(c.Asked))
	metric(b, "journeyman_late_calls_open", "gauge", "Calls that were never seen, are asked about no more and nobody has dismissed: that they land cannot be ruled out; over all processes.", float64(c.Over))
	return nil
}

func (a *App) countWebhooks(ctx context.Context, b *bytes.Buffer) error {
	if a.hooks == nil {
		return nil
	}
	states, err := a.hooks.State(ctx)
	if err != nil {
		return err
	}
	var pending, dead, gone int64
	for _, e := range states {
		pending, dead = pending+e.Pending, dead+e.Dead
		if e.GoneAt != nil {
			gone++
		}
	}
	metric(b, "journeyman_webhooks_pending", "gauge", "Webhook messages that wait to be delivered; over all processes.", float64(pending))
	metric(b, "journeyman_webhooks_dead", "gauge", "Webhook messages that were given up; over all processes.", float64(dead))
	metric(b, "journeyman_webhook_endpoints_gone", "gauge", "Endpoints that answered 410; over all processes.", float64(gone))
	return nil
}
