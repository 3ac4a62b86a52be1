package sagas

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base := `{"a":1,"b":{"c":[1,2],"d":"x"}}`
	for name, c := range map[string]struct {
		body string
		same bool
	}{
		"order and space":      {` {"b": {"d":"x", "c":[ 1,2 ]}, "a": 1 } `, true},
		"1.0":                  {`{"a":1.0,"b":{"c":[1,2],"d":"x"}}`, true},
		"exponent":             {`{"a":10e-1,"b":{"c":[1,0.2E1],"d":"x"}}`, true},
		"null is absent":       {`{"a":1,"z":null,"b":{"c":[1,2],"d":"x"}}`, true},
		"escapes":              {`{"a":1,"b":{"c":[1,2],"d":"\u0078"}}`, true},
		"other order in array": {`{"a":1,"b":{"c":[2,1],"d":"x"}}`, false},
		"number as text":       {`{"a":"1","b":{"c":[1,2],"d":"x"}}`, false},
		"extra field":          {`{"a":1,"b":{"c":[1,2],"d":"x"},"e":0}`, false},
		"null in an array":     {`{"a":1,"b":{"c":[1,2,null],"d":"x"}}`, false},
		"close number":         {`{"a":1.0000000000000000000001,"b":{"c":[1,2],"d":"x"}}`, false},
	} {
		a, err := fingerprint([]byte(base))
		if err != nil {
			t.Fatal(err)
		}
		b, err := fingerprint([]byte(c.body))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if (string(a) == string(b)) != c.same {
			t.Errorf("%s: same %v, want %v", name, !c.same, c.same)
		}
	}
}

func TestCanonicalNumber(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.00": "0", "0e9": "0", "1": "1e0", "-1.50": "-15e-1", "1500": "15e2", "1.5E+3": "15e2", "0.0015": "15e-4",
		"1e99999999999999999999": "1e99999999999999999999", "9007199254740993": "9007199254740993e0",
	} {
		if got, err := canonicalNumber(in); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`abc-1`: "abc-1", `"a b"`: "a b", `"a\"b\\c"`: `a"b\c`, ` "x" `: "x", strings.Repeat("k", 255): strings.Repeat("k", 255), `a@retry-1`: "a@retry-1",
	} {
		if got, err := idempotencyKey(http.Header{HeaderKey: {in}}); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", `""`, `"abc`, `abc"`, `a,b`, `a b`, `"a" "b"`, `"a";p=1`, `"a\x"`, `"\`, "k\x7f", "ключ", `"ключ"`, strings.Repeat("k", 256)} {
		if got, err := idempotencyKey(http.Header{HeaderKey: {in}}); !errors.Is(err, errKeyInvalid) {
			t.Errorf("%q: got %q, %v, want invalid", in, got, err)
		}
	}
	if _, err := idempotencyKey(http.Header{}); !errors.Is(err, errKeyMissing) {
		t.Errorf("no header: got %v, want missing", err)
	}
}

// Keys that look like the internal one of a retry do not meet it: ids are derived from key and attempt apart.
func TestOperationID(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, id := range map[string]string{
		"plain":          OperationID("t", "trip", "k", 1),
		"retry":          OperationID("t", "trip", "k", 2),
		"lookalike":      OperationID("t", "trip", "k@retry-1", 1),
		"other tenant":   OperationID("u", "trip", "k", 1),
		"other type":     OperationID("t", "refund", "k", 1),
		"shifted border": OperationID("tt", "rip", "k", 1),
	} {
		if other, ok := seen[id]; ok || len(id) != 29 || !strings.HasPrefix(id, "op_") {
			t.Errorf("%s: got %s like %q, want 29 characters of its own", name, id, other)
		}
		seen[id] = name
	}
}

// FuzzDecode: whatever comes in, Decode gives a value or field errors, and what it takes has a fingerprint that
// does not change when the value is written again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{goodTrip, `{}`, `[]`, `{"a":`, `{"booking":null}`, `{"segments":[{"kind":"x","amount":1e2}]}`, "{\"booking\":\"\xff\"}", `{"payment":{"amount":-0}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := Decode[tripRequest](body)
		if err != nil {
			if _, ok := fieldErrors(err); !ok {
				t.Fatalf("%q: %v is no field error", body, err)
			}
			return
		}
		if _, err := fingerprint(body); err != nil {
			t.Fatalf("%q: taken, but: %v", body, err)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
	})
}
