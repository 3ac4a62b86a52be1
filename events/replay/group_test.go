package replay_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/outbox"
)

// stack is log, broker and relay: what is staged gets to the broker and to the log.
type stack struct {
	*fixture
	kafka  *kafka.Client
	broker eventstest.Broker
	prefix string
}

func (f *fixture) stack() *stack {
	f.Helper()
	s := &stack{fixture: f}
	var addrs []string
	addrs, s.prefix = brokers(f.T)
	var err error
	if s.kafka, err = kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: time.Second}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.kafka.Close() })
	s.broker = eventstest.Shared(eventstest.Broker{Publisher: s.kafka, Subscriber: s.kafka, Admin: s.kafka}, s.prefix)
	if err := s.broker.EnsureTopics(f.ctx, 1, f.cat.Topics()...); err != nil {
		f.Fatal(err)
	}
	r, err := outbox.NewRelay(f.pool, s.broker, outbox.RelayConfig{Poll: 5 * time.Millisecond, Stager: f.stage})
	if err != nil {
		f.Fatal(err)
	}
	f.background(r.Run)
	return s
}

func (f *fixture) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(f.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				f.Errorf("ended with %v", err)
			}
		})
	}
	f.Cleanup(stop)
	return stop
}

// publish stages n messages of some keys, one transaction each, and waits until they are out and logged.
func (s *stack) publish(n, keys int) {
	s.Helper()
	for i := range n {
		if err := s.stageOne(events.Message{Type: "test.thing.created", BusinessKey: "K-" + string(rune('a'+i%keys)), Data: map[string]any{"n": i}}); err != nil {
			s.Fatal(err)
		}
	}
	s.eventually("an empty outbox", func() bool { return s.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
}

// consume starts a member of a group; its handler writes to applied, under the group's name, and emits an event.
func (s *stack) consume(group string, policy inbox.ReplayPolicy) (stop func()) {
	s.Helper()
	i, err := inbox.New(s.broker, s.pool, inbox.Config{Group: group, Catalog: s.cat, Stager: s.stage, Concurrency: 4, Sweep: 20 * time.Millisecond, CommitEvery: 20 * time.Millisecond},
		inbox.Route{Types: []string{"test.thing.created"}, Replay: policy, Handler: func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
			tx.Emit(events.Message{Type: "test.thing.viewed", BusinessKey: m.Metadata.BusinessKey, Data: map[string]any{}})
			_, err := tx.Exec(ctx, `INSERT INTO applied (key, seq, id, body) VALUES ($1, $2, $3, $4)`, m.Metadata.BusinessKey, m.Metadata.Sequence, m.MessageID, group+"/"+m.ReplayID)
			return err
		}})
	if err != nil {
		s.Fatal(err)
	}
	return s.background(i.Run)
}

func (s *stack) handled(by string) int {
	s.Helper()
	return s.count(`SELECT count(*) FROM applied WHERE body = $1`, by)
}

// A rebuild group handles the whole past again, once per replay and in order,
// while the live group beside it, and the live group replayed to by mistake, do nothing twice (spec E9).
func TestReplay_E9_RebuildGroupAndLiveGroup(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.stack()
	const n = 84
	s.consume("view", inbox.ReplayRefused)
	s.publish(n, 7)
	s.eventually("the live group", func() bool { return s.handled("view/") == n })
	emitted := func() int {
		// In one snapshot: the relay moves rows from the one to the other.
		return f.count(`SELECT (SELECT count(*) FROM journeyman.event_log WHERE type = 'test.thing.viewed') + (SELECT count(*) FROM journeyman.outbox WHERE type = 'test.thing.viewed')`)
	}
	before := emitted()

	target := func(group string) replay.Target {
		g, err := replay.ToGroup(replay.GroupConfig{DB: f.pool, Group: group, MaxWaiting: 40})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	src := replay.FromLog(f.pool, "", nil)
	start := func(group string, mode events.ReplayMode) string {
		t.Helper()
		req := request(src, target(group))
		req.Mode, req.Filter.Types = mode, []string{"test.thing.created"}
		p, err := f.runner(func(c *replay.Config) { c.Batch = 20 }).Start(f.ctx, req)
		if err != nil || p.Delivered != n {
			t.Fatalf("replay to %s: %+v, %v", group, p, err)
		}
		return p.ID
	}
	settled := func() {
		t.Helper()
		s.eventually("an empty retry store", func() bool { return f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 0 })
	}

	stop := s.consume("view-rebuild", inbox.ReplayQuiet)
	s.eventually("the new group's live messages", func() bool { return s.handled("view-rebuild/") == n })
	quiet := emitted()
	one, two := start("view-rebuild", events.ReplayAgain), start("view-rebuild", events.ReplayAgain)
	settled()
	for _, id := range []string{one, two} {
		if got := s.handled("view-rebuild/" + id); got != n {
			t.Errorf("replay %s handled %d, want %d", id, got, n)
		}
	}
	if bad := f.count(`SELECT count(*) FROM (SELECT seq, lag(seq) OVER (PARTITION BY key, body ORDER BY n) AS before FROM applied) a WHERE seq <= before`); bad != 0 {
		t.Errorf("%d messages out of their key's order", bad)
	}
	stop()
	if now := emitted(); now != quiet || quiet != before+n {
		t.Errorf("%d events emitted, %d after the rebuild; want %d and no more", quiet, now, before+n)
	}

	start("view", events.ReplayAgain) // by mistake
	settled()
	start("view", events.ReplayMissing) // nothing is missing
	settled()
	if got := f.count(`SELECT count(*) FROM applied WHERE body LIKE 'view/%'`); got != n {
		t.Errorf("the live group handled %d, want %d", got, n)
	}
	// Now something is: the group lost what it did with one key.
	f.exec(`DELETE FROM journeyman.inbox WHERE consumer = 'view' AND message_id IN (SELECT id FROM applied WHERE key = 'K-a' AND body = 'view/')`)
	lost := f.count(`WITH d AS (DELETE FROM applied WHERE key = 'K-a' AND body = 'view/' RETURNING 1) SELECT count(*) FROM d`)
	id := start("view", events.ReplayMissing)
	settled()
	if got := s.handled("view/" + id); got != lost || lost == 0 {
		t.Errorf("%d of %d lost messages handled", got, lost)
	}
	if got := f.count(`SELECT count(DISTINCT id) FROM applied WHERE body LIKE 'view/%'`); got != n {
		t.Errorf("the live group has %d messages, want %d", got, n)
	}
	if dead := f.count(`SELECT count(*) FROM journeyman.inbox_dead`); dead != 0 {
		t.Errorf("%d dead", dead)
	}
}

// From the broker's own retention, by time and key, cut off and resumed; and to the topics of origin, where the inbox absorbs it.
func TestReplay_E9_FromBrokerAndToOrigin(t *testing.T) {
	t.Parallel()
	f := setup(t)
	s := f.stack()
	s.consume("view", inbox.ReplayRefused)
	s.publish(100, 5)
	var middle time.Time
	if err := f.pool.QueryRow(f.ctx, `SELECT journeyman.now()`).Scan(&middle); err != nil {
		t.Fatal(err)
	}
	// Kafka keeps milliseconds: the next record must come after the middle's.
	s.eventually("the next millisecond", func() bool { return time.Since(middle) > 5*time.Millisecond })
	middle = time.Now()
	s.eventually("the next millisecond", func() bool { return time.Since(middle) > 5*time.Millisecond })
	s.publish(100, 5)
	s.eventually("the live group", func() bool { return s.handled("view/") == 200 })
	src := replay.FromBroker(s.kafka, nil, s.prefix+"test.thing.created.v1", s.prefix+"test.thing.renamed.v1")
	for name, c := range map[string]struct {
		filter replay.Filter
		want   int64
	}{
		"all": {replay.Filter{}, 200}, "from": {replay.Filter{From: middle}, 100}, "until": {replay.Filter{Until: middle}, 100},
		"key": {replay.Filter{Keys: []string{"K-b"}}, 40}, "type": {replay.Filter{Types: []string{"test.thing.renamed"}}, 0},
	} {
		if plan, err := f.runner().Plan(f.ctx, src, c.filter, nil); err != nil || plan.Messages != c.want {
			t.Errorf("%s: %+v, %v; want %d", name, plan, err, c.want)
		}
	}
	f.exec(`TRUNCATE applied`)
	ctx, stop := context.WithCancel(f.ctx)
	batches := 0
	p, err := f.runner(func(c *replay.Config) {
		c.Batch = 10
		c.Progress = func(replay.Replay) {
			if batches++; batches == 7 {
				stop()
			}
		}
	}).Start(ctx, request(src, replay.Apply("things", nil, apply)))
	if err == nil || p.State != replay.Paused || p.Delivered != 70 {
		t.Fatalf("%+v, %v; want paused at 70", p, err)
	}
	if p, err = f.runner().Resume(f.ctx, p.ID, src, replay.Apply("things", nil, apply), nil); err != nil || p.Delivered != 200 {
		t.Fatalf("resumed %+v, %v", p, err)
	}
	f.once(200)

	f.exec(`TRUNCATE applied`)
	req := request(replay.FromLog(f.pool, "", nil), replay.ToOrigin(s.broker))
	req.Mode, req.Filter.Types = events.ReplayMissing, []string{"test.thing.created"}
	if p, err = f.runner().Start(f.ctx, req); err != nil || p.Delivered != 200 {
		t.Fatalf("to origin %+v, %v", p, err)
	}
	if plan, err := f.runner().Plan(f.ctx, src, replay.Filter{}, nil); err != nil || plan.Messages != 400 {
		t.Errorf("the topic holds %d, %v; want each message twice", plan.Messages, err)
	}
	s.publish(5, 5)
	s.eventually("what was published after the replay", func() bool { return s.handled("view/") == 5 })
	if n := f.count(`SELECT count(*) FROM applied`); n != 5 {
		t.Errorf("%d handled, want none but the 5 new ones", n)
	}
}
