package trip_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/generate/internal/trip"
	"github.com/vitrip/journeyman/worker"
)

// desk serves the model: what a user of the generated code writes.
type desk struct{ throws []string }

func (d desk) CarReserve() trip.CarReserveHandler {
	return trip.CarReserveTx(func(context.Context, *worker.Tx, worker.Job[trip.CarReserveIn]) (trip.CarReserveOut, error) {
		return trip.CarReserveOut{CarID: "C-1"}, nil
	}, trip.CarReserveUndoTx(func(context.Context, *worker.Tx, worker.UndoOf[trip.CarReserveIn, trip.CarReserveOut]) error {
		return nil
	}))
}

func (d desk) GuestTell() trip.GuestTellHandler {
	return trip.GuestTellTx(func(context.Context, *worker.Tx, worker.Job[trip.GuestTellIn]) (trip.GuestTellOut, error) {
		return trip.GuestTellOut{}, nil
	}, worker.NotCompensable("a mail cannot be called back"), worker.Throws(d.throws...))
}

func TestRegister(t *testing.T) {
	t.Parallel()
	mux := worker.NewMux()
	trip.RegisterTrip(mux, desk{})
	if d := cmp.Diff([]string{trip.JobCarCancel, trip.JobCarReserve, trip.JobGuestTell}, mux.Types()); d != "" {
		t.Errorf("job types (-want +got):\n%s", d)
	}
	if codes, ok := mux.Codes(trip.JobCarReserve); !ok || !cmp.Equal(codes, []string{trip.CodeNoCar, trip.CodeTooYoung}) {
		t.Errorf("codes %v %v, want those of the model", codes, ok)
	}
	if err := trip.CheckTrip(mux); err != nil {
		t.Errorf("model and handlers agree, got %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	mux := worker.NewMux()
	trip.RegisterTrip(mux, desk{throws: []string{"NO_MAIL", trip.CodeTooYoung}})
	err := trip.CheckTrip(mux)
	if err == nil || strings.Count(err.Error(), "throws NO_MAIL, which nothing in the model catches") != 2 || strings.Contains(err.Error(), trip.CodeTooYoung) {
		t.Errorf("got %v, want NO_MAIL of both elements and nothing else", err)
	}
	other := worker.NewMux()
	other.Handle(trip.JobCarReserve, worker.Transactional(func(context.Context, *worker.Tx, worker.Job[struct{}]) (struct{}, error) { return struct{}{}, nil }, worker.NoEffect()))
	if err := trip.CheckTrip(other); err == nil || !strings.Contains(err.Error(), "catches NO_CAR, the handler declares no codes") {
		t.Errorf("handler without Throws: got %v", err)
	}
	third := worker.NewMux()
	third.Handle(trip.JobCarReserve, worker.Transactional(func(context.Context, *worker.Tx, worker.Job[struct{}]) (struct{}, error) { return struct{}{}, nil }, worker.NoEffect(), worker.Throws("NO_CAR", "RAIN")))
	third.Handle(trip.JobGuestTell, worker.Transactional(func(context.Context, *worker.Tx, worker.Job[struct{}]) (struct{}, error) { return struct{}{}, nil }, worker.NoEffect(), worker.Throws()))
	err = trip.CheckTrip(third)
	for _, want := range []string{"throws RAIN, which nothing in the model catches", "RAIN, which the model does not declare", "declares TOO_YOUNG in journeyman:errors, the handler does not throw it", "a scope catches TOO_YOUNG, which no handler inside it declares"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
