package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// supplier is another system: it acts once per key, unless it ignores keys.
type supplier struct {
	mu      sync.Mutex
	held    map[string]int // by key of the forward operation: how many times it acted
	undone  map[string]int // by key of the undo
	calls   int
	asks    int
	settles int
	reached chan struct{} // closed at the first call, when hold is set
	hold    chan struct{} // the first call acts and waits here before it answers
	deaf    bool          // acts and answers with a time-out
	mute    bool          // cannot be asked
	refuse  bool          // Settle refuses
	fail    int           // so many Settles fail
	late    chan struct{} // the first call waits here before it acts, whatever its context says
}

func newSupplier() *supplier {
	return &supplier{held: map[string]int{}, undone: map[string]int{}, reached: make(chan struct{})}
}

func (s *supplier) call(ctx context.Context, c Call[reserve]) (reserved, error) {
	s.mu.Lock()
	s.calls++
	first, hold, late := s.calls == 1, s.hold, s.late
	s.mu.Unlock()
	if first && late != nil {
		close(s.reached)
		<-late
	}
	s.mu.Lock()
	s.held[c.Key]++
	deaf := s.deaf
	s.mu.Unlock()
	if first && hold != nil {
		close(s.reached)
		<-hold
	}
	if deaf {
		return reserved{}, Unknown(errors.New("time-out after send"))
	}
	return reserved{ID: "R-" + c.Key}, nil
}

func (s *supplier) resolve(_ context.Context, c Call[reserve]) (reserved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	switch {
	case s.mute:
		return reserved{}, errors.New("no answer")
	case s.held[c.Key] > 0:
		return reserved{ID: "R-" + c.Key}, nil
	default:
		return reserved{}, ErrNotHappened
	}
}

func (s *supplier) settle(ctx context.Context, tx *Tx, j Job[reserve], r reserved) (reserved, error) {
	s.mu.Lock()
	s.settles++
	refuse, fail := s.refuse, s.fail
	s.fail = max(0, s.fail-1)
	s.mu.Unlock()
	if _, err := tx.Exec(ctx, `INSERT INTO room VALUES ($1, 1)`, j.OperationID); err != nil {
		return reserved{}, err
	}
	switch {
	case refuse:
		return reserved{}, BusinessError("NOT_WANTED", "too late")
	case fail > 0:
		return reserved{}, errBoom
	}
	return r, nil
}

func (s *supplier) cancel(_ context.Context, key string, u UndoOf[reserve, reserved]) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Res.ID == "" || u.In.Offer == "" {
		return fmt.Errorf("undo without the effect it undoes: %+v", u)
	}
	s.undone[key]++
	return nil
}

func (s *supplier) remote() Remote[reserve, reserved, reserved] {
	return Remote[reserve, reserved, reserved]{Call: s.call, Resolve: s.resolve, Settle: s.settle}
}

func (s *supplier) undo() Option {
	return CompensatedBy("hotel.cancel", RemoteUndo[reserve, reserved]{Call: s.cancel})
}

func (s *supplier) mux(opts ...Option) *Mux {
	m := NewMux()
	m.Handle("hotel.reserve", External(s.remote(), append([]Option{s.undo(), KeyValidFor(time.Hour), Orphan(Undo)}, opts...)...))
	return m
}

type counts struct{ calls, asks, settles, held, undone int }

func (s *supplier) counts(operationID string) counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counts{s.calls, s.asks, s.settles, s.held[operationID], s.undone[operationID+":undo"]}
}
