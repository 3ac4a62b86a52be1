package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Filter chooses messages. Empty lists and zero times choose all.
type Filter struct {
	From  time.Time `json:"from,omitzero"`  // published at or after
	Until time.Time `json:"until,omitzero"` // published before; the latest the source can promise to be complete when zero or later
	Types []string  `json:"types,omitempty"`
	Keys  []string  `json:"keys,omitempty"`
	After string    `json:"after,omitempty"` // behind a place that an earlier replay of the same source reached
}

func (f Filter) match(messageType, key string) bool {
	return (len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(p string) bool { return events.Match(p, messageType) })) &&
		(len(f.Keys) == 0 || slices.Contains(f.Keys, key))
}

// Item is one message of a source, as it was published.
type Item struct {
	Record    events.Record
	Type      string
	Version   int
	Class     events.Class
	EventID   string
	Published time.Time // acknowledged by the broker, or the broker's own time
	Place     string    // behind this message
	AtRest    bool      // its body was encrypted where it rested, and is to be again
}

// Source is where messages are replayed from. [FromLog], [FromArchive] and [FromBroker] make one.
type Source interface {
	// Name says what it is, for the record.
	Name() string
	// Settle gives the latest time up to which the source is complete.
	Settle(ctx context.Context) (time.Time, error)
	// Read gives the messages that f chooses behind place ("" is the beginning) in order to fn, which ends the reading by an error.
	Read(ctx context.Context, place string, f Filter, fn func(Item) error) error
}

// FromLog reads the event log of a schema. keys open bodies that are encrypted there; nil when none is.
func FromLog(db *pgxpool.Pool, schema string, keys seal.Keys) Source {
	return &logSource{db: db, log: outbox.NewLog(postgres.SchemaOr(schema)), keys: keys}
}

type logSource struct {
	db   *pgxpool.Pool
	log  *outbox.Log
	keys seal.Keys
}

func (s *logSource) Name() string { return "log" }

func (s *logSource) Settle(ctx context.Context) (time.Time, error) { return s.log.Settle(ctx, s.db) }

// logPage is how many rows are read at once.
const logPage = 1000

func (s *logSource) Read(ctx context.Context, place string, f Filter, fn func(Item) error) error {
	at, err := cursor(place, f.From)
	if err != nil {
		return err
	}
	for {
		page, err := s.log.Page(ctx, s.db, at, outbox.LogFilter{Until: f.Until, Types: f.Types, Keys: f.Keys}, logPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, row := range page {
			at = row.Cursor()
			item, err := itemOf(row, s.keys)
			if err != nil {
				return err
			}
			if err := fn(item); err != nil {
				return err
			}
		}
	}
}

// FromArchive reads what package events/archive has written.
func FromArchive(store archive.Store, keys seal.Keys) Source {
	return &archiveSource{archive.NewReader(store), keys}
}

type archiveSource struct {
	reader *archive.Reader
	keys   seal.Keys
}

func (s *archiveSource) Name() string { return "archive" }

// Settle: what is in the archive does not change any more.
func (s *archiveSource) Settle(ctx context.Context) (time.Time, error) {
	days, err := s.reader.Manifests(ctx, time.Time{}, time.Time{})
	if err != nil {
		return time.Time{}, err
	}
	if len(days) == 0 {
		return time.Time{}, errors.New("archive is empty")
	}
	last, err := time.Parse(time.DateOnly, days[len(days)-1].Day)
	return last.AddDate(0, 0, 1), err
}

func (s *archiveSource) Read(ctx context.Context, place string, f Filter, fn func(Item) error) error {
	at, err := cursor(place, f.From)
	if err != nil {
		return err
	}
	return s.reader.Rows(ctx, at, f.Until, func(row outbox.Logged) error {
		if !f.match(row.Type, row.BusinessKey) {
			return nil
		}
		item, err := itemOf(row, s.keys)
		if err != nil {
			return err
		}
		return fn(item)
	})
}

func itemOf(row outbox.Logged, keys seal.Keys) (Item, error) {
	rec, err := row.RecordWith(keys)
	if err != nil {
		return Item{}, err
	}
	at := row.Cursor()
	mode, sealed := seal.Sealed(row.Body)
	return Item{
		AtRest: sealed && mode == seal.AtRest,
		Record: rec, Type: row.Type, Version: row.Version, Class: row.Class, EventID: row.EventID, Published: row.LoggedAt,
		Place: at.At.UTC().Format(events.TimeFormat) + "/" + strconv.FormatInt(at.ID, 10),
	}, nil
}

// cursor reads a place of log and archive, which have the same.
func cursor(place string, from time.Time) (outbox.LogCursor, error) {
	if place == "" {
		return outbox.LogCursor{At: from}, nil // ids begin at 1
	}
	text, number, _ := strings.Cut(place, "/")
	at, err := time.Parse(events.TimeFormat, text)
	id, err2 := strconv.ParseInt(number, 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return outbox.LogCursor{}, fmt.Errorf("place %q, want time/id: %w", place, err)
	}
	return outbox.LogCursor{At: at, ID: id}, nil
}

// FromBroker reads what the broker still holds of the topics, one partition
// after the other. It is complete up to the time the replay starts; a record that
// the broker drops meanwhile is missed.
func FromBroker(reader events.SpanReader, keys seal.Keys, topics ...string) Source {
	return &brokerSource{reader, keys, topics}
}

type brokerSource struct {
	reader events.SpanReader
	keys   seal.Keys
	topics []string
}

func (s *brokerSource) Name() string { return "broker" }

func (s *brokerSource) Settle(context.Context) (time.Time, error) { return time.Now(), nil }

// spot is a place at the broker: behind this record, all earlier spans done.
type spot struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Offset    int64  `json:"offset"`
}

