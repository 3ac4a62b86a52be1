// Package natstest serves NATS with JetStream inside a test's process.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve starts a server on a free port of loopback, with its files in a folder of the test's, and gives its URL. It stops with the test;
// one that does not come up in 10 s fails it.
func Serve(t testing.TB) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS server is not ready")
	}
	return s.ClientURL()
}
