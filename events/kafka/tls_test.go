package kafka_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/eventstest"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/internal/testca"
)

const overTLS = "t.a.done.v1"

// passes makes a topic, publishes and fetches in order.
func passes(t *testing.T, c *kafka.Client) {
	t.Helper()
	eventstest.RoundTrip(t, eventstest.Broker{Publisher: c, Subscriber: c, Admin: c}, overTLS)
}

// Publisher, consumer and admin speak TLS with a cluster that takes nothing else.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	c, _ := open(t, kafka.Config{TLS: ca.Client()}, kfake.TLS(ca.Server(false)))
	passes(t, c)
}

// Credentials travel inside the encrypted connection, also those of PLAIN, which are readable otherwise.
func TestTLS_SASL(t *testing.T) {
	t.Parallel()
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			ca := testca.New(t)
			wire := &tap{}
			cfg := kafka.Config{TLS: ca.Client(), SASL: kafka.SASL{Mechanism: m, Username: "somebody", Password: "a-password"}, Dial: wire.dial}
			c, _ := open(t, cfg, kfake.TLS(ca.Server(false)), kfake.EnableSASL(), kfake.Superuser(m, "somebody", "a-password"))
			passes(t, c)
			if sent := wire.text(); sent == "" || strings.Contains(sent, "somebody") || strings.Contains(sent, "a-password") || strings.Contains(sent, overTLS) {
				t.Errorf("%d bytes were sent, want some, with nothing readable among them", len(sent))
			}
		})
	}
}

// Who trusts another authority than the brokers' publishes nothing, parks nothing and says why;
// with the right one records of that key go through.
func TestTLS_WrongAuthorityIsForAnOperator(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	c, cluster := open(t, kafka.Config{TLS: ca.Client()}, kfake.TLS(ca.Server(false)))
	strange, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs(), TLS: testca.New(t).Client()})
	if err != nil {
		t.Fatal(err)
	}
	defer strange.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs := strange.Publish(ctx, []events.Record{{Topic: overTLS, Key: "k", Body: []byte("x")}, {Topic: overTLS, Key: "k", Body: []byte("y")}})
	if err := errs[0]; err == nil || events.FaultOf(err) != events.Unusable || !strings.Contains(err.Error(), "certificate signed by unknown authority") {
		t.Errorf("got %v with fault %d, want %d and the certificate named", err, events.FaultOf(err), events.Unusable)
	}
	if !errors.Is(errs[1], events.ErrHeldBack) {
		t.Errorf("the record behind it: got %v, want it held back", errs[1])
	}
	if err := strange.EnsureTopics(ctx, 1, events.TopicSpec{Name: overTLS, Partitions: 1}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("topics: got %v, want the certificate named", err)
	}
	consumer, err := strange.Subscribe(ctx, "g", overTLS)
	if err != nil {
		t.Fatal(err)
	}
	defer consumer.Close()
	if _, err := consumer.Fetch(ctx); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("consumer: got %v, want the certificate named", err)
	}
	passes(t, c)
}

// A client that forgot TLS publishes nothing and parks nothing.
func TestTLS_PlaintextClientLosesNothing(t *testing.T) {
	t.Parallel()
	ca := testca.New(t)
	c, cluster := open(t, kafka.Config{TLS: ca.Client()}, kfake.TLS(ca.Server(false)))
	plain, err := kafka.New(kafka.Config{Brokers: cluster.ListenAddrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := plain.Publish(ctx, []events.Record{{Topic: overTLS, Key: "k", Body: []byte("x")}})[0]; err == nil || events.FaultOf(err) == events.Permanent {
		t.Errorf("got %v with fault %d, must not park the key", err, events.FaultOf(err))
	}
	passes(t, c)
}

// tap keeps what connections send.
type tap struct {
	mu   sync.Mutex
	sent []byte
}

func (w *tap) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return tapped{c, w}, nil
}

func (w *tap) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.sent)
}

type tapped struct {
	net.Conn
	to *tap
}

func (c tapped) Write(p []byte) (int, error) {
	c.to.mu.Lock()
	c.to.sent = append(c.to.sent, p...)
	c.to.mu.Unlock()
	return c.Conn.Write(p)
}
