package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// readTimeout bounds one request to the broker.
const readTimeout = 15 * time.Second

// Log reads whole Kafka topics, by itself and outside any consumer group.
type Log struct {
	Brokers []string
	Skip    func(topic string) bool // topics that carry no first publications, such as a dead letter topic; nil = none
}

// Read returns every record of every topic between its first offset and the
// end it had when Read began, in offset order per partition. It blocks until
// all is read or ctx ends.
func (l Log) Read(ctx context.Context) ([]Record, error) {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(l.Brokers...), Timeout: readTimeout, Transport: transport}
	meta, err := client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, fmt.Errorf("kafka metadata: %w", err)
	}
	var all []Record
	for _, t := range meta.Topics {
		if t.Internal || strings.HasPrefix(t.Name, "__") || (l.Skip != nil && l.Skip(t.Name)) {
			continue
		}
		if t.Error != nil {
			return nil, fmt.Errorf("kafka topic %s: %w", t.Name, t.Error)
		}
		for _, p := range t.Partitions {
			records, err := readPartition(ctx, client, t.Name, p.ID)
			if err != nil {
				return nil, fmt.Errorf("kafka %s[%d]: %w", t.Name, p.ID, err)
			}
			all = append(all, records...)
		}
	}
	return all, nil
}

func readPartition(ctx context.Context, client *kafka.Client, topic string, partition int) ([]Record, error) {
	list, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(partition), kafka.LastOffsetOf(partition)},
	}})
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list.Topics[topic], func(p kafka.PartitionOffsets) bool { return p.Partition == partition })
	if i < 0 {
		return nil, errors.New("broker told no offsets")
	}
	ends := list.Topics[topic][i]
	if ends.Error != nil {
		return nil, ends.Error
	}
	var out []Record
	for at := ends.FirstOffset; at < ends.LastOffset; {
		res, err := client.Fetch(ctx, &kafka.FetchRequest{
			Topic: topic, Partition: partition, Offset: at, MinBytes: 1, MaxBytes: 8 << 20, MaxWait: time.Second,
		})
		if err != nil {
			return nil, err
		}
		if res.Error != nil {
			return nil, res.Error
		}
		before := at
		for {
			r, err := res.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if r.Offset < at {
				continue // a fetch may start inside a batch
			}
			rec, err := decode(topic, partition, r)
			if err != nil {
				return nil, fmt.Errorf("offset %d: %w", r.Offset, err)
			}
			out = append(out, rec)
			at = r.Offset + 1
		}
		if at == before {
			return nil, fmt.Errorf("no record at offset %d although the log ends at %d", at, ends.LastOffset)
		}
	}
	return out, nil
}

// decode takes id, key and sequence from the envelope itself (spec E1) and checks that the headers say the same.
func decode(topic string, partition int, r *kafka.Record) (Record, error) {
	rec := Record{Topic: topic, Partition: partition, Offset: r.Offset}
	body, err := kafka.ReadAll(r.Value)
	if err != nil {
		return rec, err
	}
	var envelope struct {
		MessageID   string `json:"messageId"`
		MessageType string `json:"messageType"`
		Metadata    struct {
			BusinessKey string `json:"businessKey"`
			Sequence    int64  `json:"sequence"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return rec, fmt.Errorf("body is no envelope: %w", err)
	}
	rec.ID, rec.Type = envelope.MessageID, envelope.MessageType
	rec.Key, rec.Sequence = envelope.Metadata.BusinessKey, envelope.Metadata.Sequence
	for _, h := range r.Headers {
		if h.Key == "event_id" && string(h.Value) != rec.ID {
			return rec, fmt.Errorf("header event_id %q, body messageId %q", h.Value, rec.ID)
		}
	}
	key, err := kafka.ReadAll(r.Key)
	if err != nil {
		return rec, err
	}
	if string(key) != rec.Key {
		return rec, fmt.Errorf("record key %q, body businessKey %q", key, rec.Key)
	}
	return rec, nil
}
