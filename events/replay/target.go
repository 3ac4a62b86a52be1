package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Target is where messages are replayed to. [Apply], [ToGroup], [ToTopic] and [ToOrigin] make one.
type Target interface {
	// Name says what it is, for the record.
	Name() string
	// takes refuses a mode that makes no sense with the target.
	takes(mode events.ReplayMode) error
	// prepare does what must not be done inside the transaction. It may run again for the same items.
	prepare(ctx context.Context, items []Item, d events.Redelivery) error
	// deliver does the rest inside the transaction that moves the replay's place.
	deliver(ctx context.Context, tx pgx.Tx, items []Item, d events.Redelivery) (suppressed int64, err error)
}

// Handler applies one message inside tx. events.Received.Replay is true. It has
// the shape of a handler of package events/inbox. What it emits is dropped and
// counted. An error ends the replay at this message; resume goes on with it.
type Handler func(ctx context.Context, tx *outbox.Tx, m events.Received) error

// Apply delivers to a function of this process. Its statements commit together
// with the replay's place: each message is applied exactly once, whatever
// crashes. name identifies the projection in the record.
func Apply(name string, keys seal.Keys, h Handler) Target { return &apply{name, keys, h} }

type apply struct {
	name    string
	keys    seal.Keys
	handler Handler
}

func (a *apply) Name() string { return "handler:" + a.name }

func (a *apply) takes(mode events.ReplayMode) error {
	if mode != events.ReplayAgain {
		return fmt.Errorf("mode %q, want %q: a handler has no inbox that knows what is missing", mode, events.ReplayAgain)
	}
	return nil
}

func (a *apply) prepare(context.Context, []Item, events.Redelivery) error { return nil }

func (a *apply) deliver(ctx context.Context, tx pgx.Tx, items []Item, d events.Redelivery) (int64, error) {
	var suppressed int64
	for _, item := range items {
		env, err := envelope(item.Record, a.keys)
		if err != nil {
			return 0, fmt.Errorf("message %s: %w", item.EventID, err)
		}
		wrapped := outbox.NewTx(tx)
		if err := a.call(ctx, wrapped, events.Received{Envelope: env, Attempt: 1, Replay: true, ReplayID: d.ID}); err != nil {
			return 0, fmt.Errorf("message %s of type %s: %w", item.EventID, item.Type, err)
		}
		if err := wrapped.Refused(); err != nil {
			return 0, fmt.Errorf("message %s of type %s: %w", item.EventID, item.Type, err)
		}
		suppressed += int64(len(wrapped.Messages()))
	}
	return suppressed, nil
}

func (a *apply) call(ctx context.Context, tx *outbox.Tx, m events.Received) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("handler panicked: %v\n%s", v, debug.Stack())
		}
	}()
	return a.handler(ctx, tx, m)
}

// GroupConfig names a consumer group and its tables.
type GroupConfig struct {
	DB         *pgxpool.Pool // the database of replay and inbox, which must be one
	Schema     string        // of the replay's tables, "" means "journeyman"
	Inbox      string        // schema of the group's inbox, "" means Schema
	Group      string        // required
	Keys       seal.Keys     // encrypt bodies that rest encrypted in the log; nil when none does
	MaxWaiting int           // the replay waits while the group has so many messages waiting, 0 means 5,000
}

// ToGroup delivers to one consumer group by putting messages into its retry
// store, from where its running members (package events/inbox) take them: no
// other group sees them, and a key's newer messages wait behind. Each is put
// there exactly once.
func ToGroup(cfg GroupConfig) (Target, error) {
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.Inbox == "" {
		cfg.Inbox = cfg.Schema
	}
	if cfg.MaxWaiting == 0 {
		cfg.MaxWaiting = 5000
	}
	errs := []error{postgres.CheckSchema(cfg.Schema), postgres.CheckSchema(cfg.Inbox)}
	if cfg.DB == nil || cfg.Group == "" || cfg.MaxWaiting < 1 {
		errs = append(errs, fmt.Errorf("pool and group %q must be set, max waiting %d be 1 or more", cfg.Group, cfg.MaxWaiting))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("replay to group: %w", err)
	}
	return &group{cfg, renderGroup(cfg.Schema, cfg.Inbox)}, nil
}

type group struct {
	cfg GroupConfig
	sql groupStatements
}

func (g *group) Name() string { return "group:" + g.cfg.Group }

func (g *group) takes(events.ReplayMode) error { return nil }

