//go:build !kafka

package deadletter_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// brokers gives the addresses of an empty Kafka cluster and a prefix for the
// test's topics. With the build tag kafka it is a real one.
func brokers(t *testing.T) (addrs []string, prefix string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster.ListenAddrs(), ""
}
