//go:build soak

package faults

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/sagas/refund"
)

// batch is how many sagas run at once.
const batch = 108

// TestMatrixAllPairs plays every pair of faults at different steps of one model.
func TestMatrixAllPairs(t *testing.T) {
	all := pairs()
	s := setup(t)
	var runs []*run
	for from := 0; from < len(all); from += batch {
		part := s.play(all[from:min(from+batch, len(all))], from+1)
		s.report(part)
		runs = append(runs, part...)
		t.Logf("%d of %d pairs, clocks moved %d times, %v", len(runs), len(all), s.moves, s.offset())
	}
	t.Logf("all pairs:\n%s", s.pairTable(runs))
	s.audit()
}

// lonely are the faults that are played alone only: most of them take long.
func lonely() []fault { return []fault{actsFailsOnce, neverAnswers, deafOnce} }

// TestMatrixLonely plays the single faults that take long.
func TestMatrixLonely(t *testing.T) {
	s := setup(t)
	runs := s.play(singles(lonely()), 1)
	s.golden("lonely.md", s.table(runs, lonely()))
	s.finish(runs)
}

// sampledWires is how many faults of the line tier soak plays: all.
const sampledWires = 1 << 20

// chosen are all scenes.
func chosen(*testing.T) []scene {
	if only := os.Getenv("FAULTS_SCENE"); only != "" {
		return slices.DeleteFunc(scenes(), func(c scene) bool { return !strings.Contains(c.String(), only) })
	}
	return scenes()
}

// stormSize is how many sagas run at once in a storm, stormRounds how many storms there are.
const stormSize, stormRounds = 60, 8

// TestLateAndRefused plays one pair again and again whose two ends race: the step undoes what landed late by itself, the
// supplier refuses that, and saga.undo-rest comes by meanwhile.
func TestLateAndRefused(t *testing.T) {
	s := setup(t)
	back := refund.TypeName
	late := cell{step{back, "flight", "refund", forward}, answersLate}
	refused := cell{step{back, "flight", "reinstate", undo}, refuses}
	s.finish(s.play(slices.Repeat([]plan{{saga: back, cells: []cell{late, refused}}}, 60), 1))
}
