//go:build !kafka

package outbox_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// brokers gives the addresses of an empty Kafka cluster and the prefix under
// which the test's topics and groups live there. With the build tag kafka it is a real one.
func brokers(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs(), ""
}
