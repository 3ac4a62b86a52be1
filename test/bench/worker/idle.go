package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/vitrip/journeyman/test/bench/rig"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// serveIdle is a worker process whose job types have no jobs. It ends with its input.
func serveIdle(ctx context.Context, in io.Reader, out io.Writer, addr, dsn string, types int) error {
	b := &bench{concurrency: 8, active: 2 * types}
	var err error
	if b.pool, err = rig.Pool(ctx, dsn, 8); err != nil {
		return err
	}
	defer b.pool.Close()
	o, err := b.newOurs(ctx, "journeyman", 0)
	if err != nil {
		return err
	}
	names := make([]string, types)
	for i := range names {
		names[i] = fmt.Sprint("idle-", i)
	}
	conn, err := zeebe.Dial(zeebe.Config{Address: addr, Plaintext: true})
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // the process ends
	w, err := worker.New(conn, b.pool, o.mux(names...), o.config())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	if _, err := fmt.Fprintln(out, "started"); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() { // a line asks for the memory that is really used
		runtime.GC()
		debug.FreeOSMemory()
		if _, err := fmt.Fprintln(out, "collected"); err != nil {
			break
		}
	}
	cancel()
	return <-ended
}

// idle is what a worker with idle job types costs: percent of a core (its own and its connections' at PostgreSQL), resident bytes.
func (b *bench) idle(types int, settle, during time.Duration) (percent float64, bytes int64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(self, "-serve-idle", b.engine.addr, "-dsn", b.db.DSN, "-types", fmt.Sprint(types)) //nolint:noctx // ends with its input
	cmd.Stderr, cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, 0, err
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, 0, err
	}
	out := bufio.NewReader(pipe)
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() {
		err = errors.Join(err, in.Close(), cmd.Wait())
	}()
	expect := func(word string) error {
		line, err := out.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != word {
			return fmt.Errorf("idle process said %q: %w", line, err)
		}
		return nil
	}
	if err := expect("started"); err != nil {
		return 0, 0, err
	}
	<-time.After(settle)
	m, err := newMeter(cmd.Process.Pid, b.db.PID())
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	<-time.After(during)
	u, err := m.read()
	if err != nil {
		return 0, 0, err
	}
	percent = u.sum().Seconds() / time.Since(began).Seconds() * 100
	fmt.Fprintf(b.progress, "idle: %d types, worker %s, backends %s in %s\n", types, u.worker, u.backends, during) //nolint:errcheck // progress
	if _, err := fmt.Fprintln(in, "collect"); err != nil {
		return percent, 0, err
	}
	if err := expect("collected"); err != nil {
		return percent, 0, err
	}
	bytes, err = resident(cmd.Process.Pid)
	return percent, bytes, err
}
