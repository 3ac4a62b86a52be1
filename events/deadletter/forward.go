package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/postgres"
)

// Headers of a record in a DLQ topic, beside those the message came with.
const (
	HeaderGroup     = "dlq_group"
	HeaderState     = "dlq_state" // "dead" or "parked"
	HeaderReason    = "dlq_reason"
	HeaderClass     = "dlq_class" // of the outcome
	HeaderError     = "dlq_error"
	HeaderAttempts  = "dlq_attempts"
	HeaderTopic     = "dlq_topic" // where it came from, with partition and offset
	HeaderPartition = "dlq_partition"
	HeaderOffset    = "dlq_offset"
	HeaderFirstAt   = "dlq_first_at" // first and last attempt, in events.TimeFormat
	HeaderDiedAt    = "dlq_died_at"
	HeaderLetter    = "dlq_letter" // id in the group's table: the same for repeats
)

// ForwarderConfig is for [NewForwarder]. DB, Publisher and Catalog must be set.
type ForwarderConfig struct {
	DB        *pgxpool.Pool
	Schema    string // of the inbox's tables, "" means "journeyman"
	Publisher events.Publisher
	Catalog   *events.Catalog
	Keys      seal.Keys     // open bodies that rest encrypted; nil when none does
	Poll      time.Duration // 0 means 1 s
	Log       zerolog.Logger
}

// Forwarder copies messages that were set aside to the DLQ topic that the
// catalog names for their type, at least once and in order, with their original
// bytes and their story as headers. Types that the catalog does not know go to
// [events.DefaultDLQ]. Any number may run; one at a time forwards. One that the
// broker refuses for good is marked and stays in the table, as all do.
type Forwarder struct {
	cfg ForwarderConfig
	sql statements
}

// NewForwarder checks the configuration and refuses all that is wrong with it at once.
func NewForwarder(cfg ForwarderConfig) (*Forwarder, error) {
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.Poll == 0 {
		cfg.Poll = time.Second
	}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	if cfg.DB == nil || cfg.Publisher == nil || cfg.Catalog == nil {
		errs = append(errs, errors.New("pool, publisher and catalog: want all three"))
	}
	if cfg.Poll < 0 {
		errs = append(errs, fmt.Errorf("poll %v, want above 0", cfg.Poll))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dead letter forwarder: %w", err)
	}
	return &Forwarder{cfg: cfg, sql: render(cfg.Schema)}, nil
}

