package worker

import (
	"sync/atomic"
	"testing"

	"github.com/vitrip/journeyman/zeebe"
)

// TestAnswer_leavesSlot: while an answer is on its way its job holds neither slot nor connection, and the next job runs.
func TestAnswer_leavesSlot(t *testing.T) {
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("reserve", Transactional(w.insertRoom, NotCompensable("test")))
	cfg := fast()
	cfg.Concurrency, cfg.Group = 1, 1
	sending, send := stopAt(t, "worker.answer.before", "A:reserve")
	a := w.gw.add("reserve", job("A:reserve", offer))
	_, stop := w.start(mux, cfg)
	defer stop()
	reach(t, "the answer of A", sending)
	b := w.gw.add("reserve", job("B:reserve", offer))
	w.wait(b, "completed")
	send()
	w.wait(a, "completed")
}

// TestAnswer_repeat: the answer to a repeat of a success needs no row beside the operation, and gets one when the engine does not take it.
func TestAnswer_repeat(t *testing.T) {
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.wait(func() int64 {
		k := w.gw.add("reserve", job("A:reserve", offer))
		_, stop := w.start(mux, fast())
		defer stop()
		w.wait(k, "completed")
		return k
	}(), "completed")
	rows := func() int { return w.count(`SELECT count(*) FROM journeyman.zeebe_command`) }
	w.until("the first answer to be written down", func() bool { return rows() == 0 })

	var lost atomic.Bool
	w.gw.before = func(call string, _ int64) error {
		if lost.CompareAndSwap(true, false) {
			return &zeebe.Error{Call: call, Code: zeebe.Unavailable, Detail: "lost"}
		}
		return nil
	}
	sending, send := stopAt(t, "worker.answer.before", "A:reserve")
	again := w.gw.add("reserve", job("A:reserve", offer))
	_, stop := w.start(mux, fast())
	defer stop()
	reach(t, "the answer to the repeat", sending)
	if n := rows(); n != 0 {
		t.Errorf("%d rows for an answer that stands in the operation", n)
	}
	lost.Store(true)
	send()
	if j := w.wait(again, "completed"); j.answer != `{"id":"R-A:reserve"}` || j.times != 1 {
		t.Errorf("answered %s after %d activations, want the stored answer, sent again by the sweep", j.answer, j.times)
	}
	if w.runs.Load() != 1 {
		t.Errorf("the handler ran %d times", w.runs.Load())
	}
}
