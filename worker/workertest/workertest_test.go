package workertest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/internal/race"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

var db = workertest.Database{Migrate: func(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, `CREATE TABLE room (hotel text PRIMARY KEY, free int NOT NULL CHECK (free >= 0)); CREATE TABLE stay (id text PRIMARY KEY, hotel text)`)
	return err
}}

func TestMain(m *testing.M) {
	code := db.Main(m)
	pgtest.Stop()
	os.Exit(code)
}

type stay struct {
	Hotel  string `json:"hotel"`
	Nights int    `json:"nights"`
}

type held struct {
	ID string `json:"id"`
}

func event(kind string) events.Message {
	return events.Message{Type: "tour.room." + kind, Data: map[string]string{"kind": kind}}
}

// reserve takes a room, and shows every way a handler can end.
func reserve(ctx context.Context, tx *worker.Tx, job worker.Job[stay]) (held, error) {
	if _, err := tx.Exec(ctx, `INSERT INTO stay VALUES ($1, $2)`, job.OperationID, job.In.Hotel); err != nil {
		return held{}, err
	}
	tx.Emit(event("held"))
	switch job.In.Hotel {
	case "H-refuse":
		return held{}, worker.BusinessError("SOLD_OUT", "no room", worker.WithEvents(event("refused")), worker.WithVariables(map[string]any{"left": 0}))
	case "H-keep":
		return held{}, worker.BusinessError("SOLD_OUT", "no room", worker.KeepChanges())
	case "H-later":
		return held{}, worker.Retryable(errors.New("busy"), worker.After(time.Minute))
	case "H-panic":
		panic("oops")
	case "H-commit":
		_, err := tx.Exec(ctx, "COMMIT")
		return held{}, err
	case "H-undeclared":
		return held{}, worker.BusinessError("RAIN", "it rains")
	case "H-broken":
		_, err := tx.Exec(ctx, `INSERT INTO room VALUES ('x', -1)`)
		return held{}, err
	}
	return held{ID: "R-" + job.In.Hotel}, nil
}

func undoReserve(ctx context.Context, tx *worker.Tx, u worker.UndoOf[stay, held]) error {
	if u.Res.ID == "R-H-stuck" {
		return worker.BusinessError("TOO_LATE", "the guest is in")
	}
	_, err := tx.Exec(ctx, `DELETE FROM stay WHERE id = $1`, u.OperationID)
	tx.Emit(event("released"))
	return err
}

func handler() worker.Handler {
	return worker.Transactional(reserve, worker.CompensatedByTx("room.cancel", undoReserve), worker.Throws("SOLD_OUT"))
}

func TestRun_outcomes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hotel  string
		class  outcome.Class
		reason string
		code   string
		output string
		types  []string
		rows   int
	}{
		{"H-1", outcome.Success, "", "", `{"id":"R-H-1"}`, []string{"tour.room.held"}, 1},
		{"H-refuse", outcome.Business, "", "SOLD_OUT", `{"left":0}`, []string{"tour.room.refused"}, 0},
		{"H-keep", outcome.Business, "", "SOLD_OUT", "", []string{"tour.room.held"}, 1},
		{"H-later", outcome.Retryable, "error", "", "", []string{}, 0},
		{"H-panic", outcome.Fatal, "panic", "", "", []string{}, 0},
		{"H-commit", outcome.Fatal, "transaction", "", "", []string{}, 0},
		{"H-undeclared", outcome.Fatal, "output", "", "", []string{}, 0},
		{"H-broken", outcome.Retryable, "error", "", "", []string{}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.hotel, func(t *testing.T) {
			t.Parallel()
			b := db.Begin(t)
			r := b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{tt.hotel, 2}})
			if r.Class != tt.class || r.Reason != tt.reason || r.Code != tt.code || string(r.Output) != tt.output {
				t.Errorf("got %s with output %s, want %s (%s) %s with %s", r, r.Output, tt.class, tt.reason, tt.code, tt.output)
			}
			if d := cmp.Diff(tt.types, r.Types()); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
			if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != tt.rows || r.Discarded != (tt.rows == 0) {
				t.Errorf("%d rows, discarded %v, want %d", n, r.Discarded, tt.rows)
			}
			if tt.hotel == "H-later" && r.After != time.Minute {
				t.Errorf("after %s, want 1m", r.After)
			}
		})
	}
}

