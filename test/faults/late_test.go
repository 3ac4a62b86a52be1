package faults

import (
	"maps"
	"slices"
	"testing"
)

// latePlans let every request before the pivot land when its saga has been given up, undone and closed for a while.
func latePlans() []plan {
	var plans []plan
	for _, st := range steps() {
		for _, f := range slices.Sorted(maps.Keys(lateness())) {
			if st.part == forward && lateness()[f] <= latest {
				plans = append(plans, plan{saga: st.saga, cells: []cell{{st, f}}})
			}
		}
	}
	return plans
}

// TestLateLandings: what a supplier does after all waits are over is found by the questions 1, 10, 60, 120, … minutes after the undo,
// and undone once; the final answer stays what it was (path rule 11).
func TestLateLandings(t *testing.T) {
	s := setup(t)
	runs := s.play(latePlans(), 1)
	for _, r := range runs {
		if s.standing(r) == 0 {
			r.fail("nothing landed: the case proves nothing")
		}
		t.Logf("%s: %s", r.plan, s.result(r))
	}
	s.finish(runs)
}
