package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/sagas"
)

// watch follows the Kafka log as any consumer could and remembers which events each saga caused.
type watch struct {
	brokers []string

	mu     sync.Mutex
	events map[string]map[string]kafka.Message // saga id, event type → first record
	count  int
	change chan struct{} // closed and replaced at each event
}

func newWatch(brokers []string) *watch {
	return &watch{brokers: brokers, events: map[string]map[string]kafka.Message{}, change: make(chan struct{})}
}

// run reads topics until ctx ends.
func (w *watch) run(ctx context.Context, topics []string) error {
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: w.brokers, GroupID: "demo-watch", GroupTopics: topics, StartOffset: kafka.FirstOffset,
		MinBytes: 1, MaxBytes: 4 << 20, MaxWait: 100 * time.Millisecond, CommitInterval: time.Second,
	})
	defer r.Close() //nolint:errcheck // leaving the group can fail when the broker is gone already
	for {
		m, err := r.FetchMessage(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch the log: %w", err)
		}
		if err := w.see(m); err != nil {
			return fmt.Errorf("watch the log: %s[%d]@%d: %w", m.Topic, m.Partition, m.Offset, err)
		}
	}
}

func (w *watch) see(m kafka.Message) error {
	var e struct {
		MessageType string `json:"messageType"`
		Metadata    struct {
			OperationID string `json:"operationId"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(m.Value, &e); err != nil {
		return err
	}
	if e.MessageType == "" {
		return errors.New("envelope without messageType")
	}
	saga, _, _ := strings.Cut(e.Metadata.OperationID, ":")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events[saga] == nil {
		w.events[saga] = map[string]kafka.Message{}
	}
	if _, seen := w.events[saga][e.MessageType]; !seen {
		w.events[saga][e.MessageType] = m
	}
	w.count++
	close(w.change)
	w.change = make(chan struct{})
	return nil
}

// first gives the first record of that type which the saga caused.
func (w *watch) first(saga, eventType string) (kafka.Message, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m, ok := w.events[saga][eventType]
	return m, ok
}

// ended reports whether the log says that the saga is over.
func (w *watch) ended(saga string) bool {
	for _, t := range []string{sagas.EventCompleted, sagas.EventFailed, sagas.EventExpired} {
		if _, ok := w.first(saga, t); ok {
			return true
		}
	}
	return false
}

// seen is how many records were read, and a channel that closes at the next one.
func (w *watch) seen() (int, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count, w.change
}

// produceAgain appends a record a second time, byte for byte, to the same partition: a duplicate delivery.
func produceAgain(ctx context.Context, brokers []string, m kafka.Message) error {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: 10 * time.Second, Transport: transport}
	res, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: m.Topic, Partition: m.Partition, RequiredAcks: kafka.RequireAll,
		Records: kafka.NewRecordReader(kafka.Record{Key: kafka.NewBytes(m.Key), Value: kafka.NewBytes(m.Value), Headers: m.Headers, Time: m.Time}),
	})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		return fmt.Errorf("deliver %s a second time: %w", m.Topic, err)
	}
	return nil
}
