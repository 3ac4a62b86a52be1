package tourbooking

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// allowed is the machine once more, written by hand as a matrix: event → "from>to".
var allowed = map[Event]string{
	Quote:             "draft>quoted",
	SegmentConfirmed:  "quoted>partially_confirmed partially_confirmed>partially_confirmed",
	SegmentsComplete:  "quoted>held partially_confirmed>held",
	PaymentAuthorized: "held>held",
	Confirm:           "held>confirmed",
	GiveUp:            "draft>compensating quoted>compensating partially_confirmed>compensating held>compensating",
	SegmentReleased: "quoted>quoted partially_confirmed>partially_confirmed held>held confirmed>confirmed ticketing>ticketing ticketed>ticketed " +
		"amending>amending cancelling>cancelling cancelled>cancelled compensating>compensating compensated>compensated failed>failed expired>expired",
	EndCompensated:     "compensating>compensated",
	EndFailed:          "compensating>failed",
	EndExpired:         "compensating>expired",
	EndCancelled:       "compensating>cancelled",
	Reopen:             "compensated>draft failed>draft expired>draft cancelled>draft",
	RequestTickets:     "confirmed>ticketing amending>amending cancelling>cancelling cancelled>cancelled",
	IssueTickets:       "ticketing>ticketed amending>amending cancelling>cancelling cancelled>cancelled",
	GiveUpTickets:      "ticketing>confirmed confirmed>confirmed amending>amending cancelling>cancelling cancelled>cancelled",
	BeginAmendment:     "confirmed>amending ticketing>amending ticketed>amending",
	EndAmendment:       "amending>confirmed",
	EndAmendmentIssued: "amending>ticketed",
	EndAmendmentAsked:  "amending>ticketing",
	BeginCancellation:  "confirmed>cancelling ticketing>cancelling ticketed>cancelling",
	EndCancellation:    "cancelling>cancelled",
	ResumeConfirmed:    "cancelling>confirmed",
	ResumeTicketing:    "cancelling>ticketing",
	ResumeTicketed:     "cancelling>ticketed",
}

func TestNext_everyPair(t *testing.T) {
	t.Parallel()
	if n := len(States()); n != 14 {
		t.Fatalf("%d states, want 14", n)
	}
	if d := cmp.Diff(len(told), len(allowed)); d != "" {
		t.Errorf("events with a message and events in this test (-told +test):\n%s", d)
	}
	for e, text := range allowed {
		want := map[State]State{}
		for _, pair := range strings.Fields(text) {
			from, to, _ := strings.Cut(pair, ">")
			want[State(from)] = State(to)
		}
		for _, s := range States() {
			next, ok := Next(s, e)
			w, wantOK := want[s]
			if ok != wantOK || next != w {
				t.Errorf("%s in %s: got %q %v, want %q %v", e, s, next, ok, w, wantOK)
			}
		}
	}
	for m, to := range moves {
		if !slices.Contains(States(), m.state) || !slices.Contains(States(), to) {
			t.Errorf("move %s in %s to %s: unknown state", m.event, m.state, to)
		}
	}
}

