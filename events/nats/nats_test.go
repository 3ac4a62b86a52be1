package nats_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/nats"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// serve starts an embedded server; port -1 takes a free one.
func serve(t *testing.T, dir string, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true})
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

func open(t *testing.T, s *server.Server, edit ...func(*nats.Config)) *nats.Client {
	t.Helper()
	cfg := nats.Config{URL: s.ClientURL(), SessionTimeout: time.Second, AckTimeout: time.Second}
	for _, e := range edit {
		e(&cfg)
	}
	c, err := nats.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConformance(t *testing.T) {
	t.Parallel()
	eventstest.Transport(t, func(t *testing.T) eventstest.Broker {
		t.Helper()
		c := open(t, serve(t, t.TempDir(), -1))
		return eventstest.Broker{Publisher: c, Subscriber: c, Admin: c, MaxBytes: 1 << 20}
	})
}

func TestNew_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := nats.New(nats.Config{Heartbeat: time.Hour, User: "u", Token: "secret", Prefix: "a.b", Parallel: -1})
	for _, want := range []string{"url", "heartbeat", "user and token", "user and password", `"a.b"`, "parallel"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Error("the error shows the token")
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// The server drops a repeat of an event, and takes what a replay or a redrive delivers again on purpose, each once.
func TestPublish_E9_ReplaysAreNoRepeats(t *testing.T) {
	t.Parallel()
	k := open(t, serve(t, t.TempDir(), -1))
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	const topic = "test.a.done.v1"
	if err := k.EnsureTopics(ctx, 1, events.TopicSpec{Name: topic, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	of := func(headers ...events.Header) events.Record {
		return events.Record{Topic: topic, Key: "K", Body: []byte("x"), Headers: append([]events.Header{{Name: events.HeaderEventID, Value: "e"}}, headers...)}
	}
	replayed, redriven := of(events.Header{Name: events.HeaderReplayID, Value: "1"}), of(events.Header{Name: events.HeaderRedriveID, Value: "2"})
	for _, err := range k.Publish(ctx, []events.Record{of(), of(), replayed, replayed, redriven, redriven, of()}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	lags, err := k.Lag(ctx, "g", topic)
	if err != nil || len(lags) != 1 || lags[0].Behind != 3 {
		t.Errorf("%+v, %v; want the event, its replay and its redrive", lags, err)
	}
}
