package audit_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/audit"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

const chain0, chain1 = "tester/test.access.granted.v1/0", "tester/test.access.granted.v1/1"

func (f *fixture) verify(known ...audit.Head) audit.Report {
	f.Helper()
	r, err := audit.VerifyLedger(f.ctx, f.pool, "journeyman", f.keys, nil, known...)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

func TestVerifyLedger_WholeIsWhole_E4(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"clear": "", "encrypted": "encryption: {audit: at_rest, compliance: end_to_end}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setup(t, more)
			r := f.verify()
			if !r.OK() || r.Rows != 14 || len(r.Heads) != 2 || r.Heads[0].Link != 6 || r.Unchecked != 0 {
				t.Fatalf("got %+v", r)
			}
			f.emit("test.access.granted", 9)
			if later := f.verify(r.Heads...); !later.OK() || later.Heads[1].Link != 7 {
				t.Errorf("with known heads: %+v", later)
			}
			blind, err := audit.VerifyLedger(f.ctx, f.pool, "journeyman", nil, nil)
			if want := map[string]int64{"clear": 0, "encrypted": 16}[name]; err != nil || !blind.OK() || blind.Unchecked != want {
				t.Errorf("without keys: %+v, %v; want %d unchecked", blind, err, want)
			}
		})
	}
}

// Whoever goes around the guards is found, and the first broken link is named.
func TestVerifyLedger_FindsTampering_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "")
	if _, err := f.pool.Exec(f.ctx, `CREATE TABLE ledger AS TABLE journeyman.event_ledger; CREATE TABLE chain AS TABLE journeyman.outbox_chain`); err != nil {
		t.Fatal(err)
	}
	const where = ` WHERE chain = '` + chain0 + `' AND link `
	for name, c := range map[string]struct {
		sql  string
		link int64
		what string
	}{
		"edit of the body":        {`UPDATE journeyman.event_ledger SET body = convert_to(replace(convert_from(body, 'UTF8'), 'passport', 'nobody'), 'UTF8')` + where + `= 3`, 3, "does not match its digest"},
		"edit of body and digest": {`UPDATE journeyman.event_ledger SET body = '{}', body_sum = encode(sha256('{}'), 'hex')` + where + `= 3`, 3, "does not match its hash"},
		"edit of a header":        {`UPDATE journeyman.event_ledger SET headers[2] = 'x'` + where + `= 2`, 2, "does not match its hash"},
		"edit of the time":        {`UPDATE journeyman.event_ledger SET recorded_at = recorded_at - interval '1 day'` + where + `= 4`, 4, "does not match its hash"},
		"edit of the key":         {`UPDATE journeyman.event_ledger SET business_key = 'K'` + where + `= 6`, 6, "does not match its hash"},
		"link computed anew": {`UPDATE journeyman.event_ledger SET operation_id = 'x', hash = journeyman.event_ledger_hash(previous, chain, link, event_id, type, version, topic, business_key, seq,
			'x', occurred_at, recorded_at, headers, body_sum)` + where + `= 3`, 4, "does not follow link 3"},
		"deletion":          {`DELETE FROM journeyman.event_ledger` + where + `= 3`, 3, "is missing, the next there is 4"},
		"deletion in front": {`DELETE FROM journeyman.event_ledger` + where + `<= 2`, 1, "is missing, the next there is 3"},
		"truncation":        {`DELETE FROM journeyman.event_ledger` + where + `> 4`, 5, "cut off before its head, link 6"},
		"all gone":          {`DELETE FROM journeyman.event_ledger` + where + `> 0`, 1, "all links up to 6"},
		"head gone, too":    {`DELETE FROM journeyman.event_ledger` + where + `> 4; DELETE FROM journeyman.outbox_chain WHERE chain = '` + chain0 + `'`, 4, "has no head"},
		"reorder": {`UPDATE journeyman.event_ledger SET link = -1` + where + `= 3; UPDATE journeyman.event_ledger SET link = 3` + where + `= 4;
			UPDATE journeyman.event_ledger SET link = 4` + where + `= -1`, 3, "does not"},
		"insertion": {`UPDATE journeyman.event_ledger SET link = 99` + where + `= 6; INSERT INTO journeyman.event_ledger (recorded_at, class, chain, link, previous, hash, event_id, type, version,
			topic, business_key, seq, operation_id, headers, body, body_sum, occurred_at) SELECT recorded_at, class, chain, 6, previous, hash, gen_random_uuid(), type, version, topic,
			business_key, seq, operation_id, headers, body, body_sum, occurred_at FROM journeyman.event_ledger` + where + `= 99; UPDATE journeyman.event_ledger SET link = 7` + where + `= 99`, 6, "does not match its hash"},
		"compliance body": {`UPDATE journeyman.event_ledger SET body = '{}' WHERE class = 'compliance'`, 0, "does not match its digest"},
	} {
		f.tamper(c.sql)
		if r := f.verify(); r.OK() || len(r.Faults) != 1 || r.Faults[0].Link != c.link || !strings.Contains(r.Faults[0].What, c.what) {
			t.Errorf("%s: got %v, want link %d: %s", name, r.Faults, c.link, c.what)
		}
		f.tamper(`DELETE FROM journeyman.event_ledger; INSERT INTO journeyman.event_ledger OVERRIDING SYSTEM VALUE SELECT * FROM ledger;
			DELETE FROM journeyman.outbox_chain; INSERT INTO journeyman.outbox_chain SELECT * FROM chain`)
		if r := f.verify(); !r.OK() {
			t.Fatalf("%s: undone, but got %v", name, r.Faults)
		}
	}
}

