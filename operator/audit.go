package operator

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// AuditRow is one act of a person. Its JSON field names are stable.
type AuditRow struct {
	Seq      int64           `json:"seq"` // from 1, without gaps
	At       time.Time       `json:"at"`  // of the database
	Actor    string          `json:"actor"`
	Action   string          `json:"action"` // for example "incident.retry"
	Target   string          `json:"target"` // for example "incident:default:2251799813685300"
	Reason   string          `json:"reason"`
	Before   json.RawMessage `json:"before"`
	After    json.RawMessage `json:"after"`
	PrevHash string          `json:"prev_hash"` // hex
	Hash     string          `json:"hash"`      // hex
}

// Head is where a chain ends, or ended once: keep one outside the database to notice a chain that was cut or written anew.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"` // hex
}

// String gives "seq:hash", which [ParseHead] reads.
func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Seq, h.Hash) }

// ParseHead reads "seq:hash".
func ParseHead(s string) (Head, error) {
	var h Head
	if n, err := fmt.Sscanf(s, "%d:%s", &h.Seq, &h.Hash); n != 2 || err != nil || h.Seq < 0 || len(h.Hash) != 2*sha256.Size {
		return Head{}, &FieldError{Field: "head", Value: s, Want: "seq:hash, with 64 hexadecimal digits"}
	}
	if _, err := hex.DecodeString(h.Hash); err != nil {
		return Head{}, &FieldError{Field: "head", Value: s, Want: "seq:hash, with 64 hexadecimal digits"}
	}
	return h, nil
}

// Verification is what [Desk.VerifyAudit] found.
type Verification struct {
	Rows  int64  `json:"rows"`  // that were read
	Head  Head   `json:"head"`  // computed from the rows
	Fault string `json:"fault"` // "" = the chain is whole; else the first row that is wrong and how
}

// OK says that the chain is whole.
func (v Verification) OK() bool { return v.Fault == "" }

// hash is SHA-256 over all fields, each behind its length, so that no two rows share an encoding.
func (r AuditRow) hash(prev []byte) []byte {
	h := sha256.New()
	field := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	number := func(n int64) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], uint64(n)) //nolint:gosec // only its bits
		field(b[:])
	}
	field(prev)
	number(r.Seq)
	number(r.At.UnixMicro()) // as exact as PostgreSQL keeps it
	for _, s := range []string{r.Actor, r.Action, r.Target, r.Reason, string(r.Before), string(r.After)} {
		field([]byte(s))
	}
	return h.Sum(nil)
}

// lockAudit takes the chain until the transaction ends: acts come one after another, and a conditional
// write that follows sees what the one before has committed.
func (d *Desk) lockAudit(ctx context.Context, tx outbox.Queries) (seq int64, prev []byte, at time.Time, err error) {
	err = tx.QueryRow(ctx, d.sql.lockAudit).Scan(&seq, &prev, &at)
	if err != nil {
		err = fmt.Errorf("lock audit: %w", err)
	}
	return seq, prev, at, err
}

// appendAudit writes the next row and stages its event, unless the caller emits that. The chain must be locked by this
// transaction; prev and seq come from lockAudit.
func (d *Desk) appendAudit(ctx context.Context, tx outbox.Queries, r AuditRow, prev []byte, before, after any, emitted bool) (AuditRow, error) {
	var err error
	if r.Before, err = json.Marshal(before); err != nil {
		return r, fmt.Errorf("audit before: %w", err)
	}
	if r.After, err = json.Marshal(after); err != nil {
		return r, fmt.Errorf("audit after: %w", err)
	}
	sum := r.hash(prev)
	b := &pgx.Batch{}
	b.Queue(d.sql.insertAudit, r.Seq, r.At, r.Actor, r.Action, r.Target, r.Reason, string(r.Before), string(r.After), prev, sum)
	b.Queue(d.sql.moveHead, r.Seq, sum)
	r.PrevHash, r.Hash = hex.EncodeToString(prev), hex.EncodeToString(sum)
	if d.cfg.Stager != nil && !emitted {
		if err := d.cfg.Stager.Queue(b, r.origin(), []events.Message{r.message()}); err != nil {
			return r, fmt.Errorf("audit event: %w", err)
		}
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return r, fmt.Errorf("append audit: %w", err)
	}
	return r, nil
}

