package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Table is a table with a column body that may hold sealed bodies.
type Table struct {
	Name    string // schema-qualified
	Context string // SQL expression of a row: what its body is bound to
}

// Beginner begins transactions: a pgxpool.Pool or a connection.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Resealed is what [Reseal] did.
type Resealed struct {
	Rows    int64            // bodies that are under the current key now
	Left    map[string]int64 // bodies that could not be opened, by the id of their key
	Changed int64            // bodies that are not as they were sealed; they stay as they are
}

// resealBatch is how many rows one transaction seals again.
const resealBatch = 200

// Reseal seals all bodies anew that are under another key than the current one,
// some hundred to a transaction, so that the old key can be taken away. It can be
// stopped at any time and run again. Rows that are moved meanwhile (by a relay)
// are found at the next pass; passes go on until one finds nothing to do.
// Partitions are tables of their own here. progress may be nil.
func Reseal(ctx context.Context, db Beginner, keys Keys, tables []Table, progress func(table string, rows int64)) (Resealed, error) {
	out := Resealed{Left: map[string]int64{}}
	current, err := keys.Current()
	if err != nil {
		return out, fmt.Errorf("reseal: %w", err)
	}
	for _, t := range tables {
		parts, err := leaves(ctx, db, t)
		if err != nil {
			return out, fmt.Errorf("reseal %s: %w", t.Name, err)
		}
		for _, part := range parts {
			for done := false; !done; {
				pass := Resealed{Left: map[string]int64{}}
				after := "(0,0)"
				for after != "" {
					if after, err = batch(ctx, db, keys, current, part, after, &pass); err != nil {
						return out, fmt.Errorf("reseal %s: %w", part.Name, err)
					}
					if progress != nil {
						progress(part.Name, pass.Rows)
					}
				}
				out.Rows += pass.Rows
				if done = pass.Rows == 0; done {
					out.Changed += pass.Changed
					for id, n := range pass.Left {
						out.Left[id] += n
					}
				}
			}
		}
	}
	return out, nil
}

// leaves gives the table itself, or its partitions.
func leaves(ctx context.Context, db Beginner, t Table) (list []Table, err error) {
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM (
				SELECT relid FROM pg_catalog.pg_partition_tree($1::regclass) WHERE isleaf UNION SELECT $1::regclass) p
			JOIN pg_catalog.pg_class c ON c.oid = p.relid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' ORDER BY 1`, t.Name)
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, n := range names {
			list = append(list, Table{Name: n, Context: t.Context})
		}
		return err
	})
	return list, err
}

// batch seals some rows behind a place in the table and gives the next place, "" at the end.
func batch(ctx context.Context, db Beginner, keys Keys, current string, t Table, after string, out *Resealed) (next string, err error) {
	type row struct {
		At, Context string
		Body        []byte
	}
	n := Resealed{Left: map[string]int64{}}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT ctid::text, coalesce(`+t.Context+`, ''), body FROM `+t.Name+` WHERE ctid > $1::tid AND substring(body FROM 1 FOR 4) = 'jms1'::bytea
				AND length(body) > 6 AND substring(body FROM 7 FOR get_byte(body, 5)) <> convert_to($2, 'UTF8')
			ORDER BY ctid LIMIT $3`, after, current, resealBatch)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil || len(list) == 0 {
			return err
		}
		next = list[len(list)-1].At
		if _, err := tx.Exec(ctx, `SET LOCAL journeyman.reseal = 'on'`); err != nil {
			return err
		}
		for _, r := range list {
			body, changed, err := Again(keys, r.Body, r.Context)
			switch {
			case errors.Is(err, ErrNoKey):
				n.Left[KeyID(r.Body)]++
			case errors.Is(err, ErrTampered):
				n.Changed++
			case err != nil:
				return err
			case changed:
				tag, err := tx.Exec(ctx, `UPDATE `+t.Name+` SET body = $2 WHERE ctid = $1::tid AND body = $3`, r.At, body, r.Body)
				if err != nil {
					return err
				}
				n.Rows += tag.RowsAffected()
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	out.Rows, out.Changed = out.Rows+n.Rows, out.Changed+n.Changed
	for id, k := range n.Left {
		out.Left[id] += k
	}
	return next, nil
}
