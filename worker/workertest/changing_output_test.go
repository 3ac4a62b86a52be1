package workertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// Rules 5, 9 and 10 of docs/changing-a-worker.md: error codes, the shape of a handler, outputs.

// Rule 5: a new code needs the model first, and running instances keep the old model.
func TestChanging_newCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(refuses("FULL"))
	p.WantIncident("reserve", "FULL")
	if _, err := h.conn.Deploy(t.Context(), zeebe.Resource{Name: "stay.bpmn", Content: []byte(modelText(catchFull))}); err != nil {
		t.Fatal(err)
	}
	h.create(map[string]any{"businessKey": "B-3"}).WantCompleted().WantNoIncidents()
	p.WantIncident("reserve", "FULL")
}

// Rule 5: what the old build had done is answered, though the new one would refuse.
func TestChanging_newCode_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(refuses("FULL"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
}

// Rule 5: a code that Throws does not list is FATAL before the commit, so a forgotten one is seen at its first use.
func TestChanging_undeclaredCode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(catchFull))
	p := h.create(nil)
	h.build(refuses("SOLD_OUT"))
	p.WantIncident("reserve", `error code "FULL" is not one of those the handler declares`)
}

// Rule 5: a code that the new build gave up is still thrown where the old build had recorded it, so the model keeps catching it.
func TestChanging_codeGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(catchFull))
	p := h.create(nil)
	h.leave(refuses("FULL"))
	h.build(room[first](h, "new"))
	p.WantCompleted().WantPath("full", "fullEnd").WantNoIncidents()
	h.wantRuns(0)
}

// Rule 5: jobs that wait run in a build that gave a code up, beside one that still throws it.
func TestChanging_codeGone_waiting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(catchFull))
	stop := h.build(refuses("FULL"))
	h.create(nil).WantCompleted().WantPath("full", "fullEnd")
	stop()
	p := h.waiting()
	h.build(room[first](h, "new"))
	p.WantActive("wait").WantVariable("room", "new").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 9: a handler does not change its shape while an external call of it is under way.
func TestChanging_shape(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	called := make(chan struct{}, 16)
	stop := h.build(func(mux *worker.Mux) {
		mux.Handle("room.reserve", worker.External(worker.Remote[first, held, held]{
			Call: func(context.Context, worker.Call[first]) (held, error) {
				select {
				case called <- struct{}{}:
				default:
				}
				return held{}, errors.New("no answer")
			},
		}, worker.KeyValidFor(time.Hour), worker.NotCompensable("a test")))
	})
	p := h.create(nil)
	<-called
	stop()
	h.env.AdvanceClock(10 * time.Minute)
	h.build(room[first](h, "new"))
	p.WantIncident("reserve", "is under way as an external one")
	h.wantRuns(0)
}

// Rule 9: jobs that wait run in a build of the other shape.
func TestChanging_shape_waiting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(outside(h, "new"))
	p.WantActive("wait").WantVariable("room", "new").WantNoIncidents()
	h.wantRuns(2)
}

// Rule 9: what the transactional build finished is answered from the record by an external one, and nobody is called.
func TestChanging_shape_done(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(outside(h, "new"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 9: a transactional build undoes what an external one did, from the recorded input and output.
func TestChanging_shape_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(outside(h, "old"))
	h.build(room[first](h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`new undoes "old" {Hotel:H-1 Nights:2}`)
}

// Rule 9: an external build undoes what a transactional one did, with the output that was recorded as the result of a call.
func TestChanging_shape_undoOutside(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	h.build(outside(h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel").WantNoIncidents()
	h.wantUndo(`new undoes "old" {Hotel:H-1 Nights:2}`)
}

// Rule 10: an output field more is ignored: the mappings choose.
func TestChanging_outputField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(gives(map[string]string{"id": "old"})).WantVariable("room", "old")
	p := h.waiting()
	h.build(gives(map[string]string{"id": "new", "extra": "x"}))
	p.WantActive("wait").WantVariable("room", "new").WantNoIncidents()
}

// Rule 10: a repeat is given the output that the old build recorded, whatever the new one would give.
func TestChanging_outputField_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(gives(map[string]string{"id": "old"}))
	h.build(gives(map[string]string{"id": "new", "extra": "x"}))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
}

// Rule 10: an output field that the model maps becomes null when a build no longer gives it; the engine says nothing.
func TestChanging_outputFieldGone(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(gives(map[string]string{"id": "old"})).WantVariable("room", "old")
	p := h.waiting()
	h.build(gives(map[string]string{"roomId": "new"}))
	p.WantActive("wait").WantVariable("room", nil).WantNoIncidents()
}

// Rule 10: a repeat has the field that the old build recorded.
func TestChanging_outputFieldGone_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(gives(map[string]string{"id": "old"}))
	h.build(gives(map[string]string{"roomId": "new"}))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
}
