package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/outcome"
)

// fakeStager stages messages as rows of its own.
type fakeStager struct{}

func (fakeStager) Check(...events.Message) error { return nil }
func (fakeStager) Wake()                         {}
func (fakeStager) Queue(b *pgx.Batch, o events.Origin, msgs []events.Message, keys ...string) error {
	for _, m := range msgs {
		b.Queue(`INSERT INTO staged VALUES ($1, $2)`, o.OperationID, m.Type)
	}
	return nil
}

func (w *world) staged() string {
	w.t.Helper()
	var s string
	if err := w.pool.QueryRow(w.ctx, `SELECT coalesce(string_agg(type, ' ' ORDER BY type), '') FROM staged`).Scan(&s); err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) withStager(cfg Config) Config {
	w.t.Helper()
	if _, err := w.pool.Exec(w.ctx, `CREATE TABLE staged (operation_id text, type text)`); err != nil {
		w.t.Fatal(err)
	}
	cfg.Stager = fakeStager{}
	return cfg
}

func (w *world) noFails() {
	w.t.Helper()
	for _, c := range w.gw.log() {
		if strings.HasPrefix(c, "fail") {
			w.t.Errorf("a job was failed: %s", c)
		}
	}
}

// TestRule01_claim stops one run between claim and commit; its twin waits for the truth and runs nothing.
func TestRule01_claimWaitsForATwin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	a, b := w.jobTask(rt, "flight.reserve", job("rule01", offer)), w.jobTask(rt, "flight.reserve", job("rule01", offer))
	reached, release := stopAt(t, "worker.claimed", "rule01")
	first := make(chan result, 1)
	go func() { first <- rt.execute(w.ctx, a) }()
	reach(t, "first run claims", reached)
	second := make(chan result, 1)
	go func() { second <- rt.execute(w.ctx, b) }()
	w.until("the twin waits on the claim", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	})
	release()
	if r := <-first; r.kind != answered {
		t.Errorf("first run: %+v", r)
	}
	if r := <-second; r.kind != answered || string(r.left.Variables) != `{"id":"R-rule01"}` {
		t.Errorf("twin: %+v", r)
	}
	if n := w.rooms("rule01"); n != 1 {
		t.Errorf("%d rooms, want 1", n)
	}
}

