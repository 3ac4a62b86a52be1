package events_test

import (
	"testing"

	"github.com/vitrip/journeyman/events"
)

// A lag is never negative, and never counts what the group cannot get (FC-E4).
func TestMakeLag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		committed, first, end int64
		want                  events.Lag
	}{
		{-1, 0, 0, events.Lag{Committed: -1}},
		{-1, 5, 9, events.Lag{Committed: -1, End: 9, Next: 5, Behind: 4}},
		{7, 5, 9, events.Lag{Committed: 7, End: 9, Next: 7, Behind: 2}},
		{9, 5, 9, events.Lag{Committed: 9, End: 9, Next: 9}},
		{2, 5, 9, events.Lag{Committed: 2, End: 9, Next: 5, Behind: 4, Lost: 3}},
		{20, 0, 9, events.Lag{Committed: 20, End: 9, Next: 20, Ahead: true}},
	} {
		if got := events.MakeLag("", 0, c.committed, c.first, c.end); got != c.want {
			t.Errorf("committed %d of %d to %d: got %+v, want %+v", c.committed, c.first, c.end, got, c.want)
		}
	}
}
