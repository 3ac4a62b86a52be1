package journal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/engine/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, dir string) (*journal.Journal, []string) {
	t.Helper()
	j, err := journal.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if j.Fresh() {
		err = j.Rotate([]byte("state"))
	} else {
		err = j.Replay(func(b []byte) error { got = append(got, string(b)); return nil }, func(b []byte) error { got = append(got, string(b)); return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return j, got
}

func stop(t testing.TB, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Many writers at once: all records are there, each writer's in its order.
func TestAppend_ManyWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range 50 {
				if err := j.Wait(j.Append(fmt.Appendf(nil, "%d %d", w, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	stop(t, j)
	j, got := open(t, dir)
	defer stop(t, j)
	next := [8]int{}
	for _, r := range got[1:] {
		var w, n int
		if _, err := fmt.Sscanf(r, "%d %d", &w, &n); err != nil || next[w] != n {
			t.Fatalf("record %q, %v: want number %d", r, err, next[w])
		}
		next[w]++
	}
	if len(got) != 401 {
		t.Errorf("%d records, want 400 and the snapshot", len(got))
	}
}

func TestRotate_WhatAnInterruptedOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	j.Append([]byte("a"))
	stop(t, j)
	log, err := os.ReadFile(filepath.Join(dir, "00000001.log"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"00000002.log": log[:24], "00000002.tmp": []byte("half")} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j, got := open(t, dir)
	if fmt.Sprint(got) != "[state a]" {
		t.Errorf("got %v, want the old generation", got)
	}
	if err := j.Rotate(bytes.Repeat([]byte("x"), 20<<20)); err != nil { // several frames
		t.Fatal(err)
	}
	j.Append([]byte("b"))
	stop(t, j)
	j, got = open(t, dir)
	defer stop(t, j)
	if len(got) != 2 || len(got[0]) != 20<<20 || got[1] != "b" {
		t.Errorf("got %d parts, want the new snapshot and b", len(got))
	}
}

// Whatever a log holds, reading it gives records that were written, or an error.
func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	j, _ := open(f, dir)
	j.Append([]byte("one"))
	j.Append([]byte("two"))
	stop(f, j)
	good, err := os.ReadFile(filepath.Join(dir, "00000001.log"))
	if err != nil {
		f.Fatal(err)
	}
	snap, err := os.ReadFile(filepath.Join(dir, "00000001.snapshot"))
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 10, 24, 30, len(good) - 1, len(good)} {
		f.Add(good[:n])
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{"00000001.log": log, "00000001.snapshot": snap} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		j, err := journal.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = j.Replay(func([]byte) error { return nil }, func([]byte) error { n++; return nil })
		if err == nil && n > 2 && !bytes.HasPrefix(log, good) {
			t.Logf("%d records", n)
		}
		stop(t, j)
	})
}

func TestClosed_TakesNothing(t *testing.T) {
	t.Parallel()
	j, _ := open(t, t.TempDir())
	stop(t, j)
	if err := j.Rotate([]byte("x")); err == nil {
		t.Error("a snapshot after Close: want an error")
	}
	if err := j.Wait(j.Append([]byte("x"))); err == nil {
		t.Error("a record after Close: want an error")
	}
}
