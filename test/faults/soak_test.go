//go:build soak

package faults

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/sagas/refund"
)

// batch is how many sagas run at once, part onStage how many run on one stage.
const batch, onStage = 108, 4 * 108

// TestMatrixAllPairs plays every pair of faults at different steps of one model.
func TestMatrixAllPairs(t *testing.T) {
	all := slices.Collect(slices.Chunk(pairs(), onStage))
	for i, some := range all {
		t.Run(fmt.Sprintf("part%d", i+1), func(t *testing.T) {
			s := setup(t)
			var runs []*run
			for plans := range slices.Chunk(some, batch) {
				played := s.play(plans, len(runs)+1)
				s.report(played)
				runs = append(runs, played...)
			}
			t.Logf("part %d of %d, %d pairs, clocks moved %d times, %v:\n%s", i+1, len(all), len(runs), s.moves, s.offset(), s.pairTable(runs))
			s.audit()
		})
	}
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

// sampledOneKind is how many pairs at two segments of one kind tier soak plays: all.
const sampledOneKind = 1 << 20

// chosen are all scenes.
func chosen(*testing.T) []scene {
	if only := os.Getenv("FAULTS_SCENE"); only != "" {
		return slices.DeleteFunc(scenes(), func(c scene) bool { return !strings.Contains(c.String(), only) })
	}
	return scenes()
}

// latest is how late requests land in tier soak.
const latest = time.Hour

// stormSize is how many sagas run at once in a storm, stormRounds how many storms there are.
const stormSize, stormRounds = 60, 8

// The crowd uses so many generations of keys, each for so long: 5 minutes in all; a worker dies about so often.
const crowdGenerations, crowdEach, crowdKills = 5, time.Minute, 5 * time.Second

// sampledDeaths is how many kills at crash points tier soak plays: all.
const sampledDeaths = 1 << 20

// TestLateAndRefused plays one pair again and again whose two ends race: the step undoes what landed late by itself, the
// supplier refuses that, and saga.undo-rest comes by meanwhile.
func TestLateAndRefused(t *testing.T) {
	s := setup(t)
	back := refund.TypeName
	late := cell{step{back, "flight", "refund", forward}, answersLate}
	refused := cell{step{back, "flight", "reinstate", undo}, refuses}
	s.finish(s.play(slices.Repeat([]plan{{saga: back, cells: []cell{late, refused}}}, 60), 1))
}
