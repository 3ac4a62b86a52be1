package tourbooking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// Lines of spec S that are whole flows have their tests elsewhere: S1 in flow_test.go and in test/faults, S2 in package worker, S3 in
// state_test.go, S4 in the tests of follow-ups, S5 in package sagas.

// Spec S6: each kind of end is told by saga events, in order, and what is told of a step was staged in the step's own transaction.
func TestS06_SagaEventsAreStagedWithTheirStep(t *testing.T) {
	for name, c := range map[string]struct {
		script      func(st *stage, release <-chan struct{})
		late        bool
		end, reason string
		want        []string // in this order, others between
	}{
		"completed": {func(*stage, <-chan struct{}) {}, false, "completed", "", []string{sagas.EventStarted, sagas.EventStepCompleted, sagas.EventCompleted}},
		"failed": {
			func(st *stage, _ <-chan struct{}) {
				st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED"))
			}, false, "failed", models.CodePaymentDeclined,
			[]string{sagas.EventStarted, sagas.EventStepCompleted, sagas.EventStepFailed, sagas.EventCompensating, sagas.EventCompensated, sagas.EventFailed},
		},
		"expired": {
			func(st *stage, release <-chan struct{}) {
				st.world.Script(booked, "payment", authorize, suppliers.Refuse("PAYMENT_DECLINED").When(release))
			}, true, "expired", "deadline",
			[]string{sagas.EventStarted, sagas.EventStepCompleted, sagas.EventCompensating, sagas.EventCompensated, sagas.EventExpired},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, release := setup(t, short{}), make(chan struct{})
			c.script(st, release)
			id := st.post(tourbooking.TypeName, "k", goodTour)
			if c.late {
				st.eventually("the money is asked for", func() bool { return st.world.Requests(booked, "payment", authorize) > 0 })
				st.must(func() error { return st.eng.AdvanceClock(31 * time.Minute) })
				st.eventually("the saga is decided", func() bool {
					d, err := st.sagas.Show(st.ctx, id)
					return err == nil && d.Decision == sagas.Expired
				})
			}
			close(release)
			if d := st.ended(id); d.State != c.end || d.Reason != c.reason {
				t.Fatalf("ended %s because %q", d.State, d.Reason)
			}
			told, at := st.told("platform.saga."), 0
			for _, want := range c.want {
				next := slices.Index(told[at:], want)
				if next < 0 {
					t.Fatalf("told %v, want %v in this order: %s is missing", told, c.want, want)
				}
				at += next
			}
			if c.end != "completed" {
				return // an undo has changed the rows of the ledger since
			}
			var steps, apart int
			if err := st.pool.QueryRow(st.ctx, `SELECT count(*), count(*) FILTER (WHERE o.xmin <> t.xmin) FROM journeyman.saga_step t
				JOIN journeyman.outbox o ON o.operation_id = t.operation_id AND o.type = $2 WHERE t.saga_id = $1`, id, sagas.EventStepCompleted).Scan(&steps, &apart); err != nil {
				t.Fatal(err)
			}
			if steps < 5 || apart != 0 {
				t.Errorf("%d steps were told, %d in another transaction than their own", steps, apart)
			}
		})
	}
}

// Spec S7: what moves money is told, in the order of its key without a gap, and the catalog says that it is financial.
func TestS07_SettlementsAreToldInOrder(t *testing.T) {
	st := setup(t, short{})
	st.wantEnd(st.ended(st.post(refund.TypeName, "r", st.sold())), "completed", "", tourbooking.Cancelled)
	want := []string{"payment.settlement.authorized", "payment.settlement.captured", "payment.settlement.refunded"}
	if d := cmp.Diff(want, st.told("payment.settlement.")); d != "" {
		t.Errorf("settlements (-want +got):\n%s", d)
	}
	var rows, last int64
	if err := st.pool.QueryRow(st.ctx, `SELECT count(*), max(seq) FROM journeyman.outbox WHERE business_key = $1`, booked).Scan(&rows, &last); err != nil {
		t.Fatal(err)
	}
	if rows == 0 || rows != last {
		t.Errorf("%d events of the key, the last numbered %d", rows, last)
	}
	for _, typ := range append(want, "payment.settlement.voided") {
		if e, ok := catalog(t).Entry(typ, 1); !ok || !e.Financial {
			t.Errorf("%s: in the catalog %v, financial %v", typ, ok, e.Financial)
		}
	}
}
