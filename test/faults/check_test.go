//go:build !soak

package faults

import (
	"testing"
	"time"
)

// sampledWires is how many faults of the line tier check plays.
const sampledWires = 24

// sampledOneKind is how many pairs at two segments of one kind tier check plays.
const sampledOneKind = 18

// chosen are the scenes of tier check: one reservation by timer and one that changes every day.
func chosen(t *testing.T) []scene {
	t.Helper()
	all := scenes()
	return append(all[:1:1], sample(t, all[1:], 1)...)
}

// latest is how late requests land in tier check.
const latest = 5 * time.Minute

// stormSize is how many sagas run at once in a storm, stormRounds how many storms there are.
const stormSize, stormRounds = 18, 1