// TestRule02 loses the reply of a COMMIT that the server carried out: no failure is told, the handler does not run again, the
// answer comes from the recorded command.
func TestRule02_commitReplyLost(t *testing.T) {
	t.Parallel()
	w, cut := newCutWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.start(mux, fast())
	w.wait(w.gw.add("flight.reserve", job("warm", offer)), "completed") // statements are prepared now
	w.until("acknowledged", func() bool { return w.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	remove := crash.Hook("worker.commit.before", func(d string) {
		if d == "rule02" {
			cut.after.Store(true)
		}
	})
	defer remove()
	k := w.gw.add("flight.reserve", job("rule02", offer))
	if j := w.wait(k, "completed"); j.answer != `{"id":"R-rule02"}` || j.times != 1 {
		t.Errorf("completed with %s after %d activations", j.answer, j.times)
	}
	if cut.cuts.Load() == 0 {
		t.Fatal("no COMMIT was cut: the test proves nothing")
	}
	if n, runs := w.rooms("rule02"), w.runs.Load(); n != 1 || runs != 2 {
		t.Errorf("%d rooms after %d runs, want 1 after 2 (one of them the warm-up)", n, runs)
	}
	w.noFails()
}

// TestRule02_commitNeverArrived is the other side of the same doubt: the COMMIT was lost on its way, so the handler runs again.
func TestRule02_commitNeverArrived(t *testing.T) {
	t.Parallel()
	w, cut := newCutWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.start(mux, fast())
	w.wait(w.gw.add("flight.reserve", job("warm", offer)), "completed")
	w.until("acknowledged", func() bool { return w.count(`SELECT count(*) FROM journeyman.zeebe_command`) == 0 })
	remove := crash.Hook("worker.commit.before", func(d string) {
		if d == "rule02b" && cut.cuts.Load() == 0 {
			cut.before.Store(true)
		}
	})
	defer remove()
	w.wait(w.gw.add("flight.reserve", job("rule02b", offer)), "completed")
	if cut.cuts.Load() == 0 {
		t.Fatal("no COMMIT was cut: the test proves nothing")
	}
	if n := w.rooms("rule02b"); n != 1 {
		t.Errorf("%d rooms, want 1", n)
	}
	w.noFails()
}

// TestCommitFails is a COMMIT that the server refuses: nothing is completed, and the failure is told with one retry fewer.
func TestCommitFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pool.Exec(w.ctx, `CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
		CREATE CONSTRAINT TRIGGER no AFTER INSERT ON room DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()`); err != nil {
		t.Fatal(err)
	}
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	w.start(mux, fast())
	j := w.wait(w.gw.add("flight.reserve", job("op-1", offer)), "failed")
	if w.rooms("op-1") != 0 || w.op("op-1").OperationID != "" || w.runs.Load() != 3 {
		t.Errorf("rooms %d, operation %+v, runs %d; want nothing after 3 runs", w.rooms("op-1"), w.op("op-1"), w.runs.Load())
	}
	for _, c := range w.gw.log() {
		if !strings.HasPrefix(c, "fail") {
			t.Errorf("told the engine %q", c)
		}
	}
	if !strings.Contains(j.message, "SQLSTATE P0001") {
		t.Errorf("incident %q", j.message)
	}
}

// TestKilledBetweenCommitAndAnswer: a process that stops there for ever; another one sends the recorded answer within seconds
// and runs nothing.
func TestKilledBetweenCommitAndAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	dead := w.jobTask(rt, "flight.reserve", job("killed", offer))
	reached, release := stopAt(t, "worker.commit.after", "killed")
	gone := make(chan struct{})
	go func() { defer close(gone); _ = rt.execute(w.ctx, dead) }()
	reach(t, "commit", reached)
	start := time.Now()
	w.start(mux, fast())
	w.wait(dead.meta.Key, "completed")
	if d := time.Since(start); d > 8*time.Second {
		t.Errorf("answered after %s", d)
	}
	if w.runs.Load() != 1 {
		t.Errorf("%d runs, want 1", w.runs.Load())
	}
	release()
	<-gone
}

// TestRule03 rolls a refusal back to the savepoint, buffered events with it; only what is attached to it is staged.
func TestRule03_refusalRollsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	refuse := func(opts ...ErrorOption) Func[reserve, reserved] {
		return func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
			tx.Emit(events.Message{Type: "seat.held"})
			if _, err := w.insertRoom(ctx, tx, j); err != nil {
				return reserved{}, err
			}
			return reserved{}, BusinessError("SOLD_OUT", "none left", opts...)
		}
	}
	mux.Handle("flight.reserve", Transactional(refuse(WithEvents(events.Message{Type: "seat.refused"})), NotCompensable("test")))
	mux.Handle("flight.keep", Transactional(refuse(KeepChanges()), NotCompensable("test")))
	w.start(mux, w.withStager(fast()))
	w.wait(w.gw.add("flight.reserve", job("rule03", offer)), "error-thrown")
	if n := w.rooms("rule03"); n != 0 || w.staged() != "seat.refused" {
		t.Errorf("%d rooms, staged %q; want none and only the attached event", n, w.staged())
	}
	w.wait(w.gw.add("flight.keep", job("keep", offer)), "error-thrown")
	if n := w.rooms("keep"); n != 1 || w.staged() != "seat.held seat.refused" {
		t.Errorf("kept: %d rooms, staged %q", n, w.staged())
	}
}

