package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/events"
)

func sample() events.Envelope {
	return events.Envelope{
		MessageID: "0b6a3d1e-0000-8000-8000-000000000001", MessageKind: events.KindEvent, MessageType: "tour.booking.confirmed", MessageVersion: 1,
		Producer: "tour-workers", ProducerInstance: "tour-workers-1", TraceID: "0af7651916cd43dd8448eb211c80319c",
		Actor: events.Actor{UserID: "u", ServiceClient: "partner"}, Data: json.RawMessage(`{"html":"<b>","n":12345678901234567890}`),
		Metadata: events.Metadata{BusinessKey: "B-1", CorrelationID: "c", OperationID: "op-1", ProcessInstanceID: "225", EventClass: events.ClassDomain, HTTPIdempotencyKey: "k"},
	}
}

// The golden body: consumers in other languages rely on these names.
func TestEnvelope_Golden(t *testing.T) {
	t.Parallel()
	rendered, err := sample().Render()
	if err != nil {
		t.Fatal(err)
	}
	body, err := events.Finalise(rendered, time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.FixedZone("x", 3600)), 7)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"occurredAt":"2026-11-30T11:00:00.123456Z","messageId":"0b6a3d1e-0000-8000-8000-000000000001","messageKind":"event",` +
		`"messageType":"tour.booking.confirmed","messageVersion":1,"producer":"tour-workers","producerInstance":"tour-workers-1",` +
		`"traceId":"0af7651916cd43dd8448eb211c80319c","actor":{"userId":"u","serviceClient":"partner"},"data":{"html":"<b>","n":12345678901234567890},` +
		`"metadata":{"businessKey":"B-1","correlationId":"c","operationId":"op-1","processInstanceId":"225","eventClass":"domain","httpIdempotencyKey":"k","sequence":7}}`
	if diff := cmp.Diff(want, string(body)); diff != "" {
		t.Error(diff)
	}
	got, err := events.ParseEnvelope(body)
	if err != nil {
		t.Fatal(err)
	}
	back := sample()
	back.OccurredAt, back.Metadata.Sequence = time.Date(2026, 11, 30, 11, 0, 0, 123456000, time.UTC), 7
	if diff := cmp.Diff(back, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseEnvelope_NamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{}`:           "messageId",
		`{"a"`:         "unexpected end",
		"{\"a\":\xff}": "UTF-8",
		`[]`:           "cannot unmarshal",
		`{"messageId":"0b6a3d1e-0000-8000-8000-000000000001","messageKind":"event","messageType":"a","messageVersion":0,"metadata":{}}`: "messageVersion (want 1 or more), metadata.businessKey",
	} {
		if _, err := events.ParseEnvelope([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", body, err, want)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	rendered, _ := sample().Render()
	body, _ := events.Finalise(rendered, time.Now(), 1)
	f.Add(body)
	f.Add([]byte(`{"messageId":1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := events.ParseEnvelope(body)
		if err != nil {
			return
		}
		// What parses can be staged again and finalised to the same facts.
		if len(e.Data) == 0 {
			e.Data = json.RawMessage(`{}`)
		}
		rendered, err := e.Render()
		if err != nil {
			return // data that is no JSON cannot have parsed, but times out of range do
		}
		again, err := events.Finalise(rendered, time.Unix(0, 0), 3)
		if err != nil {
			t.Fatal(err)
		}
		back, err := events.ParseEnvelope(again)
		if err != nil || back.Metadata.Sequence != 3 || back.MessageID != e.MessageID || back.Metadata.BusinessKey != e.Metadata.BusinessKey {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func TestTraceID(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "0af7651916cd43dd8448eb211c80319c", "": "", "00-short-b7ad6b7169203331-01": "", "junk": "",
	} {
		if got := events.TraceID(in); got != want {
			t.Errorf("TraceID(%q) = %q", in, got)
		}
	}
}
