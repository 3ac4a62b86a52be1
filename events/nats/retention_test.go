package nats_test

import (
	"testing"
	"time"

	upstream "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/vitrip/journeyman/events"
)

// A domain's stream keeps as long as the longest retention among its topics; it is raised, never lowered.
func TestEnsureTopics_RetentionOfTheCatalog_E3(t *testing.T) {
	t.Parallel()
	ctx, s := within(t), serve(t, t.TempDir(), -1)
	c := open(t, s)
	cat, err := events.ParseCatalog([]byte(`
domains: [test, shop]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [a], retention_days: 40}
  - {type: test.page.viewed, class: analytical, owner: test, producers: [a]}
  - {type: shop.access.granted, class: audit, owner: shop, producers: [a], partitions: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := upstream.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	check := func(subject string, want time.Duration) {
		t.Helper()
		name, err := js.StreamNameBySubject(ctx, subject)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.MaxAge; got != want {
			t.Errorf("stream %s keeps %v, want %v", name, got, want)
		}
	}
	const day = 24 * time.Hour
	topics := cat.Topics()
	for range 2 {
		if err := c.EnsureTopics(ctx, 1, topics...); err != nil {
			t.Fatal(err)
		}
		check("test.>", 40*day)
		check("shop.>", 2557*day)
	}
	for i := range topics {
		topics[i].Retention = 50 * day
	}
	if err := c.EnsureTopics(ctx, 1, topics...); err != nil {
		t.Fatal(err)
	}
	check("test.>", 50*day)
	check("shop.>", 2557*day)
}
