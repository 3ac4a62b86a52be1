package core

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzJSONString(f *testing.F) {
	for _, s := range []string{"", "a", `"\`, "\n\x00\x1f", "ü€😀", "\xff", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(jsonString(s), &got); err != nil {
			t.Fatalf("%q: %s: %v", s, jsonString(s), err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got != want && strings.ToValidUTF8(s, "") == s {
			t.Errorf("%q reads back as %q", s, got)
		}
	})
}
