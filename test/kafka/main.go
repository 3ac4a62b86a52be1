// Command kafka starts a real Apache Kafka, runs a command with the address of its first broker in
// JOURNEYMAN_TEST_KAFKA and the copies that its topics can have, 3 at most, in JOURNEYMAN_TEST_KAFKA_COPIES,
// kills the brokers and ends with the command's exit code, 2 for wrong usage:
//
//	go run ./test/kafka go test -tags kafka ./events/kafka
//	go run ./test/kafka -nodes 3 go test -tags kafka ./events/kafka
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/vitrip/journeyman/test/kafka/apache"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafka:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	flags := flag.NewFlagSet("kafka", flag.ContinueOnError)
	nodes := flags.Int("nodes", 1, "brokers of the cluster, 1 to 9")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if args = flags.Args(); len(args) == 0 || *nodes < 1 || *nodes > 9 {
		return 2, errors.New("usage: go run ./test/kafka [-nodes N] COMMAND [ARGUMENT…], N from 1 to 9")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "journeyman-kafka")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	cluster, err := apache.PrepareCluster(ctx, filepath.Join("test", "kafka", "apache", "pom.xml"), dir, *nodes)
	if err != nil {
		return 1, err
	}
	if err := cluster.Start(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Kill()) }()
	_, _ = fmt.Fprintf(os.Stderr, "Apache Kafka %s at %v after %v\n", apache.Version, cluster.Addrs(), time.Since(began).Round(100*time.Millisecond))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is what this program is for
	cmd.Env = append(os.Environ(), "JOURNEYMAN_TEST_KAFKA="+cluster[0].Addr, "JOURNEYMAN_TEST_KAFKA_COPIES="+strconv.Itoa(min(*nodes, 3)))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	began = time.Now()
	err = cmd.Run()
	_, _ = fmt.Fprintf(os.Stderr, "%s took %v\n", args[0], time.Since(began).Round(100*time.Millisecond))
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
