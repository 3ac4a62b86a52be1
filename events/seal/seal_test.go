package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events/seal"
)

// folder makes keys; the last is the current one.
func folder(t *testing.T, ids ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	for _, id := range ids {
		if err := seal.Generate(dir, id); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *seal.Dir {
	t.Helper()
	d, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSeal_OpensAgainOnlyInItsContext_E4(t *testing.T) {
	t.Parallel()
	keys := open(t, folder(t, "2026-a"))
	for _, mode := range []seal.Mode{seal.AtRest, seal.EndToEnd} {
		for _, clear := range []string{"", `{"secret":"passport 123"}`} {
			body, err := seal.Seal(keys, mode, []byte(clear), "id-1")
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := seal.Sealed(body); !ok || got != mode || seal.KeyID(body) != "2026-a" || json.Valid(body) {
				t.Errorf("sealed body: mode %c, %v, key %q", got, ok, seal.KeyID(body))
			}
			if len(clear) > 0 && bytes.Contains(body, []byte("passport")) {
				t.Error("the clear text shows")
			}
			if len(body) > len(clear)+seal.Overhead {
				t.Errorf("%d bytes more, want at most %d", len(body)-len(clear), seal.Overhead)
			}
			if got, err := seal.Open(keys, body, "id-1"); err != nil || string(got) != clear {
				t.Errorf("got %q, %v", got, err)
			}
			if _, err := seal.Open(keys, body, "id-2"); !errors.Is(err, seal.ErrTampered) {
				t.Errorf("another context: got %v", err)
			}
			for i := range body { // every byte counts, mode and key id too
				bad := bytes.Clone(body)
				bad[i] ^= 1
				if _, err := seal.Open(keys, bad, "id-1"); !errors.Is(err, seal.ErrTampered) && !errors.Is(err, seal.ErrNoKey) {
					t.Fatalf("byte %d changed: got %v", i, err)
				}
			}
		}
	}
	a, _ := seal.Seal(keys, seal.AtRest, []byte("x"), "")
	b, _ := seal.Seal(keys, seal.AtRest, []byte("x"), "")
	if bytes.Equal(a, b) {
		t.Error("two bodies were sealed alike")
	}
}

// Old keys go on opening; a body of a key that was taken away waits for it.
func TestRotation_E4(t *testing.T) {
	t.Parallel()
	dir := folder(t, "old")
	body, err := seal.Seal(open(t, dir), seal.EndToEnd, []byte("x"), "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := seal.Generate(dir, "new"); err != nil {
		t.Fatal(err)
	}
	keys := open(t, dir)
	if got, err := seal.Open(keys, body, "c"); err != nil || string(got) != "x" {
		t.Fatalf("under the old key: %q, %v", got, err)
	}
	again, changed, err := seal.Again(keys, body, "c")
	if mode, _ := seal.Sealed(again); err != nil || !changed || seal.KeyID(again) != "new" || mode != seal.EndToEnd {
		t.Fatalf("sealed again: key %q, %v, %v", seal.KeyID(again), changed, err)
	}
	if _, changed, err := seal.Again(keys, again, "c"); err != nil || changed {
		t.Errorf("twice: %v, %v", changed, err)
	}
	if got, changed, err := seal.Again(keys, []byte("{}"), "c"); err != nil || changed || string(got) != "{}" {
		t.Errorf("a clear body: %q, %v, %v", got, changed, err)
	}
	if err := os.Remove(filepath.Join(dir, "old.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.Open(open(t, dir), body, "c"); !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("without the old key: got %v", err)
	}
	if _, err := seal.Open(nil, body, "c"); !errors.Is(err, seal.ErrNoKey) {
		t.Errorf("without any key: got %v", err)
	}
}

func TestOpenDir_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	dir := folder(t, "a", "b", "c")
	for name, text := range map[string]string{"short.key": "AAAA", "current": "gone"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "b.key"), 0o444); err != nil { //nolint:gosec // the mistake under test
		t.Fatal(err)
	}
	_, err := seal.OpenDir(dir)
	for _, want := range []string{"key short", "key b: mode", `key "gone"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q", err, want)
		}
	}
	if err := seal.Generate(dir, "a"); err == nil {
		t.Error("a key was written over")
	}
	if err := seal.Generate(dir, "../a"); err == nil {
		t.Error("a key outside the folder was made")
	}
	if err := seal.Use(dir, "nowhere"); err == nil {
		t.Error("a key that is not there was made the current one")
	}
}

func FuzzOpen(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "keys")
	if err := seal.Generate(dir, "k"); err != nil {
		f.Fatal(err)
	}
	keys, err := seal.OpenDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	body, _ := seal.Seal(keys, seal.AtRest, []byte("{}"), "c")
	f.Add(body)
	f.Add([]byte("jms1r\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := seal.Open(keys, raw, "c"); err == nil && !bytes.Equal(raw, body) {
			t.Error("a body that nobody sealed was opened")
		}
	})
}