// prepare waits until the group has room.
func (g *group) prepare(ctx context.Context, _ []Item, _ events.Redelivery) error {
	for tries := 0; ; tries++ {
		var n int
		if err := g.cfg.DB.QueryRow(ctx, g.sql.waiting, g.cfg.Group, g.cfg.MaxWaiting).Scan(&n); err != nil {
			return err
		}
		if n < g.cfg.MaxWaiting {
			return nil
		}
		if err := rest(ctx, tries); err != nil {
			return err
		}
	}
}

func (g *group) deliver(ctx context.Context, tx pgx.Tx, items []Item, d events.Redelivery) (int64, error) {
	n := len(items)
	keys, ids, types, ordered, topics := make([]string, n), make([]string, n), make([]string, n), make([]bool, n), make([]string, n)
	bodies, sent, headers := make([][]byte, n), make([]time.Time, n), make([]string, n)
	d.Group = g.cfg.Group
	var offsets []int64
	if err := tx.QueryRow(ctx, g.sql.offsets, n).Scan(&offsets); err != nil {
		return 0, err
	}
	for i, item := range items {
		d.Published = item.Published
		r := d.Mark(item.Record)
		keys[i], ids[i], types[i], ordered[i], topics[i] = r.Key, item.EventID, item.Type, item.Class.Ordered(), r.Topic
		bodies[i], sent[i], headers[i] = r.Body, item.Published, arrayLiteral(r.Headers)
		if item.AtRest {
			var err error
			if bodies[i], err = inbox.SealAtRest(g.cfg.Keys, g.cfg.Group, events.Position{Topic: r.Topic, Partition: -1, Offset: offsets[i]}, r.Body); err != nil {
				return 0, fmt.Errorf("message %s: %w", item.EventID, err)
			}
		}
	}
	b := &pgx.Batch{}
	b.Queue(g.sql.lock, g.cfg.Group, slices.Compact(slices.Sorted(slices.Values(keys))))
	b.Queue(g.sql.enqueue, g.cfg.Group, keys, ids, types, ordered, topics, bodies, sent, "replay "+d.ID, headers, offsets)
	return 0, tx.SendBatch(ctx, b).Close()
}

// arrayLiteral writes names and values as PostgreSQL's text of an array: arrays of arrays of unequal length cannot be passed.
func arrayLiteral(headers []events.Header) string {
	var s strings.Builder
	s.WriteByte('{')
	for i, h := range headers {
		for j, text := range []string{h.Name, h.Value} {
			if i+j > 0 {
				s.WriteByte(',')
			}
			s.WriteByte('"')
			s.WriteString(strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", "\uFFFD").Replace(strings.ToValidUTF8(text, "\uFFFD")))
			s.WriteByte('"')
		}
	}
	s.WriteByte('}')
	return s.String()
}

// ToTopic publishes to one topic instead of the messages' own, under their own
// ids (spec Z12), at least once.
func ToTopic(pub events.Publisher, name string) Target { return &topic{pub, name} }

// ToOrigin publishes to the topics the messages came from, at least once. All
// their consumers get them again: groups of package events/inbox as the mode
// says, others by their own means.
func ToOrigin(pub events.Publisher) Target { return &topic{pub, ""} }

type topic struct {
	pub  events.Publisher
	name string
}

func (t *topic) Name() string {
	if t.name == "" {
		return "origin"
	}
	return "topic:" + t.name
}

func (t *topic) takes(events.ReplayMode) error { return nil }

// publishTries bounds how often a batch is offered to the broker.
const publishTries = 10

// prepare publishes. What was not acknowledged is offered again, in order.
func (t *topic) prepare(ctx context.Context, items []Item, d events.Redelivery) error {
	records := make([]events.Record, len(items))
	for i, item := range items {
		d.Published = item.Published
		records[i] = d.Mark(item.Record)
		if t.name != "" {
			records[i].Topic = t.name
		}
	}
	for tries := 1; ; tries++ {
		var again []events.Record
		var first error
		for i, err := range t.pub.Publish(ctx, records) {
			if err == nil {
				continue
			}
			if events.FaultOf(err) != events.Retriable {
				return fmt.Errorf("publish %s: %w", records[i].Header(events.HeaderEventID), err)
			}
			if first == nil {
				first = err
			}
			again = append(again, records[i])
		}
		if len(again) == 0 {
			return nil
		}
		if tries == publishTries {
			return fmt.Errorf("publish: %d of %d records not taken after %d tries: %w", len(again), len(records), tries, first)
		}
		records = again
		if err := rest(ctx, tries); err != nil {
			return err
		}
	}
}

func (t *topic) deliver(context.Context, pgx.Tx, []Item, events.Redelivery) (int64, error) {
	return 0, nil
}

// rest waits before another try, at most a second.
func rest(ctx context.Context, tries int) error {
	t := time.NewTimer(min(time.Second, 20*time.Millisecond<<min(tries, 10)))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