// A chain that is written anew, head and all, shows by a head that was kept elsewhere.
func TestVerifyLedger_KnownHeads_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "")
	kept := f.verify().Heads
	f.tamper(`DELETE FROM journeyman.event_ledger WHERE chain = '` + chain0 + `' AND link > 4;
		UPDATE journeyman.outbox_chain c SET link = 4, hash = (SELECT hash FROM journeyman.event_ledger l WHERE l.chain = c.chain AND l.link = 4) WHERE chain = '` + chain0 + `'`)
	if r := f.verify(); !r.OK() {
		t.Fatalf("without a known head it should not show: %v", r.Faults)
	}
	if r := f.verify(kept...); r.OK() || r.Faults[0].Chain != chain0 || r.Faults[0].Link != 5 {
		t.Errorf("got %v, want link 5 missing", r.Faults)
	}
	f.write("test.access.granted", "K-0", 7)
	f.write("test.access.granted", "K-0", 8)
	f.write("test.access.granted", "K-1", 7)
	f.write("test.access.granted", "K-1", 8)
	if r := f.verify(kept...); r.OK() || r.Faults[0].Link != 6 || !strings.Contains(r.Faults[0].What, "known head") {
		t.Errorf("written anew: got %v, want link 6 with another hash", r.Faults)
	}
	f.tamper(`DELETE FROM journeyman.event_ledger; DELETE FROM journeyman.outbox_chain`)
	if r := f.verify(kept...); len(r.Faults) != 2 {
		t.Errorf("everything gone: got %v", r.Faults)
	}
}

func (f *fixture) bucket() (string, *bucket.Bucket) {
	f.Helper()
	dir := f.TempDir()
	b, err := bucket.Open(f.ctx, "file://"+dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = b.Close() })
	return dir, b
}