// TestRule05 resolves an incident: the operation runs afresh. A twin that was activated before gets nothing else.
func TestRule05_operatorRetry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	broken := true
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		out, err := w.insertRoom(ctx, tx, j)
		if broken {
			return reserved{}, Fatal(errBoom)
		}
		return out, err
	}, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	first := w.jobTask(rt, "flight.reserve", job("rule05", offer))
	twin := w.taskOf(rt, first.meta.Key) // activated again before the answer
	if r := rt.execute(w.ctx, first); r.left.Class != outcome.Fatal {
		t.Fatalf("first run: %+v", r)
	}
	w.wait(first.meta.Key, "failed")
	w.until("acknowledgement recorded", func() bool { return !w.op("rule05").AnsweredAt.IsZero() })
	broken = false
	if r := rt.execute(w.ctx, twin); r.kind != dropped {
		t.Errorf("a twin of before the answer: %+v, want it to leave the stored answer alone", r)
	}
	late := w.taskOf(rt, first.meta.Key) // received late, but not active at the engine
	if r := rt.execute(w.ctx, late); r.kind != dropped {
		t.Errorf("an activation that came late: %+v", r)
	}
	other := w.jobTask(rt, "flight.reserve", job("rule05", offer)) // another job with the same id
	if r := rt.execute(w.ctx, other); r.left.Class != outcome.Fatal {
		t.Errorf("another job: %+v, want the stored answer", r)
	}
	w.until("acknowledgement recorded", func() bool { return w.op("rule05").AnsweredJobKey == other.meta.Key })

	w.gw.resolve(other.meta.Key)
	w.gw.edit(other.meta.Key, func(j *fakeJob) { j.state, j.until = "activated", time.Now().Add(time.Minute) })
	again := w.taskOf(rt, other.meta.Key)
	if r := rt.execute(w.ctx, again); r.left.Class != outcome.Success {
		t.Errorf("after the operator's retry: %+v", r)
	}
	w.wait(other.meta.Key, "completed")
	if op := w.op("rule05"); op.OperatorRetries != 1 || op.Class != outcome.Success || w.rooms("rule05") != 1 {
		t.Errorf("operation %s with %d operator retries, %d rooms", op.Class, op.OperatorRetries, w.rooms("rule05"))
	}
}

// TestRule06_twinWaits holds an operation longer than a twin's lock time-out: the twin is never failed, it claims again later.
func TestRule06_twinGivesWayByWaiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	rt := w.runtime(mux, fast())
	first := w.jobTask(rt, "flight.reserve", job("rule06", offer))
	reached, release := stopAt(t, "worker.claimed", "rule06")
	done := make(chan result, 1)
	go func() { done <- rt.execute(w.ctx, first) }()
	reach(t, "claim", reached)
	cfg := fast()
	cfg.Concurrency = 1
	w.start(mux, cfg)
	twin := w.gw.add("flight.reserve", job("rule06", offer))
	w.until("the twin has timed out on the claim", func() bool {
		return w.count(`SELECT count(*) FROM journeyman.operation_attempt WHERE operation_id = 'rule06'`) > 0
	})
	// Its slot is free meanwhile: with Concurrency 1 another job runs.
	w.wait(w.gw.add("flight.reserve", job("rule06-other", offer)), "completed")
	release()
	<-done
	if j := w.wait(twin, "completed"); j.Retries != 3 {
		t.Errorf("retries %d, want 3", j.Retries)
	}
	w.noFails()
	if n := w.rooms("rule06"); n != 1 {
		t.Errorf("%d rooms, want 1", n)
	}
}

// TestRule06_late lets a handler fail after the job's time-out: by then the job may be another worker's, so nothing is told.
func TestRule06_lateFailureIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	wait := make(chan struct{})
	mux.Handle("flight.reserve", Transactional(func(context.Context, *Tx, Job[reserve]) (reserved, error) {
		if w.runs.Add(1) == 1 {
			<-wait
			return reserved{}, errBoom
		}
		return reserved{ID: "second"}, nil
	}, NotCompensable("test"), SLA(time.Nanosecond))) // never extended
	cfg := fast()
	cfg.LockTimeout, cfg.HandlerTimeout, cfg.JobTimeout = 100*time.Millisecond, 500*time.Millisecond, 700*time.Millisecond
	w.start(mux, cfg)
	k := w.gw.add("flight.reserve", job("rule06-late", offer))
	w.until("the job is another's", func() bool { return w.gw.job(k).times >= 2 })
	close(wait)
	w.wait(k, "completed")
	w.noFails()
}

