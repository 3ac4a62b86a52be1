package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// nobody is the unprivileged user a cluster runs as when we are root: PostgreSQL refuses root.
const nobody = 65534

// Cluster is a private PostgreSQL server in a folder of its own, reached over a Unix socket.
type Cluster struct {
	DSN  string // of the database "postgres", superuser postgres
	dir  string
	args []string // the server's program and its arguments
	cmd  *exec.Cmd
	out  *bytes.Buffer
	end  chan error
	once sync.Once
}

// Launch makes and starts a throw-away cluster with the programs in bin (see
// [Find]) and waits until it answers. Durability is off: the cluster does not
// outlive the machine, only the processes that use it. It dies with this
// process even when that is killed (Linux). Call Stop.
func Launch(ctx context.Context, bin string) (*Cluster, error) {
	return LaunchIn(ctx, bin, tempRoot())
}

// LaunchIn is [Launch] with the cluster's folder under parent, "" = the temporary folder, and settings of the server
// ("fsync=on") that override its own.
func LaunchIn(ctx context.Context, bin, parent string, settings ...string) (*Cluster, error) {
	dir, err := os.MkdirTemp(parent, "jmpg-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, out: &bytes.Buffer{}, end: make(chan error, 1)}
	if err := c.start(ctx, bin, settings); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

// tempRoot is a place that an unprivileged user can reach, with a path short enough for a socket.
func tempRoot() string {
	if os.Geteuid() == 0 {
		return "/tmp"
	}
	return ""
}

func (c *Cluster) start(ctx context.Context, bin string, settings []string) error {
	data, sock := filepath.Join(c.dir, "data"), filepath.Join(c.dir, "sock")
	if err := os.Chmod(c.dir, 0o755); err != nil { //nolint:gosec // the server's user must pass through
		return err
	}
	for _, d := range []string{data, sock} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(d, nobody, nobody); err != nil {
				return err
			}
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = c.dir, procAttr()
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	c.args = []string{
		filepath.Join(bin, "postgres"), "-D", data, "-k", sock,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "shared_buffers=128MB", "-c", "max_connections=300", "-c", "log_min_messages=fatal",
	}
	for _, s := range settings {
		c.args = append(c.args, "-c", s)
	}
	c.DSN = "host=" + sock + " user=postgres dbname=postgres sslmode=disable"
	if err := c.serve(); err != nil {
		return err
	}
	return c.await(ctx)
}

// serve starts the server over its files.
func (c *Cluster) serve() error {
	c.cmd = exec.Command(c.args[0], c.args[1:]...) //nolint:gosec,noctx // our own server, ended by Stop and not by ctx
	c.cmd.Dir, c.cmd.SysProcAttr = c.dir, procAttr()
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when the starting thread ends
		started <- c.cmd.Start()
		c.end <- c.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	return nil
}

// await waits until the server answers.
func (c *Cluster) await(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, c.DSN)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("postgres did not answer: %w", err), c.Stop())
		case err := <-c.end:
			c.end <- err
			return fmt.Errorf("postgres ended at start: %w\n%s", err, c.out)
		case <-tick.C:
		}
	}
}

// PID is the process id of the server, the parent of those that serve connections.
func (c *Cluster) PID() int { return c.cmd.Process.Pid }

// Crash kills the server by SIGKILL and waits until all its processes are gone, as they are at once without it: what it had not
// written is lost. [Cluster.Restart] brings it back over its files.
func (c *Cluster) Crash() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill postgres: %w", err)
	}
	c.end <- <-c.end // the wait for its output ends with the last process; Stop finds it ended
	return nil
}

// CrashBackend kills a process that serves a connection, as the kernel does when memory runs out, and waits until the server answers
// again: it ends all other connections, recovers as after a crash and goes on under its own PID.
func (c *Cluster) CrashBackend(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DSN)
	if err != nil {
		return fmt.Errorf("kill a server process of postgres: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // it is dead
	p, err := os.FindProcess(int(conn.PgConn().PID()))
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		return fmt.Errorf("kill a server process of postgres: %w", err)
	}
	for conn.Ping(ctx) == nil { // the process is not gone yet
	}
	return c.await(ctx)
}

// Restart starts a server that crashed and waits until it has recovered and answers. When ctx ends first the cluster is stopped.
func (c *Cluster) Restart(ctx context.Context) error {
	<-c.end
	c.out.Reset()
	if err := c.serve(); err != nil {
		return err
	}
	return c.await(ctx)
}

// Stop ends the server, waits for it and removes its folder. Safe to call more than once.
func (c *Cluster) Stop() error {
	var err error
	c.once.Do(func() {
		_ = c.cmd.Process.Signal(syscall.SIGINT) // fast shutdown
		select {
		case <-c.end:
		case <-time.After(10 * time.Second):
			_ = c.cmd.Process.Signal(syscall.SIGQUIT)
			<-c.end
		}
		err = os.RemoveAll(c.dir)
	})
	return err
}
