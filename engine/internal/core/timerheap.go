package core

import (
	"container/heap"
	"time"
)

// timer calls fire when the engine's time reaches due.
type timer struct {
	due   time.Time
	seq   int64
	index int
	fire  func()
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.index = -1
	return t
}

func (c *Core) at(due time.Time, fire func()) *timer {
	c.seq++
	t := &timer{due: due, seq: c.seq, fire: fire}
	heap.Push(&c.timers, t)
	return t
}

// stop cancels t; nil and fired timers are fine.
func (c *Core) stop(t *timer) {
	if t != nil && t.index >= 0 {
		heap.Remove(&c.timers, t.index)
	}
}

// NextDue is the time of the earliest timer; ok is false when there is none.
func (c *Core) NextDue() (due time.Time, ok bool) {
	if len(c.timers) == 0 {
		return time.Time{}, false
	}
	return c.timers[0].due, true
}

// FireNext moves the time to the earliest timer that is due at or before now and
// fires it. It reports false, with the time moved to now, when none is due.
// The caller runs the queue between two calls, so that what a timer starts sees
// the time at which it was due.
func (c *Core) FireNext(now time.Time) bool {
	if len(c.timers) == 0 || c.timers[0].due.After(now) {
		c.now = now // also backwards, when the clock was reset
		return false
	}
	c.record(Record{Op: OpFire, Till: stampOf(now)})
	t := heap.Pop(&c.timers).(*timer)
	if t.due.After(c.now) {
		c.now = t.due
	}
	t.fire()
	return true
}
