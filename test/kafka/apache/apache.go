// Package apache runs a real Apache Kafka for tests: one node or several, KRaft, on
// loopback, from the jars that Maven fetches once into the cache. It needs
// Java 17 or later; Maven only for the first time.
package apache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/test/clients/toolcache"
)

// Version is the Apache Kafka that the tests run against.
const Version = "4.3.1"

// Node is a running broker.
type Node struct {
	Addr string // host:port of its listener

	classpath, dir string
	nodes          int // of its cluster
	cmd            *exec.Cmd
	log            *os.File
}

// Prepare fetches the jars with the pom at the given path and returns a node with its data below dir. Nothing runs yet.
func Prepare(ctx context.Context, pom, dir string) (*Node, error) {
	classpath, err := classpath(ctx, pom)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	n := &Node{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])), classpath: classpath, dir: dir, nodes: 1}
	voter := fmt.Sprintf("1@127.0.0.1:%d", ports[1])
	return n, n.format(ctx, properties(member{no: 1, of: 1, port: ports[0], controller: ports[1], voters: []string{voter}, data: filepath.Join(dir, "data")}))
}

func classpath(ctx context.Context, pom string) (string, error) {
	return toolcache.Classpath(ctx, pom, Version)
}

// format writes the configuration and makes the storage.
func (n *Node) format(ctx context.Context, text []byte) error {
	if err := os.WriteFile(n.properties(), text, 0o600); err != nil {
		return err
	}
	out, err := n.java(ctx, "kafka.tools.StorageTool", "format", "-t", "am91cm5leW1hbi10ZXN0cw", "-c", n.properties()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format Kafka's storage: %w\n%s", err, out)
	}
	return nil
}

// Running reports whether the node was started and not killed since.
func (n *Node) Running() bool { return n.cmd != nil }

// Start starts the broker and waits until it answers. Call it again after [Node.Kill] for a restart on the same data and port.
func (n *Node) Start(ctx context.Context) error {
	var err error
	if n.log, err = os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil { //nolint:gosec // a path of the test
		return err
	}
	n.cmd = n.java(context.WithoutCancel(ctx), "kafka.Kafka", n.properties())
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		n.cmd = nil
		return errors.Join(err, n.log.Close())
	}
	if err := n.ready(ctx); err != nil {
		text, _ := os.ReadFile(n.log.Name())
		return errors.Join(fmt.Errorf("start of Kafka: %w\n%s", err, text[max(0, len(text)-4000):]), n.Kill())
	}
	return nil
}

// Kill ends the broker without giving it a chance to say goodbye, and waits for its end.
func (n *Node) Kill() error {
	err := n.cmd.Process.Signal(syscall.SIGKILL)
	_ = n.cmd.Wait() // killed: that is its error
	n.cmd = nil
	return errors.Join(err, n.log.Close())
}

// ready waits until the broker answers and knows a majority of its cluster.
func (n *Node) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := kafka.Client{Addr: kafka.TCP(n.Addr), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections() //nolint:forcetypeassert // made above
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, done := context.WithTimeout(ctx, time.Second)
		meta, err := client.Metadata(attempt, &kafka.MetadataRequest{})
		done()
		if err == nil && len(meta.Brokers) > n.nodes/2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func (n *Node) java(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:TieredStopAtLevel=1", "-Xms256m", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", n.classpath}, args...)...) //nolint:gosec // arguments of the tests
	cmd.Dir = n.dir
	return cmd
}

func (n *Node) properties() string { return filepath.Join(n.dir, "server.properties") }

// member is one node's place in its cluster.
type member struct {
	no, of, port, controller int
	voters                   []string
	data                     string
}

func properties(m member) []byte {
	copies := min(m.of, 3)
	var b bytes.Buffer
	fmt.Fprintf(&b, "process.roles=broker,controller\nnode.id=%d\nlisteners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d\n", m.no, m.port, m.controller)
	fmt.Fprintf(&b, "advertised.listeners=PLAINTEXT://127.0.0.1:%d\ncontroller.quorum.voters=%s\nlog.dirs=%s\n", m.port, strings.Join(m.voters, ","), m.data)
	fmt.Fprintf(&b, "offsets.topic.replication.factor=%d\ntransaction.state.log.replication.factor=%[1]d\nshare.coordinator.state.topic.replication.factor=%[1]d\n", copies)
	fmt.Fprintf(&b, "min.insync.replicas=%d\ntransaction.state.log.min.isr=%[1]d\nshare.coordinator.state.topic.min.isr=%[1]d\n", copies/2+1)
	b.WriteString(`inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
auto.create.topics.enable=false
offsets.topic.num.partitions=4
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=100
`)
	return b.Bytes()
}

// freePorts gives ports that were free a moment ago, all different.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()                                     //nolint:errcheck // held until all are found
		ports = append(ports, l.Addr().(*net.TCPAddr).Port) //nolint:forcetypeassert // TCP
	}
	return ports, nil
}
