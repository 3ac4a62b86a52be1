//go:build !kafka

package codec_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// services gives an empty Kafka and an empty registry. With the build tag kafka they are Apache's and Apicurio's.
func services(t *testing.T) (addrs []string, prefix, registryURL string) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.GroupMinSessionTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	r := srfake.New()
	t.Cleanup(r.Close)
	return cluster.ListenAddrs(), "", r.URL()
}
