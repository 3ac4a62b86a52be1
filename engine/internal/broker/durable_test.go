package broker

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
	"github.com/vitrip/journeyman/engine/internal/journal"
)

const model = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="a"/>
<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="work"/><zeebe:ioMapping><zeebe:input source="=uuid()" target="u"/></zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="b" attachedToRef="a"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1H</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
<bpmn:sequenceFlow id="f3" sourceRef="b" targetRef="e"/>
<bpmn:sequenceFlow id="f2" sourceRef="a" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`

// childDir names the directory to the process that will be killed.
const childDir = "JOURNEYMAN_TEST_KILLED_ENGINE"

// neverSnapshot and oftenSnapshot are lengths of the log that a snapshot replaces.
const (
	neverSnapshot = 1 << 40
	oftenSnapshot = 20_000
)

func deploy(t testing.TB, b *Broker) {
	t.Helper()
	must(t, b.Do(func(c *core.Core) error {
		_, err := c.Deploy([]core.Resource{{Name: "p.bpmn", Content: []byte(model)}}, false)
		return err
	}))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begin(t testing.TB, dir string, least int64) *Broker {
	t.Helper()
	b, err := open(dir, 100, "first", [32]byte{1}, least)
	must(t, err)
	return b
}

// step is one piece of load: an instance, and something done to the oldest job.
func step(b *Broker, n int) error {
	return b.Do(func(c *core.Core) error {
		if _, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1, Vars: core.Doc{"n": fmt.Append(nil, n)}}); err != nil {
			return err
		}
		jobs := c.Activate(core.Activation{Type: "work", Worker: "w", Timeout: time.Minute, Max: 1})
		if len(jobs) == 0 {
			return nil
		}
		switch n % 4 {
		case 0:
			return c.FailJob(jobs[0].Key, 0, "no", 0, nil)
		case 1:
			return c.FailJob(jobs[0].Key, 2, "later", time.Hour, nil)
		case 2:
			return nil
		}
		return c.CompleteJob(jobs[0].Key, core.Doc{"r": []byte(`"<&>"`)})
	})
}

// dump is the canonical state, taken under the lock, with its place in the log.
func dump(b *Broker) (sum string, size int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, err := b.core.Dump()
	if err != nil {
		return "", 0, err
	}
	return fmt.Sprintf("%x", sha256.Sum256(state)), b.durable.journal.Size(), nil
}

// sumOf waits for the steps of a command that was the last in the log of a killed process.
func sumOf(t testing.TB, b *Broker) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !b.rests(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("steps are left after a minute")
		}
	}
	sum, _, err := dump(b)
	must(t, err)
	return sum
}

// TestKilledChild is no test: it is the process that others kill.
func TestKilledChild(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("left out: only for the process that TestKill starts")
	}
	least := int64(neverSnapshot)
	if strings.HasSuffix(dir, "often") {
		least = oftenSnapshot
	}
	b := begin(t, dir, least)
	deploy(t, b)
	must(t, b.Advance(90*time.Minute))
	for n := 0; ; n++ {
		must(t, step(b, n))
		sum, size, err := dump(b)
		must(t, err)
		must(t, b.Settled())
		fmt.Printf("state %s %d\n", sum, size)
	}
}

// A process killed (kill -9) in the middle of load comes back with exactly a
// state that it had, not older than the last one it told of.
func TestKill(t *testing.T) {
	for _, name := range []string{"never", "often"} {
		t.Run("snapshots "+name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), name)
			cmd := exec.Command(os.Args[0], "-test.run=^TestKilledChild$") //nolint:gosec,noctx // this very program; killed below
			cmd.Env = append(os.Environ(), childDir+"="+dir)
			out, err := cmd.StdoutPipe()
			must(t, err)
			must(t, cmd.Start())
			told := map[string]int{}
			last := ""
			in := bufio.NewScanner(out)
			for n := 0; in.Scan(); {
				f := strings.Fields(in.Text())
				if len(f) != 3 || f[0] != "state" {
					continue
				}
				if last = f[1]; n == 60 {
					must(t, cmd.Process.Kill())
				}
				n++
				told[last] = n
			}
			_ = cmd.Wait() //nolint:errcheck // it was killed
			if len(told) < 60 {
				t.Fatalf("the child told of %d states, want 60 and more", len(told))
			}
			b := begin(t, dir, neverSnapshot)
			got := sumOf(t, b)
			// The last step may have been written without its line: then one more step of the same load leads there.
			if told[got] == 0 {
				t.Logf("the state is newer than the last one told of")
			} else if got != last {
				t.Errorf("the state is number %d, the last one told of was %d", told[got], told[last])
			}
			if off := time.Until(b.Now()); off < 89*time.Minute || off > 91*time.Minute {
				t.Errorf("clock offset %v, want 1h30m", off)
			}
			if b.Incarnation() != "first" {
				t.Errorf("incarnation %q, want first", b.Incarnation())
			}
			must(t, step(b, 1000))
			want := sumOf(t, b)
			must(t, b.Close())
			b = begin(t, dir, neverSnapshot)
			if got := sumOf(t, b); got != want {
				t.Error("the state differs after an orderly stop")
			}
			must(t, b.Close())
		})
	}
}

// Every prefix of a log gives the state the engine had at that place, and
// whatever is cut in the middle of a record gives the one before.
func TestReplay_EveryPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	deploy(t, b)
	at := map[int64]string{}
	for n := range 12 {
		must(t, step(b, n))
		sum, size, err := dump(b)
		must(t, err)
		at[size] = sum
	}
	must(t, b.Close())
	log := filepath.Join(dir, "00000001.log")
	whole, err := os.ReadFile(log)
	must(t, err)
	for size, want := range at {
		for _, torn := range []int64{0, 3, 11} {
			must(t, os.WriteFile(log, whole[:min(size+torn, int64(len(whole)))], 0o600))
			b := begin(t, dir, neverSnapshot)
			if got := sumOf(t, b); got != want {
				t.Errorf("log cut at %d+%d: another state", size, torn)
			}
			must(t, b.Close())
		}
	}
}

func TestReplay_DamageInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	deploy(t, b)
	_, size, err := dump(b)
	must(t, err)
	for n := range 5 {
		must(t, step(b, n))
	}
	must(t, b.Close())
	log := filepath.Join(dir, "00000001.log")
	good, err := os.ReadFile(log)
	must(t, err)
	for what, at := range map[string]int64{"length": size, "checksum": size + 5, "payload": size + 12} {
		bad := append([]byte(nil), good...)
		bad[at] ^= 0x40
		must(t, os.WriteFile(log, bad, 0o600))
		_, err := open(dir, 1, "x", [32]byte{}, neverSnapshot)
		var corrupt *journal.CorruptError
		if !errors.As(err, &corrupt) || corrupt.File != log || corrupt.Offset != size {
			t.Errorf("%s: got %v, want damage of %s at offset %d", what, err, log, size)
		}
		if now, err := os.ReadFile(log); err != nil || string(now) != string(bad) {
			t.Errorf("%s: the damaged log was changed (%v)", what, err)
		}
	}
	must(t, os.WriteFile(log, good, 0o600))
	snap := filepath.Join(dir, "00000001.snapshot")
	state, err := os.ReadFile(snap)
	must(t, err)
	for _, bad := range [][]byte{state[:len(state)-3], append([]byte("x"), state...), nil} {
		must(t, os.WriteFile(snap, bad, 0o600))
		var corrupt *journal.CorruptError
		if _, err := open(dir, 1, "x", [32]byte{}, neverSnapshot); !errors.As(err, &corrupt) || corrupt.File != snap {
			t.Errorf("got %v, want damage of %s", err, snap)
		}
	}
	must(t, os.Remove(snap))
	if _, err := open(dir, 1, "x", [32]byte{}, neverSnapshot); err == nil || !strings.Contains(err.Error(), "its snapshot is not there") {
		t.Errorf("without its snapshot: got %v, want a refusal", err)
	}
}

func TestOpen_OneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	_, err := open(dir, 1, "second", [32]byte{}, neverSnapshot)
	if want := fmt.Sprintf("in use by process %d", os.Getpid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	must(t, b.Close())
	b, err = open(dir, 1, "second", [32]byte{}, neverSnapshot)
	must(t, err)
	if b.Incarnation() != "first" {
		t.Errorf("incarnation %q, want the one of the data", b.Incarnation())
	}
	must(t, b.Close())
}

// A long log is replaced by snapshots; the directory stays small and the state whole.
func TestSnapshot_BoundsTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, oftenSnapshot)
	deploy(t, b)
	for n := range 400 {
		must(t, step(b, n))
	}
	_, size, err := dump(b)
	must(t, err)
	if bound := max(oftenSnapshot, 2*b.durable.last) + 10_000; size > bound {
		t.Errorf("the log has %d bytes, want at most %d", size, bound)
	}
	want := sumOf(t, b)
	must(t, b.Close())
	files, err := filepath.Glob(filepath.Join(dir, "0*"))
	must(t, err)
	if len(files) != 2 || strings.HasSuffix(files[0], "00000001.log") {
		t.Errorf("files: %v, want log and snapshot of a later generation", files)
	}
	b = begin(t, dir, neverSnapshot)
	if got := sumOf(t, b); got != want {
		t.Error("another state")
	}
	must(t, b.Close())
}

// A log that cannot be written stops the engine's commands, with the reason.
func TestBrokenLog_RefusesCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	deploy(t, b)
	must(t, b.durable.journal.Close())
	if err := step(b, 1); err == nil || !strings.Contains(err.Error(), "command log") {
		t.Errorf("first command: %v, want the log's error", err)
	}
	if err := step(b, 2); err == nil || !strings.Contains(err.Error(), "command log") {
		t.Errorf("second command: %v, want the log's error", err)
	}
	if _, err := b.Activate(t.Context(), core.Activation{Type: "work", Timeout: time.Minute, Max: 1}, 0); err == nil {
		t.Error("activation: want the log's error")
	}
	must(t, b.Close())
}

// A long log written by many callers at once, who share the fsyncs, comes back whole.
func TestReplay_LongLogOfManyCallers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	deploy(t, b)
	const callers, each = 32, 100
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				if err := step(b, i*each+n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	want := sumOf(t, b)
	must(t, b.Close())
	b = begin(t, dir, neverSnapshot)
	if got := sumOf(t, b); got != want {
		t.Error("another state")
	}
	n := 0
	b.View(func(c *core.Core) {
		for range c.Instances() {
			n++
		}
	})
	if n != callers*each {
		t.Errorf("%d instances, want %d", n, callers*each)
	}
	must(t, b.Close())
}
