package inbox_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
)

// stall is a handler whose first message waits for a line on standard input.
func stall() inbox.Handler {
	var once sync.Once
	return func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if err := apply(ctx, tx, m); err != nil {
			return err
		}
		once.Do(func() {
			fmt.Println("began")
			_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		})
		return nil
	}
}

// A consumer is stopped inside its handler and loses its partitions; the server
// ends its transaction, another member goes on. When it wakes, neither its
// effects nor its offsets count.
func TestInbox_ZombieIsFenced(t *testing.T) { onEach(t, testInboxZombieIsFenced) }

func testInboxZombieIsFenced(t *testing.T, f *fixture) {
	for n := 1; n <= 5; n++ {
		f.publish(f.created("K", n), f.created("L", n), f.created("M", n), f.created("N", n))
	}
	cmd := exec.CommandContext(f.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envOver+"="+f.over.name, envBrokers+"="+strings.Join(f.addrs, ","), envPrefix+"="+f.mine, envStall+"=yes")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "began" {
		t.Fatalf("the child said %q", lines.Text())
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stop := f.run(apply)
	f.eventually("all messages, by the other member", func() bool { return f.applied() == 20 })
	f.eventually("all offsets", func() bool { return f.behind() == 0 })
	before := f.committed()

	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "duplicate" { // it tried its messages again
		t.Fatalf("the child said %q", lines.Text())
	}
	f.publish(f.created("K", 6), f.created("L", 6), f.created("M", 6), f.created("N", 6))
	f.eventually("the next messages, by whichever", func() bool { return f.applied() == 24 && f.behind() == 0 })
	for at, was := range before {
		if is := f.committed()[at]; is < was {
			t.Errorf("partition %s: committed %d, then %d: an offset went back", at, was, is)
		}
	}
	for _, k := range []string{"K", "L", "M", "N"} {
		if got := f.order(k); got != "1 2 3 4 5 6" {
			t.Errorf("key %s: applied %s", k, got)
		}
	}
	stop()
}

func (f *fixture) lags() []events.Lag {
	f.Helper()
	lags, err := f.lag.Lag(f.ctx, f.mine+"view", f.mine+"test.thing.created.v1")
	if err != nil {
		f.Fatal(err)
	}
	return lags
}

func (f *fixture) behind() (n int64) {
	for _, l := range f.lags() {
		n += l.Behind
	}
	return n
}

func (f *fixture) committed() map[string]int64 {
	out := map[string]int64{}
	for _, l := range f.lags() {
		out[fmt.Sprint(l.Topic, l.Partition)] = l.Committed
	}
	return out
}
