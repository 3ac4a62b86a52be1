package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/vitrip/journeyman/events"
)

// addedHeaders is how many headers the relay adds to those stored.
const addedHeaders = 3

var (
	errNotPairs = errors.New("stored headers are not pairs")
	errNotTexts = errors.New("not an array of texts")
)

// collect reads rows of the columns in wire, and one that says whether the key is parked.
func collect(rows pgx.Rows) ([]*staged, error) {
	defer rows.Close()
	const chunk = 64
	var list []*staged
	var free []staged
	topic, binary := "", false
	for rows.Next() {
		if list == nil {
			binary = inBinary(rows) // a query that failed describes no columns
		}
		if len(free) == 0 {
			free = make([]staged, chunk)
		}
		s := &free[0]
		free = free[1:]
		var err error
		if binary {
			err = s.decode(rows.RawValues(), topic)
		} else {
			err = s.scan(rows)
		}
		if err != nil {
			return nil, fmt.Errorf("outbox row: %w", err)
		}
		topic = s.topic
		list = append(list, s)
	}
	return list, rows.Err()
}

// inBinary reports whether the columns came in PostgreSQL's binary format, which texts share with the other one. pgx asks for it
// unless the pool is set to the simple protocol or to text, as some poolers of transactions need.
func inBinary(rows pgx.Rows) bool {
	const topic, key = 3, 4
	for i, f := range rows.FieldDescriptions() {
		if f.Format != pgx.BinaryFormatCode && i != topic && i != key {
			return false
		}
	}
	return true
}

// scan reads the row in whatever format it came.
func (s *staged) scan(row pgx.Rows) error {
	var headers []string
	err := row.Scan(&s.shard, &s.id, &s.eventID, &s.topic, &s.key, &s.seq, &headers, &s.body, &s.occurred, &s.at, &s.parked)
	if err == nil {
		s.headers, s.broken = pairs(headers)
	}
	return err
}

// decode reads the row's columns from their binary form, with few allocations: the relay spends most of its own time on rows. topic is that of
// the row before.
func (s *staged) decode(v [][]byte, topic string) error {
	const columns = 11
	if len(v) != columns {
		return fmt.Errorf("%d columns, want %d", len(v), columns)
	}
	for i, size := range [columns]int{0: 2, 1: 8, 2: 16, 5: 8, 8: 8, 9: 8, 10: 1} {
		if size > 0 && len(v[i]) != size {
			return fmt.Errorf("column %d of %d bytes, want %d", i+1, len(v[i]), size)
		}
	}
	s.shard = int16(binary.BigEndian.Uint16(v[0])) //nolint:gosec // as it was stored
	s.id, s.seq = integer(v[1]), integer(v[5])
	s.eventID = pgtype.UUID{Bytes: [16]byte(v[2]), Valid: true}.String()
	if s.topic = topic; string(v[3]) != topic {
		s.topic = string(v[3])
	}
	s.key = string(v[4])
	if err := s.decodeHeaders(v[6]); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	s.body = append(make([]byte, 0, len(v[7])), v[7]...)
	s.occurred, s.at = moment(v[8]), moment(v[9])
	s.parked = v[10][0] != 0
	return nil
}

func integer(v []byte) int64 { return int64(binary.BigEndian.Uint64(v)) } //nolint:gosec // as it was stored

// moment is a timestamptz: microseconds since 2000.
func moment(v []byte) time.Time {
	const y2000 = 946_684_800_000_000
	return time.UnixMicro(integer(v) + y2000)
}

// decodeHeaders reads a text[] of names and values. They share one allocation.
func (s *staged) decodeHeaders(v []byte) error {
	const head, dimension = 12, 8
	if len(v) < head || len(v) < head+dimension && binary.BigEndian.Uint32(v) != 0 {
		return errNotTexts
	}
	switch binary.BigEndian.Uint32(v) {
	case 0:
		return nil
	case 1:
	default:
		return errNotTexts
	}
	n := int(binary.BigEndian.Uint32(v[head:]))
	v = v[head+dimension:]
	if n > len(v)/4 {
		return errNotTexts
	}
	if n%2 != 0 {
		s.broken = errNotPairs
		return nil
	}
	whole := string(v)
	next := func() (text string, ok bool) {
		if len(whole) < 4 {
			return "", false
		}
		size := int(int32(binary.BigEndian.Uint32(v[len(v)-len(whole):]))) //nolint:gosec // -1 is null
		if size < 0 || size > len(whole)-4 {
			return "", false
		}
		text, whole = whole[4:4+size], whole[4+size:]
		return text, true
	}
	s.headers = make([]events.Header, 0, n/2+addedHeaders)
	for range n / 2 {
		name, ok := next()
		value, ok2 := next()
		if !ok || !ok2 {
			return errNotTexts
		}
		s.headers = append(s.headers, events.Header{Name: name, Value: value})
	}
	return nil
}

// pairs makes headers of names and values, with room for those the relay adds.
func pairs(list []string) ([]events.Header, error) {
	if len(list)%2 != 0 {
		return nil, errNotPairs
	}
	h := make([]events.Header, 0, len(list)/2+addedHeaders)
	for i := 0; i < len(list); i += 2 {
		h = append(h, events.Header{Name: list[i], Value: list[i+1]})
	}
	return h, nil
}
