// Command kafka starts a real Apache Kafka, runs a command with its address in
// JOURNEYMAN_TEST_KAFKA, kills the broker and ends with the command's exit code:
//
//	go run ./test/kafka go test -tags kafka ./events/kafka
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
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
	if len(args) == 0 {
		return 2, errors.New("usage: go run ./test/kafka COMMAND [ARGUMENT…]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "journeyman-kafka")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	node, err := apache.Prepare(ctx, filepath.Join("test", "kafka", "apache", "pom.xml"), dir)
	if err != nil {
		return 1, err
	}
	if err := node.Start(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, node.Kill()) }()
	_, _ = fmt.Fprintf(os.Stderr, "Apache Kafka %s at %s after %v\n", apache.Version, node.Addr, time.Since(began).Round(100*time.Millisecond))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is what this program is for
	cmd.Env = append(os.Environ(), "JOURNEYMAN_TEST_KAFKA="+node.Addr)
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
