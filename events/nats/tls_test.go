package nats_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/internal/natstest"
	"github.com/vitrip/journeyman/internal/testca"
)

// encrypted serves NATS over TLS alone, on free ports of loopback.
func encrypted(t *testing.T, ca *testca.Authority) (url string) {
	t.Helper()
	return natstest.Serve(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSTimeout = ca.Server(false), true, 5 })
}

func connect(t *testing.T, cfg nats.Config) *nats.Client {
	t.Helper()
	cfg.SessionTimeout, cfg.AckTimeout = time.Second, time.Second
	c, err := nats.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// passes makes a topic, publishes and fetches in order.
func passes(t *testing.T, c *nats.Client) {
	t.Helper()
	eventstest.RoundTrip(t, eventstest.Broker{Publisher: c, Subscriber: c, Admin: c}, topic)
}

// Publisher, consumer and admin speak TLS with a server that takes nothing else.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	passes(t, connect(t, nats.Config{URL: encrypted(t, ca), TLS: ca.Client()}))
}

// Who trusts another authority than the server's publishes nothing, parks nothing and says why;
// with the right one the same records go through.
func TestTLS_WrongAuthorityLosesNothing(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	url := encrypted(t, ca)
	strange := connect(t, nats.Config{URL: url, TLS: testca.New(t).Client()})
	send := func() []error {
		return strange.Publish(within(t), []events.Record{{Topic: topic, Key: "k", Body: []byte("1")}, {Topic: topic, Key: "k", Body: []byte("2")}})
	}
	errs := send()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); events.FaultOf(errs[0]) == events.Retriable && ctx.Err() == nil; errs = send() {
		<-tick.C // the first attempt to connect has hardly ended
	}
	if err := errs[0]; err == nil || events.FaultOf(err) != events.Unusable || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("got %v with fault %d, want %d and the certificate named", err, events.FaultOf(err), events.Unusable)
	}
	if !errors.Is(errs[1], events.ErrHeldBack) {
		t.Errorf("the record behind it: got %v, want it held back", errs[1])
	}
	if err := strange.EnsureTopics(within(t), 1, events.TopicSpec{Name: topic, Partitions: 1}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("topics: got %v, want the certificate named", err)
	}
	passes(t, connect(t, nats.Config{URL: url, TLS: ca.Client()}))
}
