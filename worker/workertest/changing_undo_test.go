package workertest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/enginetest"
	"github.com/vitrip/journeyman/worker"
)

// Rules 6 to 8 of docs/changing-a-worker.md: compensations and job types.

// Rule 6: the new build undoes what the old one did, from the recorded input; a field that is new is empty there.
func TestChanging_undoOfOldEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	stop := h.build(room[first](h, "old"))
	p := h.create(map[string]any{"board": "half"}).WantActive("wait")
	stop()
	h.build(room[withRequired](h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`new undoes "old" {Hotel:H-1 Nights:2 Board:}`)
}

// Rule 6: an undo that the old build had done is answered from the record, and the new body does not run.
func TestChanging_undoOfOldEffect_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	h.compensate()
	h.leave(room[first](h, "old"))
	h.build(room[withRequired](h, "new"))
	p.WantCompleted().WantCompensated("cancel").WantNoIncidents()
	h.wantUndo(`old undoes "old" {Hotel:H-1 Nights:2}`)
}

// Rule 7: another undo type leaves the compensations of running instances to nobody, until a build that has the old one runs.
func TestChanging_undoType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(forward[first](h, "new", "room.reserve", "room.give-back"))
	p := h.create(nil).WantActive("wait")
	h.compensate()
	p.WantActive("cancel").WantNoIncidents() // job room.cancel: nobody serves it
	h.wantNoUndo()
	h.build(room[first](h, "old"))
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`old undoes "new" {Hotel:H-1 Nights:2}`)
}

// v2 is a build that has the new job type alone, v1and2 one that has the old one too.
func v2(h *house) func(mux *worker.Mux) {
	return forward[withRequired](h, "v2", "room.reserve.v2", "room.cancel.v2")
}

func v1and2(h *house) func(mux *worker.Mux) {
	return func(mux *worker.Mux) {
		room[first](h, "v1")(mux)
		v2(h)(mux)
	}
}

// Rule 8: a new job type stands beside the old one, in one build, until no instance of the old model is left. A build with the
// old type alone runs beside it: either serves the old instances, only one the new.
func TestChanging_jobType(t *testing.T) {
	t.Parallel()
	next := strings.NewReplacer("room.reserve", "room.reserve.v2", "room.cancel", "room.cancel.v2", `id="stay"`, `id="stay2"`).Replace(modelText(""))
	h := newHouse(t, model(""), enginetest.Text("stay2.bpmn", next))
	h.build(room[first](h, "v1"))
	h.build(v1and2(h))
	p := h.create(nil).WantActive("wait").WantVariable("room", "v1")
	var moved *enginetest.Instance
	for n := range 3 {
		h.create(map[string]any{"businessKey": fmt.Sprintf("old-%d", n)}).WantActive("wait").WantVariable("room", "v1").WantNoIncidents()
		moved = h.env.Create("stay2", variables(map[string]any{"businessKey": fmt.Sprintf("new-%d", n), "board": "full"})).
			WantActive("wait").WantVariable("room", "v2").WantNoIncidents()
	}
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`v1 undoes "v1" {Hotel:H-1 Nights:2}`)
	h.env.Correlate(enginetest.Message{Name: "go", CorrelationKey: "new-2"})
	moved.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`v2 undoes "v2" {Hotel:H-1 Nights:2 Board:full}`)
}

// Rule 8: a build with both types answers what the build before it did.
func TestChanging_jobType_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(v1and2(h))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 8: jobs of a type that was dropped wait, without an incident, until a build that has it runs again.
func TestChanging_jobType_dropped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(v2(h))
	h.env.AdvanceClock(time.Hour)
	p.WantActive("reserve").WantNoIncidents()
	h.wantRuns(1)
	h.build(room[first](h, "old again"))
	p.WantActive("wait").WantVariable("room", "old again")
}

// Rule 8: so does a job whose work the old build had done; it is answered when that type is back.
func TestChanging_jobType_dropped_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(v2(h))
	h.env.AdvanceClock(time.Hour)
	p.WantActive("reserve").WantNoIncidents()
	h.build(room[first](h, "old again"))
	p.WantActive("wait").WantVariable("room", "old")
	h.wantRuns(1)
}

// Rule 8: so does a compensation.
func TestChanging_jobType_dropped_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	h.build(v2(h))
	h.compensate()
	h.env.AdvanceClock(time.Hour)
	p.WantActive("cancel").WantNoIncidents()
	h.wantNoUndo()
	h.build(room[first](h, "old again"))
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`old again undoes "old" {Hotel:H-1 Nights:2}`)
}
