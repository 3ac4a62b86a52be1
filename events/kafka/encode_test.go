package kafka

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/vitrip/journeyman/events"
)

// What we encode, kafka-go decodes, checksum included, and encodes to as many bytes.
func TestEncode_AsKafkaGoReadsIt(t *testing.T) {
	t.Parallel()
	var records []events.Record
	for n := range 200 {
		r := events.Record{Key: fmt.Sprint("K-", n), Body: []byte(strings.Repeat("x", n*n)), Headers: []events.Header{{Name: "event_id", Value: fmt.Sprint(n)}, {Name: "empty"}, {Name: "ä", Value: strings.Repeat("long", n)}}}
		switch n {
		case 3:
			r.Body = nil
		case 4:
			r.Body, r.Headers = []byte{}, nil
		case 5:
			r.Key = strings.Repeat("k", 200)
		}
		records = append(records, r)
	}
	list := make([]int, 0, len(records))
	for i := 1; i < len(records); i++ {
		list = append(list, i)
	}
	now := time.UnixMilli(1_790_000_000_123)
	for _, codec := range []kafka.Compression{0, kafka.Gzip, kafka.Snappy, kafka.Lz4, kafka.Zstd} {
		t.Run(fmt.Sprint(codec), func(t *testing.T) {
			t.Parallel()
			got, err := encode(records, list, now, codec)
			if err != nil {
				t.Fatal(err)
			}
			var set protocol.RecordSet
			n, err := set.ReadFrom(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if int(n) != len(got) || set.Attributes.Compression() != codec {
				t.Errorf("read %d bytes of %d, compression %v, want %v", n, len(got), set.Attributes.Compression(), codec)
			}
			for _, i := range list {
				r, err := set.Records.ReadRecord()
				if err != nil {
					t.Fatalf("record %d: %v", i, err)
				}
				want := records[i]
				key, body := all(t, r.Key), all(t, r.Value)
				if r.Offset != int64(i-1) || !r.Time.Equal(now) || string(key) != want.Key || !bytes.Equal(body, want.Body) || (r.Value == nil) != (want.Body == nil) {
					t.Errorf("record %d: offset %d, time %v, key %q, body of %d bytes, null %v", i, r.Offset, r.Time, key, len(body), r.Value == nil)
				}
				if len(r.Headers) != len(want.Headers) {
					t.Fatalf("record %d: %d headers, want %d", i, len(r.Headers), len(want.Headers))
				}
				for h, header := range r.Headers {
					if header.Key != want.Headers[h].Name || string(header.Value) != want.Headers[h].Value {
						t.Errorf("record %d: header %q=%q, want %q", i, header.Key, header.Value, want.Headers[h])
					}
				}
			}
		})
	}
}

func all(t *testing.T, b protocol.Bytes) []byte {
	t.Helper()
	if b == nil {
		return nil
	}
	v, err := protocol.ReadAll(b)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func BenchmarkEncode(b *testing.B) {
	records, list := make([]events.Record, 100), make([]int, 100)
	for i := range records {
		list[i] = i
		records[i] = events.Record{Key: fmt.Sprint("K-", i), Body: []byte(strings.Repeat(fmt.Sprint(i), 150)), Headers: []events.Header{{Name: "event_id", Value: "d7d9c1c0-0000-4000-8000-0000000000"}, {Name: "event_type", Value: "bench.room.booked"}, {Name: "producer", Value: "bench"}}}
	}
	for b.Loop() {
		if _, err := encode(records, list, time.Now(), kafka.Lz4); err != nil {
			b.Fatal(err)
		}
	}
}