// Every state can be reached, and every event has a message type that follows the rules.
func TestMoves_reachEveryState(t *testing.T) {
	t.Parallel()
	reached := map[State]bool{Draft: true}
	for range States() {
		for m, to := range moves {
			if reached[m.state] {
				reached[to] = true
			}
		}
	}
	for _, s := range States() {
		if !reached[s] {
			t.Errorf("%s is never reached", s)
		}
	}
	for e, typ := range told {
		if err := events.CheckName(events.KindEvent, typ, []string{"tour"}); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
}

func bookings(t *testing.T) (*Bookings, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := Migrate(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	b, err := NewBookings("")
	if err != nil {
		t.Fatal(err)
	}
	return b, pool
}

// in runs f in a transaction that is committed unless f fails, and gives what was emitted.
func in(ctx context.Context, pool *pgxpool.Pool, f func(tx *outbox.Tx) error) ([]events.Message, error) {
	ptx, err := pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer ptx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	tx := outbox.NewTx(ptx)
	if err := f(tx); err != nil {
		return tx.Messages(), err
	}
	return tx.Messages(), ptx.Commit(ctx)
}

var sample = Booking{BusinessKey: "acme:B-1", Tenant: "acme", Booking: "B-1", SagaID: "op_1", Segments: 3, Travellers: 2, Amount: 100, Currency: "EUR"}

func TestMove_everyPairInTheDatabase(t *testing.T) {
	t.Parallel()
	b, pool := bookings(t)
	ctx := t.Context()
	if _, err := in(ctx, pool, func(tx *outbox.Tx) error { _, err := b.create(ctx, tx, sample); return err }); err != nil {
		t.Fatal(err)
	}
	for _, s := range States() {
		for e := range allowed {
			if _, err := pool.Exec(ctx, `UPDATE journeyman.tour_booking SET state = $1`, string(s)); err != nil {
				t.Fatal(err)
			}
			var k Booking
			msgs, err := in(ctx, pool, func(tx *outbox.Tx) (err error) {
				k, err = b.Move(ctx, tx, sample.BusinessKey, e, Detail{Reason: "why"})
				return err
			})
			next, ok := Next(s, e)
			var refused *MoveError
			switch {
			case ok && (err != nil || k.State != next || len(msgs) != 1 || msgs[0].Type != told[e]):
				t.Errorf("%s in %s: %+v, %d messages, %v, want %s and one message %s", e, s, k, len(msgs), err, next, told[e])
			case !ok && (!errors.As(err, &refused) || len(msgs) != 0):
				t.Errorf("%s in %s: %v and %d messages, want a *MoveError and none", e, s, err, len(msgs))
			}
			var stored State
			if err := pool.QueryRow(ctx, `SELECT state FROM journeyman.tour_booking`).Scan(&stored); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]State{true: next, false: s}[ok]; stored != want {
				t.Errorf("%s in %s: stored %s, want %s", e, s, stored, want)
			}
		}
	}
}

func TestMove_unknownBooking(t *testing.T) {
	t.Parallel()
	b, pool := bookings(t)
	_, err := in(t.Context(), pool, func(tx *outbox.Tx) error {
		_, err := b.Move(t.Context(), tx, "acme:none", Confirm, Detail{})
		return err
	})
	var refused *MoveError
	if !errors.As(err, &refused) || refused.State != "" {
		t.Errorf("%v, want a *MoveError without a state", err)
	}
}

// Two moves at once: the second sees the first's state, under the row lock.
func TestMove_concurrent(t *testing.T) {
	t.Parallel()
	b, pool := bookings(t)
	ctx := t.Context()
	if _, err := in(ctx, pool, func(tx *outbox.Tx) error { _, err := b.create(ctx, tx, sample); return err }); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var moved, refused int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := in(ctx, pool, func(tx *outbox.Tx) error { _, err := b.Move(ctx, tx, sample.BusinessKey, Quote, Detail{}); return err })
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				moved++
			} else if e := (*MoveError)(nil); errors.As(err, &e) && e.State == Quoted {
				refused++
			}
		})
	}
	all.Wait()
	if moved != 1 || refused != 7 {
		t.Errorf("%d moved and %d refused, want 1 and 7", moved, refused)
	}
}

func TestCreate_reopensOnlyWhatEndedWithoutASale(t *testing.T) {
	t.Parallel()
	b, pool := bookings(t)
	ctx := t.Context()
	if _, err := in(ctx, pool, func(tx *outbox.Tx) error { _, err := b.create(ctx, tx, sample); return err }); err != nil {
		t.Fatal(err)
	}
	reopened := []State{Compensated, Failed, Expired, Cancelled}
	for _, s := range States() {
		if _, err := pool.Exec(ctx, `UPDATE journeyman.tour_booking SET state = $1`, string(s)); err != nil {
			t.Fatal(err)
		}
		again := sample
		again.SagaID, again.Amount = "op_2", 250
		var k Booking
		_, err := in(ctx, pool, func(tx *outbox.Tx) (err error) {
			if _, err = b.create(ctx, tx, again); err != nil {
				return err
			}
			k, err = b.Lock(ctx, tx, sample.BusinessKey)
			return err
		})
		if slices.Contains(reopened, s) {
			want := again
			want.State = Draft
			if d := cmp.Diff(want, k); d != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", s, err, d)
			}
			continue
		}
		var refused *MoveError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a *MoveError", s, err)
		}
	}
}

// A refund that is given up takes the booking back to where it was, ticketing included, which went on meanwhile.
func TestCancellation_resumes(t *testing.T) {
	t.Parallel()
	b, pool := bookings(t)
	ctx := t.Context()
	if _, err := in(ctx, pool, func(tx *outbox.Tx) error { _, err := b.create(ctx, tx, sample); return err }); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		from  State
		while []Event
		want  State
	}{
		{Confirmed, nil, Confirmed},
		{InTicketing, nil, InTicketing},
		{Ticketed, nil, Ticketed},
		{Confirmed, []Event{RequestTickets}, InTicketing},
		{Confirmed, []Event{RequestTickets, IssueTickets}, Ticketed},
		{InTicketing, []Event{IssueTickets}, Ticketed},
		{InTicketing, []Event{GiveUpTickets}, Confirmed},
		{InTicketing, []Event{SegmentReleased}, InTicketing},
	}
	for _, tt := range tests {
		if _, err := pool.Exec(ctx, `UPDATE journeyman.tour_booking SET state = $1, resume_state = ''`, string(tt.from)); err != nil {
			t.Fatal(err)
		}
		var k Booking
		_, err := in(ctx, pool, func(tx *outbox.Tx) (err error) {
			for _, e := range append([]Event{BeginCancellation}, tt.while...) {
				if k, err = b.Move(ctx, tx, sample.BusinessKey, e, Detail{}); err != nil {
					return err
				}
			}
			k, err = b.Move(ctx, tx, sample.BusinessKey, k.ResumeEvent(), Detail{})
			return err
		})
		if err != nil || k.State != tt.want || k.Resume != "" {
			t.Errorf("from %s, while %v: %s resume %q, %v, want %s", tt.from, tt.while, k.State, k.Resume, err, tt.want)
		}
	}
}
