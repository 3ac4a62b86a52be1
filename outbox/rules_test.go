package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Two transactions of one key: the first draws the smaller id and stalls, the
// second wants to commit. Without the key row's lock it would, and the relay
// would publish it first.
func TestRule21_SecondTransactionOfAKeyWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first, err := f.pool.Begin(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(f.ctx) //nolint:errcheck // no effect after commit
	b := &pgx.Batch{}
	if err := f.Queue(b, origin("op-1"), []events.Message{created("K", 1)}); err != nil {
		t.Fatal(err)
	}
	if err := first.SendBatch(f.ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() { second <- f.stage(origin("op-2"), []events.Message{created("K", 2)}) }()
	committed := false
	f.eventually("the second to commit or to wait", func() bool {
		select {
		case err := <-second:
			committed = true
			second <- err
		default:
		}
		return committed || f.count(`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`) > 0
	})
	bk := newBroker()
	f.relay(bk)
	if committed { // only with the rule off
		f.wait(bk, "the second", atLeast(1))
	}
	if err := first.Commit(f.ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	log := f.wait(bk, "both", atLeast(2))
	var ns []string
	for _, r := range log {
		e, err := events.ParseEnvelope(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		ns = append(ns, fmt.Sprintf("%s seq %d", e.Data, e.Metadata.Sequence))
	}
	if got, want := strings.Join(ns, ", "), `{"n":1} seq 1, {"n":2} seq 2`; got != want {
		t.Errorf("published %s, want %s", got, want)
	}
}

// A parked key with more rows than a scan takes must not starve its neighbours
// in the shard, and its rows come out in order once released, before newer ones.
func TestRule22_ParkedRowsLeaveTheScan(t *testing.T) {
	t.Parallel()
	f := setup(t)
	keys := sameShard(2)
	bad, good := keys[0], keys[1]
	var msgs []events.Message
	for i := range 50 {
		msgs = append(msgs, created(bad, i+1))
	}
	if err := f.stage(origin("op-1"), msgs); err != nil {
		t.Fatal(err)
	}
	bk := newBroker()
	bk.refuse = func(r events.Record) error {
		if r.Key == bad {
			return &events.PublishError{Fault: events.Permanent, Err: errors.New("refused for the test")}
		}
		return nil
	}
	_, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.Batch = 10; c.Lanes = 1 })
	f.eventually("the key to be parked", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked_key`) == 1 })
	if err := f.stage(origin("op-2"), []events.Message{created(good, 1), created(bad, 51)}); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the neighbour behind 50 parked rows", atLeast(1))
	f.eventually("all rows of the key to be parked", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked`) == 51 })
	parked, err := f.desk.Parked(f.ctx, f.pool, 10)
	if err != nil || len(parked) != 1 || parked[0].Rows != 51 || !strings.Contains(parked[0].Reason, "refused for the test") {
		t.Fatalf("parked: got %+v, %v", parked, err)
	}
	bk.setRefuse(nil)
	if err := f.desk.Release(f.ctx, f.pool, bad); err != nil {
		t.Fatal(err)
	}
	if err := f.stage(origin("op-3"), []events.Message{created(bad, 52)}); err != nil {
		t.Fatal(err)
	}
	next := 1
	for _, r := range f.wait(bk, "all 53", atLeast(53)) {
		if r.Key == bad && number(t, r) != next {
			t.Fatalf("after the release: got number %d, want %d", number(t, r), next)
		}
		if r.Key == bad {
			next++
		}
	}
	f.eventually("the key to be free", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked_key`) == 0 })
	stop()
}

// The delete and the event log are one statement: when the log cannot be written, the row stays.
func TestRule23_DeleteAndLogAreOneStatement(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if _, err := f.pool.Exec(f.ctx, `
		CREATE TABLE closed AS SELECT 1 AS one;
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF EXISTS (SELECT 1 FROM public.closed) THEN RAISE EXCEPTION 'the log is closed'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON journeyman.event_log FOR EACH ROW EXECUTE FUNCTION refuse()`); err != nil {
		t.Fatal(err)
	}
	if err := f.stage(origin("op-1"), []events.Message{created("K", 1)}); err != nil {
		t.Fatal(err)
	}
	bk := newBroker()
	f.relay(bk)
	f.wait(bk, "the row", atLeast(1))
	f.eventually("the row again, or its loss", func() bool {
		return len(bk.records()) >= 2 || f.count(`SELECT count(*) FROM journeyman.outbox`) == 0
	})
	if n := f.count(`SELECT count(*) FROM journeyman.outbox`); n != 1 {
		t.Fatalf("outbox has %d rows although the log refused, want 1", n)
	}
	if _, err := f.pool.Exec(f.ctx, `DELETE FROM public.closed`); err != nil {
		t.Fatal(err)
	}
	f.eventually("the row to be deleted", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	if n := f.count(`SELECT count(*) FROM journeyman.event_log WHERE business_key = 'K'`); n != 1 {
		t.Errorf("event log has %d rows, want 1", n)
	}
}

// A transaction draws its id first and commits after a neighbour with a higher
// id was published. An id cursor would never see it.
func TestRule24_LateCommitIsNotSkipped(t *testing.T) {
	t.Parallel()
	f := setup(t)
	keys := sameShard(2)
	late, err := f.pool.Begin(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Rollback(f.ctx) //nolint:errcheck // no effect after commit
	b := &pgx.Batch{}
	if err := f.Queue(b, origin("op-late"), []events.Message{created(keys[0], 1)}); err != nil {
		t.Fatal(err)
	}
	if err := late.SendBatch(f.ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	bk := newBroker()
	f.relay(bk)
	if err := f.stage(origin("op-early"), []events.Message{created(keys[1], 1)}); err != nil {
		t.Fatal(err)
	}
	f.wait(bk, "the neighbour", atLeast(1))
	f.eventually("the neighbour's delete", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.outbox WHERE business_key = $1`, keys[1]) == 0
	})
	if err := late.Commit(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.Wake()
	log := f.wait(bk, "the late row", atLeast(2))
	if got := []string{log[0].Key, log[1].Key}; !slices.Equal(got, []string{keys[1], keys[0]}) {
		t.Errorf("published %v", got)
	}
}
