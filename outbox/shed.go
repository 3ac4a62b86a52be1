package outbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

//go:embed catalog.yaml
var catalogText []byte

// Catalog is what the outbox itself publishes, to be merged with the catalog of
// a service that has types of class analytical.
func Catalog() []byte { return append([]byte(nil), catalogText...) }

// DroppedType is the marker that tells how many analytical messages were dropped, and of which types.
const DroppedType = "platform.outbox.events_dropped"

// checkClasses refuses a configuration that cannot keep what the catalog's classes promise.
func checkClasses(cfg Config) []error {
	var errs []error
	if cfg.Catalog == nil {
		return nil
	}
	if cfg.Catalog.Encrypts() && cfg.Keys == nil {
		errs = append(errs, errors.New("keys: missing, and the catalog encrypts a class"))
	}
	for _, e := range cfg.Catalog.Entries() {
		if _, ok := cfg.Catalog.Entry(DroppedType, 1); !ok && e.Class.Sheds() {
			errs = append(errs, fmt.Errorf("message type %s v%d: class %s may be dropped, but the catalog lacks %s, which tells of it: merge outbox.Catalog()", e.Type, e.Version, e.Class, DroppedType))
			break
		}
	}
	return errs
}

// Dropped is one type's part of a marker event.
type Dropped struct {
	Type    string    `json:"type"`
	Version int       `json:"version"`
	Topic   string    `json:"topic"`
	Count   int64     `json:"count"`
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// tellShed stages markers until ctx ends. One relay at a time does it; one without stager leaves it to others.
func (r *Relay) tellShed(ctx context.Context) {
	tick := time.NewTicker(r.cfg.ShedEvery)
	defer tick.Stop()
	for {
		if err := r.tellShedOnce(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn().Err(err).Msg("outbox relay: tell of dropped messages")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellShedOnce turns the rows of dropped messages into one marker, in one transaction.
func (r *Relay) tellShedOnce(ctx context.Context) error {
	s := r.cfg.Stager
	var dropped []Dropped
	var total int64
	err := pgx.BeginFunc(ctx, r.db, func(tx pgx.Tx) error {
		var leader bool
		if err := tx.QueryRow(ctx, s.classes.shedLock).Scan(&leader); err != nil || !leader {
			return err
		}
		rows, err := tx.Query(ctx, s.classes.shed)
		if err != nil {
			return err
		}
		if dropped, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Dropped]); err != nil || len(dropped) == 0 {
			return err
		}
		for _, d := range dropped {
			total += d.Count
		}
		b := &pgx.Batch{}
		msg := events.Message{Type: DroppedType, BusinessKey: DroppedType, Data: map[string]any{"total": total, "dropped": dropped}}
		if err := s.Queue(b, events.Origin{}, []events.Message{msg}); err != nil {
			return err
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil || total == 0 {
		return err
	}
	r.stats.shed.Add(total)
	r.cfg.Log.Error().Int64("dropped", total).Msg("outbox relay: analytical messages were dropped, the backlog is or was above its limit")
	for _, d := range dropped {
		if r.cfg.Hooks.Shed != nil {
			r.cfg.Hooks.Shed(d.Topic, d.Count)
		}
	}
	s.Wake()
	return nil
}

// Pressure is how the outbox stands between taking and dropping analytical messages.
type Pressure struct {
	Shedding bool
	Backlog  int64     // rows when last counted, at most one above the limit
	Sampled  time.Time // when that was: whenever an analytical message was staged, at most once a second
	Untold   int64     // dropped messages that no marker has told of yet
}

// Pressure reads it.
func (d *Desk) Pressure(ctx context.Context, db Querier) (Pressure, error) {
	var p Pressure
	var at *time.Time
	if err := db.QueryRow(ctx, d.classes.pressed).Scan(&p.Shedding, &p.Backlog, &at, &p.Untold); err != nil {
		return p, fmt.Errorf("outbox pressure: %w", err)
	}
	if at != nil {
		p.Sampled = *at
	}
	return p, nil
}
