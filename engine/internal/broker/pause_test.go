package broker

import (
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// waiting makes a state of n instances that wait at a job and a timer.
func waiting(t testing.TB, b *Broker, n int) {
	t.Helper()
	for made := 0; made < n; made += 1000 {
		must(t, b.Do(func(c *core.Core) error {
			for range min(1000, n-made) {
				if _, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1, Vars: core.Doc{"order": []byte(`{"id":"B-1","amount":125000}`)}}); err != nil {
					return err
				}
			}
			return nil
		}))
		for !b.rests() {
			must(t, b.Do(func(*core.Core) error { return nil }))
		}
	}
}

func (b *Broker) rests() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.core.Idle()
}

// snapshotNow begins a snapshot and returns how long the engine stood still for it.
func snapshotNow(t testing.TB, b *Broker) time.Duration {
	t.Helper()
	b.mu.Lock()
	begun := time.Now()
	err := b.snapshot()
	took := time.Since(begun)
	b.mu.Unlock()
	must(t, err)
	return took
}

func (b *Broker) isWriting() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.durable.writing
}

// While a snapshot is written commands are answered, and what they did is there after it.
func TestSnapshot_CommandsGoOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := begin(t, dir, neverSnapshot)
	deploy(t, b)
	waiting(t, b, 3000)
	snapshotNow(t, b)
	answered := 0
	for n := 0; b.isWriting() || n < 4; n++ {
		must(t, step(b, n))
		if b.isWriting() {
			answered++
		}
	}
	if answered == 0 {
		t.Error("no command was answered while the snapshot was written")
	}
	snapshotNow(t, b) // Close waits for it
	must(t, step(b, 1))
	want := sumOf(t, b)
	must(t, b.Close())
	b = begin(t, dir, neverSnapshot)
	if got := sumOf(t, b); got != want {
		t.Error("another state")
	}
	must(t, b.Close())
}

// BenchmarkSnapshot_Pause is how long the engine stands still for a snapshot of
// 100,000 waiting instances, and how long writing it takes.
func BenchmarkSnapshot_Pause(b *testing.B) {
	br := begin(b, b.TempDir(), neverSnapshot)
	deploy(b, br)
	waiting(b, br, 100_000)
	b.ResetTimer()
	var pause, worst, whole time.Duration
	for range b.N {
		begun := time.Now()
		pause += snapshotNow(b, br)
		for n := 0; br.isWriting(); n++ {
			asked := time.Now()
			must(b, step(br, n))
			worst = max(worst, time.Since(asked))
		}
		whole += time.Since(begun)
	}
	b.StopTimer()
	b.ReportMetric(float64(pause.Milliseconds())/float64(b.N), "pause-ms")
	b.ReportMetric(float64(whole.Milliseconds())/float64(b.N), "written-ms")
	b.ReportMetric(float64(worst.Milliseconds()), "worst-command-ms")
	b.ReportMetric(float64(br.durable.last)/1e6, "MB")
	must(b, br.Close())
}
