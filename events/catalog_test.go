package events_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/events"
)

const good = `
domains: [tour, payment]
services: {tour-workers: tour, payment-workers: payment}
messages:
  - type: tour.booking.confirmed
    class: domain
    owner: tour
    producers: [tour-workers, payment-workers]
    consumers: [booking-view]
  - type: tour.booking.confirmed
    version: 2
    class: domain
    owner: tour
    producers: [payment-workers]
    exceptions: [{producer: payment-workers, reason: migration, approved_by: board}]
  - type: payment.money.captured
    class: domain
    owner: payment
    financial: true
    producers: [payment-workers]
    retry: [1s, 5s]
    partitions: 16
  - type: platform.saga.started
    class: saga
    owner: platform
    producers: ["*"]
    topic: platform.saga.progress.v1
  - type: platform.saga.completed
    class: saga
    owner: platform
    producers: ["*"]
    topic: platform.saga.progress.v1
  - type: tour.booking.cancel.requested
    kind: command
    class: domain
    owner: tour
    producers: [payment-workers]
    idempotency_key: data.idempotencyKey
`

func parse(t *testing.T, text string) *events.Catalog {
	t.Helper()
	c, err := events.ParseCatalog([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The retry schedule of spec E7 is written out: it is a promise to consumers.
func TestParseCatalog_Defaults(t *testing.T) {
	t.Parallel()
	c := parse(t, good)
	got, ok := c.Entry("tour.booking.confirmed", 0)
	want := events.Entry{
		Type: "tour.booking.confirmed", Version: 1, Kind: events.KindEvent, Class: events.ClassDomain, Owner: "tour",
		Producers: []string{"tour-workers", "payment-workers"}, Consumers: []string{"booking-view"}, PartitionKey: "businessKey", IdempotencyKey: events.DedupMessageID,
		RetentionDays: 365, PoisonedAfter: 7, Retry: []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour},
		DLQ: events.DefaultDLQ, Topic: "tour.booking.confirmed.v1", Partitions: 4, Compatibility: events.CompatibilityFull,
		Format: events.FormatJSON, Wire: events.WireEnvelope,
	}
	if !ok {
		t.Fatal("entry is missing")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	money, _ := c.Entry("payment.money.captured", 1)
	if money.RetentionDays < 7*365 || money.PoisonedAfter != 3 || !cmp.Equal(money.Retry, []time.Duration{time.Second, 5 * time.Second}) {
		t.Errorf("got %+v", money)
	}
	var topics []string
	for _, x := range c.Topics() {
		topics = append(topics, x.Name)
	}
	if diff := cmp.Diff([]string{"payment.money.captured.v1", "platform.saga.progress.v1", "tour.booking.cancel.requested.v1", "tour.booking.confirmed.v1", "tour.booking.confirmed.v2"}, topics); diff != "" {
		t.Error(diff)
	}
}

func TestCatalog_MayStage(t *testing.T) {
	t.Parallel()
	c := parse(t, good)
	for _, x := range []struct {
		typ      string
		version  int
		producer string
		want     string
	}{
		{"tour.booking.confirmed", 1, "tour-workers", ""},
		{"tour.booking.confirmed", 1, "payment-workers", "without a recorded exception"},
		{"tour.booking.confirmed", 2, "payment-workers", ""},
		{"tour.booking.confirmed", 1, "nobody", "not one of"},
		{"tour.booking.cancel.requested", 1, "payment-workers", ""},
		{"platform.saga.started", 1, "tour-workers", ""},
	} {
		e, _ := c.Entry(x.typ, x.version)
		err := c.MayStage(e, x.producer)
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s v%d by %s: got %v, want %q", x.typ, x.version, x.producer, err, x.want)
		}
	}
}

// Every mistake is named in one answer.
func TestParseCatalog_NamesAllMistakes(t *testing.T) {
	t.Parallel()
	_, err := events.ParseCatalog([]byte(`
domains: [Tour]
services: {x: nowhere}
messages:
  - {type: tour.booking.confirmed, class: gossip, owner: payment, producers: []}
  - {type: platform.a.done, version: 0, class: domain, owner: platform, producers: [a], partitions: 3, dlq: none, retry: [soon, 48h], partition_key: luck, idempotency_key: hope}
  - {type: platform.b.done, class: audit, owner: platform, producers: [a], retention_days: 30, poisoned_after: 99, topic: "no topic"}
  - {type: platform.b.done, class: audit, owner: platform, producers: [a], exceptions: [{producer: a}]}
  - {type: platform.c.do, class: domain, owner: platform, producers: [a]}
  - {kind: command}
`))
	for _, want := range []string{
		`"Tour"`, `"nowhere"`, `class "gossip"`, `owner "payment"`, "producers: none", `domain "tour" is not one of`, "version 0", "partitions 3", `dlq "none"`, `"soon"`, `"48h"`,
		`partition_key "luck"`, `idempotency_key "hope"`, "retention_days 30", "poisoned_after 99", `topic "no topic"`, "twice in the catalog", "approved_by", "past tense", "messages[5]",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant it to name %q", err, want)
		}
	}
	for text, want := range map[string]string{"": "empty", "domains: [a]\nx: 1": "field x not found", "domains: [a]": "messages: none", "a: [": "did not find", good + "\n---\na: 1": "more than one"} {
		if _, err := events.ParseCatalog([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: got %v, want %q", text, err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a := parse(t, good)
	b := parse(t, "domains: [hotel]\nmessages: [{type: hotel.room.held, class: domain, owner: hotel, producers: [h]}]")
	m, err := events.Merge(a, b)
	if err != nil || len(m.Entries()) != 7 || len(m.Domains()) != 4 {
		t.Fatalf("got %v, %v", m, err)
	}
	if got := m.Match("*.*.confirmed", "hotel.*"); len(got) != 3 {
		t.Errorf("matched %d entries, want 3", len(got))
	}
	if _, err := events.Merge(a, parse(t, good)); err == nil || !strings.Contains(err.Error(), "single owner") {
		t.Errorf("two owners: got %v", err)
	}
	c := parse(t, "messages: [{type: platform.saga.failed, class: saga, owner: platform, producers: [a], topic: platform.saga.progress.v1, partitions: 8}]")
	if _, err := events.Merge(a, c); err == nil || !strings.Contains(err.Error(), "8 partitions") && !strings.Contains(err.Error(), "8 for") {
		t.Errorf("two partition counts: got %v", err)
	}
}

func FuzzParseCatalog(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("messages: [{type: platform.a.done}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := events.ParseCatalog(text)
		if (c == nil) == (err == nil) {
			t.Fatalf("catalog %v, error %v", c, err)
		}
	})
}

const classed = `
domains: [test]
encryption: {compliance: at_rest, saga: end_to_end}
messages:
  - {type: test.saga.started, class: saga, owner: test, producers: [a], topic: test.saga.progress.v1}
  - {type: test.saga.completed, class: saga, owner: test, producers: [a], topic: test.saga.progress.v1}
  - {type: test.step.started, class: domain, owner: test, producers: [a], order_scope: test.steps}
  - {type: test.step.completed, class: audit, owner: test, producers: [a], order_scope: test.steps}
  - {type: test.thing.created, class: domain, owner: test, producers: [a]}
  - {type: test.contract.signed, class: compliance, owner: test, producers: [a]}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: [a]}
`

// What a class means for an entry: strict order, encryption, and what a command is recognised by (spec D2, E4).
func TestParseCatalog_Classes_E4(t *testing.T) {
	t.Parallel()
	c := parse(t, classed)
	for typ, want := range map[string]events.Entry{
		"test.saga.started":         {OrderScope: "test.saga.progress.v1", Encryption: events.EncryptEndToEnd, IdempotencyKey: events.DedupMessageID},
		"test.step.started":         {OrderScope: "test.steps", IdempotencyKey: events.DedupMessageID},
		"test.thing.created":        {IdempotencyKey: events.DedupMessageID},
		"test.contract.signed":      {Encryption: events.EncryptAtRest, IdempotencyKey: events.DedupMessageID},
		"test.thing.make.requested": {IdempotencyKey: events.DedupData},
	} {
		e, _ := c.Entry(typ, 1)
		if e.OrderScope != want.OrderScope || e.Encryption != want.Encryption || e.IdempotencyKey != want.IdempotencyKey {
			t.Errorf("%s: scope %q, encryption %q, idempotency key %q", typ, e.OrderScope, e.Encryption, e.IdempotencyKey)
		}
	}
	if !c.Encrypts() || len(c.Scope("test.steps")) != 2 || len(c.Scope("")) != 0 || parse(t, good).Encrypts() {
		t.Error("scopes or encryption of the catalog are wrong")
	}
	for text, want := range map[string]string{
		`messages: [{type: platform.a.done, class: analytical, owner: platform, producers: [a], order_scope: topic}]`:                                                                                      "class analytical promises no order",
		`messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a], order_scope: "a b"}]`:                                                                                          `order_scope "a b"`,
		`messages: [{type: platform.a.make.requested, kind: command, class: domain, owner: platform, producers: [a], idempotency_key: messageId}]`:                                                         "of a command",
		`{encryption: {gossip: at_rest, audit: rot13}, messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a]}]}`:                                                               `class "gossip"`,
		`{encryption: {audit: rot13}, messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a]}]}`:                                                                                `"rot13"`,
		`messages: [{type: platform.a.done, class: saga, owner: platform, producers: [a], topic: t}, {type: platform.b.done, class: saga, owner: platform, producers: [a], topic: t, order_scope: other}]`: "order_scope",
	} {
		if _, err := events.ParseCatalog([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %q", text, err, want)
		}
	}
	other := parse(t, "{encryption: {saga: at_rest}, messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a]}]}")
	if _, err := events.Merge(c, other); err == nil || !strings.Contains(err.Error(), "encryption of class saga") {
		t.Errorf("two ways of encryption: got %v", err)
	}
	m, err := events.Merge(parse(t, "messages: [{type: platform.b.done, class: compliance, owner: platform, producers: [a]}]"), c)
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := m.Entry("platform.b.done", 1); e.Encryption != events.EncryptAtRest {
		t.Errorf("an entry of another catalog of the same platform is kept %q", e.Encryption)
	}
}

// An entry says who consumes it, its schema, what the operator does and whether personal data is agreed (spec E3, E12).
func TestCatalog_Complete_E3(t *testing.T) {
	t.Parallel()
	err := parse(t, `messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a]}]`).Complete()
	for _, want := range []string{"consumers", "schema", "operator_action", "pii", "json_schema_approved"} {
		if err == nil || !strings.Contains(err.Error(), "platform.a.done v1: "+want+": missing") {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if err := parse(t, `messages: [{type: platform.a.done, class: domain, owner: platform, producers: [a], consumers: [b], schema: {type: object}, operator_action: redrive, pii: none, json_schema_approved: {who: ada, why: trial}}]`).Complete(); err != nil {
		t.Error(err)
	}
}

// A JSON Schema is agreed to by somebody (spec Z11), a version that has a successor says how long it is served (spec E5), and queue
// families are named as message types are (spec E3).
func TestCatalog_Approval_Served_Queues_E3_E5(t *testing.T) {
	t.Parallel()
	entry := "type: platform.a.done, class: domain, owner: platform, producers: [a], consumers: [b], schema: {type: object}, operator_action: redrive, pii: none"
	queue := "queues: [{name: quotes, owner: platform, producers: [a], consumers: [b], retry: [1s], operator_action: redrive, pii: none}]\n"
	head := "json_schema_approved: {who: ada, why: trial}\n" + queue + "messages:\n"
	c := parse(t, head+"  - {"+entry+", served_until: 2027-06-30}\n  - {"+entry+", version: 2, json_schema_approved: {who: bob, why: speed}}\n")
	if err := c.Complete(); err != nil {
		t.Error(err)
	}
	e, _ := c.Entry("platform.a.done", 1)
	if e.JSONSchemaApproved.Who != "ada" || e.ServedUntil != time.Date(2027, 6, 30, 0, 0, 0, 0, time.UTC) || e.Compatibility != events.CompatibilityFull {
		t.Errorf("got %+v", e)
	}
	if e, _ := c.Entry("platform.a.done", 2); e.JSONSchemaApproved.Who != "bob" {
		t.Errorf("version 2 was agreed to by %q", e.JSONSchemaApproved.Who)
	}
	if q, ok := c.Queue("quotes"); !ok || q.PoisonedAfter != 2 || q.Class != events.ClassOperational {
		t.Errorf("queue %+v, %v", q, ok)
	}
	for text, want := range map[string]string{
		"  - {" + entry + "}\n  - {" + entry + ", version: 2}\n": "v1: served_until: missing, want the day until which it is served beside version 2",
	} {
		if err := parse(t, head+text).Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for text, want := range map[string]string{
		head + "  - {" + entry + ", served_until: soon}\n":                                            `served_until "soon"`,
		head + "  - {" + entry + ", compatibility: none}\n":                                           `compatibility "none", want full`,
		head + "  - {" + entry + ", json_schema_approved: {who: ada}}\n":                              "json_schema_approved: want who and why",
		"messages: [{" + entry + ", format: avro, json_schema_approved: {who: ada, why: x}}]":         "json_schema_approved: want none with format avro",
		"queues: [{name: Quotes, class: odd, owner: nobody, retry: [1y], poisoned_after: 9}]":         `queue Quotes: name "Quotes"`,
		"queues: [{name: q, owner: platform, producers: [a], consumers: [b], retry: [1y]}]":           `retry: "1y"`,
		"queues: [{name: q, owner: tour, producers: [a], consumers: [b]}]":                            `owner "tour", want a domain`,
		"queues: [{name: q, owner: platform}]":                                                        "consumers: none",
		queue[:len(queue)-2] + ", {name: quotes, owner: platform, producers: [a], consumers: [b]}]\n": "queue quotes: twice",
	} {
		if _, err := events.ParseCatalog([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.70s: got %v, want %q", text, err, want)
		}
	}
	if _, err := events.Merge(parse(t, queue), parse(t, queue)); err == nil || !strings.Contains(err.Error(), "queue quotes: in two catalogs") {
		t.Errorf("one queue in two catalogs: %v", err)
	}
}