// Segments are written once, whatever runs twice; the archive proves itself and the database.
func TestArchive_WriteOnce_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "encryption: {audit: at_rest}\n")
	_, store := f.bucket()
	done := make(chan error, 4)
	for range 4 { // at once: one writes each segment
		go func() { _, err := audit.Archive(f.ctx, f.pool, "journeyman", store); done <- err }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		f.emit("test.access.granted", n)
	}
	got, err := audit.Archive(f.ctx, f.pool, "journeyman", store)
	if err != nil || got.Rows != 6 || got.Segments != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got, err := audit.Archive(f.ctx, f.pool, "journeyman", store); err != nil || got.Segments != 0 {
		t.Errorf("nothing new: %+v, %v", got, err)
	}
	r, err := audit.VerifyArchive(f.ctx, store, f.keys, nil)
	if err != nil || !r.OK() || r.Rows != 18 || len(r.Heads) != 2 || r.Unchecked != 0 {
		t.Fatalf("archive: %+v, %v", r, err)
	}
	if r := f.verify(r.Heads...); !r.OK() {
		t.Errorf("database against the archive: %v", r.Faults)
	}
	names, err := store.List(f.ctx, "audit/")
	if err != nil || len(names) != 4 {
		t.Fatalf("objects %v, %v", names, err)
	}
	before, _ := store.Read(f.ctx, names[0])
	if err := store.Create(f.ctx, names[0], []byte("other")); !errors.Is(err, archive.ErrExists) {
		t.Errorf("a segment was written over: %v", err)
	}
	if after, _ := store.Read(f.ctx, names[0]); !bytes.Equal(before, after) || bytes.Contains(after, []byte("passport")) {
		t.Error("a segment changed, or shows clear bodies")
	}

	// A database that is written anew does not follow its archive any more.
	f.tamper(`UPDATE journeyman.event_ledger SET hash = repeat('1', 64) WHERE chain = '` + chain0 + `' AND link = 9;
		UPDATE journeyman.outbox_chain SET hash = repeat('1', 64) WHERE chain = '` + chain0 + `'`)
	f.emit("test.access.granted", 10)
	got, err = audit.Archive(f.ctx, f.pool, "journeyman", store)
	if !errors.Is(err, audit.ErrBroken) || !strings.Contains(err.Error(), "link 10") || got.Segments != 1 {
		t.Errorf("got %+v, %v; want the broken chain refused and the other one archived", got, err)
	}
}

