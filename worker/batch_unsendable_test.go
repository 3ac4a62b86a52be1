package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// TestBatch_successThatCannotBeSent: a batch wrote for a job whose output or event cannot be sent. Nothing of it stays beside the FATAL:
// the batch is rolled back, its jobs run singly, and the others end as they would have.
func TestBatch_successThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*BatchEnd[map[string]string]){
		"output too large": func(e *BatchEnd[map[string]string]) { e.Out["blob"] = strings.Repeat("x", 5<<20) },
		"no stager for its event": func(e *BatchEnd[map[string]string]) {
			e.Events = []events.Message{{Type: "test.room.reserved"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mux := NewMux()
			mux.Handle("flight.reserve", Batch(50, func(ctx context.Context, tx *Tx, jobs []Job[reserve]) ([]BatchEnd[map[string]string], error) {
				ids, ends := make([]string, len(jobs)), make([]BatchEnd[map[string]string], len(jobs))
				for i, j := range jobs {
					ids[i], ends[i].Out = j.OperationID, map[string]string{"id": j.OperationID}
					if j.OperationID == "op-2" {
						spoil(&ends[i])
					}
				}
				_, err := tx.Exec(ctx, `INSERT INTO room SELECT unnest($1::text[]), 1`, ids)
				return ends, err
			}, NotCompensable("test")))
			rt := w.runtime(mux, fast())
			var mates []*mate
			for i := range 3 {
				mates = append(mates, &mate{t: w.jobTask(rt, "flight.reserve", job(fmt.Sprint("op-", i+1), offer)), ctx: w.ctx})
			}
			rt.runGroup(w.ctx, mates)
			for i, m := range mates {
				if id := fmt.Sprint("op-", i+1); m.res.kind != apart || w.rooms(id) != 0 || w.op(id).State != "" {
					t.Errorf("%s together: end %d, %d rooms, state %q; want that it runs singly", id, m.res.kind, w.rooms(id), w.op(id).State)
				}
				rt.execute(w.ctx, m.t)
			}
			for id, want := range map[string]outcome.Class{"op-1": outcome.Success, "op-2": outcome.Fatal, "op-3": outcome.Success} {
				rooms := 1
				if want == outcome.Fatal {
					rooms = 0
				}
				if op := w.op(id); op.Class != want || w.rooms(id) != rooms {
					t.Errorf("%s singly: recorded %q with %d rooms, want %q with %d", id, op.Class, w.rooms(id), want, rooms)
				}
			}
		})
	}
}
