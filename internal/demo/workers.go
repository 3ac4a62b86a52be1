package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// drainTime is how long a worker process may take to stop before it is killed.
const drainTime = 15 * time.Second

// kill is one death of the worker process at a named point.
type kill struct{ point, detail string }

// workers keeps one worker process running: it arms the planned kills, starts
// the process again after each of them, and drains it at the end.
type workers struct {
	// command makes the process; it is given the value of CRASH_AT. Stdin is set
	// by workers: the process must drain when it closes, so that it cannot outlive us.
	command func(crashAt string) *exec.Cmd
	killLog string // file that the process appends to before it kills itself
	// dead runs while no worker process lives, after each kill.
	dead func(ctx context.Context, k kill) error

	rearm chan struct{} // see newWorkers

	mu    sync.Mutex
	plan  []string // "point@detail", each to be hit once
	kills []kill
	read  int // lines of killLog that were seen
	pid   int // 0 while no process lives
}

func newWorkers(killLog string, command func(crashAt string) *exec.Cmd, dead func(ctx context.Context, k kill) error) *workers {
	return &workers{command: command, killLog: killLog, dead: dead, rearm: make(chan struct{}, 1)}
}

// arm adds kills to the plan. The process that runs is drained and started again, as in a deployment.
func (w *workers) arm(plan []string) {
	if len(plan) == 0 {
		return
	}
	w.mu.Lock()
	w.plan = append(w.plan, plan...)
	w.mu.Unlock()
	select {
	case w.rearm <- struct{}{}:
	default: // it will be started again anyhow
	}
}

// loosen lets what is left of the plan happen anywhere: the piece of work that a
// kill was pinned to may have passed while the process was dead for another one.
func (w *workers) loosen() {
	w.mu.Lock()
	left := w.plan
	w.plan = nil
	w.mu.Unlock()
	for i, p := range left {
		point, _, _ := strings.Cut(p, "@")
		left[i] = point + "@"
	}
	w.arm(left)
}

// run blocks until ctx ends and the process has drained, or until the process ends in a way nobody planned.
func (w *workers) run(ctx context.Context) error {
	for ctx.Err() == nil {
		killed, err := w.once(ctx)
		if err != nil {
			return err
		}
		if killed == nil {
			continue
		}
		w.mu.Lock()
		w.kills = append(w.kills, *killed)
		w.plan = slices.DeleteFunc(w.plan, func(p string) bool {
			point, detail, _ := strings.Cut(p, "@")
			return point == killed.point && strings.Contains(killed.detail, detail)
		})
		w.mu.Unlock()
		if err := w.dead(ctx, *killed); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	return nil
}

// once runs one process to its end. It returns the kill that ended it, or nil after a drain.
func (w *workers) once(ctx context.Context) (*kill, error) {
	select {
	case <-w.rearm: // this process is armed with all there is
	default:
	}
	cmd := w.command(w.crashAt())
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()                                    //nolint:errcheck // only tells the process to end
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C at the terminal is for us alone
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker process: %w", err)
	}
	w.setPID(cmd.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	drained := false
	select {
	case err = <-ended:
	case <-ctx.Done():
		err, drained = drain(cmd, ended), true
	case <-w.rearm:
		err, drained = drain(cmd, ended), true
	}
	w.setPID(0)
	if drained && !endedBy(err, syscall.SIGKILL) {
		if endedBy(err, syscall.SIGTERM) {
			err = nil // it had not begun to listen to signals
		}
		return nil, err
	}
	if !endedBy(err, syscall.SIGKILL) {
		return nil, fmt.Errorf("worker process ended by itself: %w", orClean(err))
	}
	return w.lastKill()
}

func drain(cmd *exec.Cmd, ended <-chan error) error {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		_ = cmd.Process.Kill()
		<-ended
		return fmt.Errorf("worker process did not drain within %v", drainTime)
	}
}

func orClean(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

func endedBy(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// crashAt is the plan in the form that crash.Arm reads.
func (w *workers) crashAt() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	armed := make([]string, len(w.plan))
	for i, p := range w.plan {
		armed[i] = p + ":1" // the count is needed: details hold colons
	}
	return strings.Join(armed, ",")
}

// lastKill reads what the process wrote before it killed itself.
func (w *workers) lastKill() (*kill, error) {
	f, err := os.Open(w.killLog)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var lines []string
	if err == nil {
		defer f.Close() //nolint:errcheck // read only
		scan := bufio.NewScanner(f)
		for scan.Scan() {
			lines = append(lines, scan.Text())
		}
		if scan.Err() != nil {
			return nil, scan.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(lines) <= w.read {
		return &kill{point: "elsewhere"}, nil // somebody else's SIGKILL
	}
	w.read = len(lines)
	point, detail, _ := strings.Cut(lines[len(lines)-1], "\t")
	return &kill{point: point, detail: detail}, nil
}

func (w *workers) setPID(pid int) {
	w.mu.Lock()
	w.pid = pid
	w.mu.Unlock()
}

// killed returns the points that killed a process so far, in order.
func (w *workers) killed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	points := make([]string, len(w.kills))
	for i, k := range w.kills {
		points[i] = k.point
	}
	return points
}

// planned returns the kills that have not happened yet.
func (w *workers) planned() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.plan)
}

// tail returns the last n lines of a file, for an error message.
func tail(path string, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // read only
	const most = 16 << 10
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart)
	}
	text, _ := io.ReadAll(f)
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
