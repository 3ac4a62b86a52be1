package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strconv"
)

// ErrNoServer is returned when no PostgreSQL server program was found.
var ErrNoServer = errors.New("no PostgreSQL server found")

// Find returns the folder that holds initdb and postgres: dir if given, else
// the first of PATH, Debian's folders (newest version first), Homebrew's, and
// the npm package in cache. [ErrNoServer] when there is none.
func Find(dir, cache string) (string, error) { return find(dir, cache, usualPlaces()) }

// usualPlaces are patterns of folders with server programs outside the PATH.
func usualPlaces() []string {
	return []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
		"/opt/homebrew/opt/postgresql/bin", "/usr/local/opt/postgresql/bin",
	}
}

func find(dir, cache string, patterns []string) (string, error) {
	if dir != "" {
		if hasServer(dir) {
			return dir, nil
		}
		return "", fmt.Errorf("%w: %s holds no initdb and postgres", ErrNoServer, dir)
	}
	var places []string
	if p, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			places = append(places, filepath.Dir(real))
		}
		places = append(places, filepath.Dir(p))
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		sort.Slice(found, func(i, j int) bool { return version(found[i]) > version(found[j]) })
		places = append(places, found...)
	}
	if cache != "" {
		places = append(places, filepath.Join(cache, "node_modules", npmPackage(), "native", "bin"))
	}
	for _, p := range places {
		if hasServer(p) {
			return p, nil
		}
	}
	return "", ErrNoServer
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.IsDir() {
			return false
		}
	}
	return true
}

// version reads the first number in a path such as /usr/lib/postgresql/15/bin.
func version(path string) int {
	start := -1
	for i, c := range path {
		digit := c >= '0' && c <= '9'
		if digit && start < 0 {
			start = i
		}
		if !digit && start >= 0 {
			n, _ := strconv.Atoi(path[start:i])
			return n
		}
	}
	return 0
}

// npmPackage is the npm package that carries PostgreSQL's programs for this platform.
func npmPackage() string {
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	return "@embedded-postgres/" + runtime.GOOS + "-" + arch
}
