package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/outbox"
)

// past puts a message into the event log on a day that is over.
func (h *house) past() {
	h.Helper()
	day := time.Now().UTC().AddDate(0, 0, -2)
	for _, sql := range []string{
		`CREATE TABLE try_domain.event_log_` + day.Format("20060102") + ` PARTITION OF try_domain.event_log FOR VALUES FROM ('` + day.Format(time.DateOnly) + ` 00:00+00') TO ('` + day.AddDate(0, 0, 1).Format(time.DateOnly) + ` 00:00+00')`,
		`INSERT INTO try_domain.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		 SELECT t, 0, 1, gen_random_uuid(), 'ticketing.ticket.recorded', 1, 'domain', 'ticketing.ticket.recorded.v1', 'B-0', 1, 'op', ARRAY['event_id', 'x'], '{}'::bytea, t, t
		 FROM (SELECT '` + day.Format(time.DateOnly) + ` 12:00+00'::timestamptz AS t) d`,
	} {
		if _, err := h.pool.Exec(h.ctx, sql); err != nil {
			h.Fatal(err)
		}
	}
}

// bury sets a message aside as the record consumer would.
func (h *house) bury() {
	h.Helper()
	if _, err := h.pool.Exec(h.ctx, `
		INSERT INTO try_records.inbox_dead (consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, sent_at, attempts, class, reason, error, first_at, died_at)
		VALUES ('operation-records', 'dead', 'K', 'm', 'platform.saga.started', 'platform.saga.progress.v1', 0, 1, ARRAY['event_id', 'm'], 'the bytes', now(), 7, 'FATAL_ERROR', 'panic', 'no', now(), now())`); err != nil {
		h.Fatal(err)
	}
}

func metricsOf(h *house, a *app.App) string {
	h.Helper()
	w := httptest.NewRecorder()
	a.MetricsHandler().ServeHTTP(w, httptest.NewRequestWithContext(h.ctx, http.MethodGet, "/metrics", nil))
	return w.Body.String()
}

// Two processes do what is to be done beside jobs and events, each thing once: a scheduled message is published when it is due, a
// dead letter copied to its topic, a day of the event log archived. Metrics tell of lag and durable work. A drain ends it all.
func TestBackground_E14(t *testing.T) {
	t.Parallel()
	store, err := bucket.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := open(t, func(cfg *app.Config) {
		cfg.Background = app.Background{Work: true, DeadLetters: true, EventArchive: store, LagEvery: 200 * time.Millisecond}
	})
	h.past()
	h.bury()
	ticket := events.Message{Type: "ticketing.ticket.recorded", Data: map[string]any{"booking": "B-1", "sagaId": "S", "number": "N-1"}}
	due := time.Now().Add(2 * time.Second)
	h.schedule("later", due, ticket)
	h.schedule("never", time.Now().Add(time.Hour), ticket)
	other := h.another()
	stop := h.run(h.app.Relay, other.Relay, h.app.Record)

	if d := h.read(1, "ticketing.ticket.recorded.v1")[0]; d.Time.Before(due.Add(-100*time.Millisecond)) || d.Key != "B-1" {
		t.Errorf("key %s published at %v, due at %v", d.Key, d.Time, due)
	}
	if d := h.read(1, events.DefaultDLQ)[0]; string(d.Body) != "the bytes" || d.Header(deadletter.HeaderReason) != "panic" || d.Header(deadletter.HeaderGroup) != "operation-records" {
		t.Errorf("dead letter %q, %v", d.Body, d.Headers)
	}
	h.eventually("the day to be archived", func() bool {
		days, err := outbox.NewLog("try_domain").Days(h.ctx, h.pool)
		return err == nil && len(days) > 0 && days[0].State == "verified"
	})
	logged := 0
	if err := archive.NewReader(store).Rows(h.ctx, outbox.LogCursor{}, time.Now(), func(outbox.Logged) error { logged++; return nil }); err != nil || logged != 1 {
		t.Errorf("archive: %d rows, want one, %v", logged, err)
	}
	var page string
	h.eventually("the lag of the record consumer", func() bool {
		page = metricsOf(h, other)
		return strings.Contains(page, `journeyman_consumer_lag{topic="platform.saga.progress.v1",group="operation-records",partition="0"} 0`)
	})
	for _, want := range []string{
		`journeyman_consumer_members{group="operation-records",schema="try_records"} 1`, "journeyman_consumer_lag_unknown 0",
		`journeyman_work_scheduled{queue="journeyman.messages"} 1`, `journeyman_dead_letters{schema="try_records",state="dead"} 1`, "# TYPE journeyman_consumer_handler_duration_seconds histogram",
		"# TYPE journeyman_work_dead_total counter", "journeyman_metrics_failed 0",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("metrics lack %q:\n%s", want, page)
		}
	}
	if both := metricsOf(h, h.app) + page; strings.Count(both, `journeyman_work_duration_seconds_count{queue="journeyman.messages"} 1`) != 1 {
		t.Errorf("one of two processes did the one item that was due:\n%s", both)
	}
	stop()
	lags, err := h.lag("count", "ticketing.ticket.recorded.v1", events.DefaultDLQ)
	if err != nil || lags != 2 {
		t.Errorf("%d records in both topics, want one each, %v", lags, err)
	}
	var items int
	if err := h.pool.QueryRow(h.ctx, `SELECT count(*) FROM try_domain.work_item`).Scan(&items); err != nil || items != 1 {
		t.Errorf("%d items left, want the one of the next hour, %v", items, err)
	}
}

// lag counts the records of topics by what a group that never read has before it.
func (h *house) lag(group string, topics ...string) (n int64, err error) {
	bus, err := app.OpenBus(h.cfg)
	if err != nil {
		return 0, err
	}
	defer bus.Close() //nolint:errcheck // end of the test
	lags, err := bus.Lag(h.ctx, group, topics...)
	for _, l := range lags {
		n += l.Behind
	}
	return n, err
}

func TestBackground_refused(t *testing.T) {
	t.Parallel()
	_, err := app.New(app.Config{Background: app.Background{LagEvery: -1}})
	if err == nil || !strings.Contains(err.Error(), "Background.LagEvery") {
		t.Errorf("negative interval: %v", err)
	}
}
