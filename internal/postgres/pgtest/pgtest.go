// Package pgtest gives each test a real PostgreSQL database of its own.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
)

// EnvDSN names the variable with a server to use instead of a private one: any database of it, as a superuser.
const EnvDSN = "JOURNEYMAN_TEST_DSN"

var server struct { //nolint:gochecknoglobals // one server for a test binary
	once    sync.Once
	dsn     string
	cluster *postgres.Cluster
	err     error
	n       atomic.Int64
}

// Main runs the tests and stops the private server afterwards. Call it from TestMain:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	Stop()
	return code
}

// Stop ends the private server if one was started.
func Stop() {
	if server.cluster != nil {
		_ = server.cluster.Stop()
	}
}

func start() (string, error) {
	server.once.Do(func() {
		if server.dsn = os.Getenv(EnvDSN); server.dsn != "" {
			return
		}
		bin, err := postgres.Find("", os.Getenv("JOURNEYMAN_POSTGRES_CACHE"))
		if err != nil {
			server.err = fmt.Errorf("%w; install Debian's package postgresql, or set %s", err, EnvDSN)
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if server.cluster, server.err = postgres.Launch(ctx, bin); server.err == nil {
			server.dsn = server.cluster.DSN
		}
	})
	return server.dsn, server.err
}

// DSN makes a new, empty database for this test and returns its connection
// string. It is dropped when the test ends. A missing server fails the test.
func DSN(tb testing.TB) string {
	tb.Helper()
	base, err := start()
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	name := fmt.Sprintf("jm_%d_%d", os.Getpid(), server.n.Add(1))
	admin(tb, base, "CREATE DATABASE "+name)
	tb.Cleanup(func() { admin(tb, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)") })
	if strings.Contains(base, "://") {
		tb.Fatalf("%s: want key=value form, for example \"host=/tmp user=postgres\"", EnvDSN)
	}
	return base + " dbname=" + name
}

// Pool is DSN with an open pool that is closed when the test ends.
func Pool(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(context.Background(), DSN(tb))
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func admin(tb testing.TB, dsn, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing to do about it
	if _, err := conn.Exec(ctx, sql); err != nil {
		tb.Fatalf("test database: %s: %v", sql, err)
	}
}
