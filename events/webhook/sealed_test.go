package webhook

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events/seal"
)

// sealing is a world whose messages rest encrypted, and the folder of its keys.
func sealing(t *testing.T) (*world, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(folder, "k1"); err != nil {
		t.Fatal(err)
	}
	return setup(t, func(c *Config) { c.Keys = keysOf(t, folder) }), folder
}

func keysOf(t *testing.T, folder string) *seal.Dir {
	t.Helper()
	d, err := seal.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// rests gives the body of a delivery as it stands in the table.
func (w *world) rests(id string) (body []byte) {
	w.Helper()
	if err := w.pool.QueryRow(w.ctx, `SELECT body FROM journeyman.webhook_delivery WHERE id = $1`, id).Scan(&body); err != nil {
		w.Fatal(err)
	}
	return body
}

const secretPart = `"n":"passport-4711"`

// E4, E11: nothing of a message can be read in the table, the partner gets it clear and signed, and its size is that of what is sent.
func TestE4_MessagesRestEncrypted(t *testing.T) {
	w, _ := sealing(t)
	id := w.stage("passport-4711")
	w.stage("passport-4711") // once more: another salt, the same message
	var whole string
	if err := w.pool.QueryRow(w.ctx, `SELECT string_agg(encode(body, 'escape') || d::text, '') FROM journeyman.webhook_delivery d`).Scan(&whole); err != nil {
		t.Fatal(err)
	}
	if body := w.rests(id); seal.KeyID(body) != "k1" || bytes.Contains(body, []byte("passport")) || strings.Contains(strings.ReplaceAll(whole, "op_passport-4711", ""), "passport") {
		t.Errorf("rests as %q", body)
	}
	d, _, err := w.w.Show(w.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	w.pass(1)
	w.pass(0)
	got := w.p.taken()
	if len(got) != 1 || !bytes.Contains(got[0].body, []byte(secretPart)) || d.Bytes != len(got[0].body) {
		t.Fatalf("the partner got %d messages, %q of %d bytes; shown as %d bytes", len(got), got[0].body, len(got[0].body), d.Bytes)
	}
	if err := Verify(got[0].header, got[0].body, time.Now(), secret(t, "a")); err != nil {
		t.Error(err)
	}
	w.is(id, Delivered, "", 1)
}

// E4: keys are changed while messages wait: each goes out as it was staged, and after a reseal the old key is needed no more.
func TestE4_KeysRotate(t *testing.T) {
	w, folder := sealing(t)
	before := w.stage("m1")
	if err := seal.Generate(folder, "k2"); err != nil {
		t.Fatal(err)
	}
	w.w = w.another(func(c *Config) { c.Keys = keysOf(t, folder) })
	after := w.stage("m2")
	if a, b := seal.KeyID(w.rests(before)), seal.KeyID(w.rests(after)); a != "k1" || b != "k2" {
		t.Fatalf("staged under %s and %s, want k1 and k2", a, b)
	}
	got, err := seal.Reseal(w.ctx, w.pool, keysOf(t, folder), SealedTables("journeyman"), nil)
	if err != nil || got.Rows != 1 || len(got.Left) != 0 || got.Changed != 0 {
		t.Fatalf("reseal: %+v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(folder, "k1.key")); err != nil {
		t.Fatal(err)
	}
	w.w = w.another(func(c *Config) { c.Keys = keysOf(t, folder) })
	w.pass(2)
	for _, m := range w.p.taken() {
		if err := Verify(m.header, m.body, time.Now(), secret(t, "a")); err != nil || !bytes.Contains(m.body, []byte(`"type":"operation.completed"`)) {
			t.Errorf("after the rotation: %q, %v", m.body, err)
		}
	}
}

// E4: a message whose key is missing is not dropped and not sent: it is tried by the schedule, and goes out when the key is there.
// One that was put into another row is buried.
func TestE4_KeyMissingOrMessageMoved(t *testing.T) {
	w, _ := sealing(t)
	id := w.stage("m1")
	other := filepath.Join(t.TempDir(), "other")
	if err := seal.Generate(other, "k9"); err != nil {
		t.Fatal(err)
	}
	whole := w.w
	for name, keys := range map[string]seal.Keys{"no keys": nil, "other keys": keysOf(t, other)} {
		w.w = w.another(func(c *Config) { c.Keys = keys })
		w.pass(1)
		if _, log, err := w.w.Show(w.ctx, id); err != nil || !strings.Contains(log[len(log)-1].Error, `key "k1"`) {
			t.Errorf("%s: attempts %+v, %v", name, log, err)
		}
		w.advance(2 * time.Minute)
	}
	if n := len(w.p.taken()); n != 0 {
		t.Fatalf("%d messages were sent encrypted", n)
	}
	w.w = whole
	moved := w.stage("m2")
	if _, err := w.pool.Exec(w.ctx, `UPDATE journeyman.webhook_delivery SET body = (SELECT body FROM journeyman.webhook_delivery WHERE id = $2) WHERE id = $1`, moved, id); err != nil {
		t.Fatal(err)
	}
	w.pass(2)
	w.is(id, Delivered, "", 3)
	w.is(moved, Dead, ReasonChanged, 1)
}

// What was staged before there were keys goes out as it is.
func TestE4_ClearBefore(t *testing.T) {
	w := setup(t, nil)
	id := w.stage("m1")
	folder := filepath.Join(t.TempDir(), "keys")
	if err := seal.Generate(folder, "k1"); err != nil {
		t.Fatal(err)
	}
	w.w = w.another(func(c *Config) { c.Keys = keysOf(t, folder) })
	w.pass(1)
	w.is(id, Delivered, "", 1)
}
