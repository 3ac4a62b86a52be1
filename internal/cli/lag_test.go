package cli

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/app"
)

// What a group has not finished is told alike of both transports, for the topics it last read.
func TestConsumersLag(t *testing.T) {
	t.Parallel()
	pool, env := migrated(t)
	const topic = "test.thing.created.v1"
	if _, err := pool.Exec(context.Background(), `INSERT INTO journeyman.inbox_group (consumer, topics) VALUES ('view', $1)`, []string{topic}); err != nil {
		t.Fatal(err)
	}
	url := jetStream(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	onKafka, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	onNATS, err := nats.New(nats.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		bus  app.Bus
		vars map[string]string
	}{
		"kafka": {onKafka, map[string]string{"JOURNEYMAN_KAFKA": strings.Join(cluster.ListenAddrs(), ",")}},
		"nats":  {onNATS, map[string]string{"JOURNEYMAN_TRANSPORT": "nats", "JOURNEYMAN_NATS": url}},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.bus.Close() //nolint:errcheck // end of the test
			if err := c.bus.EnsureTopics(t.Context(), 1, events.TopicSpec{Name: topic, Partitions: 2}); err != nil {
				t.Fatal(err)
			}
			for _, key := range []string{"a", "b", "c"} {
				r := events.Record{Topic: topic, Key: key, Body: []byte("x"), Headers: []events.Header{{Name: events.HeaderEventID, Value: events.NewID()}}}
				if err := c.bus.Publish(t.Context(), []events.Record{r})[0]; err != nil {
					t.Fatal(err)
				}
			}
			env := maps.Clone(env)
			maps.Copy(env, c.vars)
			got := decode[struct {
				Group        string
				Behind, Lost int64
				Partitions   []lag
			}](t, env, ExitDone, "events", "consumers", "lag", "view")
			if got.Group != "view" || got.Behind != 3 || len(got.Partitions) != 2 || got.Partitions[0].Committed != -1 || got.Partitions[0].Topic != topic {
				t.Errorf("lag %+v, want 3 in two partitions of a group without position", got)
			}
			if code, out, _ := run(env, "events", "consumers", "lag", "view"); code != ExitDone || !strings.Contains(out, "BEHIND") {
				t.Errorf("lag for people: %d %s", code, out)
			}
		})
	}
	env["JOURNEYMAN_TRANSPORT"] = "nats"
	if code, _, errs := run(env, "events", "consumers", "lag", "view"); code != ExitUsage || !strings.Contains(errs, "--nats or JOURNEYMAN_NATS") {
		t.Errorf("without an address: %d %s", code, errs)
	}
}
