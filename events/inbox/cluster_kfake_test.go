//go:build !kafka

package inbox_test

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/natstest"
)

// transports are those that the tests run over: each with a broker in this process, one a test. With the build tag kafka it is a real Kafka alone.
func transports() []transport {
	return []transport{{"kafka", serveKafka, dialKafka}, {"nats", serveNATS, dialNATS}}
}

func serveKafka(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs(), ""
}

func serveNATS(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	return []string{natstest.Serve(t)}, ""
}

func dialNATS(addrs []string) (client, error) {
	return nats.New(nats.Config{URL: strings.Join(addrs, ","), SessionTimeout: time.Second, AckTimeout: time.Second})
}
