package sagas

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func (w *world) toldBreaches() (what []string) {
	w.Helper()
	rows, err := w.domain.Query(w.ctx, `SELECT convert_from(body, 'UTF8')::jsonb #>> '{data,severity}' || ' ' || (convert_from(body, 'UTF8')::jsonb #>> '{data,what}')
		FROM journeyman.outbox WHERE type = $1 ORDER BY seq`, EventSLABreached)
	if err != nil {
		w.Fatal(err)
	}
	if what, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		w.Fatal(err)
	}
	return what
}

// S5, W14: what is late is told, step before operation before deadline before the person, each once whoever sees it.
func TestS05_BreachesAreToldInTime(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	processes := []*Sagas{w.s, w.another(nil)}
	for _, s := range processes {
		s.types["trip"].StepSLA = map[string]time.Duration{"flight.do": 2 * time.Minute}
	}
	if _, err := w.domain.Exec(w.ctx, `INSERT INTO journeyman.operation (operation_id, tenant, business_key, job_type, saga_id, state, created_at, expires_at)
		SELECT $1, 'agency', 'agency:B-k', 'flight.do', $2, 'calling', journeyman.now(), journeyman.now() + interval '30 d'`, id+":flight", id); err != nil {
		t.Fatal(err)
	}
	sweep := func(by time.Duration, want ...string) {
		t.Helper()
		w.advance(by)
		for range 2 {
			for _, s := range processes {
				if err := s.sweepBreaches(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := w.toldBreaches(); !slices.Equal(got, want) {
			t.Errorf("after %v more: told %v, want %v", by, got, want)
		}
	}
	sweep(time.Minute)
	sweep(2*time.Minute, "warning step")
	sweep(10*time.Minute, "warning step")
	sweep(3*time.Minute, "warning step", "warning operation") // half of 30 minutes
	sweep(15*time.Minute, "warning step", "warning operation", "critical deadline")
	if _, err := w.giveUp(id, Expired); err != nil {
		t.Fatal(err)
	}
	if _, err := w.domain.Exec(w.ctx, `UPDATE journeyman.saga SET state = 'manual' WHERE id = $1`, id); err != nil {
		t.Fatal(err)
	}
	sweep(3*time.Hour, "warning step", "warning operation", "critical deadline")
	sweep(2*time.Hour, "warning step", "warning operation", "critical deadline", "critical manual")
	all, err := w.s.Breaches(w.ctx, 10)
	if err != nil || len(all) != 4 || all[0].What != BreachStep || all[0].Step != "flight" || all[0].JobType != "flight.do" {
		t.Errorf("breaches: got %+v, %v", all, err)
	}
	w.mustClose(id, closeIn{})
	sweep(time.Hour, "warning step", "warning operation", "critical deadline", "critical manual")
	if got := w.metrics() + func() string { w.s = processes[1]; return w.metrics() }(); strings.Count(got, `journeyman_saga_sla_breaches_total{operation="trip",what="step"} 1`) != 1 {
		t.Errorf("metrics of both processes:\n%s", got)
	}
}

// I4: a step's SLA is shorter than its saga's time-out, and no SLA is longer than that.
func TestI04_SLAsNest(t *testing.T) {
	t.Parallel()
	typ := Type{Name: "x", Timeout: time.Hour, Retention: time.Hour, Parse: parseTrip, SLA: 2 * time.Hour, StepSLA: map[string]time.Duration{"a.do": time.Hour, "b.do": time.Minute}}
	err := typ.check()
	if err == nil || !strings.Contains(err.Error(), "SLA is 2h") || !strings.Contains(err.Error(), "StepSLA of a.do") || strings.Contains(err.Error(), "b.do") {
		t.Errorf("got %v", err)
	}
}

// V3: how many sagas are open and how many are stuck, and nothing once they have ended.
func TestV03_ActiveAndStuckGauges(t *testing.T) {
	w := setup(t)
	id := w.begun("k")
	w.begun("other")
	show := func() string {
		w.s.gaugesAt = time.Time{}
		if err := w.s.sweepGauges(w.ctx); err != nil {
			t.Fatal(err)
		}
		return w.metrics()
	}
	if got := show(); !strings.Contains(got, "# TYPE journeyman_sagas_active gauge\njourneyman_sagas_active{operation=\"trip\",state=\"running\"} 2\n") || strings.Contains(got, "journeyman_sagas_stuck") {
		t.Errorf("got\n%s", got)
	}
	w.advance(40 * time.Minute)
	if got := show(); !strings.Contains(got, `journeyman_sagas_stuck{operation="trip",reason="past its deadline without a decision"} 2`) {
		t.Errorf("got\n%s", got)
	}
	for _, one := range []string{id, id1("other")} {
		if _, err := w.giveUp(one, Expired); err != nil {
			t.Fatal(err)
		}
		w.mustClose(one, closeIn{})
	}
	if got := show(); strings.Contains(got, "journeyman_sagas_") {
		t.Errorf("after the end: got\n%s", got)
	}
}

// The metrics of spec I10 by their exact names: counted here, or recorded by the rules that are shipped (rates are of time).
func TestI10_Names(t *testing.T) {
	w := setup(t)
	srv := w.server(w.s)
	w.post(srv, "a", "k", goodTrip)
	w.ended(id1("k"), Completed)
	counted, rules := w.metrics(), readRules(t)
	for _, name := range []string{"long_running_in_progress_polls_per_operation", "idempotent_response_rate", "force_retry_rate", "expired_operation_rate", "polling_violations"} {
		if !strings.Contains(counted, "# TYPE "+name+" ") && !strings.Contains(rules, "record: "+name+"\n") {
			t.Errorf("%s is neither counted nor recorded", name)
		}
		if !strings.Contains(rules, name) {
			t.Errorf("%s has no alert", name)
		}
	}
}
