package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

func TestStager_Check(t *testing.T) {
	t.Parallel()
	s := stager(t, "")
	for name, c := range map[string]struct {
		m    events.Message
		want string
	}{
		"good":                {created("K", 1), ""},
		"key of operation":    {created("", 1), ""},
		"not in the catalog":  {events.Message{Type: "test.thing.vanished", Data: struct{}{}}, "not in the catalog"},
		"version":             {events.Message{Type: "test.thing.created", Version: 7, Data: struct{}{}}, "v7: not in the catalog"},
		"event as command":    {events.Message{Type: "test.thing.created", Kind: events.KindCommand, Data: struct{}{}}, "event's name"},
		"command as event":    {events.Message{Type: "test.thing.make.requested", Data: struct{}{}}, "command's name"},
		"kind":                {events.Message{Type: "test.thing.created", Kind: "rumour", Data: struct{}{}}, `kind "rumour"`},
		"foreign":             {events.Message{Type: "other-domain.thing.created", Data: struct{}{}}, `producer "tester"`},
		"no object":           {events.Message{Type: "test.thing.created", Data: []int{1}}, "want a JSON object"},
		"nil data":            {events.Message{Type: "test.thing.created"}, "want a JSON object"},
		"cannot be marshaled": {events.Message{Type: "test.thing.created", Data: map[string]any{"f": func() {}}}, "unsupported type"},
		"too large":           {events.Message{Type: "test.thing.created", Data: map[string]any{"x": strings.Repeat("x", outbox.DefaultMaxBytes)}}, "want at most 900000"},
		"key too long":        {created(strings.Repeat("k", 201), 1), "want 1 to 200 bytes"},
		"key with NUL":        {created("a\x00b", 1), "want 1 to 200 bytes"},
		"corrects":            {events.Message{Type: "test.thing.created", Corrects: "yesterday", Data: struct{}{}}, `corrects "yesterday"`},
	} {
		err := s.Check(c.m)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if err := s.Check(events.Message{Type: "a"}, events.Message{Type: "b"}); err == nil || !strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("got %v, want both mistakes", err)
	}
}

// A refused message must leave the batch as it was.
func TestStager_QueueAddsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := stager(t, "")
	b := &pgx.Batch{}
	if err := s.Queue(b, events.Origin{}, []events.Message{created("K", 1), created("", 2)}); err == nil || b.Len() != 0 {
		t.Errorf("no key anywhere: got %v and %d statements, want a refusal and none", err, b.Len())
	}
	if err := s.Queue(b, events.Origin{CorrelationID: "a\x00"}, []events.Message{created("K", 1)}); err == nil || b.Len() != 0 || !strings.Contains(err.Error(), "correlation_id") {
		t.Errorf("NUL in a header: got %v and %d statements, want a refusal that names it", err, b.Len())
	}
	if err := s.Queue(b, origin("op"), nil); err != nil || b.Len() != 0 {
		t.Errorf("nothing to stage: got %v and %d statements, want none", err, b.Len())
	}
	if err := s.Queue(b, origin("op"), nil, "K"); err != nil || b.Len() != 1 {
		t.Errorf("a key alone: got %v and %d statements, want 1", err, b.Len())
	}
}

