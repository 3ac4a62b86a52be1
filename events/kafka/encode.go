package kafka

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/vitrip/journeyman/events"
)

// Where fields of a record batch of version 2 stand behind the four bytes of its size (Kafka protocol, "Record Batch").
const (
	batchSize    = 4  // of the size itself
	batchCRC     = 17 // over what follows it
	batchCovered = 21
	batchHead    = 61
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// scratch holds records before they are compressed.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// appender lets a compressor write into a slice.
type appender []byte

func (a *appender) Write(p []byte) (int, error) {
	*a = append(*a, p...)
	return len(p), nil
}

// encode gives the records at list as one batch with its size before it, as a
// produce request carries it. kafka-go's own encoder compresses field by field,
// in pieces of 32 bytes; here a batch is compressed at once. The result is not
// used again: a request whose context ended may still be read by its connection.
func encode(records []events.Record, list []int, now time.Time, codec kafka.Compression) ([]byte, error) {
	buf := scratch.Get().(*[]byte) //nolint:forcetypeassert // nothing else is in it
	defer scratch.Put(buf)
	body := (*buf)[:0]
	for n, i := range list {
		body = appendRecord(body, records[i], int64(n))
	}
	*buf = body
	out := make(appender, batchSize+batchHead, batchSize+batchHead+len(body)) // a codec that lets data grow makes it grow
	if c := codec.Codec(); c != nil {
		w := c.NewWriter(&out)
		if _, err := w.Write(body); err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
		if err := w.Close(); err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}
	} else {
		out = append(out, body...)
	}
	binary.BigEndian.PutUint32(out, uint32(len(out)-batchSize)) //nolint:gosec // bounded by MaxRequest
	head := out[batchSize:]
	const lengthEnds, unknown = 12, ^uint64(0)
	at := uint64(now.UnixMilli())                                      //nolint:gosec // after 1970
	count := uint32(len(list))                                         //nolint:gosec // bounded by MaxRequest
	binary.BigEndian.PutUint64(head[0:], 0)                            // base offset
	binary.BigEndian.PutUint32(head[8:], uint32(len(head)-lengthEnds)) //nolint:gosec // bounded by MaxRequest
	binary.BigEndian.PutUint32(head[12:], ^uint32(0))                  // leader epoch
	head[16] = 2
	binary.BigEndian.PutUint16(head[21:], uint16(codec)) // attributes //nolint:gosec // 0 to 4
	binary.BigEndian.PutUint32(head[23:], count-1)       // last offset
	binary.BigEndian.PutUint64(head[27:], at)            // first time
	binary.BigEndian.PutUint64(head[35:], at)            // last time
	binary.BigEndian.PutUint64(head[43:], unknown)       // producer
	binary.BigEndian.PutUint16(head[51:], ^uint16(0))    // its epoch
	binary.BigEndian.PutUint32(head[53:], ^uint32(0))    // its sequence
	binary.BigEndian.PutUint32(head[57:], count)
	binary.BigEndian.PutUint32(head[batchCRC:], crc32.Checksum(head[batchCovered:], castagnoli))
	return out, nil
}

// appendRecord adds one record, the offset-th of its batch and of the batch's time.
func appendRecord(b []byte, r events.Record, offset int64) []byte {
	size := 2 + varints(offset, int64(len(r.Key)), int64(len(r.Headers))) + len(r.Key) + bytesSize(r.Body) // attributes and time are a byte each
	for _, h := range r.Headers {
		size += varints(int64(len(h.Name)), int64(len(h.Value))) + len(h.Name) + len(h.Value)
	}
	b = binary.AppendVarint(b, int64(size))
	b = append(b, 0, 0)
	b = binary.AppendVarint(b, offset)
	b = binary.AppendVarint(b, int64(len(r.Key)))
	b = append(b, r.Key...)
	if r.Body == nil {
		b = binary.AppendVarint(b, -1)
	} else {
		b = binary.AppendVarint(b, int64(len(r.Body)))
		b = append(b, r.Body...)
	}
	b = binary.AppendVarint(b, int64(len(r.Headers)))
	for _, h := range r.Headers {
		b = binary.AppendVarint(b, int64(len(h.Name)))
		b = append(b, h.Name...)
		b = binary.AppendVarint(b, int64(len(h.Value)))
		b = append(b, h.Value...)
	}
	return b
}

// bytesSize is the size of a value, which may be null.
func bytesSize(v []byte) int {
	if v == nil {
		return varints(-1)
	}
	return varints(int64(len(v))) + len(v)
}

// varints is the size of the values as Kafka's varints, which are zigzag as those of package binary.
func varints(values ...int64) int {
	n := 0
	for _, v := range values {
		for u := uint64(v<<1) ^ uint64(v>>63); ; u >>= 7 { //nolint:gosec // zigzag
			n++
			if u < 0x80 {
				break
			}
		}
	}
	return n
}