// Topics gives the DLQ topics that the catalog names, to be created beside its
// own. Their records are kept as long as the longest of their types'.
func Topics(c *events.Catalog) []events.TopicSpec {
	by := map[string]events.TopicSpec{events.DefaultDLQ: {Name: events.DefaultDLQ, Partitions: 1, Retention: 30 * 24 * time.Hour}}
	for _, e := range c.Entries() {
		t := by[e.DLQ]
		t.Name, t.Partitions = e.DLQ, 1
		t.Retention = max(t.Retention, time.Duration(e.RetentionDays)*24*time.Hour)
		by[e.DLQ] = t
	}
	var list []events.TopicSpec
	for _, t := range by {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b events.TopicSpec) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// Run forwards until ctx is cancelled and returns nil. It survives outages of database and broker by waiting.
func (f *Forwarder) Run(ctx context.Context) error {
	tick := time.NewTicker(f.cfg.Poll)
	defer tick.Stop()
	for {
		for {
			n, err := f.Pass(ctx)
			if err != nil && ctx.Err() == nil {
				f.cfg.Log.Warn().Err(err).Msg("dead letters: forward to the DLQ topic")
			}
			if err != nil || n == 0 {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Limits of one pass.
const (
	forwardBatch  = 100
	forwardWithin = 30 * time.Second
)

// Pass forwards some messages and says how many; 0 when there are none or another process forwards.
func (f *Forwarder) Pass(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardWithin)
	defer cancel()
	done := 0
	err := pgx.BeginFunc(ctx, f.cfg.DB, func(tx pgx.Tx) error {
		var leader bool
		if err := tx.QueryRow(ctx, f.sql.forwardLock).Scan(&leader); err != nil || !leader {
			return err
		}
		rows, err := tx.Query(ctx, f.sql.unforwarded, forwardBatch)
		if err != nil {
			return err
		}
		letters, err := pgx.CollectRows(rows, scanLetter)
		if err != nil || len(letters) == 0 {
			return err
		}
		ids, faults, err := f.publish(ctx, letters)
		if len(ids) == 0 {
			return err
		}
		done = len(ids)
		crash.Point("deadletter.published", strconv.Itoa(done))
		_, markErr := tx.Exec(ctx, f.sql.forwarded, ids, faults)
		return markErr // what was not taken comes again
	})
	return done, err
}

// publish sends the letters and gives the ids that are done, with a text for those that will never go.
func (f *Forwarder) publish(ctx context.Context, letters []inbox.Dead) (ids []int64, faults []string, err error) {
	var records []events.Record
	var sent []int64
	for _, m := range letters {
		r, err := f.record(m)
		if err != nil {
			ids, faults = append(ids, m.ID), append(faults, err.Error())
			continue
		}
		records, sent = append(records, r), append(sent, m.ID)
	}
	if len(records) > 0 {
		for i, e := range f.cfg.Publisher.Publish(ctx, records) {
			switch {
			case e == nil:
				ids, faults = append(ids, sent[i]), append(faults, "")
			case events.FaultOf(e) == events.Permanent:
				ids, faults = append(ids, sent[i]), append(faults, e.Error())
				f.cfg.Log.Error().Err(e).Int64("letter", sent[i]).Msg("dead letters: the DLQ topic refuses a message; it stays in the table")
			default:
				err = e
			}
		}
	}
	return ids, faults, err
}

func (f *Forwarder) record(m inbox.Dead) (events.Record, error) {
	body, err := atBroker(f.cfg.Keys, m)
	if err != nil {
		return events.Record{}, err
	}
	topic := events.DefaultDLQ
	for _, e := range f.cfg.Catalog.Match(m.Type) {
		topic = e.DLQ
	}
	r := events.Record{Topic: topic, Key: m.BusinessKey, Body: body, Headers: slices.Clone(m.Headers)}
	if r.Key == "" {
		r.Key = m.Group // a record without key is what it died of
	}
	for _, h := range [][2]string{
		{HeaderGroup, m.Group}, {HeaderState, m.State}, {HeaderReason, m.Reason}, {HeaderClass, m.Class}, {HeaderError, m.Error},
		{HeaderAttempts, strconv.Itoa(m.Attempts)}, {HeaderTopic, m.Position.Topic}, {HeaderPartition, strconv.Itoa(m.Position.Partition)},
		{HeaderOffset, strconv.FormatInt(m.Position.Offset, 10)}, {HeaderFirstAt, m.First.UTC().Format(events.TimeFormat)},
		{HeaderDiedAt, m.Died.UTC().Format(events.TimeFormat)}, {HeaderLetter, strconv.FormatInt(m.ID, 10)},
	} {
		r.Headers = append(r.Headers, events.Header{Name: h[0], Value: h[1]})
	}
	return r, nil
}

// Depth is how many messages are set aside, and how they stand to the DLQ topics.
type Depth struct {
	Dead        int64 `json:"dead"`
	Parked      int64 `json:"parked"`
	Unforwarded int64 `json:"unforwarded"`
	Refused     int64 `json:"refused"` // by the DLQ topic, for good
}

// Depth counts.
func (d *Desk) Depth(ctx context.Context) (Depth, error) {
	var n Depth
	if err := d.cfg.DB.QueryRow(ctx, d.sql.depth).Scan(&n.Dead, &n.Parked, &n.Unforwarded, &n.Refused); err != nil {
		return n, fmt.Errorf("dead letters: %w", err)
	}
	return n, nil
}