func TestStager_DeclareAndConfig(t *testing.T) {
	t.Parallel()
	if err := stager(t, "").Declare("test.thing.created", "test.thing.make.requested"); err != nil {
		t.Error(err)
	}
	err := stager(t, "").Declare("test.nothing.done", "other-domain.thing.created")
	if err == nil || !strings.Contains(err.Error(), "test.nothing.done") || !strings.Contains(err.Error(), "other-domain.thing.created") {
		t.Errorf("got %v", err)
	}
	_, err = outbox.NewStager(outbox.Config{Catalog: catalog(t), Producer: "tester", Instance: "i", Env: "test", Emits: []string{"test.thing.created", "test.thing.vanished", "other-domain.thing.created"}})
	if err == nil || !strings.Contains(err.Error(), "test.thing.vanished") || !strings.Contains(err.Error(), "other-domain.thing.created") {
		t.Errorf("a type that is emitted and not in the catalog: got %v", err)
	}
	some, err := outbox.NewStager(outbox.Config{Catalog: catalog(t), Producer: "tester", Instance: "i", Env: "test", Emits: []string{"test.thing.created"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{some.Check(renamed("K", 1)), some.Declare("test.thing.renamed")} {
		if err == nil || !strings.Contains(err.Error(), "declares to emit") {
			t.Errorf("a type that is not declared: got %v", err)
		}
	}
	if err := some.Check(created("K", 1)); err != nil {
		t.Error(err)
	}
	_, err = outbox.NewStager(outbox.Config{Schema: `a"b`, MaxBytes: 3})
	for _, want := range []string{"schema", "catalog", "producer", "instance", "env", "max bytes 3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	stranger, err := outbox.NewStager(outbox.Config{Catalog: catalog(t), Producer: "stranger", Instance: "s", Env: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Check(created("K", 1)); err == nil || !strings.Contains(err.Error(), "without a recorded exception") {
		t.Errorf("another domain's service: got %v", err)
	}
}

// What a run stages is in the envelope, and a re-run stages the same ids (spec O7).
func TestStager_EnvelopeAndRerun(t *testing.T) {
	t.Parallel()
	f := setup(t)
	o := origin("op-1")
	o.ProcessInstanceKey, o.HTTPIdempotencyKey, o.Actor = 2251799813685249, "http-1", events.Actor{UserID: "u"}
	msgs := []events.Message{created("", 1), {Type: "test.thing.make.requested", Kind: events.KindCommand, Data: map[string]any{"a": 1}}, {Type: "test.thing.renamed", Version: 2, BusinessKey: "B-2", Data: struct{}{}}}
	run := func() []events.Record {
		if err := f.stage(o, msgs); err != nil {
			t.Fatal(err)
		}
		bk := newBroker()
		_, stop := f.relay(bk)
		log := f.wait(bk, "three messages", atLeast(3))
		f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
		stop()
		return log
	}
	ids := func(log []events.Record) map[string]bool {
		out := map[string]bool{}
		for _, r := range log {
			out[r.Header(events.HeaderEventType)+" "+r.Header(events.HeaderEventID)] = true
		}
		return out
	}
	first := run()
	if diff := cmp.Diff(ids(first), ids(run())); diff != "" {
		t.Errorf("a re-run staged other ids: %s", diff)
	}
	o.IDSeed = "op-1#2"
	for id := range ids(run()) {
		if ids(first)[id] {
			t.Errorf("another seed gave the same id %s", id)
		}
	}
	for _, r := range first {
		e, err := events.ParseEnvelope(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if e.Metadata.OperationID != "op-1" || e.Metadata.ProcessInstanceID != "2251799813685249" || e.Actor.UserID != "u" || e.Metadata.HTTPIdempotencyKey != "http-1" ||
			e.TraceID != "0af7651916cd43dd8448eb211c80319c" || e.OccurredAt.IsZero() || e.Producer != "tester" {
			t.Errorf("envelope %+v", e)
		}
		for _, h := range []string{"event_id", "event_type", "event_version", "occurred_at", "producer", "business_key", "correlation_id", "trace_id", "process_instance_id", "operation_id", "env", "traceparent"} {
			if r.Header(h) == "" {
				t.Errorf("%s: header %s is missing", e.MessageType, h)
			}
		}
		if r.Header("event_id") != e.MessageID || r.Header("business_key") != r.Key || r.Topic != events.Topic(e.MessageType, e.MessageVersion) {
			t.Errorf("headers and body differ: %v", r)
		}
		if e.MessageKind == events.KindCommand && !strings.Contains(string(e.Data), `"idempotencyKey":"http-1"`) {
			t.Errorf("command data %s lacks the copied key", e.Data)
		}
	}
}

// The turn of a key grows with every transaction, also without messages.
func TestStager_TurnOfAKey(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var turns []int
	for _, msgs := range [][]events.Message{nil, {created("S", 1), created("S", 2)}, nil} {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		if err := f.Queue(b, origin("op"), msgs, "S"); err != nil {
			t.Fatal(err)
		}
		b.Queue("SELECT "+strings.Replace(f.SeqSQL(), "%d", "1", 1), "S").QueryRow(func(row pgx.Row) error {
			var n int
			err := row.Scan(&n)
			turns = append(turns, n)
			return err
		})
		b.Queue("COMMIT")
		if err := f.pool.SendBatch(f.ctx, b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !cmp.Equal(turns, []int{1, 2, 3}) {
		t.Errorf("turns %v, want 1 2 3", turns)
	}
	if n := f.count(`SELECT max(seq) FROM journeyman.outbox`); n != 2 {
		t.Errorf("highest sequence %d, want 2: keys without messages leave no gap", n)
	}
}

func TestTx_RefusesToEnd(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tx, err := f.pool.Begin(f.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(f.ctx) //nolint:errcheck // no effect after commit
	h := outbox.NewTx(tx)
	for sql, refused := range map[string]bool{
		"COMMIT": true, " commit ;": true, "End": true, "ABORT": true, "rollback": true, "ROLLBACK WORK": true, "BEGIN": true, "START TRANSACTION": true,
		"PREPARE TRANSACTION 'x'": true, "COMMIT PREPARED 'x'": true, "DISCARD ALL": true, "-- x\nCOMMIT": true, "/* a /* b */ c */ commit": true,
		"SELECT 1; COMMIT": true, "SELECT ';'; commit": true, "SELECT E'\\';'; commit": true, "SELECT $x$ ; $x$; commit": true,
		"SAVEPOINT journeyman_handler": true, "ROLLBACK TO SAVEPOINT journeyman_handler": true, `RELEASE "journeyman_handler"`: true,
		"SELECT 'COMMIT'": false, "SELECT $$;COMMIT$$": false, "SELECT 1 /* ; commit */": false, "SELECT 1 -- ; commit": false, `SELECT 1 AS "; commit"`: false,
		"SAVEPOINT mine": false, "ROLLBACK TO mine": false, "RELEASE mine": false, "SELECT $1::int": false, "": false, "START_FOO": false,
	} {
		_, refusal := h.Query(context.Background(), sql, pgx.QueryExecModeSimpleProtocol)
		if got := errors.Is(refusal, outbox.ErrEndsTransaction); got != refused {
			t.Errorf("%q: refused %v, want %v", sql, got, refused)
		}
		if !refused {
			tx.Rollback(f.ctx) //nolint:errcheck // the statement may have left rows open or the transaction aborted
			if tx, err = f.pool.Begin(f.ctx); err != nil {
				t.Fatal(err)
			}
			defer tx.Rollback(f.ctx) //nolint:errcheck // no effect after commit
			h = outbox.NewTx(tx)
		}
	}
	h = outbox.NewTx(tx)
	if _, err := h.Exec(f.ctx, "COMMIT"); !errors.Is(err, outbox.ErrEndsTransaction) || h.Refused() == nil {
		t.Errorf("Exec: got %v, remembered %v", err, h.Refused())
	}
	var n int
	if err := h.QueryRow(f.ctx, "ROLLBACK").Scan(&n); !errors.Is(err, outbox.ErrEndsTransaction) {
		t.Errorf("QueryRow: got %v", err)
	}
	b := &pgx.Batch{}
	b.Queue("SELECT 1")
	b.Queue("COMMIT")
	if err := h.SendBatch(f.ctx, b).Close(); !errors.Is(err, outbox.ErrEndsTransaction) {
		t.Errorf("SendBatch: got %v", err)
	}
	h.Emit(created("a", 1), created("b", 2), created("c", 3))
	h.Truncate(1)
	if len(h.Messages()) != 1 || h.Messages()[0].BusinessKey != "a" {
		t.Errorf("after Truncate(1): %v", h.Messages())
	}
}

type noPrice struct{}

func (noPrice) Check(messageType string, version int, data []byte) error {
	if messageType == "test.thing.renamed" && version == 2 && !strings.Contains(string(data), "price") {
		return errors.New("breaks its schema: field data.price: missing")
	}
	return nil
}

// A message that breaks its schema is refused by Check, where the runtime makes FATAL of it, and by Queue.
func TestStager_RefusesWhatBreaksItsSchema(t *testing.T) {
	t.Parallel()
	s, err := outbox.NewStager(outbox.Config{Catalog: catalog(t), Producer: "tester", Instance: "i", Env: "test", Schemas: noPrice{}})
	if err != nil {
		t.Fatal(err)
	}
	bad := events.Message{Type: "test.thing.renamed", Version: 2, BusinessKey: "K", Data: map[string]any{"n": 1}}
	for name, err := range map[string]error{"check": s.Check(bad), "queue": s.Queue(&pgx.Batch{}, origin("op"), []events.Message{bad})} {
		if err == nil || !strings.Contains(err.Error(), "message type test.thing.renamed v2: breaks its schema: field data.price: missing") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	bad.Data = map[string]any{"price": 1}
	if err := s.Check(bad); err != nil {
		t.Errorf("a message that fits: %v", err)
	}
}
