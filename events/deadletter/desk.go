package deadletter

import (
	"context"
	"embed"
	"errors"
	"fmt"
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

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the tables of this package in schema up to date, in one
// transaction. The tables of package events/inbox must be there. Safe to call
// from many processes at once.
func Migrate(ctx context.Context, db outbox.Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, schema, "deadletter", migrations, "migrations")
}

// Config is for [New]. DB must be set.
type Config struct {
	DB        *pgxpool.Pool
	Schema    string           // of the inbox's tables, "" means "journeyman"
	Keys      seal.Keys        // open and encrypt bodies that rest encrypted; nil when none does
	Schemas   events.Schemas   // checks the data of edited messages, nil means that it is not checked
	Publisher events.Publisher // for messages that are sent to a topic; nil refuses that
	InboxKeep time.Duration    // how long the inboxes remember (spec D2), 0 means 14 days, the least they may
	// Audit writes the act elsewhere too, in its transaction; an error undoes the act. nil means not.
	Audit func(ctx context.Context, tx pgx.Tx, a Act) error
}

// Desk shows and acts. Safe for concurrent use.
type Desk struct {
	cfg Config
	sql statements
}

const leastKeep = 14 * 24 * time.Hour

// New checks the configuration and refuses all that is wrong with it at once.
func New(cfg Config) (*Desk, error) {
	cfg.Schema = postgres.SchemaOr(cfg.Schema)
	if cfg.InboxKeep == 0 {
		cfg.InboxKeep = leastKeep
	}
	errs := []error{postgres.CheckSchema(cfg.Schema)}
	if cfg.DB == nil {
		errs = append(errs, errors.New("pool: missing"))
	}
	if cfg.InboxKeep < leastKeep {
		errs = append(errs, fmt.Errorf("inbox keep %v, want at least %v (spec D2)", cfg.InboxKeep, leastKeep))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return &Desk{cfg: cfg, sql: render(cfg.Schema)}, nil
}

// Conditions to test for with errors.Is.
var (
	ErrNotFound   = errors.New("no such dead or parked message")
	ErrOutOfOrder = errors.New("an older message of its key is still set aside")
	ErrTooOld     = errors.New("older than inboxes remember: only in explicit mode")
)

// Filter chooses messages that were set aside. Empty fields choose all.
type Filter struct{ Group, Type, Reason, BusinessKey, State string }

// List gives messages in the order in which they were set aside, at most limit.
// Act on what it shows by their ids: what comes later is not touched.
func (d *Desk) List(ctx context.Context, f Filter, limit int) ([]inbox.Dead, error) {
	rows, err := d.cfg.DB.Query(ctx, d.sql.list, f.Group, f.Type, f.Reason, f.BusinessKey, f.State, limit)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	return pgx.CollectRows(rows, scanLetter)
}

// Clear gives a message's body as its handler would read it: opened where it is encrypted.
func (d *Desk) Clear(m inbox.Dead) ([]byte, error) { return m.Clear(d.cfg.Keys) }

// Heap is a number of messages that were set aside for the same reason.
type Heap struct {
	Group  string    `json:"group"`
	State  string    `json:"state"`
	Type   string    `json:"type"`
	Reason string    `json:"reason"`
	Count  int64     `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Error  string    `json:"error"` // of the latest
}

// Heaps counts messages by group, type and reason, the largest heap first. group "" means all.
func (d *Desk) Heaps(ctx context.Context, group string) ([]Heap, error) {
	rows, err := d.cfg.DB.Query(ctx, d.sql.summary, group)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Heap, error) {
		var h Heap
		return h, row.Scan(&h.Group, &h.State, &h.Type, &h.Reason, &h.Count, &h.First, &h.Last, &h.Error)
	})
}

// Act is one act of a person on one message, with the message as it was then.
type Act struct {
	ID           int64
	At           time.Time
	Actor        string
	Action       string // "redrive", "redirect", "edit", "drop"
	Reason       string
	RootCause    string
	Target       string
	RedriveID    string
	NewMessageID string
	Letter       inbox.Dead
}

// Story gives all acts on a message, and on those it was edited from and into, in order.
func (d *Desk) Story(ctx context.Context, messageID string) ([]Act, error) {
	rows, err := d.cfg.DB.Query(ctx, d.sql.story, strings.ToLower(messageID))
	if err != nil {
		return nil, fmt.Errorf("story of %s: %w", messageID, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Act, error) {
		var a Act
		m := &a.Letter
		var headers []string
		err := row.Scan(&a.ID, &a.At, &a.Actor, &a.Action, &a.Reason, &a.RootCause, &a.Target, &a.RedriveID, &a.NewMessageID, &m.ID,
			&m.Group, &m.State, &m.BusinessKey, &m.MessageID, &m.Type, &m.Position.Topic, &m.Position.Partition, &m.Position.Offset,
			&headers, &m.Body, &m.Sent, &m.Attempts, &m.Class, &m.Reason, &m.Error, &m.First, &m.Died)
		m.Headers = paired(headers)
		return a, err
	})
}

func scanLetter(row pgx.CollectableRow) (inbox.Dead, error) {
	var m inbox.Dead
	var headers []string
	err := row.Scan(&m.ID, &m.Group, &m.State, &m.BusinessKey, &m.MessageID, &m.Type, &m.Position.Topic, &m.Position.Partition, &m.Position.Offset,
		&headers, &m.Body, &m.Sent, &m.Attempts, &m.Class, &m.Reason, &m.Error, &m.First, &m.Died)
	m.Headers = paired(headers)
	return m, err
}

func paired(stored []string) []events.Header {
	out := make([]events.Header, 0, len(stored)/2)
	for n := 0; n+1 < len(stored); n += 2 {
		out = append(out, events.Header{Name: stored[n], Value: stored[n+1]})
	}
	return out
}

func flat(headers []events.Header) []string {
	out := make([]string, 0, 2*len(headers))
	for _, h := range headers {
		out = append(out, h.Name, h.Value)
	}
	return out
}
