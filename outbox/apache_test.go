//go:build kafka

package outbox_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/test/kafka/apache"
)

// A real broker is killed (SIGKILL) while the relay publishes and comes back
// on its files: nothing is lost, no key reordered.
func TestRelay_RealBrokerKilled(t *testing.T) {
	f := setup(t)
	node, err := apache.Prepare(f.ctx, filepath.Join("..", "test", "kafka", "apache", "pom.xml"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(f.ctx); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Kill() }()
	k, stop, err := dial([]string{node.Addr}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer stop() //nolint:errcheck // end of the test
	if err := k.EnsureTopics(f.ctx, 1, catalog(t).Topics()...); err != nil {
		t.Fatal(err)
	}
	r, _ := f.relay(k)
	stage := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			if err := f.stage(origin(fmt.Sprintf("op-%d", n)), []events.Message{created(fmt.Sprintf("K-%d", n%5), n)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	stage(0, 200)
	f.eventually("some to be published", func() bool { return r.Stats().Published > 50 })
	if err := node.Kill(); err != nil {
		t.Fatal(err)
	}
	stage(200, 400)
	f.eventually("the relay to notice", func() bool { return r.Stats().Failures > 0 })
	if err := node.Start(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
	log := f.topicLog(k, 400, "test.thing.created.v1")
	if bad := inversions(log); bad > 0 {
		t.Errorf("%d inversions: %v", bad, brief(log))
	}
	t.Logf("duplicates: %d", len(log)-400)
}
