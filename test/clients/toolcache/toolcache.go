// Package toolcache installs packages of npm and Maven that tests compare us with
// into a cache folder outside the repository, once for each lockfile.
package toolcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// MavenDependencyPlugin is the plugin that fetches what a pom names.
const MavenDependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"

// Dir returns the cache folder: $JOURNEYMAN_CACHE or /var/tmp/journeyman-cache.
func Dir() string {
	if dir := os.Getenv("JOURNEYMAN_CACHE"); dir != "" {
		return dir
	}
	return "/var/tmp/journeyman-cache"
}

// Node installs the lockfile of dir (package.json, package-lock.json, .npmrc)
// and returns the folder node_modules. A lockfile that was installed before
// costs nothing. A missing npm is an error.
func Node(ctx context.Context, dir string) (string, error) {
	if err := need("Node.js 20.12 or later with npm", "node", "npm"); err != nil {
		return "", err
	}
	files := map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		raw, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a path of the test
		if err != nil {
			return "", fmt.Errorf("npm packages: %w", err)
		}
		files[name] = raw
	}
	at, err := once(ctx, "npm-"+digest(files["package-lock.json"]), func(ctx context.Context, tmp string) error {
		for name, raw := range files {
			if err := os.WriteFile(filepath.Join(tmp, name), raw, 0o600); err != nil {
				return err
			}
		}
		return run(ctx, tmp, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error")
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(at, "node_modules"), nil
}

// Classpath fetches the runtime dependencies of the pom with the given value of
// its property client.version, and returns a Java class path. A missing javac or mvn is an error.
func Classpath(ctx context.Context, pom, version string) (string, error) {
	if err := need("JDK 17 or later and Maven", "java", "javac", "mvn"); err != nil {
		return "", err
	}
	raw, err := os.ReadFile(pom) //nolint:gosec // a path of the test
	if err != nil {
		return "", fmt.Errorf("jars: %w", err)
	}
	at, err := once(ctx, "maven-"+digest(raw, []byte(version)), func(ctx context.Context, tmp string) error {
		if err := os.WriteFile(filepath.Join(tmp, "pom.xml"), raw, 0o600); err != nil {
			return err
		}
		return run(ctx, tmp, "mvn", "-q", "-B", "-Dclient.version="+version, MavenDependencyPlugin+":copy-dependencies", "-DoutputDirectory=libs", "-DincludeScope=runtime")
	})
	if err != nil {
		return "", err
	}
	return filepath.Join(at, "libs", "*"), nil
}

// mavenGetPlugin is the last line of the plugin that fetches a file to a given
// place without reading its descriptor, whose parents need not be served.
const mavenGetPlugin = "org.apache.maven.plugins:maven-dependency-plugin:2.10"

// Artifact fetches one file from Maven, by its coordinates
// group:artifact:version:type:classifier and without what it depends on, and
// returns the folder that holds it under the given name. A missing mvn is an error.
func Artifact(ctx context.Context, coordinates, name string) (string, error) {
	if err := need("JDK 17 or later and Maven", "java", "mvn"); err != nil {
		return "", err
	}
	return once(ctx, "artifact-"+digest([]byte(coordinates)), func(ctx context.Context, tmp string) error {
		return run(ctx, tmp, "mvn", "-q", "-B", mavenGetPlugin+":get", "-Dartifact="+coordinates, "-Dtransitive=false", "-Ddest="+name)
	})
}

// Compile compiles one Java file against a class path and returns the class path with its classes.
func Compile(ctx context.Context, source, classpath string) (string, error) {
	raw, err := os.ReadFile(source) //nolint:gosec // a path of the test
	if err != nil {
		return "", fmt.Errorf("java source: %w", err)
	}
	file, err := filepath.Abs(source)
	if err != nil {
		return "", fmt.Errorf("java source: %w", err)
	}
	at, err := once(ctx, "classes-"+digest(raw, []byte(classpath)), func(ctx context.Context, tmp string) error {
		return run(ctx, tmp, "javac", "-Xlint:-options", "-encoding", "UTF-8", "-cp", classpath, "-d", tmp, file)
	})
	if err != nil {
		return "", err
	}
	return at + string(os.PathListSeparator) + classpath, nil
}

// once fills a folder of the cache unless it is there. It is complete or absent:
// filled under another name, then renamed.
func once(ctx context.Context, name string, fill func(ctx context.Context, tmp string) error) (string, error) {
	at := filepath.Join(Dir(), name)
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if err := os.MkdirAll(Dir(), 0o750); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	tmp, err := os.MkdirTemp(Dir(), name+".part")
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if err := fill(ctx, tmp); err != nil {
		return "", errors.Join(fmt.Errorf("fill %s: %w", at, err), os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, at); err != nil {
		if _, there := os.Stat(at); there == nil { // another run was faster
			return at, os.RemoveAll(tmp)
		}
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return at, nil
}

func need(what string, programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("this test needs %s: %w", what, err)
		}
	}
	return nil
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // programs and arguments of the tests
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p) //nolint:errcheck // never fails
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
