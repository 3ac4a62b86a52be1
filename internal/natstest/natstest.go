// Package natstest serves NATS with JetStream inside a test's process.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve starts a server on a free port of loopback, with its files in a folder of the test's, and gives its URL. It stops with the test;
// one that does not come up in 10 s fails it. Each edit may change what it is started with.
func Serve(t testing.TB, edit ...func(*server.Options)) (url string) {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true}
	for _, e := range edit {
		e(o)
	}
	return start(t, o).ClientURL()
}

// start starts a server and waits until it takes connections. It stops with the test.
func start(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS server is not ready")
	}
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
