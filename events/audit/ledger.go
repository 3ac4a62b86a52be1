package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

func scan(row pgx.CollectableRow) (Row, error) {
	var r Row
	err := row.Scan(&r.RecordedAt, &r.Class, &r.Chain, &r.Link, &r.Previous, &r.Hash, &r.EventID, &r.Type, &r.Version, &r.Topic,
		&r.BusinessKey, &r.Seq, &r.OperationID, &r.Headers, &r.Body, &r.BodySum, &r.OccurredAt)
	return r, err
}

// Progress is told how many rows were read so far. It may be nil.
type Progress func(rows int64)

const progressEvery = 10_000

func (p Progress) tell(rows int64) {
	if p != nil && rows > 0 && rows%progressEvery == 0 {
		p(rows)
	}
}

// VerifyLedger reads the whole ledger of a schema in one snapshot. keys open
// sealed bodies, nil leaves them unchecked. known are heads kept elsewhere.
// Changes of all kinds are in the report; an error means that it could not be read.
func VerifyLedger(ctx context.Context, db *pgxpool.Pool, schema string, keys seal.Keys, progress Progress, known ...Head) (Report, error) {
	if err := postgres.CheckSchema(schema); err != nil {
		return Report{}, err
	}
	sql, v := render(schema), newVerifier(keys, known)
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sql.heads)
		if err != nil {
			return err
		}
		heads, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Head])
		if err != nil {
			return err
		}
		if rows, err = tx.Query(ctx, sql.ledger); err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scan(rows)
			if err != nil {
				return err
			}
			v.add(r)
			progress.tell(v.rows)
		}
		v.ends(heads)
		return rows.Err()
	})
	if err != nil {
		return Report{}, fmt.Errorf("verify ledger: %w", err)
	}
	return v.report(), nil
}

// VerifyLog reads the messages of class audit in the event log of a schema. Their
// chains may begin late, because the log has a retention, and end early, because
// what is not published yet is not in it; in between nothing may be missing. A
// body whose key is missing is a fault here: without it no hash can be computed.
func VerifyLog(ctx context.Context, db *pgxpool.Pool, schema string, keys seal.Keys, progress Progress, known ...Head) (Report, error) {
	if err := postgres.CheckSchema(schema); err != nil {
		return Report{}, err
	}
	log := outbox.NewLog(schema)
	until, err := log.Settle(ctx, db)
	if err != nil {
		return Report{}, fmt.Errorf("verify event log: %w", err)
	}
	var all []Row
	v := newVerifier(keys, known)
	v.anyway = true
	for at := (outbox.LogCursor{}); ; {
		page, err := log.Page(ctx, db, at, outbox.LogFilter{Until: until}, 1000)
		if err != nil {
			return Report{}, fmt.Errorf("verify event log: %w", err)
		}
		if len(page) == 0 {
			break
		}
		for _, l := range page {
			at = l.Cursor()
			if l.Class != events.ClassAudit {
				continue
			}
			r, ok, err := ofLog(l, keys)
			switch {
			case err != nil:
				v.fault(r.Chain, r.Link, r.EventID, "%v", err)
			case !ok:
				v.fault("", 0, l.EventID, "is of class audit and in no chain")
			default:
				r.Body = nil // its sum is computed
				if sum := r.Sum(); sum != r.Hash {
					v.fault(r.Chain, r.Link, r.EventID, "its content does not match its hash")
				}
				r.Headers = nil
				all = append(all, r)
			}
			progress.tell(int64(len(all)))
		}
	}
	// The log is in the order of publication, which is that of the keys, not of the chain.
	slices.SortFunc(all, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Chain, b.Chain), cmp.Compare(a.Link, b.Link)) })
	all = slices.CompactFunc(all, func(a, b Row) bool { return a.Chain == b.Chain && a.Link == b.Link && a.Hash == b.Hash })
	for _, r := range all {
		v.follow(r)
	}
	return v.report(), nil
}
