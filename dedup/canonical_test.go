package dedup_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/dedup"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{` { "a" : [ 1 , null ] , "n" : null } `, `{"a":[1,null]}`},
		{`{"a":{"b":null}}`, `{"a":{}}`},
		{`1.0`, `1`}, {`1e0`, `1`}, {`100e-2`, `1`}, {`-0`, `0`}, {`0.10`, `0.1`}, {`1.5e1`, `15`}, {`-12.50`, `-12.5`}, {`0.001`, `0.001`},
		{`9223372036854775807`, `9223372036854775807`},
		{`1234567890123456789`, `1234567890123456789`},
		{`1e400`, `1e400`}, {`10e399`, `1e400`}, {`1e99999999999999999999`, `1e99999999999999999999`},
		{`"\u0041\u000a\/"`, `"A\n/"`}, {`"\u0001é"`, `"\u0001é"`},
	} {
		got, err := dedup.Canonical([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("Canonical(%s) = %s, %v; want %s", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{``, `{`, `{"a":1`, `1 2`, `nul`, strings.Repeat("[", 300) + strings.Repeat("]", 300)} {
		if got, err := dedup.Canonical([]byte(in)); err == nil {
			t.Errorf("Canonical(%.20s) = %s, want an error", in, got)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.50,"x"],"b":null}`, `1e-7`, `"\ud83d\ude00"`, `[[],{}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		once, err := dedup.Canonical(doc)
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("Canonical(%q) = %q: not JSON", doc, once)
		}
		twice, err := dedup.Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("Canonical is not stable: %q then %q (%v)", once, twice, err)
		}
	})
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	of := func(doc string, fields ...string) dedup.Fingerprint {
		f, err := dedup.Of([]byte(doc), fields)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	base := of(`{"offer":"F1","seats":2,"trace":"x"}`, "offer", "seats", "note")
	for _, tt := range []struct {
		doc  string
		same bool
	}{
		{`{"seats":2.0,"offer":"F1"}`, true},
		{`{"seats":2,"offer":"F1","note":null,"trace":"y","more":{}}`, true},
		{`{"seats":3,"offer":"F1"}`, false},
		{`{"seats":2,"offer":"F1","note":""}`, false},
	} {
		if got := bytes.Equal(of(tt.doc, "offer", "seats", "note").Sum, base.Sum); got != tt.same {
			t.Errorf("%s: same = %v, want %v", tt.doc, got, tt.same)
		}
	}
	if a, b := of(`{"s":[{"k":1,"x":2},{"k":2}]}`, "s[].k"), of(`{"s":[{"k":1,"x":3},{"k":2}]}`, "s[].k"); !bytes.Equal(a.Sum, b.Sum) {
		t.Error("an undeclared field of a list's elements counts")
	}
	if a, b := of(`{"a":{"b":null}}`, "a.b"), of(`{}`, "a.b"); !bytes.Equal(a.Sum, b.Sum) {
		t.Error("absent and null differ one level down")
	}
}

// TestRule04 is v2 of a worker that adds an optional field: a job that v1 ran and that is activated again is no conflict.
func TestRule04_comparedOverTheStoredList(t *testing.T) {
	t.Parallel()
	doc := []byte(`{"offer":"F1","seats":2,"class":"eco"}`)
	v1, err := dedup.Of(doc, []string{"offer", "seats"})
	if err != nil {
		t.Fatal(err)
	}
	v2, err := dedup.Of(doc, []string{"offer", "seats", "class"})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := v1.Matches(doc, v2); err != nil || !same {
		t.Errorf("stored by v1, compared by v2: same = %v, %v; want true", same, err)
	}
	if same, err := v2.Matches(doc, v1); err != nil || !same {
		t.Errorf("stored by v2, compared by v1: same = %v, %v; want true", same, err)
	}
	other := []byte(`{"offer":"F2","seats":2,"class":"eco"}`)
	ours, err := dedup.Of(other, []string{"offer", "seats", "class"})
	if err != nil {
		t.Fatal(err)
	}
	if same, _ := v1.Matches(other, ours); same {
		t.Error("another offer is taken for the same")
	}
}
