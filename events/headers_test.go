package events_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/events"
)

func framed(headers ...string) events.Record {
	r := events.Record{Key: "K", Body: []byte{0, 0, 0, 0, 1, 2}}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Headers = append(r.Headers, events.Header{Name: headers[i], Value: headers[i+1]})
	}
	return r
}

const headerID = "0b6a3d1e-0000-8000-8000-000000000001"

func TestParseRecord_EnvelopeFromHeaders_Z11(t *testing.T) {
	t.Parallel()
	want := events.Envelope{
		MessageID: headerID, MessageKind: events.KindCommand, MessageType: "test.thing.make.requested", MessageVersion: 2,
		OccurredAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Producer: "p", ProducerInstance: "p-1", TraceID: "t",
		Actor: events.Actor{UserID: "u", Context: "desk", ServiceClient: "s"},
		Metadata: events.Metadata{
			BusinessKey: "B", CorrelationID: "c", OperationID: "o", ProcessInstanceID: "7", EventClass: events.ClassSaga,
			HTTPIdempotencyKey: "h", Corrects: headerID, Replay: true, Sequence: 9,
		},
	}
	r := framed(events.HeaderEventID, headerID, events.HeaderEventType, want.MessageType, events.HeaderEventVersion, "2", events.HeaderBusinessKey, "B",
		events.HeaderOccurredAt, "2026-11-30T12:00:00.000000Z", events.HeaderProducer, "p", events.HeaderTraceID, "t", events.HeaderCorrelationID, "c",
		events.HeaderOperationID, "o", events.HeaderProcessInstanceID, "7", events.HeaderSequence, "9")
	r.Headers = append(r.Headers, want.RestHeaders(events.FormatAvro, "key")...)
	got, err := events.ParseRecord(r)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if r.Header(events.HeaderContentType) != "application/avro" || r.Header(events.HeaderIdempotencyKey) != "key" {
		t.Errorf("headers %v", r.Headers)
	}
	least, err := events.ParseRecord(framed(events.HeaderEventID, headerID, events.HeaderEventType, "x", events.HeaderEventVersion, "1"))
	if err != nil || least.MessageKind != events.KindEvent || least.Metadata.BusinessKey != "K" {
		t.Errorf("the least headers: %+v, %v", least, err)
	}
}

func TestParseRecord_NamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	ok := []string{events.HeaderEventID, headerID, events.HeaderEventType, "x", events.HeaderEventVersion, "1"}
	for want, headers := range map[string][]string{
		"event_id (want a UUID)":         {},
		"event_version (want a number)":  {events.HeaderEventVersion, "one"},
		"event_type":                     {events.HeaderEventID, headerID, events.HeaderEventVersion, "1"},
		"message_kind (want":             append([]string{events.HeaderMessageKind, "wish"}, ok...),
		"sequence (want a number)":       append([]string{events.HeaderSequence, "next"}, ok...),
		"occurred_at (want RFC 3339)":    append([]string{events.HeaderOccurredAt, "noon"}, ok...),
		"actor_user_id (want UTF-8)":     append([]string{events.HeaderActorUserID, "\xff"}, ok...),
		"event_version (want 1 or more)": {events.HeaderEventID, headerID, events.HeaderEventType, "x", events.HeaderEventVersion, "0"},
	} {
		if _, err := events.ParseRecord(framed(headers...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestFinalise_LeavesFramedBodiesAlone(t *testing.T) {
	t.Parallel()
	body := []byte{0, 0, 0, 0, 1, '{', '}', '}'}
	if got, err := events.Finalise(body, time.Now(), 3); err != nil || string(got) != string(body) {
		t.Errorf("got %x, %v", got, err)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1}, "K", headerID, "1", "9", "2026-11-30T12:00:00Z")
	f.Add([]byte(`{}`), "", "", "", "", "")
	f.Fuzz(func(t *testing.T, body []byte, key, id, version, sequence, at string) {
		r := framed(events.HeaderEventID, id, events.HeaderEventType, "x", events.HeaderEventVersion, version, events.HeaderSequence, sequence, events.HeaderOccurredAt, at)
		r.Body, r.Key = body, key
		if e, err := events.ParseRecord(r); err == nil && (!events.ValidID(e.MessageID) || e.MessageVersion < 1 || e.Metadata.BusinessKey == "") {
			t.Errorf("taken: %+v", e)
		}
	})
}

func TestParseCatalog_Formats_E5(t *testing.T) {
	t.Parallel()
	entry := func(fields string) string {
		return "domains: [test]\nmessages:\n  - {type: test.thing.created, class: domain, owner: test, producers: [p], " + fields + "}"
	}
	for fields, want := range map[string]struct{ format, wire, fault string }{
		"schema: {type: object}":                       {"json", "envelope", ""},
		"schema: {type: object}, wire: confluent":      {"json", "confluent", ""},
		"schema: {type: record}, format: avro":         {"avro", "confluent", ""},
		"schema: text, format: protobuf, message: a.B": {"protobuf", "confluent", ""},
		"schema: text, format: thrift":                 {"", "", `format "thrift", want json, avro or protobuf`},
		"schema: text, format: avro, wire: envelope":   {"", "", `wire "envelope", want confluent`},
		"wire: confluent":                              {"", "", "schema: missing"},
		"format: avro":                                 {"", "", "schema: missing"},
		"schema: {type: object}, message: a.B":         {"", "", `message "a.B", want none`},
	} {
		c, err := events.ParseCatalog([]byte(entry(fields)))
		if want.fault != "" {
			if err == nil || !strings.Contains(err.Error(), want.fault) || !strings.Contains(err.Error(), "test.thing.created") {
				t.Errorf("%s: got %v, want it to say %q", fields, err, want.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		if e, _ := c.Entry("test.thing.created", 1); string(e.Format) != want.format || string(e.Wire) != want.wire {
			t.Errorf("%s: got %s, %s", fields, e.Format, e.Wire)
		}
	}
}