func TestRun_badJob(t *testing.T) {
	t.Parallel()
	b := db.Begin(t)
	r := b.Run(handler(), workertest.Job{Type: "room.reserve", Input: map[string]any{"hotel": 7}})
	r.Want(outcome.Fatal, "input")
	for _, want := range []string{"hotel: is number, want string", "nights: missing"} {
		if !strings.Contains(r.Message, want) {
			t.Errorf("got %s, want it to say %q", r, want)
		}
	}
	r = b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-1", 1}, Variables: map[string]any{"businessKey": nil}})
	if r.Want(outcome.Fatal, "input"); !strings.Contains(r.Message, "missing businessKey") {
		t.Errorf("got %s", r)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	b := db.Begin(t)
	done := b.Run(handler(), workertest.Job{Type: "room.reserve", OperationID: "op", Input: stay{"H-1", 1}}).WantSuccess()
	if id := workertest.Decode[held](done).ID; id != "R-H-1" || done.UndoType != "room.cancel" {
		t.Errorf("id %s, undo %s", id, done.UndoType)
	}
	u := b.Undo(done).WantSuccess()
	if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != 0 {
		t.Errorf("%d stays after the undo, want 0", n)
	}
	if got := workertest.Data[map[string]string](u, 0)["kind"]; got != "released" {
		t.Errorf("message of kind %q, want released", got)
	}
	stuck := b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-stuck", 1}}).WantSuccess()
	b.Undo(stuck).Want(outcome.Fatal, "undo")
}

// supplier is another system that remembers what it did.
type supplier struct {
	done  map[string]bool
	calls int
	say   error
}

func (s *supplier) handler() worker.Handler {
	return worker.External(worker.Remote[stay, held, held]{
		Call: func(_ context.Context, c worker.Call[stay]) (held, error) {
			s.calls++
			if s.say != nil {
				return held{}, s.say
			}
			s.done[c.Key] = true
			return held{ID: c.Key}, nil
		},
		Resolve: func(_ context.Context, c worker.Call[stay]) (held, error) {
			if !s.done[c.Key] {
				return held{}, worker.ErrNotHappened
			}
			return held{ID: c.Key}, nil
		},
		Settle: func(ctx context.Context, tx *worker.Tx, job worker.Job[stay], res held) (held, error) {
			_, err := tx.Exec(ctx, `INSERT INTO stay VALUES ($1, $2)`, res.ID, job.In.Hotel)
			return res, err
		},
	}, worker.KeyIgnored(), worker.CompensatedBy("room.cancel", worker.RemoteUndo[stay, held]{
		Call: func(_ context.Context, _ string, u worker.UndoOf[stay, held]) error {
			delete(s.done, u.Res.ID)
			return nil
		},
	}))
}

func TestRun_external(t *testing.T) {
	t.Parallel()
	b := db.Begin(t)
	s := &supplier{done: map[string]bool{}}
	job := workertest.Job{Type: "room.reserve", OperationID: "a", Input: stay{"H-1", 1}}
	first := b.Run(s.handler(), job).WantSuccess()
	if s.calls != 1 || !s.done["a"] {
		t.Errorf("%d calls, %v", s.calls, s.done)
	}
	b.Undo(first).WantSuccess()
	if s.done["a"] {
		t.Error("still reserved after the undo")
	}
	job.OperationID = "b"
	b.RunAfterLostAnswer(s.handler(), job).WantSuccess()
	if s.calls != 2 {
		t.Errorf("%d calls, want 2: the lost one is not repeated", s.calls)
	}
	job.OperationID = "c"
	b.RunAfterLostCall(s.handler(), job).WantSuccess()
	if s.calls != 3 {
		t.Errorf("%d calls, want 3: it never happened", s.calls)
	}
	if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != 3 {
		t.Errorf("%d stays, want 3", n)
	}
	s.say = errors.New("connection reset")
	b.Run(s.handler(), job).Want(outcome.Retryable, "unknown")
	s.say = worker.BusinessError("SOLD_OUT", "none")
	b.Run(s.handler(), job).WantCode("SOLD_OUT")
}

func TestStager(t *testing.T) {
	t.Parallel()
	catalog, err := events.ParseCatalog([]byte("domains: [tour]\nmessages:\n  - type: tour.room.released\n    class: domain\n    owner: tour\n    producers: [tour-workers]\n    consumers: [view]\n    operator_action: look\n    pii: none\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := db.Begin(t)
	if b.Stager, err = outbox.NewStager(outbox.Config{Catalog: catalog, Producer: "tour-workers", Instance: "i", Env: "test"}); err != nil {
		t.Fatal(err)
	}
	if r := b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-1", 1}}).Want(outcome.Fatal, "events"); !strings.Contains(r.Message, "not in the catalog") {
		t.Errorf("got %s", r)
	}
}

// Nothing of one test is there in the next.
func TestRun_rolledBack(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		db.Begin(t).Run(handler(), workertest.Job{Type: "room.reserve", OperationID: "rolled-back", Input: stay{"H-1", 2}}).WantSuccess()
	})
	if n := workertest.Get[int](db.Begin(t), `SELECT count(*) FROM stay WHERE id = 'rolled-back'`); n != 0 {
		t.Errorf("%d rows are left behind, want 0", n)
	}
}

