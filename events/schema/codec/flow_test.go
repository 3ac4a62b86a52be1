package codec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// booking is what handlers of all formats read.
type booking struct {
	ID     string            `json:"id"`
	N      int64             `json:"n"`
	Price  any               `json:"price,omitempty"`
	At     time.Time         `json:"at,omitzero"`
	Labels map[string]string `json:"labels,omitempty"`
	Note   *string           `json:"note,omitempty"`
}

const large = 9_007_199_254_740_993 // more than a float64 holds

// TestFlow_EveryFormat_E5 stages, relays over Kafka and consumes a message of each format and wire form.
func TestFlow_EveryFormat_E5(t *testing.T) {
	t.Parallel()
	f := setup(t)
	at, note := time.Date(2026, 11, 30, 12, 0, 0, 1000, time.UTC), "words"
	origin := events.Origin{
		OperationID: "op-1", BusinessKey: "B-1", CorrelationID: "c-1", ProcessInstanceKey: 77, HTTPIdempotencyKey: "http-1", Replay: true,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: events.Actor{UserID: "u", Context: "desk", ServiceClient: "s"},
	}
	corrected := events.NewID()
	data := booking{ID: "x", N: large, At: at, Labels: map[string]string{"b": "2", "a": "1"}, Note: &note}
	avro, proto, plain := data, data, booking{ID: "x", N: large}
	avro.Price, proto.Price = "12.30", map[string]any{"amount": large, "currency": "EUR"}
	f.commit(origin,
		events.Message{Type: "test.booking.confirmed", Data: avro, OccurredAt: at, Corrects: corrected},
		events.Message{Type: "test.payment.captured", Data: proto, OccurredAt: at},
		events.Message{Type: "test.seat.assigned", Data: booking{ID: "x", N: large, Labels: data.Labels, Note: &note}, OccurredAt: at},
		events.Message{Type: "test.account.locked", Data: plain, OccurredAt: at},
		events.Message{Type: "test.plain.noted", Data: plain, OccurredAt: at},
	)
	// In the outbox a framed body stands as the broker will get it.
	if n := f.count(`SELECT count(*) FROM journeyman.outbox WHERE get_byte(body, 0) = 0`); n != 4 {
		t.Errorf("%d framed bodies in the outbox, want 4", n)
	}
	asked := f.producerLine.asked.Load()
	f.relay()
	var g got
	f.consume(g.handle, func(c *inbox.Config) { c.DedupBy = inbox.ByEventID })
	f.eventually("five messages", func() bool { return len(g.all()) == 5 })
	if now := f.producerLine.asked.Load(); now != asked {
		t.Errorf("staging and relaying asked the registry %d times", now-asked)
	}
	for _, m := range g.all() {
		var d booking
		if err := m.Decode(&d); err != nil {
			t.Fatal(err)
		}
		if d.ID != "x" || d.N != large {
			t.Errorf("%s: got %+v", m.MessageType, d)
		}
		switch m.MessageType {
		case "test.booking.confirmed":
			if d.Price != "12.30" || !d.At.Equal(at) || d.Labels["b"] != "2" || d.Note == nil || *d.Note != note || m.Metadata.Corrects != corrected {
				t.Errorf("avro: got %+v, corrects %s", d, m.Metadata.Corrects)
			}
		case "test.payment.captured":
			if !strings.Contains(string(m.Data), `"amount":9007199254740993`) || !d.At.Equal(at) || d.Labels["a"] != "1" || d.Note == nil || *d.Note != note {
				t.Errorf("protobuf: got %s", m.Data)
			}
		case "test.account.locked":
			if m.Metadata.EventClass != events.ClassAudit {
				t.Errorf("class %s, want audit", m.Metadata.EventClass)
			}
		}
		if m.Actor != origin.Actor || m.Metadata.OperationID != "op-1" || m.Metadata.CorrelationID != "c-1" || m.Metadata.ProcessInstanceID != "77" || m.Metadata.BusinessKey != "B-1" ||
			m.Metadata.HTTPIdempotencyKey != "http-1" || !m.OccurredAt.Equal(at) || m.Producer != "tester" || m.ProducerInstance != "tester-1" ||
			m.TraceID != "0af7651916cd43dd8448eb211c80319c" || m.MessageKind != events.KindEvent || m.MessageVersion != 1 || !m.Replay || !events.ValidID(m.MessageID) || m.Metadata.Sequence == 0 {
			t.Errorf("%s: the envelope lost something: %+v", m.MessageType, m.Envelope)
		}
	}
	// The event log and the ledger hold the same bytes.
	f.eventually("four framed bodies in the event log", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.event_log WHERE get_byte(body, 0) = 0`) == 4
	})
	if n := f.count(`SELECT count(*) FROM journeyman.event_ledger WHERE get_byte(body, 0) = 0 AND body_sum = encode(sha256(body), 'hex')`); n != 1 {
		t.Errorf("%d framed bodies in the ledger with their digest, want 1", n)
	}
}

// A command is recognised by its key again, though its body is not read for it;
// other content under the key is a conflict. Its class is ordered strictly and encrypted end to end.
func TestFlow_CommandsAreRecognisedByTheirKey_D2(t *testing.T) {
	t.Parallel()
	f := setup(t)
	send := func(op, key string, n int) {
		f.commit(events.Origin{OperationID: op, BusinessKey: "B-1"}, events.Message{Type: "test.seat.make.requested", Kind: events.KindCommand,
			Data: map[string]any{"idempotencyKey": key, "n": n, "labels": map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}}})
	}
	send("op-1", "k-1", 1)
	send("op-2", "k-1", 1)
	send("op-3", "k-1", 2)
	if n := f.count(`SELECT count(*) FROM journeyman.outbox WHERE get_byte(body, 0) = 0`); n != 0 {
		t.Errorf("%d bodies stand clear in the outbox, want none", n)
	}
	f.relay()
	var g got
	var duplicates atomic.Int64
	f.consume(g.handle, func(c *inbox.Config) { c.Hooks.Duplicate = func(string) { duplicates.Add(1) } })
	f.eventually("the conflict", func() bool { return len(f.dead()) == 1 })
	if len(g.all()) != 1 || duplicates.Load() != 1 || f.dead()[0].Reason != "conflict" {
		t.Errorf("%d handled, %d duplicates, dead as %s; want 1, 1 and conflict", len(g.all()), duplicates.Load(), f.dead()[0].Reason)
	}
}

// TestStager_RefusesWhatBreaksTheSchema_O4: each format, the field named and no value.
func TestStager_RefusesWhatBreaksTheSchema_O4(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for messageType, want := range map[string]string{
		"test.booking.confirmed": "field data.price: missing", "test.payment.captured": "field data.surprise: not in the schema", "test.seat.assigned": "field data.surprise: not in the schema",
	} {
		err := f.stage.Check(events.Message{Type: messageType, Data: map[string]any{"id": "x", "n": 1, "at": "2026-11-30T12:00:00Z", "surprise": "secret"}})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want it to say %q", messageType, err, want)
		}
	}
	if _, err := outbox.NewStager(outbox.Config{Catalog: f.cat, Producer: "tester", Instance: "i", Env: "test", Keys: secret{}}); err == nil || !strings.Contains(err.Error(), "codec: missing, and message type test.booking.confirmed v1") {
		t.Errorf("a stager without codec: %v", err)
	}
	if _, err := inbox.New(f.kafka, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Concurrency: 1, Keys: secret{}}, inbox.Route{Types: []string{"test.booking.confirmed"}, Handler: new(got).handle}); err == nil || !strings.Contains(err.Error(), "codec: missing") {
		t.Errorf("an inbox without codec: %v", err)
	}
	if _, err := f.consumer.Encode("test.seat.assigned", 1, []byte(`{"id":"x","n":1}`)); err == nil || !strings.Contains(err.Error(), "was not registered") {
		t.Errorf("a codec that registered nothing: %v", err)
	}
}

// TestRegistryDown_E5: staging, relaying and reading of known ids go on; what
// names an unknown one waits, loses no attempt, keeps its key's order and is handled when the registry is back.
func TestRegistryDown_E5(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.producerLine.cut.Store(true)
	f.relay()
	var g got
	var retried atomic.Int64
	f.consume(g.handle, func(c *inbox.Config) {
		c.Hooks.Retrying = func(messageType string, _ int, _ time.Duration, err error) {
			if messageType == "test.payment.captured" && errors.Is(err, events.ErrSchemaUnavailable) {
				retried.Add(1)
			}
		}
	})
	seat := func(key string, n int) events.Message {
		return events.Message{Type: "test.seat.assigned", BusinessKey: key, Data: booking{ID: key, N: int64(n)}}
	}
	f.commit(events.Origin{OperationID: "op-0", BusinessKey: "B"}, seat("known", 1)) // the consumer meets this id
	f.eventually("the first", func() bool { return len(g.all()) == 1 })
	f.consumerLine.cut.Store(true)
	for n := 1; n <= 3; n++ {
		f.commit(events.Origin{OperationID: fmt.Sprint("op-", n), BusinessKey: "B"}, events.Message{Type: "test.payment.captured", BusinessKey: "new", Data: booking{ID: "new", N: int64(n)}}, seat("known", n+1))
	}
	f.eventually("what names known ids", func() bool { return len(g.all()) == 4 })
	f.eventually("more tries than the catalog allows attempts", func() bool { return retried.Load() > 4 })
	if n := f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE attempts = 0 AND type = 'test.payment.captured'`); n != 3 || len(f.dead()) != 0 {
		t.Errorf("%d messages wait without an attempt and %d are dead, want 3 and 0", n, len(f.dead()))
	}
	f.consumerLine.cut.Store(false)
	f.eventually("the rest", func() bool { return len(g.all()) == 7 })
	next := int64(1)
	for _, m := range g.all() {
		var d booking
		if err := m.Decode(&d); err != nil {
			t.Fatal(err)
		}
		if d.ID == "new" {
			if d.N != next || m.Attempt != 1 {
				t.Errorf("message %d came at attempt %d, want %d at 1", d.N, m.Attempt, next)
			}
			next++
		}
	}
}

