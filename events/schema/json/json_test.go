package json_test

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
	schema "github.com/vitrip/journeyman/events/schema/json"
)

func compile(t *testing.T, text string) (*schema.Schemas, error) {
	t.Helper()
	c, err := events.ParseCatalog([]byte(`
domains: [test]
messages:
  - type: test.thing.created
    class: domain
    owner: test
    producers: [tester]
    schema: ` + text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Compile(c)
}

const thing = `{type: object, required: [id, price], properties: {id: {type: string, minLength: 1}, at: {type: string, format: date-time},
      price: {$ref: "#/$defs/money"}, sort: {enum: [a, b]}, lines: {type: array, items: {type: object, properties: {n: {type: integer}}}}},
      $defs: {money: {type: object, required: [amount], properties: {amount: {type: integer, minimum: 0}, currency: {type: string, pattern: "^[A-Z]{3}$"}}}}}`

func TestCheck_NamesEachField(t *testing.T) {
	t.Parallel()
	s, err := compile(t, thing)
	if err != nil {
		t.Fatal(err)
	}
	for data, want := range map[string][]string{
		`{"id":"x","price":{"amount":1,"currency":"EUR"},"at":"2026-11-30T12:00:00Z","lines":[{"n":1}]}`: nil,
		`{"price":{"amount":1}}`:                              {"field data.id: missing"},
		`{"id":7,"price":{"amount":1}}`:                       {"field data.id: is number, want string"},
		`{"id":"","price":{"amount":-1,"currency":"secret"}}`: {"data.id: want at least 1", "data.price.amount: want at least 0", "data.price.currency: want a match"},
		`{"id":"x","price":{"amount":1},"surprise":"secret"}`: {"field data.surprise: not in the schema"},
		`{"id":"x","price":{"amount":1},"at":"secret"}`:       {"field data.at: want the format date-time"},
		`{"id":"x","price":{"amount":1},"sort":"secret"}`:     {"field data.sort: want one of"},
		`{"id":"x","price":{"amount":1},"lines":[{"m":1}]}`:   {"field data.lines.0.m: not in the schema"},
		`{"id":"x","price":{"amount":1.5}}`:                   {"field data.price.amount: is number, want integer"},
	} {
		err := s.Check("test.thing.created", 1, []byte(data))
		if (err == nil) != (want == nil) {
			t.Errorf("%s: got %v", data, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: got %v, want it to say %q", data, err, w)
			}
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows a value: %v", data, err)
		}
	}
	if err := s.Check("test.other.created", 1, []byte(`{}`)); err != nil {
		t.Errorf("a type without schema: %v", err)
	}
}

func TestCompile_Refuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{type: objekt}`: "/type",
		`{$ref: "https://example.org/thing.json"}`:                      "https://example.org/thing.json",
		`{type: object, properties: {a: {$ref: "file:///etc/passwd"}}}`: "file:///etc/passwd",
		`{$ref: "other.json"}`:                                          "other.json",
		`{$schema: "https://example.org/meta", type: object}`:           "https://example.org/meta",
		`things/created.json`:                                           "want the schema itself",
		`{type: object, properties: {a: {type: string, pattern: "("}}}`: "pattern",
		`{type: object, properties: {a: {$ref: "#/$defs/none"}}}`:       "none",
	} {
		_, err := compile(t, text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "test.thing.created v1") {
			t.Errorf("%s: got %v, want it to name %q and the type", text, err, want)
		}
	}
}

// In schemas put together from parts, the parts stay open: one does not refuse what another one lists.
func TestCompile_PartsStayOpen(t *testing.T) {
	t.Parallel()
	s, err := compile(t, `{properties: {a: {type: string}}, allOf: [{properties: {b: {type: integer}}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check("test.thing.created", 1, []byte(`{"a":"x","b":1}`)); err != nil {
		t.Error(err)
	}
	if err := s.Check("test.thing.created", 1, []byte(`{"a":"x","b":"y"}`)); err == nil {
		t.Error("b as a string was taken")
	}
}

func FuzzCheck(f *testing.F) {
	c, err := events.ParseCatalog([]byte("domains: [test]\nmessages:\n  - {type: test.thing.created, class: domain, owner: test, producers: [t], schema: " + thing + "}"))
	if err != nil {
		f.Fatal(err)
	}
	s, err := schema.Compile(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"id":"x","price":{"amount":1}}`))
	f.Add([]byte(`{"id":1e400}`))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = s.Check("test.thing.created", 1, data) })
}
