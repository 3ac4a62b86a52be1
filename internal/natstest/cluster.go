package natstest

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Cluster is three servers of one JetStream, which keep what they acknowledge on disk, synced.
type Cluster struct {
	t       testing.TB
	servers map[string]*server.Server
}

// ServeCluster starts three servers on free ports of loopback and waits until they have found each other and elected a leader.
// They stop with the test; a cluster that is not ready in a minute fails it.
func ServeCluster(t testing.TB) *Cluster {
	t.Helper()
	ports := freePorts(t, 3)
	routes := make([]*url.URL, len(ports))
	for i, p := range ports {
		routes[i] = &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", p)}
	}
	c := &Cluster{t: t, servers: map[string]*server.Server{}}
	for i, p := range ports {
		name := fmt.Sprint("server-", i+1)
		c.servers[name] = start(t, &server.Options{
			ServerName: name, Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoSigs: true, NoLog: true,
			Cluster: server.ClusterOpts{Name: "cluster", Host: "127.0.0.1", Port: p}, Routes: routes,
		})
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for !c.ready() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("NATS cluster is not ready")
		}
	}
	return c
}

// URL names all servers.
func (c *Cluster) URL() string {
	var urls []string
	for _, s := range c.servers {
		urls = append(urls, s.ClientURL())
	}
	return strings.Join(urls, ",")
}

// Stop ends one server for good, by its name.
func (c *Cluster) Stop(name string) {
	c.t.Helper()
	s, ok := c.servers[name]
	if !ok {
		c.t.Fatalf("NATS cluster has no server %q", name)
	}
	stop(s)
}

// ready says whether there is a leader that knows all servers, and all are up to date.
func (c *Cluster) ready() bool {
	known := 0
	for _, s := range c.servers {
		if !s.JetStreamIsCurrent() {
			return false
		}
		known = max(known, len(s.JetStreamClusterPeers()))
	}
	return known == len(c.servers)
}

// freePorts gives different ports of loopback that nobody listened on a moment ago: servers of a cluster must know each other's before they start.
func freePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() //nolint:errcheck // nothing was accepted
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}
