package worker

import "testing"

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
