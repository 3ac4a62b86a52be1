package replay_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/internal/crash"
)

// Variables with which the test binary starts itself as a replay that dies.
const (
	envChild   = "JOURNEYMAN_TEST_REPLAY_CHILD" // DSN
	envTarget  = "JOURNEYMAN_TEST_REPLAY_TARGET"
	envBrokers = "JOURNEYMAN_TEST_REPLAY_BROKERS"
	envTopic   = "JOURNEYMAN_TEST_REPLAY_TOPIC"
	envArm     = "JOURNEYMAN_TEST_REPLAY_ARM"
	envLog     = "JOURNEYMAN_TEST_REPLAY_LOG"
)

func child() {
	err := func() error {
		if err := crash.Arm(os.Getenv(envArm), os.Getenv(envLog)); err != nil {
			return err
		}
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, os.Getenv(envChild))
		if err != nil {
			return err
		}
		cat, err := catalog()
		if err != nil {
			return err
		}
		stage, err := stager(cat)
		if err != nil {
			return err
		}
		r, err := replay.New(replay.Config{DB: pool, Stager: stage})
		if err != nil {
			return err
		}
		k, err := kafka.New(kafka.Config{Brokers: strings.Split(os.Getenv(envBrokers), ",")})
		if err != nil {
			return err
		}
		target, err := targetOf(os.Getenv(envTarget), pool, k, os.Getenv(envTopic))
		if err != nil {
			return err
		}
		_, err = r.Start(ctx, request(replay.FromLog(pool, "", nil), target))
		return err
	}()
	fmt.Fprintln(os.Stderr, "child ended:", err)
	os.Exit(3)
}

// targetOf makes the same target in child and parent.
func targetOf(kind string, pool *pgxpool.Pool, k *kafka.Client, topic string) (replay.Target, error) {
	switch kind {
	case "handler":
		return replay.Apply("things", nil, apply), nil
	case "group":
		return replay.ToGroup(replay.GroupConfig{DB: pool, Group: "view-rebuild", MaxWaiting: 100_000})
	default:
		return replay.ToTopic(k, topic), nil
	}
}

// The replay is killed inside a batch's transaction, after its commit, and after
// its messages were published: resumed, nothing is lost, nothing applied twice, no key reordered.
func TestReplay_E9_Killed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, arm string }{
		{"handler", "replay.delivered:4"}, {"handler", "replay.committed:3"}, {"group", "replay.delivered:3"}, {"topic", "replay.prepared:3"},
	} {
		t.Run(c.target+" "+c.arm, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			f.day("2026-01-02", 1, 3000)
			addrs, prefix := brokers(t)
			topic := prefix + "replayed"
			k, err := kafka.New(kafka.Config{Brokers: addrs})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close() //nolint:errcheck // idle connections
			if err := k.EnsureTopics(f.ctx, 1, events.TopicSpec{Name: topic, Partitions: 2}); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(t.TempDir(), "points")
			cmd := exec.CommandContext(f.ctx, os.Args[0])
			cmd.Env = append(os.Environ(), envChild+"="+f.dsn, envTarget+"="+c.target, envBrokers+"="+strings.Join(addrs, ","), envTopic+"="+topic, envArm+"="+c.arm, envLog+"="+log)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL { //nolint:forcetypeassert // Unix
				t.Fatalf("child ended with %v, want SIGKILL\n%s", err, out)
			}
			r := f.runner()
			list, err := r.List(f.ctx, 1)
			if err != nil || len(list) != 1 || list[0].State != replay.Running || list[0].Delivered == 0 || list[0].Delivered >= 3000 {
				t.Fatalf("after the kill: %+v, %v; want running, part way", list, err)
			}
			target, err := targetOf(c.target, f.pool, k, topic)
			if err != nil {
				t.Fatal(err)
			}
			p, err := r.Resume(f.ctx, list[0].ID, replay.FromLog(f.pool, "", nil), target, nil)
			if err != nil || p.State != replay.Completed || p.Delivered != 3000 {
				t.Fatalf("resumed: %+v, %v", p, err)
			}
			switch c.target {
			case "handler":
				f.once(3000)
			case "group":
				f.exec(`INSERT INTO applied (key, seq, id) SELECT business_key, (convert_from(body, 'UTF8')::jsonb->'metadata'->>'sequence')::bigint, message_id FROM journeyman.inbox_retry ORDER BY id`)
				f.once(3000)
				if due := f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE next_at < 'infinity'`); due != 100 {
					t.Errorf("%d messages are due, want the first of each of 100 keys", due)
				}
			case "topic":
				f.topicOnce(k, topic, 3000, 500)
			}
		})
	}
}

// topicOnce reads a topic and checks loss, order and the number of duplicates.
func (f *fixture) topicOnce(k *kafka.Client, topic string, want, duplicates int) {
	f.Helper()
	src := replay.FromBroker(k, nil, topic)
	last, seen, all := map[string]int{}, map[string]bool{}, 0
	if err := src.Read(f.ctx, "", replay.Filter{}, func(item replay.Item) error {
		all++
		if seen[item.EventID] {
			return nil
		}
		seen[item.EventID] = true
		env, err := events.ParseEnvelope(item.Record.Body)
		if err != nil {
			return err
		}
		if n := int(env.Metadata.Sequence); n <= last[item.Record.Key] {
			f.Errorf("key %s: sequence %d after %d", item.Record.Key, n, last[item.Record.Key])
		} else {
			last[item.Record.Key] = n
		}
		if d := events.RedeliveryOf(item.Record); d.ID == "" || d.Mode != events.ReplayAgain || d.Published.IsZero() {
			return fmt.Errorf("record is marked %+v", d)
		}
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	if len(seen) != want || all-want > duplicates {
		f.Errorf("topic has %d distinct messages and %d duplicates, want %d and at most %d", len(seen), all-len(seen), want, duplicates)
	}
}
