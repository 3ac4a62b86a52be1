package replay_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

type nowhere struct{}

func (nowhere) Publish(_ context.Context, records []events.Record) []error {
	return make([]error, len(records))
}

// Bodies that are encrypted in the log are so in the archive and in a group's
// queue, and are opened with the keys for whoever handles them (spec E4).
func TestReplay_E4_EncryptedBodies(t *testing.T) {
	t.Parallel()
	for how, e := range map[string]string{"at rest": "at_rest", "end to end": "end_to_end"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := setup(t)
			folder := t.TempDir()
			if err := errors.Join(seal.Generate(folder, "k1"), seal.Use(folder, "k1")); err != nil {
				t.Fatal(err)
			}
			keys, err := seal.OpenDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			own, err := events.ParseCatalog([]byte(catalogYAML + "encryption: {domain: " + e + "}\n"))
			if err != nil {
				t.Fatal(err)
			}
			more, err := replay.Catalog()
			if err != nil {
				t.Fatal(err)
			}
			if f.cat, err = events.Merge(own, more); err != nil {
				t.Fatal(err)
			}
			if f.stage, err = outbox.NewStager(outbox.Config{Catalog: f.cat, Producer: "tester", Instance: "t", Env: "test", Keys: keys}); err != nil {
				t.Fatal(err)
			}
			relay, err := outbox.NewRelay(f.pool, nowhere{}, outbox.RelayConfig{Stager: f.stage, Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			stop := f.background(relay.Run)
			for n := range 20 {
				if err := f.stageOne(events.Message{Type: "test.thing.created", BusinessKey: fmt.Sprintf("K-%d", n%3), Data: map[string]any{"n": n}}); err != nil {
					t.Fatal(err)
				}
			}
			f.eventually("an empty outbox", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox`) == 0 })
			stop()
			clear := func(table string) int {
				return f.count(`SELECT count(*) FROM journeyman.` + table + ` WHERE position('messageId' IN encode(body, 'escape')) > 0`)
			}
			if n := clear("event_log"); n != 0 {
				t.Fatalf("%d bodies rest clear in the log", n)
			}
			types := replay.Filter{Types: []string{"test.thing.created"}}
			start := func(s replay.Source, target replay.Target) (replay.Replay, error) {
				req := request(s, target)
				req.Filter = types
				return f.runner().Start(f.ctx, req)
			}
			if p, err := start(replay.FromLog(f.pool, "", nil), replay.Apply("things", nil, apply)); err == nil {
				t.Errorf("replayed without keys: %+v", p)
			}
			if p, err := start(replay.FromLog(f.pool, "", keys), replay.Apply("things", keys, apply)); err != nil || p.Delivered != 20 {
				t.Fatalf("%+v, %v", p, err)
			}
			f.once(20)

			store, err := bucket.Open(f.ctx, "mem://")
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close() //nolint:errcheck // memory
			f.exec(`SELECT journeyman.advance_clock('2 days')`)
			a, err := archive.New(f.pool, store, archive.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if d, err := a.Pass(f.ctx); err != nil || d.Rows < 20 {
				t.Fatalf("archive: %+v, %v", d, err)
			}
			f.exec(`TRUNCATE applied`)
			if p, err := start(replay.FromArchive(store, keys), replay.Apply("things", keys, apply)); err != nil || p.Delivered != 20 {
				t.Fatalf("from the archive: %+v, %v", p, err)
			}
			f.once(20)

			f.exec(`TRUNCATE applied`)
			g, err := replay.ToGroup(replay.GroupConfig{DB: f.pool, Group: "view-rebuild", Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			if p, err := start(replay.FromArchive(store, keys), g); err != nil || p.Delivered != 20 {
				t.Fatalf("to the group: %+v, %v", p, err)
			}
			if n := clear("inbox_retry"); n != 0 || f.count(`SELECT count(*) FROM journeyman.inbox_retry`) != 20 {
				t.Errorf("%d bodies rest clear in the group's queue", n)
			}
			addrs, prefix := brokers(t)
			k, err := kafka.New(kafka.Config{Brokers: addrs, SessionTimeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close() //nolint:errcheck // idle connections
			broker := eventstest.Shared(eventstest.Broker{Publisher: k, Subscriber: k, Admin: k}, prefix)
			if err := broker.EnsureTopics(f.ctx, 1, f.cat.Topics()...); err != nil {
				t.Fatal(err)
			}
			i, err := inbox.New(broker, f.pool, inbox.Config{Group: "view-rebuild", Catalog: f.cat, Keys: keys, Concurrency: 2, Sweep: 20 * time.Millisecond},
				inbox.Route{Types: []string{"test.thing.created"}, Replay: inbox.ReplayQuiet, Handler: apply})
			if err != nil {
				t.Fatal(err)
			}
			halt := f.background(i.Run)
			f.eventually("the group", func() bool { return f.count(`SELECT count(*) FROM applied`) == 20 })
			halt()
			f.once(20)
		})
	}
}
