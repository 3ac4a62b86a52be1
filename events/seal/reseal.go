package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Table is a table with a column that may hold sealed bodies.
type Table struct {
	Name    string // schema-qualified
	Context string // SQL expression of a row: what its body is bound to
	Column  string // "" = body
	// JSON says that the column is of type jsonb: a value as [JSON] makes it, or an object of such. A member is bound to
	// Context, a line break and its name.
	JSON bool
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
		for seen := map[string]bool{}; ; { // partitions may be made meanwhile, and take rows up
			parts, err := leaves(ctx, db, t)
			if err != nil {
				return out, fmt.Errorf("reseal %s: %w", t.Name, err)
			}
			if parts = slices.DeleteFunc(parts, func(p Table) bool { return seen[p.Name] }); len(parts) == 0 {
				break
			}
			for _, part := range parts {
				seen[part.Name] = true
				if err := resealAll(ctx, db, keys, current, part, &out, progress); err != nil {
					return out, fmt.Errorf("reseal %s: %w", part.Name, err)
				}
			}
		}
	}
	return out, nil
}

// resealAll goes through a table until a pass finds nothing to do.
func resealAll(ctx context.Context, db Beginner, keys Keys, current string, t Table, out *Resealed, progress func(table string, rows int64)) error {
	for {
		pass := Resealed{Left: map[string]int64{}}
		for after := "(0,0)"; after != ""; {
			next, err := batch(ctx, db, keys, current, t, after, resealBatch, &pass)
			var refused *pgconn.PgError
			if errors.As(err, &refused) && refused.Code == lockNotAvailable {
				next, err = batch(ctx, db, keys, current, t, after, 1, &pass)
			}
			if err != nil {
				return err
			}
			after = next
			if progress != nil {
				progress(t.Name, pass.Rows)
			}
		}
		out.Rows += pass.Rows
		if pass.Rows == 0 {
			out.Changed += pass.Changed
			for id, n := range pass.Left {
				out.Left[id] += n
			}
			return nil
		}
	}
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
			part := t
			part.Name = n
			list = append(list, part)
		}
		return err
	})
	return list, err
}

// lockNotAvailable is PostgreSQL's code for a lock that did not come in time.
const lockNotAvailable = "55P03"

// row is one row of a [Table] with something sealed under another key.
type row struct {
	At, Context string
	Body        []byte
}

// batch seals some rows behind a place in the table and gives the next place, "" at the end. While it holds several rows it waits
// for a lock for a moment only, [lockNotAvailable] then: those who write these rows in another order must not end in a deadlock.
func batch(ctx context.Context, db Beginner, keys Keys, current string, t Table, after string, limit int, out *Resealed) (next string, err error) {
	n := Resealed{Left: map[string]int64{}}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if limit > 1 {
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '100ms'`); err != nil {
				return err
			}
		}
		rows, err := tx.Query(ctx, `SELECT ctid::text, coalesce(`+t.Context+`, ''), `+t.column()+` FROM `+t.Name+` WHERE ctid > $1::tid AND `+t.stale()+`
			ORDER BY ctid LIMIT $3`, after, current, limit)
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
			body, changed, err := t.again(keys, r, &n)
			if err != nil {
				return err
			}
			if changed == 0 {
				continue
			}
			tag, err := tx.Exec(ctx, `UPDATE `+t.Name+` SET `+t.column()+` = $2 WHERE ctid = $1::tid AND `+t.column()+` = $3`, r.At, body, r.Body)
			if err != nil {
				return err
			}
			n.Rows += changed * tag.RowsAffected()
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

func (t Table) column() string {
	if t.Column == "" {
		return "body"
	}
	return t.Column
}

// stale is the condition that a row holds something that is sealed under another key than $2.
func (t Table) stale() string {
	c := t.column()
	if !t.JSON {
		return `substring(` + c + ` FROM 1 FOR 4) = 'jms1'::bytea AND length(` + c + `) > 6 AND substring(` + c + ` FROM 7 FOR get_byte(` + c + `, 5)) <> convert_to($2, 'UTF8')`
	}
	// 96 characters of base64 hold magic, mode and any key id. What is no base64 is for Go to look at.
	return `EXISTS (SELECT 1 FROM (SELECT substring(v FROM ` + strconv.Itoa(len(jsonPrefix)+1) + ` FOR 96) AS head FROM (
			SELECT ` + c + ` #>> '{}' AS v WHERE jsonb_typeof(` + c + `) = 'string'
			UNION ALL SELECT value FROM jsonb_each_text(CASE WHEN jsonb_typeof(` + c + `) = 'object' THEN ` + c + ` ELSE '{}' END)) x WHERE starts_with(v, '` + jsonBegins + `')) y
		WHERE CASE WHEN length(head) >= 12 AND head ~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'
			THEN substring(decode(head, 'base64') FROM 7 FOR get_byte(decode(head, 'base64'), 5)) <> convert_to($2, 'UTF8') ELSE true END)`
}

// again seals what a row holds anew, and gives how many bodies that were; those that cannot be are counted in n and stay.
func (t Table) again(keys Keys, r row, n *Resealed) (body []byte, changed int64, err error) {
	one := func(body []byte, context string) ([]byte, error) {
		out, did, err := Again(keys, body, context)
		switch {
		case errors.Is(err, ErrNoKey):
			n.Left[KeyID(body)]++
		case errors.Is(err, ErrTampered):
			n.Changed++
		case err != nil:
			return nil, err
		case did:
			changed++
		}
		return out, nil
	}
	if !t.JSON {
		body, err = one(r.Body, r.Context)
		return body, changed, err
	}
	value := func(v []byte, context string) ([]byte, error) {
		body, sealed, err := unwrapJSON(v)
		if err != nil {
			n.Changed++
			return v, nil //nolint:nilerr // counted
		}
		if !sealed {
			return v, nil
		}
		if body, err = one(body, context); err != nil {
			return nil, err
		}
		return wrapJSON(body), nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(r.Body, &members) != nil {
		body, err = value(r.Body, r.Context)
		return body, changed, err
	}
	for name, v := range members {
		if members[name], err = value(v, r.Context+"\n"+name); err != nil {
			return nil, 0, err
		}
	}
	body, err = json.Marshal(members)
	return body, changed, err
}