// TestRule07 is a job with which processes die: alone from the second attempt on, and FATAL after it was the only one.
func TestRule07_crashLoop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	busy, finish := make(chan struct{}), make(chan struct{})
	mux.Handle("flight.reserve", Transactional(w.insertRoom, NotCompensable("test")))
	mux.Handle("slow", Transactional(func(context.Context, *Tx, Job[struct{}]) (struct{}, error) {
		close(busy)
		<-finish
		return struct{}{}, nil
	}, NoEffect()))
	died := func(key int64, alone bool) {
		t.Helper()
		if _, err := w.pool.Exec(w.ctx, `INSERT INTO journeyman.operation_attempt (cluster, job_key, process, open, alone, opened_at) VALUES ('test', $1, gen_random_uuid(), true, $2, journeyman.now())`, key, alone); err != nil {
			t.Fatal(err)
		}
	}
	rt, _ := w.start(mux, fast())
	slow := w.gw.add("slow", job("slow", ""))
	reach(t, "slow job", busy)

	w.gw.mu.Lock() // the next key is known before the job exists
	suspect, convict := w.gw.next+1, w.gw.next+2
	w.gw.mu.Unlock()
	died(suspect, false)
	died(convict, false)
	died(convict, true)
	w.gw.add("flight.reserve", job("suspect", offer))
	w.gw.add("flight.reserve", job("convict", offer))
	w.until("both received", func() bool {
		return w.count(`SELECT count(*) FROM journeyman.operation_attempt WHERE process = $1`, rt.rt.process.ID) == 3
	})
	if w.rooms("suspect") != 0 {
		t.Error("the suspect ran beside another job")
	}
	close(finish)
	w.wait(slow, "completed")
	w.wait(suspect, "completed")
	if j := w.wait(convict, "failed"); !strings.Contains(j.message, outcome.ReasonGuard) {
		t.Errorf("incident %q", j.message)
	}
	if w.rooms("suspect") != 1 || w.rooms("convict") != 0 {
		t.Errorf("rooms: suspect %d, convict %d; want 1 and 0", w.rooms("suspect"), w.rooms("convict"))
	}
	if n := w.count(`SELECT count(*) FROM journeyman.operation_attempt`); n != 0 {
		t.Errorf("%d attempts left; an incident's retry must start from none", n)
	}
}

// TestRule08 lets a handler wait for a lock longer than the claim may: that is its own matter.
func TestRule08_lockTimeoutIsTheClaimsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("flight.reserve", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (reserved, error) {
		if _, err := tx.Exec(ctx, `LOCK TABLE seat IN EXCLUSIVE MODE`); err != nil {
			return reserved{}, err
		}
		return w.insertRoom(ctx, tx, j)
	}, NotCompensable("test")))
	if _, err := w.pool.Exec(w.ctx, `CREATE TABLE seat (id int)`); err != nil {
		t.Fatal(err)
	}
	tx, err := w.pool.Begin(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(w.ctx) //nolint:errcheck // ended below
	if _, err := tx.Exec(w.ctx, `LOCK TABLE seat IN EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	cfg := fast()
	w.start(mux, cfg)
	k := w.gw.add("flight.reserve", job("rule08", offer))
	w.until("the handler waits", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > $1`, 2*cfg.LockTimeout) == 1 || len(w.gw.log()) > 0
	})
	if err := tx.Commit(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.wait(k, "completed")
	w.noFails()
}

// TestRule28 refuses, before the commit, an output that the engine would not take.
func TestRule28_outputCheckedBeforeCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mux := NewMux()
	mux.Handle("list", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) ([]string, error) {
		_, err := w.insertRoom(ctx, tx, j)
		return []string{"a"}, err
	}, NotCompensable("test")))
	mux.Handle("budget", Transactional(func(ctx context.Context, tx *Tx, j Job[reserve]) (map[string]string, error) {
		_, err := w.insertRoom(ctx, tx, j)
		return map[string]string{"blob": strings.Repeat("x", 60<<10)}, err
	}, NotCompensable("test")))
	w.start(mux, fast())
	if j := w.wait(w.gw.add("list", job("rule28", offer)), "failed"); !strings.Contains(j.message, "no JSON object") || w.rooms("rule28") != 0 {
		t.Errorf("incident %q, %d rooms", j.message, w.rooms("rule28"))
	}
	w.wait(w.gw.add("budget", job("rule28-a", offer)), "completed")
	if j := w.wait(w.gw.add("budget", job("rule28-b", offer)), "failed"); !strings.Contains(j.message, "variable budget") || w.rooms("rule28-b") != 0 {
		t.Errorf("second 60 KB of one instance: %q, %d rooms", j.message, w.rooms("rule28-b"))
	}
	if op := w.op("rule28-a"); op.Bytes < 60<<10 || op.State != dedup.Done {
		t.Errorf("bytes %d, state %s", op.Bytes, op.State)
	}
}
