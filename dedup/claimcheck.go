package dedup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of [Store.ReadCheck] and [Store.KeepCheck].
var (
	ErrNoCheck      = errors.New("claim check: no such payload, or its time is over")
	ErrCheckChanged = errors.New("claim check: the payload is another one")
)

// KeepCheck stores a payload under id until keep is over, in the caller's transaction, and gives its checksum. The same payload again
// only prolongs it; another one under the same id is [ErrCheckChanged].
func (s *Store) KeepCheck(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id, operationID string, body []byte, keep time.Duration) ([]byte, error) {
	sum := sha256.Sum256(body)
	var one int
	err := db.QueryRow(ctx, s.q.keepCheck, id, operationID, sum[:], body, keep).Scan(&one)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: id %q", ErrCheckChanged, id)
	}
	if err != nil {
		return nil, fmt.Errorf("keep payload %q: %w", id, err)
	}
	return sum[:], nil
}

// ReadCheck gives the payload with this id; sum is what the reference says, nil = not compared.
func (s *Store) ReadCheck(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, id string, sum []byte) ([]byte, error) {
	var stored, body []byte
	err := db.QueryRow(ctx, s.q.readCheck, id).Scan(&stored, &body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: id %q", ErrNoCheck, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read payload %q: %w", id, err)
	}
	if got := sha256.Sum256(body); !bytes.Equal(got[:], stored) || sum != nil && !bytes.Equal(sum, stored) {
		return nil, fmt.Errorf("%w: id %q", ErrCheckChanged, id)
	}
	return body, nil
}
