package work

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the tables of this package in schema up to date, in one
// transaction. Safe to call from many processes at once.
func Migrate(ctx context.Context, db outbox.Beginner, schema string) error {
	return postgres.MigrateFolder(ctx, db, schema, "work", migrations, "migrations")
}

// Priority says which due items of a queue go first.
type Priority int

// The three priorities. The zero value is Normal.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// Item is work to be done once.
type Item struct {
	Queue    string        // which handler does it, required
	ID       string        // tells it from others of its queue, required: put again while it is there, it is the same item
	Key      string        // items of one key run one at a time and in order; "" for none
	At       time.Time     // not before, by the database's clock; zero means now
	After    time.Duration // on top of At
	Priority Priority
	Payload  any           // marshalled with encoding/json
	Origin   events.Origin // on whose behalf: events of the handler carry it
}

// Limits of an item.
const (
	maxName  = 200       // bytes of a queue, id or key
	maxBody  = 1_000_000 // bytes of a payload; larger ones go to a claim-check store
	maxDelay = 10 * 366 * 24 * time.Hour
)

// Store puts work into the queues of one schema. Safe for concurrent use.
type Store struct {
	sql  statements
	keys seal.Keys
}

// NewStore gives the store of a schema, "" means "journeyman". With keys payloads rest encrypted.
func NewStore(schema string, keys seal.Keys) (*Store, error) {
	schema = postgres.SchemaOr(schema)
	if err := postgres.CheckSchema(schema); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	return &Store{sql: render(schema), keys: keys}, nil
}

// Tx is what items are put with: an [outbox.Tx], a pgx.Tx, or a pool for a transaction of its own.
type Tx interface {
	outbox.Execer
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// ErrConflict is wrapped when an item with the id is there, but with another key or payload.
var ErrConflict = errors.New("another item with this id is waiting")

// Put adds items in the caller's transaction: they are done after it committed,
// and never when it did not. An item that waits already, or is being done, stays as it is. An id may be
// used again after its item was done.
func (s *Store) Put(ctx context.Context, tx Tx, items ...Item) error {
	for _, it := range items {
		if err := s.put(ctx, tx, it); err != nil {
			return fmt.Errorf("work: queue %q item %q: %w", it.Queue, it.ID, err)
		}
	}
	return nil
}

func (s *Store) put(ctx context.Context, tx Tx, it Item) error {
	if err := it.check(); err != nil {
		return err
	}
	body, err := json.Marshal(it.Payload)
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("payload of %d bytes, want at most %d", len(body), maxBody)
	}
	origin, err := json.Marshal(it.Origin)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte(it.Key+"\x00"), body...))
	if s.keys != nil { // a digest of what is secret would tell of it: then only keys are compared
		sum = sha256.Sum256([]byte(it.Key))
		if body, err = seal.Seal(s.keys, seal.AtRest, body, bound(it.Queue, it.ID)); err != nil {
			return err
		}
	}
	var at *time.Time
	if !it.At.IsZero() {
		at = &it.At
	}
	tag, err := tx.Exec(ctx, s.sql.put, it.Queue, it.ID, it.Key, int(it.Priority)+1, body, sum[:], at, it.After, origin)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	var stored []byte
	switch err := tx.QueryRow(ctx, s.sql.stored, it.Queue, it.ID).Scan(&stored); {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w, or was done this moment: put it again", ErrConflict)
	case err != nil:
		return err
	case string(stored) != string(sum[:]):
		return ErrConflict
	}
	return nil
}

func bound(queue, id string) string { return queue + "\n" + id }

var queueName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`) //nolint:gochecknoglobals // compiled once

func checkQueue(name string) error {
	if !queueName.MatchString(name) || len(name) > maxName {
		return fmt.Errorf("queue %q, want up to %d of a-z, 0-9, '.', '_', '-'", name, maxName)
	}
	return nil
}

func (it Item) check() error {
	errs := []error{checkQueue(it.Queue)}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	text := func(s string) bool {
		return len(s) <= maxName && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
	}
	check(it.ID != "" && text(it.ID), "id %q, want 1 to %d bytes of UTF-8", it.ID, maxName)
	check(text(it.Key), "key %q, want up to %d bytes of UTF-8", it.Key, maxName)
	check(it.Priority >= Low && it.Priority <= High, "priority %d, want %d to %d", it.Priority, Low, High)
	check(it.After >= 0 && it.After <= maxDelay, "after %v, want 0 to %v", it.After, maxDelay)
	return errors.Join(errs...)
}

// Cancel takes an item back in the caller's transaction, such as the expiry of a
// quote that was bought. It reports false when there is none: it was done, is in
// quarantine, or was never put. It waits for a handler that is at it.
func (s *Store) Cancel(ctx context.Context, tx outbox.Execer, queue, id string) (bool, error) {
	tag, err := tx.Exec(ctx, s.sql.cancel, queue, id)
	if err != nil {
		return false, fmt.Errorf("work: cancel item %q of queue %q: %w", id, queue, err)
	}
	return tag.RowsAffected() == 1, nil
}

// SealedTables lists the tables of a schema whose payloads may be encrypted, for [seal.Reseal].
func SealedTables(schema string) []seal.Table {
	const context = `queue || E'\n' || item_id`
	return []seal.Table{{Name: schema + ".work_item", Context: context}, {Name: schema + ".work_quarantine", Context: context}}
}
