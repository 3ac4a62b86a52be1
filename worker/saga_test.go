package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
)

// fakeSaga notes what the runtime tells a saga library.
type fakeSaga struct {
	mu    sync.Mutex
	said  []string
	enter error
}

func (s *fakeSaga) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, fmt.Sprintf(format, args...))
}

func (s *fakeSaga) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.said, "\n")
}

func (s *fakeSaga) QueueEnter(b *pgx.Batch, m Meta) func() error {
	s.note("enter %s", m.OperationID)
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.enter
	}
}

func (s *fakeSaga) QueueStep(b *pgx.Batch, st Step) {
	s.note("step %s %s%s undo=%s policy=%s amount=%s result=%s", st.OperationID, st.Class, st.Code, st.Undo, st.Policy, st.Amount, st.Result)
}

func (s *fakeSaga) QueueUndone(b *pgx.Batch, m Meta, forward string) {
	s.note("undone %s by %s", forward, m.OperationID)
}

func (s *fakeSaga) Messages(m Meta, st Step) []events.Message {
	return []events.Message{{Type: "step." + string(st.Class)}}
}

// TestSaga is what a saga library gets to see of a job's transactions.
func TestSaga_seam(t *testing.T) {
	t.Parallel()
	w, s, saga := newWorld(t), newSupplier(), &fakeSaga{}
	mux := s.mux(Amount(func(in reserve) (int64, string) { return int64(in.Seats) * 100, "EUR" }))
	mux.Handle("room", Transactional(w.insertRoom, NotCompensable("test")))
	mux.Handle("saga.begin", Transactional(func(context.Context, *Tx, Job[struct{}]) (struct{}, error) { return struct{}{}, nil }, NoEffect(), SagaControl()))
	cfg := w.withStager(fast())
	cfg.Saga = saga
	w.start(mux, cfg)
	const in = `"sagaId":"S",` + offer
	w.wait(w.gw.add("saga.begin", job("S:begin", in)), "completed")
	w.wait(w.gw.add("room", job("plain", offer)), "completed") // outside a saga
	if got := saga.all(); got != "" {
		t.Errorf("control and plain jobs came to the saga:\n%s", got)
	}
	w.wait(w.gw.add("hotel.reserve", job("S:hotel", in)), "completed")
	w.wait(w.gw.add("hotel.cancel", job("S:hotel:undo", `"sagaId":"S","forwardOperationId":"S:hotel"`)), "completed")
	want := "enter S:hotel\nenter S:hotel\n" + `step S:hotel SUCCESS undo=hotel.cancel policy=undo amount={"currency":"EUR","minor":200} result={"id":"R-S:hotel"}` + "\nundone S:hotel by S:hotel:undo"
	if got := saga.all(); got != want {
		t.Errorf("saga was told\n%s\nwant\n%s", got, want)
	}
	if got := w.staged(); got != "step.SUCCESS" {
		t.Errorf("staged %q", got)
	}

	saga.enter = outcome.NewBusiness(CodeSagaGivenUp, "expired")
	if j := w.wait(w.gw.add("room", job("S:late", in)), "error-thrown"); j.code != CodeSagaGivenUp || w.rooms("S:late") != 0 {
		t.Errorf("given up: thrown %q, %d rooms", j.code, w.rooms("S:late"))
	}
	if j := w.wait(w.gw.add("hotel.reserve", job("S:late2", in)), "error-thrown"); j.code != CodeSagaGivenUp || s.counts("S:late2").calls != 1 {
		t.Errorf("given up: thrown %q, supplier saw %+v", j.code, s.counts("S:late2"))
	}
	saga.enter = outcome.NewBusiness(CodeSagaNotMine, "another instance")
	if j := w.wait(w.gw.add("room", job("S:other", in)), "error-thrown"); j.code != CodeSagaNotMine || w.op("S:other").OperationID != "" {
		t.Errorf("not mine: thrown %q; the operation belongs to the other instance, but was recorded: %+v", j.code, w.op("S:other"))
	}
}

// TestSaga_giveUpDuringTheCall: the saga is given up while the other system acts. The effect is undone before the job is told.
func TestSaga_givenUpDuringTheCall(t *testing.T) {
	t.Parallel()
	w, s, saga := newWorld(t), newSupplier(), &fakeSaga{}
	s.hold = make(chan struct{})
	cfg := w.withStager(fast())
	cfg.Saga = saga
	w.start(s.mux(), cfg)
	k := w.gw.add("hotel.reserve", job("S:hotel", `"sagaId":"S",`+offer))
	reach(t, "call", s.reached)
	saga.mu.Lock()
	saga.enter = outcome.NewBusiness(CodeSagaGivenUp, "expired")
	saga.mu.Unlock()
	close(s.hold)
	if j := w.wait(k, "error-thrown"); j.code != CodeSagaGivenUp {
		t.Errorf("thrown %q", j.code)
	}
	if c := s.counts("S:hotel"); c.undone != 1 || c.settles != 0 {
		t.Errorf("supplier saw %+v, want the effect undone", c)
	}
}

// TestRule15 is another instance of the same saga: it does not get the first one's outcomes.
func TestRule15_repeatFromAnotherInstance(t *testing.T) {
	t.Parallel()
	w, saga := newWorld(t), &fakeSaga{}
	mux := NewMux()
	mux.Handle("saga.begin", Transactional(func(context.Context, *Tx, Job[struct{}]) (struct{}, error) { return struct{}{}, nil }, NoEffect(), SagaControl()))
	cfg := w.withStager(fast())
	cfg.Saga = saga
	w.start(mux, cfg)
	w.wait(w.gw.add("saga.begin", job("S:begin", `"sagaId":"S"`)), "completed")
	k := w.gw.addIn(78, "saga.begin", job("S:begin", `"sagaId":"S"`))
	if j := w.wait(k, "error-thrown"); j.code != CodeSagaNotMine {
		t.Errorf("thrown %q", j.code)
	}
}

// TestOutage: a database that cannot be reached uses up no retries.
func TestOutage_keepsRetries(t *testing.T) {
	t.Parallel()
	r := notStarted(fmt.Errorf("acquire: %w", &json.SyntaxError{}))
	if r.keep {
		t.Error("an ordinary error keeps the retries")
	}
	if r = notStarted(fmt.Errorf("acquire: %w", context.DeadlineExceeded)); !r.keep {
		t.Error("a pool that gives no connection uses up retries")
	}
	if r = notStarted(errors.Join(errors.New("dial"), errNet{})); !r.keep {
		t.Error("a refused connection uses up retries")
	}
}

type errNet struct{}

func (errNet) Error() string   { return "refused" }
func (errNet) Timeout() bool   { return false }
func (errNet) Temporary() bool { return true }
