package audit

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// witnessSchema holds the witness table. No product code reads it.
const witnessSchema = "demo_witness"

// Outbox names the table that the witness watches and its columns.
type Outbox struct {
	Table                  string // schema-qualified, from code only: it stands in SQL as it is
	ID, BusinessKey, Order string // columns of the message id, the key and the sequence
}

// Database is what the witness needs of a pool or connection.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// InstallWitness makes the witness table and the trigger that copies each
// outbox row into it, in the transaction that stages the row: a rolled back row leaves no trace here either.
func InstallWitness(ctx context.Context, db Database, o Outbox) error {
	sql := strings.NewReplacer("{{witness}}", witnessSchema, "{{table}}", o.Table, "{{id}}", o.ID, "{{key}}", o.BusinessKey, "{{seq}}", o.Order).Replace(`
		CREATE SCHEMA {{witness}};
		CREATE TABLE {{witness}}.staged (id text NOT NULL, key text NOT NULL, sequence bigint NOT NULL);
		CREATE FUNCTION {{witness}}.copy() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO {{witness}}.staged (id, key, sequence) VALUES (NEW.{{id}}::text, NEW.{{key}}, NEW.{{seq}});
			RETURN NULL;
		END $$;
		CREATE TRIGGER demo_witness AFTER INSERT ON {{table}} FOR EACH ROW EXECUTE FUNCTION {{witness}}.copy();`)
	if _, err := db.Exec(ctx, sql); err != nil {
		return fmt.Errorf("install witness on %s: %w", o.Table, err)
	}
	return nil
}

// ReadWitness returns everything the witness saw being committed, in no order.
func ReadWitness(ctx context.Context, db Database) ([]Staged, error) {
	rows, err := db.Query(ctx, "SELECT id, key, sequence FROM "+witnessSchema+".staged")
	if err != nil {
		return nil, fmt.Errorf("read witness: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Staged])
	if err != nil {
		return nil, fmt.Errorf("read witness: %w", err)
	}
	return all, nil
}
