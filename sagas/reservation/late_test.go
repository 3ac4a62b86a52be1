package reservation_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/reservation"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// What a supplier does when the reservation has been given up, undone and closed for minutes, hours or nearly a day is found by a
// question and undone once; booking and answer stay what they were (path rule 11).
func TestReservation_landsLate(t *testing.T) {
	for _, step := range []struct {
		name, segment string
		action        suppliers.Action
		before        map[string]int // effects until it is closed
		after         map[string]int // and when the late one is undone
	}{
		{"room", "hotel", reserve, map[string]int{}, map[string]int{"hotel reserve": 1, "hotel cancel": 1}},
		{
			"authorization", "payment", authorize, map[string]int{"hotel reserve": 1, "hotel cancel": 1},
			map[string]int{"hotel reserve": 1, "hotel cancel": 1, "payment authorize": 1, "payment void": 1},
		},
	} {
		for _, late := range []time.Duration{2 * time.Minute, 40 * time.Minute, 3 * time.Hour, 20 * time.Hour} {
			t.Run(fmt.Sprint(step.name, " ", late), func(t *testing.T) {
				st := start(t, 0)
				land := make(chan struct{})
				st.world.Script(booked, step.segment, step.action, suppliers.LandLate(land), suppliers.TimeoutBefore().Always())
				id := st.Post(reservation.TypeName, "k", room)
				st.Until("the supplier is asked", func() bool { return st.world.Requests(booked, step.segment, step.action) > 0 })
				st.Cancel(id)
				st.Until("it is given up", func() bool {
					d, err := st.Sagas.Show(t.Context(), id)
					return err == nil && d.Decision == sagas.Cancelled
				})
				st.Advance(time.Minute) // the lease of the call that was never answered
				end := st.Wait(id)
				st.want(tourbooking.Cancelled, step.before)
				asked := func() (n int) {
					if err := st.Pool.QueryRow(t.Context(), `SELECT coalesce(sum(asked), 0) FROM journeyman.operation WHERE saga_id = $1`, id).Scan(&n); err != nil {
						t.Fatal(err)
					}
					return n
				}
				var at time.Duration // since it was undone, each question in its time
				for n, question := range []time.Duration{61 * time.Second, 11 * time.Minute, 62 * time.Minute, 125 * time.Minute} {
					if question < late {
						st.Advance(question - at)
						at = question
						st.Until("it was asked in vain", func() bool { return asked() > n })
					}
				}
				st.Advance(late - at)
				close(land)
				landed := func(kind suppliers.Kind) func() bool {
					return func() bool {
						for _, e := range st.world.Ledger() {
							if e.Segment == step.segment && e.Kind == kind {
								return true
							}
						}
						return false
					}
				}
				st.Until("the effect lands", landed(suppliers.Kind(step.action)))
				st.Advance(late + time.Hour) // to the next question, or past it
				undone := suppliers.Cancel
				if step.segment == "payment" {
					undone = suppliers.Void
				}
				st.Until("it is undone", landed(undone))
				st.Until("its undo is written down", func() bool {
					var open int
					err := st.Pool.QueryRow(t.Context(), `SELECT count(*) FROM journeyman.operation WHERE saga_id = $1 AND ask_at IS NOT NULL`, id).Scan(&open)
					return err == nil && open == 0
				})
				st.want(tourbooking.Cancelled, step.after)
				if id := st.post("k", nil, http.StatusOK); id != end.OperationID {
					t.Errorf("the repeat is answered of %s, want %s", id, end.OperationID)
				}
				if again := st.Wait(id); string(again.Answer) != string(end.Answer) {
					t.Errorf("the answer was %s and is %s", end.Answer, again.Answer)
				}
			})
		}
	}
}
