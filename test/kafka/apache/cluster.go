package apache

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Cluster is several brokers of one Kafka, each broker and controller.
type Cluster []*Node

// PrepareCluster fetches the jars with the pom at the given path and returns n nodes with their data below dir. Nothing runs
// yet. Topics of two copies at least need acks of two when n is three or more.
func PrepareCluster(ctx context.Context, pom, dir string, n int) (Cluster, error) {
	classpath, err := classpath(ctx, pom)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2 * n)
	if err != nil {
		return nil, err
	}
	voters := make([]string, n)
	for i := range n {
		voters[i] = fmt.Sprintf("%d@127.0.0.1:%d", i+1, ports[n+i])
	}
	c := make(Cluster, n)
	for i := range n {
		home := filepath.Join(dir, "node-"+strconv.Itoa(i+1))
		if err := os.MkdirAll(home, 0o700); err != nil {
			return nil, err
		}
		c[i] = &Node{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])), classpath: classpath, dir: home, nodes: n}
		text := properties(member{no: i + 1, of: n, port: ports[i], controller: ports[n+i], voters: voters, data: filepath.Join(home, "data")})
		if err := c[i].format(ctx, text); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Start starts all nodes at once and waits until each sees all others.
func (c Cluster) Start(ctx context.Context) error {
	errs := make([]error, len(c))
	var wg sync.WaitGroup
	for i, n := range c {
		wg.Go(func() { errs[i] = n.Start(ctx) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, c.Kill())
	}
	return nil
}

// Kill ends all nodes that run.
func (c Cluster) Kill() error {
	var errs []error
	for _, n := range c {
		if n.Running() {
			errs = append(errs, n.Kill())
		}
	}
	return errors.Join(errs...)
}

// Addrs are the brokers' addresses.
func (c Cluster) Addrs() []string {
	addrs := make([]string, len(c))
	for i, n := range c {
		addrs[i] = n.Addr
	}
	return addrs
}
