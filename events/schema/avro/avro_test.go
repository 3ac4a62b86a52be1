package avro_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events/schema/avro"
)

const thing = `
type: record
name: Thing
namespace: test.v1
fields:
  - {name: id, type: string}
  - {name: count, type: int}
  - {name: big, type: long, default: 7}
  - {name: price, type: {type: record, name: Money, fields: [{name: amount, type: {type: bytes, logicalType: decimal, precision: 8, scale: 2}}, {name: currency, type: {type: enum, name: Currency, symbols: [EUR, USD]}}]}}
  - {name: tax, type: ["null", Money], default: null}
  - {name: at, type: {type: long, logicalType: timestamp-micros}}
  - {name: day, type: ["null", {type: int, logicalType: date}], default: null}
  - {name: tags, type: {type: array, items: string}, default: []}
  - {name: notes, type: {type: map, values: ["null", string, long]}, default: {}}
  - {name: raw, type: ["null", bytes], default: null}
  - {name: ref, type: ["null", {type: string, logicalType: uuid}], default: null}
  - {name: share, type: double, default: 0}
  - {name: next, type: ["null", Thing], default: null}
`

func parse(tb testing.TB, text string) *avro.Schema {
	tb.Helper()
	s, err := avro.Parse(written(tb, text))
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// written is a schema as a catalog holds it.
func written(tb testing.TB, text string) any {
	tb.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

const full = `{"at":"2026-11-30T12:00:00.000001Z","big":9007199254740993,"count":-3,"day":"2026-11-30","id":"x","next":null,` +
	`"notes":{"a":null,"b":"text","c":9007199254740993},"price":{"amount":"12.30","currency":"EUR"},"raw":"AAH/","ref":"0b6a3d1e-0000-8000-8000-000000000001",` +
	`"share":0.5,"tags":["p","q"],"tax":{"amount":"0.01","currency":"USD"}}`

func TestEncode_RoundTrip_E5(t *testing.T) {
	t.Parallel()
	s := parse(t, thing)
	r, err := s.Reader(s.Text())
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.Encode([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // the same data is the same bytes, whatever Go's order of maps
		if again, err := s.Encode([]byte(full)); err != nil || !bytes.Equal(again, record) {
			t.Fatalf("%v\n%x\n%x", err, record, again)
		}
	}
	if got, err := r.Decode(record); err != nil || string(got) != full {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, full)
	}
	record, err = s.Encode([]byte(`{"id":"x","count":1,"price":{"amount":1.5,"currency":"EUR"},"at":0,"next":{"id":"y","count":2,"price":{"amount":"2","currency":"USD"},"at":"2026-11-30T13:00:00+01:00"}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Decode(record)
	var data struct {
		Big   int64
		Price struct{ Amount string }
		Notes map[string]any
		Next  *struct {
			ID    string
			Count int
			At    string
		}
	}
	if err := json.Unmarshal(got, &data); err != nil || data.Big != 7 || data.Price.Amount != "1.50" || data.Notes == nil || data.Next == nil || data.Next.ID != "y" || data.Next.At != "2026-11-30T12:00:00Z" {
		t.Errorf("%v\n%s", err, got)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestEncode_NamesEachFieldAndNoValue_E12(t *testing.T) {
	t.Parallel()
	s := parse(t, thing)
	const rest = `"price":{"amount":"1","currency":"EUR"},"at":0`
	for data, want := range map[string][]string{
		`"secret"`:                            {"field data: is string, want object"},
		`{`:                                   {"is no JSON"},
		`{"count":1,` + rest + `}`:            {"field data.id: missing"},
		`{"id":"x","count":1.5,` + rest + `}`: {"field data.count: want a whole number of 32 bits"},
		`{"id":"x","count":2147483648,` + rest + `}`:                                        {"field data.count: want a whole number of 32 bits"},
		`{"id":7,"count":"secret",` + rest + `}`:                                            {"field data.id: is number, want string", "field data.count: is string, want int"},
		`{"id":"x","count":1,"surprise":"secret",` + rest + `}`:                             {"field data.surprise: not in the schema"},
		`{"id":"x","count":1,"tags":["a",3],` + rest + `}`:                                  {"field data.tags.1: is number, want string"},
		`{"id":"x","count":1,"notes":{"k":true},` + rest + `}`:                              {"field data.notes.k: is boolean that fits no type of the union"},
		`{"id":"x","count":1,"day":"secret",` + rest + `}`:                                  {"field data.day: want a date"},
		`{"id":"x","count":1,"ref":"secret",` + rest + `}`:                                  {"field data.ref: want a UUID"},
		`{"id":"x","count":1,"raw":"secret!",` + rest + `}`:                                 {"field data.raw: want base64"},
		`{"id":"x","count":1,"tax":{"amount":"1"},` + rest + `}`:                            {"field data.tax.currency: missing"},
		`{"id":"x","count":1,"at":"secret","price":{"amount":"1.234","currency":"secret"}}`: {"data.at: want a time", "data.price.amount: want at most 8 digits, 2", "data.price.currency: want one of [EUR USD]"},
		`{"id":"x","count":1,"at":0,"price":{"amount":"1e999999999","currency":"EUR"}}`:     {"data.price.amount: want a decimal number"},
	} {
		_, err := s.Encode([]byte(data))
		if err == nil {
			t.Errorf("%s: taken", data)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want it to say %q", data, err, w)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows a value: %v", data, err)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`string`: "invalid",
		`{type: record, name: A, fields: [{name: x, type: Missing}]}`:                                                 "Missing",
		`{type: enum, name: A, symbols: [x]}`:                                                                         "want a record",
		`{type: record, name: A, fields: [{name: x, type: {type: fixed, name: D, size: 12, logicalType: duration}}]}`: "field data.x: logical type duration",
		`{type: record, name: A, fields: [{name: x, type: [{type: map, values: int}, {type: array, items: int}]}]}`:   "a map stands where",
		`{type: record, name: A, fields: [{name: x, type: int, default: secret}]}`:                                    "x",
	} {
		if _, err := avro.Parse(written(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", text, err, want)
		}
	}
}

// A reader of another version fills in defaults, passes over what it does not know, widens numbers.
func TestReader_Resolves_E5(t *testing.T) {
	t.Parallel()
	writer := parse(t, `{type: record, name: Thing, namespace: test.v1, fields: [{name: id, type: string}, {name: n, type: int}, {name: old, type: string}]}`)
	reader := parse(t, `{type: record, name: Thing, namespace: test.v1, fields: [{name: n, type: long}, {name: id, type: string}, {name: added, type: string, default: none}]}`)
	record, err := writer.Encode([]byte(`{"id":"x","n":5,"old":"gone"}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := reader.Reader(writer.Text())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Decode(record); err != nil || string(got) != `{"added":"none","id":"x","n":5}` {
		t.Errorf("got %s, %v", got, err)
	}
	for name, bad := range map[string][]byte{"cut off": record[:3], "left over": append(record[:len(record):len(record)], 1), "empty": {}, "huge length": {0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}} {
		if got, err := r.Decode(bad); err == nil {
			t.Errorf("%s: read as %s", name, got)
		}
	}
	other := parse(t, `{type: record, name: Other, namespace: test.v1, fields: [{name: id, type: string}, {name: n, type: int}]}`)
	if _, err := reader.Reader(other.Text()); err == nil {
		t.Error("a record of another name was taken")
	}
	ref := parse(t, `{type: record, name: Part, namespace: test.v1, fields: [{name: a, type: int}]}`)
	whole := parse(t, `{type: record, name: Whole, namespace: test.v1, fields: [{name: part, type: {type: record, name: Part, fields: [{name: a, type: int}]}}]}`)
	if _, err := whole.Reader(`{"type":"record","name":"Whole","namespace":"test.v1","fields":[{"name":"part","type":"test.v1.Part"}]}`, ref.Text()); err != nil {
		t.Errorf("a writer's schema with a reference: %v", err)
	}
}

func TestBreaks_E5(t *testing.T) {
	t.Parallel()
	const base = `{type: record, name: A, fields: [{name: id, type: string}, {name: n, type: int}, {name: opt, type: ["null", string], default: null}, {name: at, type: {type: long, logicalType: timestamp-millis}}, {name: sort, type: {type: enum, name: S, symbols: [X, Y]}}, {name: sub, type: {type: record, name: B, fields: [{name: deep, type: string}]}}]}`
	for name, c := range map[string]struct{ old, new, want string }{
		"same":                 {"", "", ""},
		"optional field added": {"{name: n, type: int}", "{name: n, type: int}, {name: more, type: [\"null\", string], default: null}", ""},
		"doc":                  {"{name: n, type: int}", "{name: n, type: int, doc: words}", ""},
		"required field added": {"{name: n, type: int}", "{name: n, type: int}, {name: more, type: string}", "data.more"},
		"field gone":           {"{name: n, type: int}, ", "", "data.n"},
		"optional field gone":  {"{name: opt, type: [\"null\", string], default: null}, ", "", "data.opt"},
		"field renamed":        {"{name: n,", "{name: m, aliases: [n],", "data.n"},
		"type changed":         {"{name: n, type: int}", "{name: n, type: string}", "data.n"},
		"type widened":         {"{name: n, type: int}", "{name: n, type: long}", "data.n"},
		"union lost null":      {"[\"null\", string], default: null", "string, default: ''", "data.opt"},
		"logical type changed": {"timestamp-millis", "timestamp-micros", "data.at"},
		"symbol gone":          {"[X, Y]", "[X]", "data.sort"},
		"symbol added":         {"[X, Y]", "[X, Y, Z]", "data.sort"},
		"nested field changed": {"{name: deep, type: string}", "{name: deep, type: int}", "data.sub.deep"},
		"nested field gone":    {"{name: deep, type: string}", "{name: other, type: string, default: ''}", "data.sub.deep"},
		"record renamed":       {"name: A,", "name: Z,", "data"},
	} {
		if !strings.Contains(base, c.old) {
			t.Fatalf("%s: the base has no %q", name, c.old)
		}
		found := avro.Breaks(parse(t, base), parse(t, strings.Replace(base, c.old, c.new, 1)))
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) == 0 || found[0].Field != c.want) {
			t.Errorf("%s: got %+v, want field %q", name, found, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := parse(f, thing)
	r, err := s.Reader(s.Text())
	if err != nil {
		f.Fatal(err)
	}
	record, err := s.Encode([]byte(full))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, record []byte) {
		data, err := r.Decode(record)
		if err != nil {
			return
		}
		again, err := s.Encode(data)
		if err != nil {
			if strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Infinity") || strings.Contains(string(data), `"ref"`) || strings.Contains(string(data), "at") {
				return // JSON has no number for it, times beyond RFC 3339, text that is no UUID: only other writers make them
			}
			t.Fatalf("read as %s, which does not fit: %v", data, err)
		}
		if back, err := r.Decode(again); err != nil || !bytes.Equal(back, data) {
			t.Fatalf("%v\n%s\n%s", err, data, back)
		}
	})
}

func FuzzEncode(f *testing.F) {
	s := parse(f, thing)
	r, err := s.Reader(s.Text())
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(full))
	f.Fuzz(func(t *testing.T, data []byte) {
		record, err := s.Encode(data)
		if err != nil {
			return
		}
		if _, err := r.Decode(record); err != nil {
			t.Fatalf("%s: written, but %v", data, err)
		}
	})
}
