//go:build kafka || soak

package storm_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/kafka/apache"
)

// Two relays and two consumers are killed again and again, at random moments and
// in the worst ones; brokers are killed one at a time, which moves leaders and
// leaves publishes half acknowledged; one transaction in a hundred commits late.
// Nothing is lost, no key is reordered, no effect is repeated.
func TestStorm(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), during+5*time.Minute)
	defer cancel()
	s := newStorm(ctx, t)
	var wg sync.WaitGroup
	live, die := context.WithCancel(ctx)
	defer wg.Wait()
	defer die()
	var calm atomic.Bool // nobody kills itself any more
	for _, p := range s.processes {
		wg.Go(func() {
			if err := p.run(live, func() string { return armed(p.role, &calm) }); err != nil {
				t.Error(err)
			}
		})
	}
	chaos, stop := context.WithTimeout(ctx, during)
	defer stop()
	var storm sync.WaitGroup
	for w := range 4 {
		storm.Go(func() { s.write(chaos, w) })
	}
	storm.Go(func() { s.killProcesses(chaos) })
	storm.Go(func() { s.killBrokers(chaos) })
	storm.Wait()
	cost := s.toll()
	calm.Store(true)
	for _, p := range s.processes { // those that are to kill themselves
		p.kill()
	}
	s.judge(cost)
}

type storm struct {
	*testing.T
	ctx       context.Context
	pool      *pgxpool.Pool
	cluster   apache.Cluster
	catalog   *events.Catalog
	stager    *outbox.Stager
	processes []*process
	committed atomic.Int64
	restarts  int
}

func newStorm(ctx context.Context, t *testing.T) *storm {
	t.Helper()
	s := &storm{T: t, ctx: ctx}
	dsn := pgtest.DSN(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.pool, err = pgxpool.New(ctx, dsn)
	must(err)
	t.Cleanup(s.pool.Close)
	must(outbox.Migrate(ctx, s.pool, "journeyman"))
	must(inbox.Migrate(ctx, s.pool, "journeyman"))
	_, err = s.pool.Exec(ctx, `CREATE TABLE applied (n bigserial, topic text, key text, seq bigint, id uuid)`)
	must(err)
	s.catalog, err = events.ParseCatalog([]byte(catalogYAML))
	must(err)
	s.stager, err = outbox.NewStager(outbox.Config{Catalog: s.catalog, Producer: "tester", Instance: "i", Env: "test"})
	must(err)
	s.cluster, err = apache.PrepareCluster(ctx, filepath.Join("..", "apache", "pom.xml"), t.TempDir(), 3)
	must(err)
	must(s.cluster.Start(ctx))
	t.Cleanup(func() { _ = s.cluster.Kill() })
	k, err := dial(s.cluster.Addrs())
	must(err)
	defer k.Close() //nolint:errcheck // topics stand
	must(k.EnsureTopics(ctx, 3, s.catalog.Topics()...))
	env := []string{envDSN + "=" + dsn, envBrokers + "=" + strings.Join(s.cluster.Addrs(), ",")}
	for _, role := range []string{"relay", "relay", "consumer", "consumer"} {
		s.processes = append(s.processes, &process{role: role, env: env})
	}
	ringer, err := outbox.NewRinger(s.pool, outbox.RingerConfig{Stager: s.stager})
	must(err)
	ringing, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- ringer.Run(ringing) }()
	t.Cleanup(func() { stop(); <-done })
	return s
}

// armed picks one of the worst moments for every other process.
func armed(role string, calm *atomic.Bool) string {
	points := map[string][]string{
		"relay":    {"relay.publish.before", "relay.publish.acked", "relay.delete.after"},
		"consumer": {"inbox.begun", "inbox.committed"},
	}[role]
	if calm.Load() || rand.IntN(2) == 0 {
		return ""
	}
	count := 1 + rand.IntN(100)
	if role == "consumer" {
		count = 200 + rand.IntN(3000) // a rebalance costs seconds
	}
	return fmt.Sprintf("%s:%d", points[rand.IntN(len(points))], count)
}

const keys = 60

// write commits transactions of three messages at a steady pace.
func (s *storm) write(ctx context.Context, writer int) {
	pace := time.NewTicker(40 * time.Millisecond)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		key := func() string { return fmt.Sprintf("K-%d", rand.IntN(keys)) }
		a := key()
		data := map[string]any{"n": n}
		msgs := []events.Message{
			{Type: "test.thing.created", BusinessKey: a, Data: data}, {Type: "test.thing.renamed", BusinessKey: key(), Data: data}, {Type: "test.thing.created", BusinessKey: a, Data: data},
		}
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		id := fmt.Sprintf("op-%d-%d", writer, n)
		if err := s.stager.Queue(b, events.Origin{OperationID: id, CorrelationID: id}, msgs); err != nil {
			s.Error(err)
			return
		}
		if rand.IntN(100) == 0 {
			b.Queue("SELECT pg_sleep(0.05)") // commits late, with ids drawn early
		}
		b.Queue("COMMIT")
		if err := s.pool.SendBatch(s.ctx, b).Close(); err != nil {
			s.Errorf("stage: %v", err)
			return
		}
		s.committed.Add(int64(len(msgs)))
		s.stager.Wake()
	}
}

// wait gives up early when ctx ends, and says so.
func wait(ctx context.Context, least, spread time.Duration) bool {
	t := time.NewTimer(least + rand.N(spread))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (s *storm) killProcesses(ctx context.Context) {
	for no := 0; wait(ctx, 300*time.Millisecond, 2*time.Second); no++ {
		p := s.processes[rand.IntN(2)] // a relay
		if no%6 == 5 {
			p = s.processes[2+rand.IntN(2)] // a consumer
		}
		p.kill()
	}
}

// killBrokers takes one broker down at a time: with two of three copies in sync publishing goes on.
func (s *storm) killBrokers(ctx context.Context) {
	for wait(ctx, 2*time.Second, 5*time.Second) {
		n := s.cluster[rand.IntN(len(s.cluster))]
		if err := n.Kill(); err != nil {
			s.Errorf("kill a broker: %v", err)
		}
		wait(ctx, time.Second, 4*time.Second)
		if err := n.Start(s.ctx); err != nil {
			s.Errorf("start a broker again: %v", err)
			return
		}
		s.restarts++
	}
}
