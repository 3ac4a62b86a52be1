package compat_test

import (
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/compat"
)

const before = `
domains: [test]
messages:
  - type: test.thing.created
    class: domain
    owner: test
    producers: [tester]
    partitions: 4
    retry: [1s, 5s]
    schema:
      type: object
      required: [id]
      properties:
        id: {type: string}
        price: {type: object, properties: {amount: {type: integer, minimum: 0}}}
        lines: {type: array, items: {type: object, properties: {sort: {enum: [a, b]}}}}
  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester]}
`

func parse(t *testing.T, text string) *events.Catalog {
	t.Helper()
	c, err := events.ParseCatalog([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

func TestCompare(t *testing.T) {
	t.Parallel()
	signed := "signed_off: [{type: test.thing.created, change: partitions, to: \"8\", reason: load, approved_by: ada}]\n"
	gone := `  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester]}` + "\n"
	for name, c := range map[string]struct {
		old, new, tail string
		want           []string
	}{
		"nothing":               {"", "", "", nil},
		"partitions":            {"partitions: 4", "partitions: 8", "", []string{"created v1: partitions: was 4, is 8", "signed_off"}},
		"signed partitions":     {"partitions: 4", "partitions: 8", signed, nil},
		"signed for another":    {"partitions: 4", "partitions: 16", signed, []string{"partitions: was 4, is 16"}},
		"retry":                 {"retry: [1s, 5s]", "retry: [1s, 6s]", "", []string{"retry: was 1s, 5s, is 1s, 6s"}},
		"retry gone":            {"    retry: [1s, 5s]\n", "", "", []string{"retry: was 1s, 5s", "poisoned_after: was 3, is 7"}},
		"dlq":                   {"partitions: 4", "partitions: 4\n    dlq: other.dlq.v1", "", []string{"dlq: was platform.dlq.v1, is other.dlq.v1"}},
		"topic":                 {"partitions: 4", "partitions: 4\n    topic: things.v1", "", []string{"topic: was test.thing.created.v1, is things.v1"}},
		"key":                   {"partitions: 4", "partitions: 4\n    idempotency_key: operationId", "", []string{"idempotency_key: was messageId"}},
		"class":                 {"    class: domain\n", "    class: operational\n", "", []string{"class: was domain"}},
		"type removed":          {gone, "", "", []string{"renamed v1: removed"}},
		"removal signed":        {gone, "", "signed_off: [{type: test.thing.renamed, change: removed, reason: unused, approved_by: ada}]\n", nil},
		"optional property":     {"id: {type: string}", "id: {type: string}\n        note: {type: string}", "", nil},
		"description":           {"id: {type: string}", "id: {type: string, description: of the thing}", "", nil},
		"property removed":      {"        id: {type: string}\n", "", "", []string{`schema of data.id: was {"type":"string"}, is nothing; add version 2`}},
		"property type":         {"id: {type: string}", "id: {type: integer}", "", []string{`schema of data.id type: was "string", is "integer"`}},
		"nested":                {"minimum: 0", "minimum: 1", "", []string{"schema of data.price.amount minimum: was 0, is 1"}},
		"enum in a list":        {"[a, b]", "[a, b, c]", "", []string{`data.lines[].sort enum`}},
		"enum in another order": {"[a, b]", "[b, a]", "", nil},
		"newly required":        {"required: [id]", "required: [id, price]", "", []string{"schema of data.price: was optional, is required"}},
		"no longer required":    {"required: [id]", "required: []", "", []string{"schema of data.id: was required, is optional"}},
		"new version":           {gone, gone + "  - {type: test.thing.renamed, version: 2, class: domain, owner: test, producers: [tester]}\n", "", nil},
		"first schema":          {"producers: [tester]}", "producers: [tester], schema: {type: object}}", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(before, c.old) {
				t.Fatalf("the catalog has no %q", c.old)
			}
			got := compat.Compare(parse(t, before), parse(t, strings.Replace(before, c.old, c.new, 1)+c.tail))
			var text strings.Builder
			for _, b := range got {
				text.WriteString(b.String() + "\n")
			}
			if (len(got) == 0) != (len(c.want) == 0) {
				t.Errorf("got %d breaks: %s", len(got), text.String())
			}
			for _, w := range c.want {
				if !strings.Contains(text.String(), w) {
					t.Errorf("got %s\nwant it to say %q", text.String(), w)
				}
			}
		})
	}
}

func TestCompare_SchemaCannotBeSignedOff(t *testing.T) {
	t.Parallel()
	after := strings.Replace(before, "id: {type: string}", "id: {type: integer}", 1) +
		"signed_off: [{type: test.thing.created, change: schema, to: \"\\\"integer\\\"\", reason: r, approved_by: a}]\n"
	if got := compat.Compare(parse(t, before), parse(t, after)); len(got) != 1 {
		t.Errorf("got %v, want one break", got)
	}
}

const formats = `
domains: [test]
messages:
  - type: test.trip.booked
    class: domain
    owner: test
    producers: [tester]
    format: avro
    schema: {type: record, name: A, fields: [{name: id, type: string}, {name: price, type: {type: record, name: P, fields: [{name: amount, type: long}]}}]}
  - type: test.trip.paid
    class: domain
    owner: test
    producers: [tester]
    format: protobuf
    message: A
    schema: |
      syntax = "proto3";
      message P { int64 amount = 1; }
      message A { string id = 1; P price = 2; reserved 9; }
  - {type: test.trip.seated, class: domain, owner: test, producers: [tester], wire: confluent, schema: {type: object, properties: {id: {type: string}}}}
`

// Each format by its own rules, the field named; a change of format or wire form is told as such.
func TestCompare_Formats_E5(t *testing.T) {
	t.Parallel()
	signed := "signed_off: [{type: test.trip.seated, change: wire, to: envelope, reason: r, approved_by: a}]\n"
	for name, c := range map[string]struct {
		old, new, tail string
		want           []string
	}{
		"nothing":              {"", "", "", nil},
		"avro field added":     {"{name: id, type: string}", "{name: id, type: string}, {name: note, type: string, default: ''}", "", nil},
		"avro no default":      {"{name: id, type: string}", "{name: id, type: string}, {name: note, type: string}", "", []string{"booked v1: schema of data.note", "add version 2"}},
		"avro field gone":      {"{name: id, type: string}, ", "", "", []string{"booked v1: schema of data.id: was string, is nothing"}},
		"avro nested type":     {"{name: amount, type: long}", "{name: amount, type: double}", "", []string{"booked v1: schema of data.price.amount: was long"}},
		"proto field added":    {"string id = 1;", "string id = 1; string note = 3;", "", nil},
		"proto type":           {"int64 amount = 1;", "int32 amount = 1;", "", []string{"paid v1: schema of data.price.amount: was int64, is int32", "add version 2"}},
		"proto number":         {"string id = 1;", "string id = 3;", "", []string{"paid v1: schema of data.id: was number 1, is number 3"}},
		"proto label":          {"string id = 1;", "repeated string id = 1;", "", []string{"data.id: was string, is repeated string"}},
		"proto field gone":     {"string id = 1;", "", "", []string{"data.id: was string = 1, is gone, and its number and name are not reserved"}},
		"proto gone, reserved": {"string id = 1;", "reserved 1; reserved \"id\";", "", nil},
		"proto reserved":       {"reserved 9;", "", "", []string{"was reserved 9 to 9, is not reserved"}},
		"proto message":        {"message: A", "message: P", "", []string{"schema of data message: was A, is P"}},
		"json property":        {"id: {type: string}}}}", "id: {type: integer}}}}", "", []string{"seated v1: schema of data.id type"}},
		"wire":                 {"wire: confluent, ", "", "", []string{"seated v1: wire: was confluent, is envelope", "signed_off"}},
		"wire signed":          {"wire: confluent, ", "", signed, nil},
		"format": {"    format: avro\n    schema: {type: record, name: A, fields: [{name: id, type: string}, {name: price, type: {type: record, name: P, fields: [{name: amount, type: long}]}}]}\n",
			"    schema: {type: object}\n", "", []string{"booked v1: format: was avro, is json", "booked v1: wire: was confluent, is envelope"}},
	} {
		if !strings.Contains(formats, c.old) {
			t.Fatalf("%s: the catalog has no %q", name, c.old)
		}
		var text strings.Builder
		for _, b := range compat.Compare(parse(t, formats), parse(t, strings.Replace(formats, c.old, c.new, 1)+c.tail)) {
			text.WriteString(b.String() + "\n")
		}
		if (text.Len() == 0) != (len(c.want) == 0) {
			t.Errorf("%s: got %s", name, text.String())
		}
		for _, w := range c.want {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%s: got %s\nwant it to say %q", name, text.String(), w)
			}
		}
	}
}

// A version is served until the day that the catalog declared: gone before, or a day that came nearer, must be signed off.
func TestCompare_ServedUntil_E5(t *testing.T) {
	t.Parallel()
	head := "domains: [test]\nmessages:\n  - {type: test.thing.made, class: domain, owner: test, producers: [tester]}\n"
	old := "  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester], served_until: 2027-06-30}\n"
	sooner, later := strings.Replace(old, "2027-06-30", "2027-01-31", 1), strings.Replace(old, "2027-06-30", "2028-01-31", 1)
	signed := "signed_off: [{type: test.thing.renamed, change: served_until, to: \"2027-01-31\", reason: nobody reads it, approved_by: ada}]\n"
	before, after := time.Date(2027, 6, 29, 23, 0, 0, 0, time.UTC), time.Date(2027, 6, 30, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now  string
		at   time.Time
		want string
	}{
		"gone before":    {"", before, "renamed v1: removed: was served until 2027-06-30"},
		"gone after":     {"", after, ""},
		"sooner":         {sooner, before, "renamed v1: served_until: was 2027-06-30, is 2027-01-31"},
		"sooner, signed": {sooner + signed, before, ""},
		"later":          {later, before, ""},
		"declared anew":  {old, before, ""},
	} {
		var got []string
		for _, b := range compat.CompareAt(parse(t, head+old), parse(t, head+c.now), c.at) {
			got = append(got, b.String())
		}
		if text := strings.Join(got, "\n"); (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
}

// Queue families of durable work are held to what the catalog said of them (spec E3, E5).
func TestCompare_Queues_E5(t *testing.T) {
	t.Parallel()
	old := "queues: [{name: quotes, owner: platform, producers: [a], consumers: [b], retry: [1s]}, {name: checks, owner: platform, producers: [a], consumers: [b]}]\n"
	now := strings.Replace(old, "retry: [1s]", "retry: [2s, 4s]", 1)
	now = now[:strings.Index(now, ", {name: checks")] + "]\n"
	var got []string
	for _, b := range compat.Compare(parse(t, old), parse(t, now)) {
		got = append(got, b.String())
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"checks v1: removed", "quotes v1: retry: was 1s, is 2s, 4s", "quotes v1: poisoned_after: was 2, is 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("breaks lack %q:\n%s", want, text)
		}
	}
	signed := now + `signed_off: [{type: checks, change: removed, reason: unused, approved_by: ada}, {type: quotes, change: retry, to: "2s, 4s", reason: r, approved_by: ada}, {type: quotes, change: poisoned_after, to: "3", reason: r, approved_by: ada}]`
	if left := compat.Compare(parse(t, old), parse(t, signed)); len(left) > 0 {
		t.Errorf("signed for, and still breaks: %v", left)
	}
}
