package workertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
)

// EnvDSN names the variable with a server to use instead of a private one, in
// key=value form: any database of it, as a user who may create databases.
const EnvDSN = "JOURNEYMAN_TEST_DSN"

// Database is one database that the tests of a package share; each works in a
// transaction of its own that is rolled back. Without [EnvDSN] it runs a
// private server of the PostgreSQL programs on this machine. The zero value is
// an empty database. It starts with the first test that asks; a machine without
// PostgreSQL fails that test. Safe for concurrent use.
type Database struct {
	Migrate func(ctx context.Context, pool *pgxpool.Pool) error // makes the tables; nil = none

	once   sync.Once
	server string // to connect to for creating databases
	own    atomic.Int64
	pool   *pgxpool.Pool
	drop   func(ctx context.Context) error
	err    error
}

// Main runs the tests of a package and removes the database. Call it from TestMain.
func (d *Database) Main(m *testing.M) int {
	code := m.Run()
	if err := d.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "workertest:", err)
		code = max(code, 1)
	}
	return code
}

// Begin opens a transaction that is rolled back when the test ends.
func (d *Database) Begin(t testing.TB) *Bench {
	t.Helper()
	return Begin(t, d.Pool(t))
}

// Pool gives the shared database, for what needs more than one transaction.
func (d *Database) Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	d.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		d.err = d.open(ctx)
	})
	if d.err != nil {
		t.Fatalf("workertest: database: %v", d.err)
	}
	return d.pool
}

// Own makes a database that belongs to this test alone and is dropped when it ends, for what commits: a whole program. It
// gives the connection string; Migrate has run.
func (d *Database) Own(t testing.TB) string {
	t.Helper()
	d.Pool(t)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	name := fmt.Sprintf("jm_workertest_%d_%d_own%d", os.Getpid(), time.Now().UnixNano(), d.own.Add(1))
	if err := admin(ctx, d.server, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("workertest: database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := admin(ctx, d.server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("workertest: drop database: %v", err)
		}
	})
	dsn := d.server + " dbname=" + name
	if d.Migrate == nil {
		return dsn
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatalf("workertest: database: %v", err)
	}
	defer pool.Close()
	if err := d.Migrate(ctx, pool); err != nil {
		t.Fatalf("workertest: migrate: %v", err)
	}
	return dsn
}

// Close removes the database and stops a private server.
func (d *Database) Close() error {
	if d.pool != nil {
		d.pool.Close()
	}
	if d.drop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return d.drop(ctx)
}

func (d *Database) open(ctx context.Context) error {
	dsn := os.Getenv(EnvDSN)
	if dsn == "" {
		bin, err := postgres.Find("", os.Getenv("JOURNEYMAN_POSTGRES_CACHE"))
		if err != nil {
			return fmt.Errorf("%w; install Debian's package postgresql, or set %s", err, EnvDSN)
		}
		cluster, err := postgres.Launch(ctx, bin)
		if err != nil {
			return err
		}
		dsn, d.drop = cluster.DSN, func(context.Context) error { return cluster.Stop() }
		d.server = dsn
	} else {
		base, name := dsn, fmt.Sprintf("jm_workertest_%d_%d", os.Getpid(), time.Now().UnixNano())
		if err := admin(ctx, base, "CREATE DATABASE "+name); err != nil {
			return err
		}
		d.server = base
		dsn += " dbname=" + name
		d.drop = func(ctx context.Context) error {
			return admin(ctx, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		}
	}
	var err error
	if d.pool, err = pgxpool.New(ctx, dsn); err != nil {
		return err
	}
	if d.Migrate == nil {
		return nil
	}
	if err := d.Migrate(ctx, d.pool); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	return nil
}

func admin(ctx context.Context, dsn, sql string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}
