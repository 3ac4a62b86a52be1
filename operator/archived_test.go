package operator_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// TestTimeline_S5_archivedEvents: a saga's timeline is whole after the days of its events left the database, and says so where
// it cannot be.
func TestTimeline_S5_archivedEvents(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	if err := archive.Migrate(t.Context(), r.Pool, operatortest.Schema); err != nil {
		t.Fatal(err)
	}
	r.Run(`DROP TABLE {{schema}}.event_log_all`)
	day := time.Now().UTC().AddDate(0, 0, -3).Truncate(24 * time.Hour)
	name := "event_log_" + day.Format("20060102")
	r.Run(`CREATE TABLE {{schema}}.` + name + ` PARTITION OF {{schema}}.event_log FOR VALUES FROM ('` + day.Format(time.RFC3339) + `') TO ('` + day.AddDate(0, 0, 1).Format(time.RFC3339) + `')`)
	r.Saga("op_1", "completed", "completed", "1 min")
	r.Run(`UPDATE {{schema}}.saga SET started_at = $1, begun_at = $1, decided_at = $1::timestamptz + interval '1 min', closed_at = $1::timestamptz + interval '1 min'`, day.Add(time.Hour))
	logged := func(id int, operation, typ string) {
		r.Run(`INSERT INTO {{schema}}.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
			VALUES ($1, $2, $3, gen_random_uuid(), $4, 1, 'saga', 't', 'acme:op_1', $3, $5, '{}', '\x7b7d', $1, $1)`,
			day.Add(time.Hour+time.Duration(id)*time.Second), events.Shard("acme:op_1"), id, typ, operation)
	}
	logged(1, "op_1", "platform.saga.started")
	logged(2, "op_1:flightReserve:flight", "platform.saga.step_completed")
	logged(3, "op_10:flightReserve:flight", "platform.saga.step_failed") // another saga's
	has := func(s operator.Saga) (found []string) {
		for _, m := range s.Timeline {
			if m.Source == "event" {
				found = append(found, m.What+" "+strings.SplitN(m.Detail, ",", 2)[0])
			}
		}
		return found
	}
	s, err := r.Desk.Saga(t.Context(), "op_1")
	if want := []string{"platform.saga.started.v1 published", "platform.saga.step_completed.v1 published"}; err != nil || !slices.Equal(has(s), want) || len(s.Problems) > 1 {
		t.Fatalf("events in the database: %q, problems %q, %v; want %q", has(s), s.Problems, err, want)
	}

	store, err := bucket.Open(t.Context(), "file://"+t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // only read
	a, err := archive.New(r.Pool, store, archive.Config{Schema: operatortest.Schema, After: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := a.Pass(t.Context()); err != nil || done.Rows != 3 {
		t.Fatalf("archived %+v, %v", done, err)
	}
	r.Run(`DROP TABLE {{schema}}.` + name)
	r.Run(`UPDATE {{schema}}.event_log_day SET state = 'dropped', dropped_at = now()`)
	if s, err = r.Desk.Saga(t.Context(), "op_1"); err != nil || len(has(s)) != 0 || !strings.Contains(strings.Join(s.Problems, ";"), "only in the archive") {
		t.Errorf("without the archive: %q, problems %q, %v; want none and a word about it", has(s), s.Problems, err)
	}
	d := r.NewDesk(operator.Config{Archive: archive.NewReader(store)})
	s, err = d.Saga(t.Context(), "op_1")
	if want := []string{"platform.saga.started.v1 archived", "platform.saga.step_completed.v1 archived"}; err != nil || !slices.Equal(has(s), want) {
		t.Errorf("with the archive: %q, problems %q, %v; want %q", has(s), s.Problems, err, want)
	}
}
