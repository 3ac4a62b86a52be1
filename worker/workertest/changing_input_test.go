package workertest_test

import (
	"fmt"
	"testing"
)

// Rules 1 to 4 of docs/changing-a-worker.md: the fields of a handler's input.

// Rule 1: an optional field may be added while jobs run; what the old build did is answered, not done again.
func TestChanging_optionalField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(map[string]any{"note": "sea view"})
	h.leave(room[first](h, "old"))
	h.build(room[withOptional](h, "new"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 1, both builds at once: a job without the field is served by either.
func TestChanging_optionalField_sideBySide(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.build(room[first](h, "old"))
	h.build(room[withOptional](h, "new"))
	for n := range 4 {
		h.create(map[string]any{"businessKey": fmt.Sprintf("B-%d", n)}).WantActive("wait").WantNoIncidents()
	}
	h.wantRuns(4)
}

// Rule 1: the new build undoes what the old one did; the field was not recorded and is empty.
func TestChanging_optionalField_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	p.SetVariables(map[string]any{"note": "sea view"})
	h.build(room[withOptional](h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`new undoes "old" {Hotel:H-1 Nights:2 Note:}`)
}

// Rule 2: a required field makes incidents of the jobs that lack it, which the old build had served.
func TestChanging_requiredField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(room[withRequired](h, "new"))
	p.WantIncident("reserve", "variable board: missing")
	h.wantRuns(1)
	p.SetVariables(map[string]any{"board": "half"})
	p.ResolveIncidents(3)
	p.WantActive("wait").WantVariable("room", "new")
	h.wantRuns(2)
}

// Rule 2: a repeat whose job has the field is answered with what the old build did.
func TestChanging_requiredField_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(map[string]any{"board": "half"})
	h.leave(room[first](h, "old"))
	h.build(room[withRequired](h, "new"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 2: a repeat whose job lacks the field is an incident though the work is done; with the field it is answered.
func TestChanging_requiredField_repeatWithout(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(room[withRequired](h, "new"))
	p.WantIncident("reserve", "variable board: missing")
	p.SetVariables(map[string]any{"board": "half"})
	p.ResolveIncidents(3)
	p.WantActive("wait").WantVariable("room", "old")
	h.wantRuns(1)
}

// Rule 2: the field is its zero value in the undo of what the old build did.
func TestChanging_requiredField_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	h.build(room[withRequired](h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`new undoes "old" {Hotel:H-1 Nights:2 Board:}`)
}

// Rule 3: a field that is gone changes nothing for jobs that nobody ran.
func TestChanging_removedField(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(room[withoutNights](h, "new"))
	p.WantActive("wait").WantVariable("room", "new").WantNoIncidents()
	h.wantRuns(2)
}

// Rule 3: a repeat of what the old build did is a conflict, because its fingerprint covers a variable that the new build does
// not ask for. Nothing is done twice, and a person sees it.
func TestChanging_removedField_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(room[withoutNights](h, "new"))
	p.WantIncident("reserve", "was run before with another input")
	h.wantRuns(1)
}

// Rule 3: made optional first, the field still counts, and the repeat is answered.
func TestChanging_removedField_optionalFirst(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(room[nightsOptional](h, "new"))
	p.WantActive("wait").WantVariable("room", "old").WantNoIncidents()
	h.wantRuns(1)
}

// Rule 3: the undo of what the old build did ignores the field, which was recorded.
func TestChanging_removedField_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	h.build(room[withoutNights](h, "new"))
	h.compensate()
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`new undoes "old" {Hotel:H-1}`)
}

// Rule 4: another type for a field is an incident for every job that waits.
func TestChanging_fieldType(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	h.served(room[first](h, "old"))
	p := h.waiting()
	h.build(room[otherType](h, "new"))
	p.WantIncident("reserve", "variable nights: is number, want string")
	h.wantRuns(1)
}

// Rule 4: a repeat of what the old build did is the same incident, and nothing is done twice.
func TestChanging_fieldType_repeat(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.create(nil)
	h.leave(room[first](h, "old"))
	h.build(room[otherType](h, "new"))
	p.WantIncident("reserve", "variable nights: is number, want string")
	h.wantRuns(1)
}

// Rule 4: the undo of what the old build did cannot read the recorded value. The old build still can.
func TestChanging_fieldType_undo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, model(""))
	p := h.served(room[first](h, "old"))
	stop := h.build(room[otherType](h, "new"))
	h.compensate()
	p.WantIncident("cancel", "field nights: JSON number does not fit string")
	h.wantNoUndo()
	stop()
	h.build(room[first](h, "old again"))
	p.ResolveIncidents(3)
	p.WantCompleted().WantCompensated("cancel")
	h.wantUndo(`old again undoes "old" {Hotel:H-1 Nights:2}`)
}
