package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/internal/crash"
)

// envChild makes this test binary act as a worker process: "points" walks
// through crash points and then waits, "fails" ends by itself.
const envChild = "DEMO_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(envChild); mode != "" {
		os.Exit(child(mode))
	}
	goleak.VerifyTestMain(m)
}

func child(mode string) int {
	if mode == "fails" {
		fmt.Fprintln(os.Stderr, "cannot work")
		return 3
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if err := crash.Arm(os.Getenv("CRASH_AT"), os.Getenv("CRASH_LOG")); err != nil {
		return 2
	}
	for _, id := range []string{"op_a:flightReserve:flight", "op_b:hotelReserve:hotel"} {
		for _, p := range []string{"worker.claimed", "worker.commit.after", "relay.publish.acked"} {
			crash.Point(p, id)
		}
	}
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(closed)
	}()
	select {
	case <-stop:
	case <-closed:
	}
	return 0
}

func testWorkers(t *testing.T, mode string, plan []string, dead func(context.Context, kill) error) *workers {
	t.Helper()
	log := filepath.Join(t.TempDir(), "kills")
	w := newWorkers(log, func(crashAt string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envChild+"="+mode, "CRASH_AT="+crashAt, "CRASH_LOG="+log)
		return cmd
	}, dead)
	w.arm(plan)
	return w
}

func TestWorkers_kills(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var seen []kill
	var w *workers
	w = testWorkers(t, "points", []string{"worker.commit.after@op_b:hotelReserve:hotel", "worker.claimed@op_a:flightReserve:flight", "relay.publish.acked@"},
		func(_ context.Context, k kill) error {
			if w.pid != 0 {
				t.Errorf("a process lives while %v is handled", k)
			}
			if seen = append(seen, k); len(seen) == 3 {
				cancel() // all were hit
			}
			return nil
		})
	if err := w.run(ctx); err != nil {
		t.Fatal(err)
	}
	want := []string{"worker.claimed", "relay.publish.acked", "worker.commit.after"}
	if got := w.killed(); !slices.Equal(got, want) || len(w.planned()) != 0 {
		t.Errorf("killed at %v with %v left, want %v and nothing left", got, w.planned(), want)
	}
	if seen[2].detail != "op_b:hotelReserve:hotel" {
		t.Errorf("the last kill was at %+v, want op_b:hotelReserve:hotel", seen[2])
	}
}

func TestWorkers_drain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	w := testWorkers(t, "points", nil, func(context.Context, kill) error { return errors.New("nobody was killed") })
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	await(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.pid != 0 })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("drain: %v", err)
	}
}

// TestWorkers_arm: kills that are planned while a process runs reach the next one, which starts at once.
func TestWorkers_arm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := testWorkers(t, "points", nil, func(context.Context, kill) error { cancel(); return nil })
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	await(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.pid != 0 })
	w.arm([]string{"worker.claimed@op_b"})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.killed(); !slices.Equal(got, []string{"worker.claimed"}) {
		t.Errorf("killed at %v, want worker.claimed", got)
	}
}

// TestWorkers_loosen: a kill pinned to work that has passed is met by other work.
func TestWorkers_loosen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := testWorkers(t, "points", []string{"worker.commit.after@op_gone:hotelReserve:hotel"}, func(context.Context, kill) error { cancel(); return nil })
	done := make(chan error, 1)
	go func() { done <- w.run(ctx) }()
	await(t, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.pid != 0 })
	w.loosen()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := w.killed(); !slices.Equal(got, []string{"worker.commit.after"}) {
		t.Errorf("killed at %v, want worker.commit.after", got)
	}
}

func TestWorkers_endsByItself(t *testing.T) {
	t.Parallel()
	w := testWorkers(t, "fails", nil, func(context.Context, kill) error { return nil })
	if err := w.run(context.Background()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want the exit status", err)
	}
}

// await polls a real condition; it fails the test after ten seconds.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if ok() {
			return
		}
	}
	t.Fatal("the condition never came")
}
