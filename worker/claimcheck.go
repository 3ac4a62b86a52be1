package worker

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// CheckRef is what the process carries instead of a large payload (spec W12). It goes into a variable as it is.
type CheckRef struct {
	ID    string `json:"claimCheck"`
	Sum   string `json:"sha256"`
	Bytes int    `json:"bytes"`
}

// ClaimChecks keeps payloads that are too large for a process variable in the worker's database. Safe for concurrent use.
type ClaimChecks struct {
	store *dedup.Store
	keep  time.Duration
}

// NewClaimChecks makes one for schema ("" = "journeyman"). keep is how long a payload stays after it was kept last, above 0: longer than
// any process that carries its reference, incidents included.
func NewClaimChecks(schema string, keep time.Duration) (*ClaimChecks, error) {
	if keep <= 0 {
		return nil, fmt.Errorf("claim checks: keep %s: want above 0", keep)
	}
	s, err := dedup.New(schema)
	if err != nil {
		return nil, err
	}
	return &ClaimChecks{store: s, keep: keep}, nil
}

// Keep stores v as JSON in the handler's transaction and gives the reference. name tells apart several payloads of one operation. A
// re-run of the operation that keeps the same payload gets the same reference; another payload is FATAL, as somebody may already
// carry a reference to the first.
func (c *ClaimChecks) Keep(ctx context.Context, tx *Tx, m Meta, name string, v any) (CheckRef, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return CheckRef{}, outcome.Fatalf(outcome.ReasonOutput, "claim check %q: %T cannot be written as JSON", name, v)
	}
	id := m.OperationID + "/" + name
	sum, err := c.store.KeepCheck(ctx, tx, id, m.OperationID, body, c.keep)
	if errors.Is(err, dedup.ErrCheckChanged) {
		return CheckRef{}, outcome.NewFatal(err)
	}
	return CheckRef{ID: id, Sum: hex.EncodeToString(sum), Bytes: len(body)}, err
}

// Fetch reads the payload of a reference into v, a pointer, from a pool, a connection or a transaction. A payload that is gone, or is
// not the one the reference was made for, is FATAL.
func (c *ClaimChecks) Fetch(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}, ref CheckRef, v any) error {
	sum, err := hex.DecodeString(ref.Sum)
	if err != nil || len(sum) != 32 || ref.ID == "" {
		return outcome.Fatalf(outcome.ReasonInput, "claim check %q: no valid reference; want claimCheck and sha256", ref.ID)
	}
	body, err := c.store.ReadCheck(ctx, db, ref.ID, sum)
	if errors.Is(err, dedup.ErrNoCheck) || errors.Is(err, dedup.ErrCheckChanged) {
		return outcome.NewFatal(err)
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return outcome.Fatalf(outcome.ReasonInput, "claim check %q: %s", ref.ID, unquoted(err))
	}
	return nil
}
