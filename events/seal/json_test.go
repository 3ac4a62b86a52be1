package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/vitrip/journeyman/events/seal"
)

// A sealed JSON value is a JSON string that opens in its context alone; a clear value is given back, and none that was cut counts as clear.
func TestJSON_E4(t *testing.T) {
	t.Parallel()
	keys := open(t, folder(t, "2026-a"))
	for _, clear := range []string{`{"passport":"4711"}`, `"x"`, `null`} {
		value, err := seal.JSON(keys, []byte(clear), "c")
		var text string
		if err != nil || json.Unmarshal(value, &text) != nil || bytes.Contains(value, []byte("passport")) {
			t.Fatalf("%s: sealed as %s, %v", clear, value, err)
		}
		if got, err := seal.OpenJSON(keys, value, "c"); err != nil || string(got) != clear {
			t.Errorf("%s: opens as %s, %v", clear, got, err)
		}
		if _, err := seal.OpenJSON(keys, value, "d"); !errors.Is(err, seal.ErrTampered) {
			t.Errorf("%s in another context: got %v", clear, err)
		}
		if _, err := seal.OpenJSON(nil, value, "c"); !errors.Is(err, seal.ErrNoKey) {
			t.Errorf("%s without keys: got %v", clear, err)
		}
		for n := len("sealed:am1zM") + 1; n < len(text); n++ {
			cut, err := json.Marshal(text[:n])
			if err != nil {
				t.Fatal(err)
			}
			if got, err := seal.OpenJSON(keys, cut, "c"); !errors.Is(err, seal.ErrTampered) {
				t.Fatalf("cut to %d characters: %s, %v", n, got, err)
			}
		}
	}
	for _, clear := range []string{`{}`, `"sealed: by hand"`, `[1]`, `null`} {
		if got, err := seal.OpenJSON(nil, []byte(clear), "c"); err != nil || string(got) != clear {
			t.Errorf("clear %s: got %s, %v", clear, got, err)
		}
	}
}