// Audit gives the newest rows first, at most limit. target "" = all; before 0 = from the end, else rows with a smaller seq.
func (d *Desk) Audit(ctx context.Context, target string, before int64, limit int) ([]AuditRow, error) {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.listAudit, target, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list audit: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanAudit)
	if err != nil {
		return nil, fmt.Errorf("list audit: %w", err)
	}
	return out, nil
}

// AuditRow gives one row, [ErrNotFound] when there is none.
func (d *Desk) AuditRow(ctx context.Context, seq int64) (AuditRow, error) {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.oneAudit, seq)
	if err != nil {
		return AuditRow{}, fmt.Errorf("audit row %d: %w", seq, err)
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanAudit)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return AuditRow{}, fmt.Errorf("audit row %d: %w", seq, err)
	}
	return r, nil
}

// VerifyAudit walks the whole chain in one snapshot and says where it breaks first: a changed or missing row, a wrong
// link, an end that is not the recorded one, or a known head (from outside) that the chain does not contain.
// An error means that it could not be read.
func (d *Desk) VerifyAudit(ctx context.Context, known ...Head) (Verification, error) {
	var v Verification
	tx, err := d.cfg.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return v, fmt.Errorf("verify audit: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	var end Head
	var endHash []byte
	if err := tx.QueryRow(ctx, d.sql.readHead).Scan(&end.Seq, &endHash); err != nil {
		return v, fmt.Errorf("verify audit: head: %w", err)
	}
	end.Hash = hex.EncodeToString(endHash)
	rows, err := tx.Query(ctx, d.sql.allAudit)
	if err != nil {
		return v, fmt.Errorf("verify audit: %w", err)
	}
	v, err = walk(rows, end, known)
	if err != nil {
		return v, fmt.Errorf("verify audit: %w", err)
	}
	return v, nil
}

func walk(rows pgx.Rows, end Head, known []Head) (Verification, error) {
	defer rows.Close()
	at := map[int64]string{0: hex.EncodeToString(make([]byte, sha256.Size))}
	wanted := map[int64]string{}
	for _, h := range known {
		wanted[h.Seq] = h.Hash
	}
	var v Verification
	prev := make([]byte, sha256.Size)
	v.Head.Hash = at[0]
	fault := func(format string, args ...any) {
		if v.Fault == "" {
			v.Fault = fmt.Sprintf(format, args...)
		}
	}
	for rows.Next() {
		r, err := scanAudit(rows)
		if err != nil {
			return v, err
		}
		v.Rows++
		sum := r.hash(prev)
		switch {
		case r.Seq != v.Head.Seq+1:
			fault("row %d follows row %d: rows between them are missing", r.Seq, v.Head.Seq)
		case r.PrevHash != hex.EncodeToString(prev):
			fault("row %d: does not continue row %d", r.Seq, v.Head.Seq)
		case r.Hash != hex.EncodeToString(sum):
			fault("row %d: its content does not match its hash", r.Seq)
		}
		if want, ok := wanted[r.Seq]; ok && want != r.Hash {
			fault("row %d: has hash %s, the known head says %s", r.Seq, r.Hash, want)
		}
		delete(wanted, r.Seq)
		v.Head = Head{Seq: r.Seq, Hash: hex.EncodeToString(sum)}
		prev = sum
	}
	if err := rows.Err(); err != nil {
		return v, err
	}
	if end != v.Head {
		fault("the chain ends at %s, the recorded end is %s: rows were cut off or changed", v.Head, end)
	}
	for seq, want := range wanted {
		if at[seq] != want {
			fault("known head %d:%s is not in the chain, which ends at row %d", seq, want, v.Head.Seq)
		}
	}
	return v, nil
}

func scanAudit(row pgx.CollectableRow) (AuditRow, error) {
	var r AuditRow
	var before, after string
	var prev, sum []byte
	err := row.Scan(&r.Seq, &r.At, &r.Actor, &r.Action, &r.Target, &r.Reason, &before, &after, &prev, &sum)
	r.Before, r.After = json.RawMessage(before), json.RawMessage(after)
	r.PrevHash, r.Hash = hex.EncodeToString(prev), hex.EncodeToString(sum)
	return r, err
}
