package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
)

// database is a PostgreSQL server of this run: a fresh one that flushes every commit to disk, as the measured one does in production.
type database struct {
	dsn  string
	dir  string
	cmd  *exec.Cmd
	out  bytes.Buffer
	root int // process id of the server
}

// nobody is the user of the server when we are root, which PostgreSQL refuses.
const nobody = 65534

// startDatabase makes a cluster under parent ("" = the temporary folder) and waits until it answers.
func startDatabase(ctx context.Context, parent string) (*database, error) {
	bin, err := postgres.Find("", "")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, "jmbench-")
	if err != nil {
		return nil, err
	}
	d := &database{dir: dir}
	if err := d.start(ctx, bin); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	return d, nil
}

func (d *database) start(ctx context.Context, bin string) error {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}
	data := filepath.Join(d.dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := errors.Join(os.Chown(d.dir, nobody, nobody), os.Chown(data, nobody, nobody)); err != nil {
			return err
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = d.dir, attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	d.cmd = exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-k", d.dir, "-c", "listen_addresses=", //nolint:noctx // ended by stop
		"-c", "shared_buffers=512MB", "-c", "max_connections=200", "-c", "max_wal_size=4GB", "-c", "log_min_messages=fatal")
	d.cmd.Dir, d.cmd.SysProcAttr = d.dir, attr
	d.cmd.Stdout, d.cmd.Stderr = &d.out, &d.out
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when the starting thread ends
		started <- d.cmd.Start()
		select {}
	}()
	if err := <-started; err != nil {
		return err
	}
	d.root = d.cmd.Process.Pid
	d.dsn = "host=" + d.dir + " user=postgres dbname=postgres sslmode=disable"
	for {
		conn, err := pgx.Connect(ctx, d.dsn)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("postgres did not answer: %w\n%s", err, d.out.Bytes())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *database) stop() error {
	if d.cmd != nil && d.cmd.Process != nil {
		_ = d.cmd.Process.Signal(syscall.SIGINT)
		_ = d.cmd.Wait()
	}
	return os.RemoveAll(d.dir)
}

// pool opens a pool whose connections stay: what they used is read from their processes afterwards.
func (d *database) pool(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(d.dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MaxConnIdleTime, cfg.MaxConnLifetime = int32(conns), 24*time.Hour, 24*time.Hour //nolint:gosec // small
	return pgxpool.NewWithConfig(ctx, cfg)
}
