package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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
		_, err = j.Start(text("state"))
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

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, dir, name string, content []byte) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

// copied is the directory as a process killed now would leave it.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := t.TempDir()
	must(t, os.CopyFS(filepath.Join(to, "copy"), os.DirFS(dir)))
	return filepath.Join(to, "copy")
}

func TestSwitch_WhatAnInterruptedOneLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	j.Append([]byte("a"))
	stop(t, j)
	log, err := os.ReadFile(filepath.Join(dir, "00000001.log"))
	must(t, err)
	write(t, dir, "00000002.log", log[:20])
	write(t, dir, "00000002.tmp", []byte("half"))
	j, got := open(t, dir)
	if fmt.Sprint(got) != "[state a]" {
		t.Errorf("got %v, want the old generation", got)
	}
	g, err := j.Switch()
	must(t, err)
	size, err := j.Snapshot(g, text(strings.Repeat("x", 20<<20))) // many frames
	if must(t, err); size != 20<<20 {
		t.Errorf("the snapshot has %d bytes, want 20 MB", size)
	}
	j.Append([]byte("b"))
	stop(t, j)
	j, got = open(t, dir)
	defer stop(t, j)
	if len(got) != 2 || len(got[0]) != 20<<20 || got[1] != "b" {
		t.Errorf("got %d parts, want the new snapshot and b", len(got))
	}
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	if must(t, err); len(files) != 2 {
		t.Errorf("files %v, want one generation", files)
	}
}

// While a snapshot is written, however long that takes, records are appended
// and answered; a process killed then leaves all of them.
func TestSnapshot_RecordsGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	must(t, j.Wait(j.Append([]byte("a"))))
	j.Append([]byte("b")) // perhaps still queued when the log changes
	g, err := j.Switch()
	must(t, err)
	hold, begun, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := j.Snapshot(g, func(w io.Writer) error {
			close(begun)
			<-hold
			return text("state a b")(w)
		})
		done <- err
	}()
	<-begun
	must(t, j.Wait(j.Append([]byte("c"))))
	must(t, j.Wait(j.Append([]byte("d"))))
	killed := copied(t, dir)
	k, got := open(t, killed)
	if fmt.Sprint(got) != "[state a b c d]" {
		t.Errorf("killed while it is written: got %v", got)
	}
	k.Append([]byte("e"))
	stop(t, k)
	k, got = open(t, killed)
	if fmt.Sprint(got) != "[state a b c d e]" {
		t.Errorf("and gone on: got %v", got)
	}
	g, err = k.Switch()
	must(t, err)
	_, err = k.Snapshot(g, text("all"))
	must(t, err)
	stop(t, k)
	if k, got = open(t, killed); fmt.Sprint(got) != "[all]" {
		t.Errorf("snapshot after two logs: got %v", got)
	}
	stop(t, k)

	close(hold)
	must(t, <-done)
	must(t, j.Wait(j.Append([]byte("e"))))
	stop(t, j)
	if j, got = open(t, dir); fmt.Sprint(got) != "[state a b c d e]" || len(got) != 4 {
		t.Errorf("got %q, want the new snapshot and c d e", got)
	}
	stop(t, j)
}

// Records around a switch, queued or written, each go to the log they belong to.
func TestSwitch_NothingIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	n, state := 0, 0
	add := func(k int) {
		for range k {
			j.Append(fmt.Append(nil, n))
			n++
		}
	}
	for round := range 40 {
		add(round % 4)
		g, err := j.Switch()
		must(t, err)
		state = n
		add(1 + round%3)
		_, err = j.Snapshot(g, text(fmt.Sprint("before ", state)))
		must(t, err)
	}
	stop(t, j)
	j, got := open(t, dir)
	defer stop(t, j)
	want := []string{fmt.Sprint("before ", state)}
	for k := state; k < n; k++ {
		want = append(want, fmt.Sprint(k))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A snapshot that cannot be written changes nothing, and the logs are the state.
func TestSnapshot_Fails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	j.Append([]byte("a"))
	g, err := j.Switch()
	must(t, err)
	full := errors.New("no room")
	if _, err := j.Snapshot(g, func(io.Writer) error { return full }); !errors.Is(err, full) {
		t.Errorf("got %v, want the writer's error", err)
	}
	must(t, j.Wait(j.Append([]byte("b"))))
	stop(t, j)
	j, got := open(t, dir)
	stop(t, j)
	if fmt.Sprint(got) != "[state a b]" {
		t.Errorf("got %v", got)
	}
}

// Damage in a log that another follows is never a torn tail, and a missing log is named.
func TestReplay_DamageBeforeTheLastLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, _ := open(t, dir)
	j.Append([]byte("a"))
	j.Append([]byte("b"))
	_, err := j.Switch()
	must(t, err)
	j.Append([]byte("c"))
	stop(t, j)
	first := filepath.Join(dir, "00000001.log")
	log, err := os.ReadFile(first)
	must(t, err)
	nothing := func([]byte) error { return nil }
	write(t, dir, "00000001.log", log[:len(log)-1])
	k, err := journal.Open(dir)
	must(t, err)
	var corrupt *journal.CorruptError
	if err := k.Replay(nothing, nothing); !errors.As(err, &corrupt) || corrupt.File != first {
		t.Errorf("got %v, want damage of %s", err, first)
	}
	stop(t, k)
	must(t, os.Rename(filepath.Join(dir, "00000002.log"), filepath.Join(dir, "00000003.log")))
	if _, err := journal.Open(dir); err == nil || !strings.Contains(err.Error(), "log 2 before it is not there") {
		t.Errorf("got %v, want that log 2 is missing", err)
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
	if _, err := j.Switch(); err == nil {
		t.Error("a snapshot after Close: want an error")
	}
	if err := j.Wait(j.Append([]byte("x"))); err == nil {
		t.Error("a record after Close: want an error")
	}
}