// TestPoison_EveryKindIsSetAside_E8: dead with its reason and its bytes, at once
// or after the schedule, while another key goes on.
func TestPoison_EveryKindIsSetAside_E8(t *testing.T) {
	t.Parallel()
	f := setup(t)
	frame := func(messageType string, data string) []byte {
		body, err := f.producer.Encode(messageType, 1, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	const avro, proto = "test.booking.confirmed", "test.payment.captured"
	seat := frame("test.seat.assigned", `{"id":"x","n":1}`)
	make1 := frame("test.booking.confirmed", `{"id":"x","n":1,"price":"1","at":0}`)
	paid := frame(proto, `{"id":"x"}`)
	cases := map[string]struct {
		record events.Record
		reason string
		words  string
	}{
		"id of another format":  {foreign(avro, "p1", seat), inbox.ReasonSchema, "is of format json, want avro"},
		"id of another message": {foreign(proto, "p2", frame("test.account.locked", `{"id":"x"}`)), inbox.ReasonSchema, "has no message test.v1.PaymentCaptured"},
		"unknown id":            {foreign(avro, "p3", []byte{0, 0x7f, 0xff, 0xff, 0xf0, 1, 2}), inbox.ReasonSchemaID, "unknown"},
		"short frame":           {foreign(avro, "p4", []byte{0, 1}), inbox.ReasonSchema, "no frame"},
		"cut off":               {foreign(avro, "p5", make1[:len(make1)-3]), inbox.ReasonSchema, "is no record of schema test.v1.BookingConfirmed"},
		"left over":             {foreign(avro, "p6", append(bytes.Clone(make1), 9, 9)), inbox.ReasonSchema, "left over"},
		"index of another":      {foreign(proto, "p7", append(bytes.Clone(paid[:5]), 0)), inbox.ReasonSchema, "frame names message [0]"},
		"huge index":            {foreign(proto, "p8", append(bytes.Clone(paid[:5]), 0xfe, 0xff, 0xff, 0xff, 0x0f)), inbox.ReasonSchema, "no message index"},
		"no message":            {foreign(proto, "p9", append(bytes.Clone(paid), 0xff)), inbox.ReasonSchema, "is no message test.v1.PaymentCaptured"},
		"not JSON":              {foreign("test.seat.assigned", "p10", append(bytes.Clone(seat[:5]), "{secret"...)), inbox.ReasonSchema, "record is no JSON"},
		"no object":             {foreign("test.seat.assigned", "p11", append(bytes.Clone(seat[:5]), "[1]"...)), inbox.ReasonSchema, "record is no object"},
		"no headers":            {events.Record{Topic: events.Topic(avro, 1), Key: "p12", Body: make1}, inbox.ReasonEnvelope, "event_id"},
		"neither":               {foreign(avro, "p13", []byte("\x01garbage")), inbox.ReasonEnvelope, "message body"},
	}
	for _, c := range cases {
		f.publish(c.record)
	}
	f.publish(foreign(avro, "well", make1))
	var g got
	f.consume(g.handle)
	f.eventually("the well one", func() bool { return len(g.all()) == 1 })
	f.eventually("all poison set aside", func() bool { return len(f.dead()) == len(cases) })
	for _, d := range f.dead() {
		for name, c := range cases {
			if c.record.Key != d.BusinessKey {
				continue
			}
			body, err := d.Clear(secret{}) // bodies of unknown types rest encrypted as soon as any class is
			if err != nil {
				t.Fatal(err)
			}
			if d.Reason != c.reason || !strings.Contains(d.Error, c.words) || !bytes.Equal(body, c.record.Body) || d.State != "dead" || strings.Contains(d.Error, "secret") {
				t.Errorf("%s: dead as %s: %s; want %s: %s, with its bytes", name, d.Reason, d.Error, c.reason, c.words)
			}
			attempts := 1
			if c.reason == inbox.ReasonSchemaID {
				attempts = 4 // the catalog's schedule
			}
			if d.Attempts != attempts {
				t.Errorf("%s: %d attempts, want %d", name, d.Attempts, attempts)
			}
		}
	}
	if d := g.all()[0]; d.MessageKind != events.KindEvent || d.Metadata.BusinessKey != "well" {
		t.Errorf("a record of another make: %+v", d.Envelope)
	}
}

// TestDeadLetter_FramedIsEditedAndRedriven_E10: a dead letter of a binary format
// is mended as JSON, checked by its own schema, and handled.
func TestDeadLetter_FramedIsEditedAndRedriven_E10(t *testing.T) {
	t.Parallel()
	f := setup(t)
	desk, err := deadletter.New(deadletter.Config{DB: f.pool, Schemas: f.producer})
	if err != nil {
		t.Fatal(err)
	}
	var g got
	f.consume(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		var d booking
		if err := m.Decode(&d); err != nil {
			return err
		}
		if d.N == 0 {
			return outcome.Fatalf("zero", "n is zero")
		}
		return g.handle(ctx, tx, m)
	})
	body, err := f.producer.Encode("test.payment.captured", 1, []byte(`{"id":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	f.publish(foreign("test.payment.captured", "K", body))
	f.eventually("the dead letter", func() bool { return len(f.dead()) == 1 })
	edit := deadletter.EditRequest{Why: deadletter.Why{Actor: "ada", Reason: "mend", RootCause: "zero"}, ID: f.dead()[0].ID, Data: []byte(`{"id":"x","surprise":1}`)}
	if _, err := desk.Edit(f.ctx, edit); err == nil || !strings.Contains(err.Error(), "data.surprise: not in the schema") {
		t.Errorf("data that breaks the schema: %v", err)
	}
	edit.Data = []byte(`{"id":"x","n":5}`)
	res, err := desk.Edit(f.ctx, edit)
	if err != nil {
		t.Fatal(err)
	}
	f.eventually("the mended message", func() bool { return len(g.all()) == 1 })
	var d booking
	if m := g.all()[0]; m.Decode(&d) != nil || d.N != 5 || m.MessageID != res.NewMessageID || m.Metadata.Corrects != res.MessageID {
		t.Errorf("got %+v with %s", m.Envelope, m.Data)
	}
}

// TestUnknownID_KnownInTime_E5: an id that the registry comes to know before the last attempt is read.
func TestUnknownID_KnownInTime_E5(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.cat = parse(t, strings.ReplaceAll(catalogYAML, "retry: [50ms, 50ms, 50ms]", "retry: [1100ms, 1100ms, 1100ms, 1100ms, 1100ms]"))
	f.consumerLine.blind.Store(true)
	var g got
	f.consume(g.handle, func(c *inbox.Config) {
		c.Hooks.Retrying = func(_ string, attempt int, _ time.Duration, err error) {
			if errors.Is(err, events.ErrSchemaUnknown) && attempt == 1 {
				f.consumerLine.blind.Store(false)
			}
		}
	})
	body, err := f.producer.Encode("test.booking.confirmed", 1, []byte(`{"id":"x","n":1,"price":"1","at":0}`))
	if err != nil {
		t.Fatal(err)
	}
	f.publish(foreign("test.booking.confirmed", "early", body))
	f.eventually("the message", func() bool { return len(g.all()) == 1 })
	if m := g.all()[0]; m.Attempt < 2 || len(f.dead()) > 0 {
		t.Errorf("handled at attempt %d, want a later one than the first, which counted", m.Attempt)
	}
}

// TestNew_Start_E5: what a start needs of the registry.
func TestNew_Start_E5(t *testing.T) {
	t.Parallel()
	f := setup(t)
	cache := t.TempDir()
	start := func(cut, lookUp bool, cache string, cat *events.Catalog) (*codec.Codec, error) {
		asks, l := f.asker(cache)
		l.cut.Store(cut)
		return codec.New(f.ctx, codec.Config{Catalog: cat, Registry: asks, Producer: "tester", LookUp: lookUp})
	}
	if _, err := start(true, false, "", f.cat); !errors.Is(err, events.ErrSchemaUnavailable) {
		t.Errorf("start while the registry is down: %v", err)
	}
	first, err := start(false, true, cache, f.cat)
	if err != nil {
		t.Fatal(err)
	}
	again, err := start(true, false, cache, f.cat)
	if err != nil {
		t.Fatalf("start while the registry is down, with a cache: %v", err)
	}
	data := []byte(`{"id":"x","n":1,"price":"1","at":0}`)
	a, _ := first.Encode("test.booking.confirmed", 1, data)
	b, err := again.Encode("test.booking.confirmed", 1, data)
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("%v: %x and %x", err, a, b)
	}
	if got, err := again.Decode(f.ctx, "test.booking.confirmed", 1, a); err != nil || !strings.Contains(string(got), `"price":"1.00"`) {
		t.Errorf("got %s, %v", got, err)
	}
	other := parse(t, strings.ReplaceAll(catalogYAML, "name: BookingConfirmed", "name: Never"+strings.ReplaceAll(events.NewID(), "-", "")))
	if _, err := start(false, true, "", other); !errors.Is(err, events.ErrSchemaUnknown) || !strings.Contains(err.Error(), "test.booking.confirmed v1") {
		t.Errorf("look-up of a schema that nobody registered: %v", err)
	}
	if _, err := codec.New(context.Background(), codec.Config{Catalog: f.cat}); err == nil || !strings.Contains(err.Error(), "registry: missing") {
		t.Errorf("no registry: %v", err)
	}
	if _, err := codec.Compile(parse(t, strings.Replace(catalogYAML, "name: id, type: string", "name: id, type: strong", 1))); err == nil || !strings.Contains(err.Error(), "test.booking.confirmed v1: schema") {
		t.Errorf("a wrong schema: %v", err)
	}
	if _, err := registry.New(registry.Config{URLs: []string{"ftp://x"}, Tries: 99, Token: "a", Username: "b"}); err == nil || !strings.Contains(err.Error(), "tries 99") || !strings.Contains(err.Error(), "urls") {
		t.Errorf("a wrong configuration: %v", err)
	}
}

// Framed messages that wait beside each other go to a batch handler together, read by their schema, in order.
func TestFlow_BatchesOfFramedMessages_E5(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const n = 60
	for i := range n {
		f.commit(events.Origin{OperationID: fmt.Sprintf("op-%d", i), BusinessKey: fmt.Sprintf("B-%d", i%2), CorrelationID: "c"},
			events.Message{Type: "test.booking.confirmed", Data: booking{ID: "x", N: int64(i), Price: "1.00", At: time.Now().UTC().Truncate(time.Microsecond)}})
	}
	stop := f.relay()
	f.eventually("all at the broker", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	stop()
	var most atomic.Int64
	var g got
	batch := func(ctx context.Context, tx *outbox.Tx, list []events.Received) error {
		most.Store(max(most.Load(), int64(len(list))))
		for _, m := range list {
			if err := g.handle(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	}
	i, err := inbox.New(f.kafka, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Codec: f.consumer, Keys: secret{}, Concurrency: 1, MaxInFlight: 100},
		inbox.Route{Types: []string{"test.booking.*"}, Batch: batch})
	if err != nil {
		t.Fatal(err)
	}
	f.background(i.Run)
	f.eventually("all messages", func() bool { return len(g.all()) == n })
	last := map[string]int64{"B-0": -1, "B-1": -1}
	for _, m := range g.all() {
		var d booking
		if err := m.Decode(&d); err != nil || d.N <= last[m.Metadata.BusinessKey] {
			t.Errorf("key %s: %d after %d, %v", m.Metadata.BusinessKey, d.N, last[m.Metadata.BusinessKey], err)
		}
		last[m.Metadata.BusinessKey] = d.N
	}
	if most.Load() < 2 {
		t.Errorf("the largest batch has %d messages", most.Load())
	}
}
