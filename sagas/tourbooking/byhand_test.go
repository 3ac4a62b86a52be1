package tourbooking_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// hotels gives the hotels that the booking shows as held, and its price.
func (st *stage) hotels() (held []string, amount int64) {
	st.Helper()
	if err := st.pool.QueryRow(st.ctx, `SELECT coalesce((SELECT array_agg(r.supplier_id ORDER BY r.created_at) FROM journeyman.tour_reservation r
			WHERE r.business_key = b.business_key AND r.segment = 'hotel' AND r.status = 'confirmed'), '{}'), b.amount
		FROM journeyman.tour_booking b WHERE b.business_key = $1`, booked).Scan(&held, &amount); err != nil {
		st.Fatal(err)
	}
	return held, amount
}

// report completes the user task of a saga that was left to a person.
func (st *stage) report(saga string, remediation map[string]any) {
	st.Helper()
	c, err := rest.New(rest.Config{Base: "http://" + st.eng.RESTAddr()})
	if err != nil {
		st.Fatal(err)
	}
	var task rest.UserTask
	st.eventually("the task of the person", func() bool {
		d, err := st.sagas.Show(st.ctx, saga)
		if err != nil || d.ProcessInstanceKey == 0 {
			return false
		}
		page, err := c.SearchUserTasks(st.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(d.ProcessInstanceKey), "state": "CREATED"}})
		if err != nil || len(page.Items) == 0 {
			return false
		}
		task = page.Items[0]
		return true
	})
	if err := c.CompleteUserTask(st.ctx, int64(task.UserTaskKey), map[string]any{"remediation": remediation}); err != nil {
		st.Fatal(err)
	}
}

// Spec Z5: the old hotel refuses to be given back, and so the person does it. Their report is what the booking shows from then on, and
// the next amendment, and money paid back, go by it.
func TestAmendment_settledByHand(t *testing.T) {
	st := changed(t, short{})
	st.world.Script(booked, "hotel", "cancel", suppliers.Refuse("NOT_TODAY"))
	id := st.post(amendment.TypeName, "change", otherHotel(140000))
	var old, now string
	st.eventually("both hotels to stand", func() bool {
		held, _ := st.hotels()
		if len(held) == 2 {
			old, now = held[0], held[1]
		}
		return len(held) == 2
	})
	st.report(id, map[string]any{
		"outcome": "completed", "note": "by phone", "released": []string{old}, "amount": 130000,
		"moved": []map[string]any{{"kind": "refunded", "reference": "RF-by-hand", "amount": 10000}},
	})
	d := st.ended(id)
	held, amount := st.hotels()
	if diff := cmp.Diff([]string{now}, held); diff != "" || amount != 130000 || d.State != "completed" {
		t.Errorf("hotels that stand (-want +got):\n%s\nthe booking costs %d and the saga is %s", diff, amount, d.State)
	}
	var moved int
	if err := st.pool.QueryRow(st.ctx, `SELECT count(*) FROM journeyman.tour_settlement WHERE saga_id = $1 AND kind = 'refunded' AND amount = 10000 AND operation_id = $1 || ':by-hand:refunded:RF-by-hand'`, id).Scan(&moved); err != nil || moved != 1 {
		t.Errorf("%d settlements by hand, %v; want one", moved, err)
	}
	if told := st.told("payment."); len(told) == 0 || told[len(told)-1] != "payment.settlement.refunded" {
		t.Errorf("told: %v", told)
	}
	next := st.post(amendment.TypeName, "again", otherHotel(130000)) // the hotel still refuses
	st.report(next, map[string]any{"outcome": "completed", "released": []string{now}})
	if again := st.ended(next); again.State != "completed" {
		t.Errorf("the next amendment: %s because %s", again.State, again.Reason)
	}
	if held, _ := st.hotels(); len(held) != 1 || held[0] == now {
		t.Errorf("hotels after the next amendment: %v, %s was replaced", held, now)
	}
}

// A report that does not fit the booking closes nothing: an incident says what is wrong, and the saga ends when it was put right.
func TestAmendment_wrongReport(t *testing.T) {
	st := changed(t, short{})
	st.world.Script(booked, "hotel", "cancel", suppliers.Refuse("NOT_TODAY"))
	id := st.post(amendment.TypeName, "change", otherHotel(125000))
	st.report(id, map[string]any{"outcome": "completed", "released": []string{"HT-nobody-knows"}})
	c, err := rest.New(rest.Config{Base: "http://" + st.eng.RESTAddr()})
	if err != nil {
		t.Fatal(err)
	}
	var wrong rest.Incident
	st.eventually("the incident", func() bool {
		d, err := st.sagas.Show(st.ctx, id)
		if err != nil {
			return false
		}
		page, err := c.SearchIncidents(st.ctx, rest.Query{Filter: rest.Filter{"processInstanceKey": rest.Key(d.ProcessInstanceKey), "state": "ACTIVE"}})
		if err != nil || len(page.Items) == 0 {
			return false
		}
		wrong = page.Items[0]
		return true
	})
	if !strings.Contains(wrong.ErrorMessage, `released[0]: the booking has no reservation "HT-nobody-knows"`) {
		t.Errorf("the incident says %q", wrong.ErrorMessage)
	}
	if d, err := st.sagas.Show(st.ctx, id); err != nil || d.ClosedAt != nil {
		t.Errorf("the saga is %s, %v; want it open", d.State, err)
	}
	if held, _ := st.hotels(); len(held) != 2 {
		t.Errorf("hotels: %v, want both as before", held)
	}
}

// What is wrong with a report is told by field, all at once, and nothing of it is taken over.
func TestSettledByHand_refused(t *testing.T) {
	st := changed(t, short{})
	b, err := tourbooking.NewBookings("")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		h    tourbooking.ByHand
		want []string
	}{
		"fields": {
			tourbooking.ByHand{Released: []string{""}, Amount: -1, Moved: []tourbooking.Movement{{Kind: "authorized"}}},
			[]string{"released[0] is empty", "amount is -1", `moved[0].kind is "authorized"`, "moved[0].reference is empty", "moved[0].amount is 0"},
		},
		"another booking's hotel": {tourbooking.ByHand{Released: []string{"HT-other"}, Amount: 1}, []string{`released[0]: the booking has no reservation "HT-other"`}},
		"too much back":           {tourbooking.ByHand{Amount: 1, Moved: []tourbooking.Movement{{Kind: "refunded", Reference: "R", Amount: 200000}}}, []string{"75000 minor units EUR more would be paid back"}},
	} {
		err := pgx.BeginFunc(st.ctx, st.pool, func(tx pgx.Tx) error {
			wrapped := outbox.NewTx(tx)
			k, err := b.Lock(st.ctx, wrapped, booked)
			if err != nil {
				return err
			}
			return b.SettledByHand(st.ctx, wrapped, k, sagas.OperationID(tenant, amendment.TypeName, "x", 1), c.h)
		})
		if !errors.Is(err, tourbooking.ErrByHand) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q in it", name, err, w)
			}
		}
	}
	if held, amount := st.hotels(); len(held) != 1 || amount != 125000 {
		t.Errorf("after the refused reports: %v for %d", held, amount)
	}
}