func (s *brokerSource) Read(ctx context.Context, place string, f Filter, fn func(Item) error) error {
	var at spot
	if place != "" {
		if err := json.Unmarshal([]byte(place), &at); err != nil {
			return fmt.Errorf("place %q, want topic, partition and offset: %w", place, err)
		}
	}
	spans, err := s.reader.Spans(ctx, f.From, f.Until, s.topics...)
	if err != nil {
		return err
	}
	for _, span := range spans {
		switch {
		case place == "":
		case span.Topic < at.Topic || span.Topic == at.Topic && span.Partition < at.Partition:
			continue
		case span.Topic == at.Topic && span.Partition == at.Partition:
			span.First = max(span.First, at.Offset+1)
		}
		if span.First >= span.End {
			continue
		}
		if err := s.reader.ReadSpan(ctx, span, func(d events.Delivery) error {
			item, err := s.item(d)
			if err != nil || !f.match(item.Type, d.Key) {
				return err
			}
			return fn(item)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *brokerSource) item(d events.Delivery) (Item, error) {
	here, err := json.Marshal(spot{d.Position.Topic, d.Position.Partition, d.Position.Offset})
	item := Item{Record: d.Record, Published: d.Time, Type: d.Header(events.HeaderEventType), EventID: d.Header(events.HeaderEventID), Place: string(here), Class: events.ClassDomain}
	if err != nil {
		return item, err
	}
	env, err := envelope(d.Record, s.keys)
	if err != nil {
		// Whether it is wanted cannot be told for sure: a body that is no message is passed on as it is.
		return item, nil //nolint:nilerr // the target decides
	}
	item.Type, item.Version, item.EventID, item.Class = env.MessageType, env.MessageVersion, env.MessageID, env.Metadata.EventClass
	return item, nil
}

// envelope parses a record's body, opening it when it is encrypted.
func envelope(r events.Record, keys seal.Keys) (events.Envelope, error) {
	body := r.Body
	if _, sealed := seal.Sealed(body); sealed {
		var err error
		if body, err = seal.Open(keys, body, r.Header(events.HeaderEventID)); err != nil {
			return events.Envelope{}, err
		}
	}
	return events.ParseRecord(events.Record{Key: r.Key, Headers: r.Headers, Body: body})
}

// TypesFor lists the message types that the catalog sends to a consumer group, for [Filter].Types (spec E9: by group).
func TypesFor(c *events.Catalog, group string) []string {
	var types []string
	for _, e := range c.Entries() {
		if slices.Contains(e.Consumers, group) || slices.Contains(e.Consumers, "*") {
			types = append(types, e.Type)
		}
	}
	return slices.Compact(types)
}
