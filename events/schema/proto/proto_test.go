package proto_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/vitrip/journeyman/events/schema/proto"
)

const thing = `syntax = "proto3";
package test.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message Other { string x = 1; message Inner { int32 n = 1; } }
enum Currency { CURRENCY_UNSPECIFIED = 0; EUR = 1; USD = 2; }
message Money { int64 amount = 1; Currency currency = 2; }
message Thing {
  reserved 9; reserved "old";
  string id = 1;
  int32 item_count = 2;
  uint64 big = 3;
  Money price = 4;
  google.protobuf.Timestamp at = 5;
  repeated string tags = 6;
  map<string, Money> by_name = 7;
  map<int32, bool> by_number = 8;
  oneof who { string person = 10; int64 robot = 11; }
  optional bool maybe = 12;
  bytes raw = 13;
  double share = 14;
  google.protobuf.Struct free = 15;
  Thing next = 16;
}
`

func parse(tb testing.TB, text, message string) *proto.Schema {
	tb.Helper()
	s, err := proto.Parse(text, message)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

const full = `{"at":"2026-11-30T12:00:00Z","big":9007199254740993,"byName":{"a":{"amount":5,"currency":"EUR"}},"byNumber":{"-1":true},"free":{"any":[1]},"id":"x",` +
	`"itemCount":-3,"maybe":false,"next":{"id":"y"},"price":{"amount":-9007199254740993,"currency":"USD"},"raw":"AAH/","robot":8,"share":0.5,"tags":["p","q"]}`

func TestEncode_RoundTrip_E5(t *testing.T) {
	t.Parallel()
	s := parse(t, thing, "test.v1.Thing")
	if got := s.Index(); len(got) != 1 || got[0] != 2 {
		t.Errorf("index %v, want [2]", got)
	}
	if got := parse(t, thing, "test.v1.Other.Inner").Index(); len(got) != 2 || got[0] != 0 || got[1] != 0 {
		t.Errorf("index of a nested message %v, want [0 0]", got)
	}
	r, err := s.Reader(s.Text(), nil)
	if err != nil {
		t.Fatal(err)
	}
	record, err := s.Encode([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Encode([]byte(full)); err != nil || !bytes.Equal(again, record) {
		t.Errorf("%v: the same data became other bytes", err)
	}
	got, err := r.Decode(s.Index(), record)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(full), &b) != nil {
		t.Fatal("no JSON")
	}
	if x, y := compact(a), compact(b); x != y {
		t.Errorf("got  %s\nwant %s", x, y)
	}
	if !strings.Contains(string(got), "9007199254740993") {
		t.Errorf("64-bit integers lost digits: %s", got)
	}
	if err := protojson.Unmarshal([]byte(`{"any":[1]}`), &structpb.Struct{}); err != nil { // generated types read what we show
		t.Error(err)
	}
}

func compact(v any) string {
	out, _ := json.Marshal(v) //nolint:errchkjson // what was read can be written
	return string(out)
}

func TestEncode_NamesEachFieldAndNoValue_E12(t *testing.T) {
	t.Parallel()
	s := parse(t, thing, "test.v1.Thing")
	for data, want := range map[string]string{
		`"secret"`:                        "field data: is string, want object",
		`{`:                               "is no JSON",
		`{"id":7}`:                        "field data.id: is number, want a value of string",
		`{"itemCount":"secret"}`:          "field data.itemCount: is string, want a value of int32",
		`{"itemCount":2147483648}`:        "field data.itemCount: is number, want a value of int32",
		`{"item_count":1}`:                "field data.item_count: not in the schema, want itemCount",
		`{"surprise":"secret"}`:           "field data.surprise: not in the schema",
		`{"price":{"currency":"secret"}}`: "field data.price.currency: is string, want a name of test.v1.Currency",
		`{"at":"secret"}`:                 "field data.at: want the JSON form of google.protobuf.Timestamp",
		`{"tags":["a",1]}`:                "field data.tags.1: is number",
		`{"byName":{"k":{"n":1}}}`:        "field data.byName.k.n: not in the schema",
		`{"byNumber":{"secret":true}}`:    "field data.byNumber: has a key that is no int32",
		`{"person":"secret","robot":1}`:   "field data.robot: only one of who",
		`{"raw":"secret!"}`:               "field data.raw: is string, want base64",
		`{"big":-1}`:                      "field data.big: is number, want a value of uint64",
	} {
		_, err := s.Encode([]byte(data))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want it to say %q and no value", data, err, want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, message, want string }{
		{"syntax = \"proto3\"; message {", "", "syntax error"},
		{thing, "", "has 3 messages, want one"},
		{thing, "test.v1.None", `has no message "test.v1.None"`},
		{thing, "test.v1.Currency", "has no message"},
		{`syntax = "proto3"; import "other.proto"; message A {}`, "", "other.proto"},
		{`syntax = "proto3"; import "/etc/passwd"; message A {}`, "", "/etc/passwd"},
		{`syntax = "proto3"; message A { Missing m = 1; }`, "", "Missing"},
	} {
		if _, err := proto.Parse(c.text, c.message); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s: got %v, want it to say %q", c.text, err, c.want)
		}
	}
	if _, err := proto.Parse(map[string]any{}, ""); err == nil {
		t.Error("an object was taken")
	}
}

func TestReader_OfAnotherVersion_E5(t *testing.T) {
	t.Parallel()
	const old = `syntax = "proto3"; package test.v1; message A { string id = 1; int32 n = 2; }`
	reader := parse(t, `syntax = "proto3"; package test.v1; message Z {} message A { string id = 1; int32 n = 2; string added = 3; }`, "test.v1.A")
	writer := parse(t, old, "")
	record, err := writer.Encode([]byte(`{"id":"x","n":5}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := reader.Reader(old, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Decode([]int{0}, record); err != nil || string(got) != `{"id":"x","n":5}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, index := range [][]int{{1}, {0, 0}, {-1}, {}} {
		if _, err := r.Decode(index, record); err == nil {
			t.Errorf("index %v: taken", index)
		}
	}
	if _, err := r.Decode([]int{0}, []byte{0x0a, 0x7f}); err == nil {
		t.Error("a record that is cut off was taken")
	}
	if _, err := reader.Reader(`syntax = "proto3"; package test.v1; message A { string id = 1; string n = 2; }`, nil); err == nil || !strings.Contains(err.Error(), "field data.n is string, want int32") {
		t.Errorf("another type under a number of ours: %v", err)
	}
	if _, err := reader.Reader(`syntax = "proto3"; package other; message A { string id = 1; }`, nil); err == nil {
		t.Error("a message of another name was taken")
	}
	imports := map[string]string{"money.proto": `syntax = "proto3"; package test.v1; message Money { int64 amount = 1; }`}
	whole := parse(t, `syntax = "proto3"; package test.v1; message A { Money m = 1; } message Money { int64 amount = 1; }`, "test.v1.A")
	if _, err := whole.Reader(`syntax = "proto3"; package test.v1; import "money.proto"; message A { Money m = 1; }`, imports); err != nil {
		t.Errorf("a writer's schema with an import: %v", err)
	}
}

func TestBreaks_E5(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, new, want string }{
		"same":                      {"", "", ""},
		"field added":               {"string id = 1;", "string id = 1; string more = 20;", ""},
		"comment":                   {"string id = 1;", "string id = 1; // words", ""},
		"presence":                  {"double share", "optional double share", ""},
		"enum value added":          {"USD = 2;", "USD = 2; GBP = 3;", ""},
		"field gone":                {"string id = 1;", "", "data.id"},
		"field gone and reserved":   {"string id = 1;", "reserved 1; reserved \"id\";", ""},
		"field gone, half reserved": {"string id = 1;", "reserved 1;", "data.id"},
		"number changed":            {"string id = 1;", "string id = 20;", "data.id"},
		"renamed":                   {"string id = 1;", "string key = 1;", "data.id"},
		"json name":                 {"string id = 1;", "string id = 1 [json_name = \"ID\"];", "data.id"},
		"type changed":              {"int32 item_count", "int64 item_count", "data.itemCount"},
		"label changed":             {"repeated string tags", "string tags", "data.tags"},
		"map value changed":         {"map<int32, bool>", "map<int32, int32>", "data.byNumber"},
		"nested type changed":       {"int64 amount", "sint64 amount", "data.price.amount"},
		"left a oneof":              {"oneof who { string person = 10;", "string person = 10; oneof who {", "data.person"},
		"enum value gone":           {"USD = 2;", "", "data.price.currency"},
		"enum value renamed":        {"USD = 2;", "DOLLAR = 2;", "data.price.currency"},
		"number no longer reserved": {"reserved 9;", "", "data"},
		"name no longer reserved":   {"reserved \"old\";", "", "data"},
		"reserved number used":      {"reserved 9;", "string nine = 9;", "data.nine"},
		"package changed":           {"package test.v1;", "package test.v2;", "data message"},
	} {
		text := strings.Replace(thing, c.old, c.new, 1)
		if !strings.Contains(thing, c.old) {
			t.Fatalf("%s: the base has no %q", name, c.old)
		}
		message := "test.v1.Thing"
		if strings.Contains(text, "test.v2") {
			message = "test.v2.Thing"
		}
		found := proto.Breaks(parse(t, thing, "test.v1.Thing"), parse(t, text, message))
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) == 0 || found[0].Field != c.want) {
			t.Errorf("%s: got %+v, want field %q", name, found, c.want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	s := parse(f, thing, "test.v1.Thing")
	r, err := s.Reader(s.Text(), nil)
	if err != nil {
		f.Fatal(err)
	}
	record, err := s.Encode([]byte(full))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(2, record)
	f.Add(0, []byte{})
	f.Fuzz(func(t *testing.T, index int, record []byte) {
		data, err := r.Decode([]int{index}, record)
		if err != nil {
			return
		}
		if _, err := s.Encode(data); err != nil {
			t.Fatalf("read as %s, which does not fit: %v", data, err)
		}
	})
}

// Descriptors: whatever text a registry gives is compiled or refused, and can be read by or not.
func FuzzReader(f *testing.F) {
	s := parse(f, thing, "test.v1.Thing")
	f.Add(thing)
	f.Add(`syntax = "proto3"; package test.v1; message Thing { string id = 1; }`)
	f.Add(`edition = "2023"; package test.v1; message Thing { Thing next = 16; }`)
	f.Add(`syntax = "proto2"; package test.v1; message Thing { required string id = 1; extensions 100 to 200; }`)
	f.Fuzz(func(_ *testing.T, text string) {
		r, err := s.Reader(text, nil)
		if err != nil {
			return
		}
		_, _ = r.Decode([]int{0}, []byte{0x0a, 1, 'x'})
	})
}
