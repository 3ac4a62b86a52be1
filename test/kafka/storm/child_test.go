//go:build kafka || soak

package storm_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// Variables with which the test binary starts itself as a process that dies.
const (
	envRole    = "JOURNEYMAN_TEST_STORM_ROLE" // "relay" or "consumer"
	envDSN     = "JOURNEYMAN_TEST_STORM_DSN"
	envBrokers = "JOURNEYMAN_TEST_STORM_BROKERS"
	envArm     = "JOURNEYMAN_TEST_STORM_ARM"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(envRole); role != "" {
		fmt.Fprintln(os.Stderr, role, "ended:", child(role))
		os.Exit(3)
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const catalogYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view], partitions: 8}
  - {type: test.thing.renamed, class: domain, owner: test, producers: [tester], consumers: [view], partitions: 8}
`

func dial(addrs []string) (*kafka.Client, error) {
	return kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: 3 * time.Second})
}

// child runs until it is killed, or its parent is gone.
func child(role string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(4)
	}()
	if arm := os.Getenv(envArm); arm != "" {
		if err := crash.Arm(arm, ""); err != nil {
			return err
		}
	}
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv(envDSN))
	if err != nil {
		return err
	}
	k, err := dial(strings.Split(os.Getenv(envBrokers), ","))
	if err != nil {
		return err
	}
	cat, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		return err
	}
	if role == "relay" {
		r, err := outbox.NewRelay(pool, k, outbox.RelayConfig{Lease: 2 * time.Second, Batch: 100, Poll: 20 * time.Millisecond, Listen: true})
		if err != nil {
			return err
		}
		return r.Run(ctx)
	}
	i, err := inbox.New(k, pool, inbox.Config{Group: "view", Catalog: cat, Concurrency: 4}, inbox.Route{Types: []string{"test.thing.*"}, Handler: apply})
	if err != nil {
		return err
	}
	return i.Run(ctx)
}

// apply has an effect that nothing but the inbox keeps from being repeated.
func apply(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	_, err := tx.Exec(ctx, `INSERT INTO applied (topic, key, seq, id) VALUES ($1, $2, $3, $4)`, m.Position.Topic, m.Metadata.BusinessKey, m.Metadata.Sequence, m.MessageID)
	return err
}

// process is a child that is started again whenever it died.
type process struct {
	role   string
	env    []string
	mu     sync.Mutex
	cmd    *exec.Cmd
	killed int    // with SIGKILL, by us or by itself
	ended  int    // in any other way
	output string // of the last one that ended by itself
}

// run starts it again and again until ctx ends. arm gives the place where the next one kills itself, "" for none.
func (p *process) run(ctx context.Context, arm func() string) error {
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(append(os.Environ(), p.env...), envRole+"="+p.role, envArm+"="+arm())
		hold, err := cmd.StdinPipe() // closed when we are gone
		if err != nil {
			return err
		}
		var out strings.Builder
		cmd.Stderr = &out
		p.mu.Lock()
		if err := cmd.Start(); err != nil {
			p.mu.Unlock()
			return err
		}
		p.cmd = cmd
		p.mu.Unlock()
		_ = cmd.Wait() // killed: that is its error
		_ = hold.Close()
		p.mu.Lock()
		p.cmd = nil
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGKILL {
			p.killed++
		} else {
			p.ended++
			p.output = out.String()
		}
		p.mu.Unlock()
	}
	return nil
}

// kill ends it with SIGKILL, wherever it is.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
	}
}
