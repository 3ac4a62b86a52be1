// Package apicurio runs a real Apicurio Registry for tests, on loopback, with
// its data in memory, from the archive that Maven fetches once into the cache
// (109 MB). It needs Java 17 or later; Maven only for the first time.
package apicurio

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/vitrip/journeyman/test/clients/toolcache"
)

// Version is the Apicurio Registry that the tests run against, the last line that runs on Java 17.
const Version = "3.0.9"

// Registry is a running registry.
type Registry struct {
	URL string // of the API that is compatible with Confluent's

	cmd   *exec.Cmd
	log   *os.File
	ended chan struct{} // closed when the process has ended
}

// Start fetches the archive, starts the registry with its log below dir, and waits until it answers.
func Start(ctx context.Context, dir string) (*Registry, error) {
	jar, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	r := &Registry{URL: fmt.Sprintf("http://127.0.0.1:%d/apis/ccompat/v7", port), ended: make(chan struct{})}
	if r.log, err = os.Create(filepath.Join(dir, "registry.log")); err != nil { //nolint:gosec // a path of the test
		return nil, err
	}
	r.cmd = exec.CommandContext(context.WithoutCancel(ctx), "java", "-XX:TieredStopAtLevel=1", "-Xms128m", "-Xmx384m", //nolint:gosec // arguments of the tests
		"-Dquarkus.http.host=127.0.0.1", fmt.Sprintf("-Dquarkus.http.port=%d", port), "-jar", jar)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = dir, r.log, r.log
	if err := r.cmd.Start(); err != nil {
		return nil, errors.Join(err, r.log.Close())
	}
	go func() {
		_ = r.cmd.Wait() // killed: that is its error
		close(r.ended)
	}()
	if err := r.ready(ctx); err != nil {
		text, _ := os.ReadFile(r.log.Name())
		return nil, errors.Join(fmt.Errorf("start of Apicurio Registry: %w\n%s", err, text[max(0, len(text)-4000):]), r.Kill())
	}
	return r, nil
}

// Kill ends the registry and waits for its end. What it knew is gone.
func (r *Registry) Kill() error {
	err := r.cmd.Process.Signal(syscall.SIGKILL)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-r.ended
	return errors.Join(err, r.log.Close())
}

// ready waits until the registry answers.
func (r *Registry) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"/subjects", nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
			err = errors.New(res.Status)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-r.ended:
			return errors.New("it ended")
		case <-tick.C:
		}
	}
}

const archiveName = "apicurio-registry.tar.gz"

// fetch gives the path of the program, unpacked once beside its archive.
func fetch(ctx context.Context) (string, error) {
	dir, err := toolcache.Artifact(ctx, "io.apicurio:apicurio-registry-app:"+Version+":tar.gz:all", archiveName)
	if err != nil {
		return "", err
	}
	unpacked := filepath.Join(dir, "unpacked")
	if _, err := os.Stat(unpacked); err != nil {
		tmp, err := os.MkdirTemp(dir, "part")
		if err != nil {
			return "", err
		}
		if err := unpack(filepath.Join(dir, archiveName), tmp); err != nil {
			return "", errors.Join(err, os.RemoveAll(tmp))
		}
		if err := os.Rename(tmp, unpacked); err != nil {
			return "", errors.Join(err, os.RemoveAll(tmp))
		}
	}
	jars, err := filepath.Glob(filepath.Join(unpacked, "*-runner.jar"))
	if err == nil && len(jars) != 1 {
		jars, err = filepath.Glob(filepath.Join(unpacked, "*", "*-runner.jar"))
	}
	if err != nil || len(jars) != 1 {
		return "", fmt.Errorf("%s: %d programs, want one: %w", unpacked, len(jars), err)
	}
	return jars[0], nil
}

// unpack writes the files of an archive below a folder.
func unpack(archive, to string) error {
	f, err := os.Open(archive) //nolint:gosec // of the cache
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for files := tar.NewReader(zipped); ; {
		h, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case h.Typeflag != tar.TypeReg:
			continue
		case !filepath.IsLocal(h.Name):
			return fmt.Errorf("%s: holds %q", archive, h.Name)
		}
		at := filepath.Join(to, h.Name) //nolint:gosec // local
		if err := os.MkdirAll(filepath.Dir(at), 0o750); err != nil {
			return err
		}
		out, err := os.Create(at) //nolint:gosec // local
		if err != nil {
			return err
		}
		_, err = io.Copy(out, files) //nolint:gosec // an archive whose version is pinned
		if err = errors.Join(err, out.Close()); err != nil {
			return err
		}
	}
}

// freePort gives a port that was free a moment ago.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()                          //nolint:errcheck // held until it is known
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // TCP
}