// The archive's files alone show edits, removals, another order and a cut-off end.
func TestVerifyArchive_FindsTampering_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "")
	dir, store := f.bucket()
	for n := range 3 {
		if _, err := audit.Archive(f.ctx, f.pool, "journeyman", store); err != nil {
			t.Fatal(err)
		}
		f.emit("test.access.granted", n)
	}
	whole, err := audit.VerifyArchive(f.ctx, store, nil, nil)
	if err != nil || !whole.OK() {
		t.Fatalf("%+v, %v", whole, err)
	}
	var files []string // of chain 0: links 1 to 6, 7, 8
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && strings.HasSuffix(path, ".jsonl.gz") {
			files = append(files, path)
		}
		return nil
	})
	sort.Strings(files)
	files = files[:3]
	read := func(i int) []byte {
		raw, err := os.ReadFile(files[i])
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	saved := [][]byte{read(0), read(1), read(2)}
	for name, c := range map[string]struct {
		do   func() error
		link int64
		what string
	}{
		"edit":    {func() error { return os.WriteFile(files[0], edited(t, saved[0]), 0o600) }, 3, "does not match"},
		"garbage": {func() error { return os.WriteFile(files[1], []byte("x"), 0o600) }, 7, ""},
		"removal": {func() error { return os.Remove(files[1]) }, 7, "is missing"},
		"reorder": {func() error {
			return errors.Join(os.WriteFile(files[1], saved[2], 0o600), os.WriteFile(files[2], saved[1], 0o600))
		}, 7, ""},
		"truncation": {func() error { return os.Remove(files[2]) }, 8, "known head"},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		r, err := audit.VerifyArchive(f.ctx, store, nil, nil, whole.Heads...)
		if err != nil || r.OK() || r.Faults[0].Link != c.link || !strings.Contains(fmt.Sprint(r.Faults), c.what) {
			t.Errorf("%s: got %v, %v; want link %d", name, r.Faults, err, c.link)
		}
		for i, raw := range saved {
			if err := os.WriteFile(files[i], raw, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r, err := audit.VerifyArchive(f.ctx, store, nil, nil, whole.Heads...); err != nil || !r.OK() {
		t.Errorf("mended: %v, %v", r.Faults, err)
	}
}

// Rotation: everything is under the new key, guards and hashes notwithstanding, and the old key can go.
func TestReseal_LedgerKeepsItsHashes_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "encryption: {audit: at_rest, compliance: at_rest}\n")
	dir := t.TempDir() + "/keys"
	for _, id := range []string{"k1", "k2"} {
		if err := seal.Generate(dir, id); err != nil {
			t.Fatal(err)
		}
	}
	both, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	// The new folder's k1 is another key: nothing opens, nothing is lost.
	got, err := seal.Reseal(f.ctx, f.pool, both, outbox.SealedTables("journeyman"), nil)
	if err != nil || got.Rows != 0 || got.Changed != 28 {
		t.Fatalf("with a wrong key: %+v, %v", got, err)
	}
	own := f.dir
	if err := seal.Generate(own, "k2"); err != nil {
		t.Fatal(err)
	}
	if both, err = seal.OpenDir(own); err != nil {
		t.Fatal(err)
	}
	got, err = seal.Reseal(f.ctx, f.pool, both, outbox.SealedTables("journeyman"), nil)
	if err != nil || got.Rows != 28 || got.Changed != 0 || len(got.Left) != 0 {
		t.Fatalf("got %+v, %v; want 14 rows of the outbox and 14 of the ledger", got, err)
	}
	if err := os.Remove(filepath.Join(own, "k1.key")); err != nil {
		t.Fatal(err)
	}
	if f.keys, err = seal.OpenDir(own); err != nil {
		t.Fatal(err)
	}
	if r := f.verify(); !r.OK() || r.Unchecked != 0 || r.Rows != 14 {
		t.Errorf("under the new key alone: %+v", r)
	}
}

// edited changes one message inside a segment.
func edited(t *testing.T, segment []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(segment))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	lines[2] = strings.Replace(lines[2], `"type":"test.access.granted"`, `"type":"test.access.refused"`, 1)
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, strings.Join(lines, "")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// The event log proves the chains as far as it goes: published, and not dropped yet.
func TestVerifyLog_E4(t *testing.T) {
	t.Parallel()
	f := setup(t, "encryption: {audit: at_rest}\n")
	if r, err := audit.VerifyLog(f.ctx, f.pool, "journeyman", f.keys, nil); err != nil || !r.OK() || r.Rows != 0 {
		t.Fatalf("nothing is published: %+v, %v", r, err)
	}
	f.publish(14)
	verify := func() audit.Report {
		t.Helper()
		r, err := audit.VerifyLog(f.ctx, f.pool, "journeyman", f.keys, nil, f.verify().Heads...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := verify(); !r.OK() || r.Rows != 12 || len(r.Heads) != 2 {
		t.Fatalf("got %+v", r)
	}
	link := func(n string) string {
		return ` FROM journeyman.event_log WHERE headers[array_position(headers, 'audit_chain') + 1] = '` + chain1 + `' AND headers[array_position(headers, 'audit_link') + 1] = '` + n + `'`
	}
	f.tamper(`DELETE` + link("1"))
	if r := verify(); !r.OK() || r.Rows != 11 {
		t.Errorf("a front that was dropped by its retention: %+v", r)
	}
	f.tamper(`UPDATE journeyman.event_log SET operation_id = 'x' WHERE event_id = (SELECT event_id` + link("4") + `)`)
	if r := verify(); r.OK() || r.Faults[0].Link != 4 || !strings.Contains(r.Faults[0].What, "does not match its hash") {
		t.Errorf("an edit: got %v", r.Faults)
	}
	f.tamper(`DELETE` + link("3"))
	if r := verify(); r.OK() || r.Faults[0].Link != 3 || !strings.Contains(r.Faults[0].What, "is missing") {
		t.Errorf("a deletion: got %v", r.Faults)
	}
	f.tamper(`DELETE` + link("6"))
	if r := verify(); r.OK() || r.Faults[0].Link != 3 {
		t.Errorf("a cut-off end, too: got %v", r.Faults)
	}
	if r, err := audit.VerifyLog(f.ctx, f.pool, "journeyman", nil, nil); err != nil || r.OK() {
		t.Errorf("without keys nothing is proved: %+v, %v", r, err)
	}
}
