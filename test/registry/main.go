// Command registry starts a real Apicurio Registry, runs a command with its
// address in JOURNEYMAN_TEST_REGISTRY, kills the registry and ends with the
// command's exit code, 2 for wrong usage:
//
//	go run ./test/registry go run ./test/kafka go test -tags kafka ./events/schema/...
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/vitrip/journeyman/test/registry/apicurio"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) == 0 {
		return 2, errors.New("usage: go run ./test/registry COMMAND [ARGUMENT…]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "journeyman-registry")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	r, err := apicurio.Start(ctx, dir)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, r.Kill()) }()
	_, _ = fmt.Fprintf(os.Stderr, "Apicurio Registry %s at %s after %v\n", apicurio.Version, r.URL, time.Since(began).Round(100*time.Millisecond))
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // it is what this program is for
	cmd.Env = append(os.Environ(), "JOURNEYMAN_TEST_REGISTRY="+r.URL)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
