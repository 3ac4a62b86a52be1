package worker

import (
	"testing"

	"github.com/vitrip/journeyman/dedup"
)

// An orphan that was marked while the saga was undoing it is not shown for ever, and can be purged.
func TestOrphans_undoneBySomebodyElseMeanwhile(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	rt := w.runtime(s.mux(), fast())
	j := w.jobTask(rt, "hotel.reserve", job("raced", offer))
	w.gw.terminate(j.meta.Key)
	rt.execute(w.ctx, j)
	w.until("gone", func() bool {
		return w.count(`SELECT count(*) FROM journeyman.zeebe_command WHERE operation_id = 'raced' AND state = 'gone'`) == 1
	})
	if _, err := rt.Undo(w.ctx, "raced", "the saga"); err != nil {
		t.Fatal(err)
	}
	if err := rt.store.Orphan(w.ctx, rt.control, "raced", dedup.OrphanOpen); err != nil { // looked before that undo
		t.Fatal(err)
	}
	if err := rt.ResolveGone(w.ctx); err != nil {
		t.Fatal(err)
	}
	if op := w.op("raced"); op.Orphan != dedup.OrphanUndone {
		t.Errorf("orphan %q, want %q", op.Orphan, dedup.OrphanUndone)
	}
	if n := w.count(`SELECT count(*) FROM journeyman.zeebe_command WHERE operation_id = 'raced'`); n != 0 || s.counts("raced").undone != 1 {
		t.Errorf("%d commands are left and it was undone %d times, want none and once", n, s.counts("raced").undone)
	}
}