// handlerTest is a whole test of a handler: a transaction, the handler, a look at what it did, the rollback.
func handlerTest(t testing.TB) {
	t.Helper()
	test := &oneTest{TB: t}
	b := db.Begin(test)
	b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-1", 2}}).WantSuccess()
	if n := workertest.Get[int](b, `SELECT count(*) FROM stay`); n != 1 {
		t.Errorf("%d stays, want 1", n)
	}
	test.end()
}

// BenchmarkRun is a whole test of a handler. ms/test says what it took; TestRun_fast has the bound.
func BenchmarkRun(b *testing.B) {
	db.Pool(b) // the server is there
	for b.Loop() {
		handlerTest(b)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/test")
}

// TestRun_fast: a test of a handler takes under 50 ms. The best of ten counts, and no other test of the package runs beside it,
// so that a busy machine does not fail it.
func TestRun_fast(t *testing.T) {
	db.Pool(t) // the server is there
	best := time.Hour
	for range 10 {
		began := time.Now()
		handlerTest(t)
		best = min(best, time.Since(began))
	}
	if bound := race.Slower * 50 * time.Millisecond; best >= bound {
		t.Errorf("the best of ten took %v, want less than %v", best, bound)
	}
}

// A database of its own has the tables, and what is committed there stays there.
func TestDatabase_own(t *testing.T) {
	t.Parallel()
	for range 2 {
		conn, err := pgx.Connect(t.Context(), db.Own(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), `INSERT INTO room VALUES ('H-own', 1)`); err != nil {
			t.Error(err)
		}
		_ = conn.Close(t.Context())
	}
	if n := workertest.Get[int](db.Begin(t), `SELECT count(*) FROM room WHERE hotel = 'H-own'`); n != 0 {
		t.Errorf("%d rows in the shared database, want 0", n)
	}
}

// failing records a Fatal and ends the goroutine, as testing does.
func TestWant_fails(t *testing.T) {
	t.Parallel()
	b := db.Begin(t)
	r := b.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-refuse", 1}})
	if got, want := r.String(), "BUSINESS_ERROR SOLD_OUT: no room"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	spy := &spyTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		sb := workertest.Begin(spy, db.Pool(t))
		sb.Run(handler(), workertest.Job{Type: "room.reserve", Input: stay{"H-refuse", 1}}).WantSuccess()
	}()
	<-done
	if !strings.Contains(spy.said, "want SUCCESS") {
		t.Errorf("WantSuccess of a refusal said %q", spy.said)
	}
}
