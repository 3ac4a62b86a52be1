package app_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/work"
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

// quotes is a queue of durable work beside the library's own.
const quotes = `
domains: [tour]
queues:
  - {name: quotes, owner: tour, producers: [tour-workers], consumers: [tour-workers], retry: [1s, 1m], operator_action: none, pii: none}
`

// expire is the work of that queue: it writes down which quote expired, and when.
func expire(ctx context.Context, tx *outbox.Tx, t work.Task, quote string) error {
	_, err := tx.Exec(ctx, `INSERT INTO expired (quote, put_as, at) VALUES ($1, $2, clock_timestamp())`, quote, t.ID)
	return err
}

// later puts an item of durable work that is due at a time.
func (h *house) later(id, quote string, at time.Time) {
	h.Helper()
	store, err := work.NewStore(h.cfg.Schema, nil)
	if err == nil {
		err = store.Put(h.ctx, h.pool, work.Item{Queue: "quotes", ID: id, Key: quote, At: at, Payload: quote})
	}
	if err != nil {
		h.Fatal(err)
	}
}

// Two processes do what is to be done beside jobs and events, each thing once: a scheduled message is published and an item of
// a queue done when they are due, a dead letter copied to its topic, a day of the event log archived. Metrics tell of lag and
// durable work. A drain ends it all.
func TestBackground_E14(t *testing.T) {
	t.Parallel()
	store, err := bucket.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := open(t, func(cfg *app.Config) {
		cfg.Messages.Catalogs = []*events.Catalog{catalogOf(t, quotes)}
		cfg.Background = app.Background{
			Work: true, Queues: []work.Queue{{Name: "quotes", Concurrency: 1, Handler: work.Typed(expire)}},
			DeadLetters: true, EventArchive: store, LagEvery: 200 * time.Millisecond,
		}
	})
	if _, err := h.pool.Exec(h.ctx, `CREATE TABLE expired (n bigserial, quote text, put_as text, at timestamptz)`); err != nil {
		t.Fatal(err)
	}
	h.past()
	h.bury()
	ticket := events.Message{Type: "ticketing.ticket.recorded", Data: map[string]any{"booking": "B-1", "sagaId": "S", "number": "N-1"}}
	due := time.Now().Add(2 * time.Second)
	h.schedule("later", due, ticket)
	h.schedule("never", time.Now().Add(time.Hour), ticket)
	h.later("Q-7/expiry", "Q-7", due)
	h.later("Q-8/expiry", "Q-8", time.Now().Add(time.Hour))
	other := h.another()
	stop := h.run(h.app.Relay, other.Relay, h.app.Record)

	if d := h.read(1, "ticketing.ticket.recorded.v1")[0]; d.Time.Before(due.Add(-100*time.Millisecond)) || d.Key != "B-1" {
		t.Errorf("key %s published at %v, due at %v", d.Key, d.Time, due)
	}
	if d := h.read(1, events.DefaultDLQ)[0]; string(d.Body) != "the bytes" || d.Header(deadletter.HeaderReason) != "panic" || d.Header(deadletter.HeaderGroup) != "operation-records" {
		t.Errorf("dead letter %q, %v", d.Body, d.Headers)
	}
	h.eventually("the quote to expire", func() bool {
		var done int
		err := h.pool.QueryRow(h.ctx, `SELECT count(*) FROM expired`).Scan(&done)
		return err == nil && done > 0
	})
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
		`journeyman_work_scheduled{queue="journeyman.messages"} 1`, `journeyman_work_scheduled{queue="quotes"} 1`, `journeyman_dead_letters{schema="try_records",state="dead"} 1`, "# TYPE journeyman_consumer_handler_duration_seconds histogram",
		"# TYPE journeyman_work_dead_total counter", "journeyman_metrics_failed 0",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("metrics lack %q:\n%s", want, page)
		}
	}
	both := metricsOf(h, h.app) + page
	for _, queue := range []string{"journeyman.messages", "quotes"} {
		if strings.Count(both, `journeyman_work_duration_seconds_count{queue="`+queue+`"} 1`) != 1 {
			t.Errorf("one of two processes did the one item of %s that was due:\n%s", queue, both)
		}
	}
	stop()
	lags, err := h.lag("count", "ticketing.ticket.recorded.v1", events.DefaultDLQ)
	if err != nil || lags != 2 {
		t.Errorf("%d records in both topics, want one each, %v", lags, err)
	}
	var items int
	if err := h.pool.QueryRow(h.ctx, `SELECT count(*) FROM try_domain.work_item`).Scan(&items); err != nil || items != 2 {
		t.Errorf("%d items left, want the two of the next hour, %v", items, err)
	}
	var expired string
	var at time.Time
	if err := h.pool.QueryRow(h.ctx, `SELECT string_agg(quote || ' ' || put_as, ','), min(at) FROM expired`).Scan(&expired, &at); err != nil || expired != "Q-7 Q-7/expiry" || at.Before(due.Add(-100*time.Millisecond)) {
		t.Errorf("expired %q at %v, want Q-7 once and not before %v, %v", expired, at, due, err)
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
