//go:build mutants

package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/vitrip/journeyman/engine"
)

// Without a fault nothing is red; and the suite needs no cluster of its own: two
// suites at once, shuffled, and a third after them, all against one engine that
// ZEEBE_TEST_ADDRESS names, the third with searches that are late as a real cluster's.
func TestUnchanged_SuitesShareACluster(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(t.TempDir(), "conformance.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", bin, "./test/conformance")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	left := regexp.MustCompile(`(?m)^ *--- SKIP: `)
	play := func(env ...string) {
		cmd := exec.CommandContext(t.Context(), bin, "-test.v", "-test.shuffle=on", "-test.timeout=2m")
		cmd.Dir = filepath.Join(root, "test/conformance")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, failures(out))
		}
		t.Logf("%d cases left out", len(left.FindAll(out, -1)))
	}
	shared := []string{"ZEEBE_TEST_ADDRESS=" + e.Addr(), "ZEEBE_TEST_REST_ADDRESS=http://" + e.RESTAddr()}
	var both sync.WaitGroup
	both.Go(func() { play(shared...) })
	both.Go(func() { play(shared...) })
	both.Wait()
	play(append(shared, "ZEEBE_TEST_LATE=100ms")...) // and searches are late
	play()                                           // an engine for each case
}

// failures is what a verbose run says from its first failed case on.
func failures(out []byte) []byte {
	if at := regexp.MustCompile(`(?m)^ *--- FAIL|^panic|^\S+_test\.go`).FindIndex(out); at != nil {
		out = out[at[0]:]
	}
	return out[max(0, len(out)-8000):]
}
