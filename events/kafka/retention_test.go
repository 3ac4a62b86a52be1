package kafka_test

import (
	"context"
	"testing"
	"time"

	upstream "github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
)

const retentionYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [a], retention_days: 40}
  - {type: test.page.viewed, class: analytical, owner: test, producers: [a]}
  - {type: test.access.granted, class: audit, owner: test, producers: [a], partitions: 2}
`

// retained reads what the broker itself says.
func retained(t *testing.T, ctx context.Context, addr, topic string) string {
	t.Helper()
	transport := &upstream.Transport{}
	defer transport.CloseIdleConnections()
	res, err := (&upstream.Client{Addr: upstream.TCP(addr), Transport: transport}).DescribeConfigs(ctx, &upstream.DescribeConfigsRequest{
		Resources: []upstream.DescribeConfigRequestResource{{ResourceType: upstream.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"}}},
	})
	if err != nil || len(res.Resources) != 1 || len(res.Resources[0].ConfigEntries) != 1 {
		t.Fatalf("describe %s: %+v, %v", topic, res, err)
	}
	return res.Resources[0].ConfigEntries[0].ConfigValue
}

// retention checks that topics get the catalog's retention, and that it is raised, never lowered.
func retention(t *testing.T, c *kafka.Client, addr, prefix string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cat, err := events.ParseCatalog([]byte(retentionYAML))
	if err != nil {
		t.Fatal(err)
	}
	topics := cat.Topics()
	for i := range topics {
		topics[i].Name = prefix + topics[i].Name
	}
	want := map[string]string{"test.thing.created.v1": "3456000000", "test.page.viewed.v1": "2592000000", "test.access.granted.v1": "220924800000"}
	for range 2 {
		if err := c.EnsureTopics(ctx, 1, topics...); err != nil {
			t.Fatal(err)
		}
		for name, ms := range want {
			if got := retained(t, ctx, addr, prefix+name); got != ms {
				t.Errorf("%s is kept for %s ms, want %s", name, got, ms)
			}
		}
	}
	for i := range topics {
		topics[i].Retention = 50 * 24 * time.Hour
	}
	if err := c.EnsureTopics(ctx, 1, topics...); err != nil {
		t.Fatal(err)
	}
	want["test.thing.created.v1"], want["test.page.viewed.v1"] = "4320000000", "4320000000"
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for name, ms := range want { // a change reaches a broker's view within a moment
		for got := retained(t, ctx, addr, prefix+name); got != ms; got = retained(t, ctx, addr, prefix+name) {
			select {
			case <-tick.C:
			case <-deadline.C:
				t.Fatalf("%s is kept for %s ms, want %s", name, got, ms)
			}
		}
	}
}

func TestEnsureTopics_RetentionOfTheCatalog_E3(t *testing.T) {
	t.Parallel()
	c, cluster := open(t, kafka.Config{})
	retention(t, c, cluster.ListenAddrs()[0], "")
}
