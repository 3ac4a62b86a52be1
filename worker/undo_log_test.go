package worker

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/outcome"
)

// lines collects what is logged, from any goroutine.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) having(message string) (found []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, text := range strings.Split(l.all.String(), "\n") {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) == nil && fields["message"] == message {
			found = append(found, fields)
		}
	}
	return found
}

// TestS02_CompensationIsLoggedAndIdempotent: an undo that is asked for again and again, at once too, has one effect and one result, is
// classified, and its log line says of which booking, which operation, why and how it ended.
func TestS02_CompensationIsLoggedAndIdempotent(t *testing.T) {
	t.Parallel()
	w, s := newWorld(t), newSupplier()
	log := &lines{}
	w.log = zerolog.New(log)
	rt := w.runtime(s.mux(), fast())
	if r := rt.execute(w.ctx, w.jobTask(rt, "hotel.reserve", job("op-1", offer))); r.kind != answered || r.err != nil {
		t.Fatalf("the step: %+v", r)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if u, err := rt.Undo(w.ctx, "op-1", "sold out elsewhere"); err != nil || u.Outcome != outcome.Success || u.Nothing || u.OperationID != "op-1:undo" {
				t.Errorf("undo: %+v, %v", u, err)
			}
		})
	}
	all.Wait()
	if u, err := rt.Undo(w.ctx, "op-1", "again"); err != nil || u.Outcome != outcome.Success || u.OperationID != "op-1:undo" {
		t.Errorf("undo once more: %+v, %v", u, err)
	}
	if c := s.counts("op-1"); c.undone != 1 {
		t.Errorf("undone %d times, want once", c.undone)
	}
	told := log.having("compensation ended")
	if len(told) == 0 {
		t.Fatal("no compensation is logged")
	}
	for field, want := range map[string]string{
		"business_key": "B-1", "operation_id": "op-1:undo", "forward_operation_id": "op-1", "reason": "sold out elsewhere", "class": string(outcome.Success),
	} {
		if told[0][field] != want {
			t.Errorf("the log says %s %v, want %q: %v", field, told[0][field], want, told[0])
		}
	}
}
