package archive

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// Format is the number of the format that this package writes.
const Format = 1

// Manifest says what the archive holds of a day.
type Manifest struct {
	Format   int    `json:"format"`
	Day      string `json:"day"` // 2026-11-30, in UTC
	Number   int    `json:"number"`
	Rows     int64  `json:"rows"`
	IDSum    string `json:"id_sum"` // of the rows' ids, decimal
	Parts    []Part `json:"parts"`
	Previous *Link  `json:"previous,omitempty"` // nil for the first of all
}

// Link names a manifest and what it must hash to.
type Link struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Part is one object of rows.
type Part struct {
	Name   string           `json:"name"`
	Rows   int64            `json:"rows"`
	Bytes  int64            `json:"bytes"`
	SHA256 string           `json:"sha256"` // of the object
	First  outbox.LogCursor `json:"first"`
	Last   outbox.LogCursor `json:"last"`
	IDSum  string           `json:"id_sum"`
	Types  map[string]int64 `json:"types"` // rows per message type
}

// line is a log row as a part holds it.
type line struct {
	LoggedAt    string      `json:"logged_at"`
	Shard       int16       `json:"shard"`
	ID          int64       `json:"id"`
	EventID     string      `json:"event_id"`
	Type        string      `json:"type"`
	Version     int         `json:"version"`
	Class       string      `json:"class"`
	Topic       string      `json:"topic"`
	BusinessKey string      `json:"business_key"`
	Seq         int64       `json:"seq"`
	OperationID string      `json:"operation_id"`
	Headers     [][2]string `json:"headers"`
	Body        []byte      `json:"body"`
	OccurredAt  string      `json:"occurred_at"`
	CreatedAt   string      `json:"created_at"`
}

// pack makes the object of some rows and says what is in it. Equal rows give equal objects.
func pack(day string, n int, rows []outbox.Logged) ([]byte, Part, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	enc := json.NewEncoder(zip)
	enc.SetEscapeHTML(false)
	p := Part{Rows: int64(len(rows)), Types: map[string]int64{}}
	sum := new(big.Int)
	for _, r := range rows {
		if len(r.Headers)%2 != 0 {
			return nil, p, fmt.Errorf("event log row %d: headers are not pairs", r.ID)
		}
		l := line{
			LoggedAt: stamp(r.LoggedAt), Shard: r.Shard, ID: r.ID, EventID: r.EventID, Type: r.Type, Version: r.Version, Class: string(r.Class), Topic: r.Topic,
			BusinessKey: r.BusinessKey, Seq: r.Seq, OperationID: r.OperationID, Headers: make([][2]string, 0, len(r.Headers)/2), Body: r.Body,
			OccurredAt: stamp(r.OccurredAt), CreatedAt: stamp(r.CreatedAt),
		}
		for i := 0; i < len(r.Headers); i += 2 {
			l.Headers = append(l.Headers, [2]string{r.Headers[i], r.Headers[i+1]})
		}
		if err := enc.Encode(l); err != nil {
			return nil, p, fmt.Errorf("event log row %d: %w", r.ID, err)
		}
		p.Types[r.Type]++
		sum.Add(sum, big.NewInt(r.ID))
	}
	if err := zip.Close(); err != nil {
		return nil, p, err
	}
	p.First, p.Last, p.IDSum = rows[0].Cursor(), rows[len(rows)-1].Cursor(), sum.String()
	p.Bytes, p.SHA256 = int64(buf.Len()), hash(buf.Bytes())
	p.Name = fmt.Sprintf("v%d/%s/part-%05d-%s.jsonl.gz", Format, day, n, p.SHA256[:16])
	return buf.Bytes(), p, nil
}

func stamp(t time.Time) string { return t.UTC().Format(events.TimeFormat) }

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// maxLine bounds a line: a message of a megabyte in base64 and more.
const maxLine = 64 << 20

// unpack checks an object against what the manifest says and gives its rows in order to fn.
func unpack(content []byte, p Part, fn func(outbox.Logged) error) error {
	if got := hash(content); got != p.SHA256 {
		return fmt.Errorf("%s: sha256 %s, want %s", p.Name, got, p.SHA256)
	}
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	var n int64
	sum := new(big.Int)
	last := outbox.LogCursor{}
	for lines.Scan() {
		r, err := parse(lines.Bytes())
		if err != nil {
			return fmt.Errorf("%s line %d: %w", p.Name, n+1, err)
		}
		at := r.Cursor()
		if n > 0 && (at.At.Before(last.At) || at.At.Equal(last.At) && at.ID <= last.ID) {
			return fmt.Errorf("%s line %d: out of order", p.Name, n+1)
		}
		last = at
		n++
		sum.Add(sum, big.NewInt(r.ID))
		if err := fn(r); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	if n != p.Rows || sum.String() != p.IDSum {
		return fmt.Errorf("%s: %d rows with id sum %s, want %d and %s", p.Name, n, sum, p.Rows, p.IDSum)
	}
	return nil
}

func parse(text []byte) (outbox.Logged, error) {
	var l line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return outbox.Logged{}, err
	}
	r := outbox.Logged{
		Shard: l.Shard, ID: l.ID, EventID: l.EventID, Type: l.Type, Version: l.Version, Class: events.Class(l.Class), Topic: l.Topic,
		BusinessKey: l.BusinessKey, Seq: l.Seq, OperationID: l.OperationID, Headers: make([]string, 0, 2*len(l.Headers)), Body: l.Body,
	}
	for _, h := range l.Headers {
		r.Headers = append(r.Headers, h[0], h[1])
	}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"logged_at", l.LoggedAt, &r.LoggedAt}, {"occurred_at", l.OccurredAt, &r.OccurredAt}, {"created_at", l.CreatedAt, &r.CreatedAt}} {
		at, err := time.Parse(events.TimeFormat, t.text)
		if err != nil {
			return r, fmt.Errorf("%s %q, want a time such as %s", t.name, t.text, events.TimeFormat)
		}
		*t.to = at
	}
	if r.ID < 1 || r.EventID == "" || r.Topic == "" || r.BusinessKey == "" {
		return r, errors.New("id, event_id, topic or business_key is missing")
	}
	return r, nil
}
