// Package postgres applies embedded migrations and starts private PostgreSQL
// clusters for the demo and for tests.
package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DefaultSchema is the PostgreSQL schema of all our tables unless configured otherwise.
const DefaultSchema = "journeyman"

//go:embed migrations/*.sql
var core embed.FS

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,50}$`) //nolint:gochecknoglobals // compiled once

// Conn is what Migrate needs: a connection, a pool or a transaction.
type Conn interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// CheckSchema refuses a schema name that would need quoting.
func CheckSchema(schema string) error {
	if !schemaName.MatchString(schema) {
		return fmt.Errorf("schema %q: want lower-case letters, digits and _, at most 51", schema)
	}
	return nil
}

// Migrate brings one owner's tables in schema up to date, in one transaction
// under an advisory lock of the schema: safe to call from many processes at
// once. files holds NNNN_verb_noun.sql; "{{schema}}" in them is replaced. A
// file that was applied before and has changed since is refused by name.
// The schema itself and its clock function now() come first, by themselves.
func Migrate(ctx context.Context, db Conn, schema, owner string, files fs.FS) error {
	if err := CheckSchema(schema); err != nil {
		return err
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", owner, err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('journeyman.migrate.' || $1, 0))`, schema); err != nil {
		return fmt.Errorf("migrate %s: %w", owner, err)
	}
	if _, err := tx.Exec(ctx, render(`
		CREATE SCHEMA IF NOT EXISTS {{schema}};
		CREATE TABLE IF NOT EXISTS {{schema}}.migration (
			owner text NOT NULL, name text NOT NULL, sum text NOT NULL,
			applied_at timestamptz NOT NULL DEFAULT pg_catalog.now(), PRIMARY KEY (owner, name))`, schema)); err != nil {
		return fmt.Errorf("migrate %s: %w", owner, err)
	}
	coreFiles, err := fs.Sub(core, "migrations")
	if err != nil {
		return err
	}
	if err := apply(ctx, tx, schema, "core", coreFiles); err != nil {
		return err
	}
	if owner != "core" {
		if err := apply(ctx, tx, schema, owner, files); err != nil {
			return err
		}
	}
	return tx.Commit(ctx)
}

// MigrateFolder is [Migrate] with the files of one folder of an embedded file system.
func MigrateFolder(ctx context.Context, db Conn, schema, owner string, files fs.FS, folder string) error {
	sub, err := fs.Sub(files, folder)
	if err != nil {
		return err
	}
	return Migrate(ctx, db, schema, owner, sub)
}

// SchemaOr is schema, or the default schema where it is empty.
func SchemaOr(schema string) string {
	if schema == "" {
		return DefaultSchema
	}
	return schema
}

func apply(ctx context.Context, tx pgx.Tx, schema, owner string, files fs.FS) error {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		var old, sum string
		err = tx.QueryRow(ctx, render(`SELECT md5($3), coalesce((SELECT sum FROM {{schema}}.migration WHERE owner = $1 AND name = $2), '')`, schema),
			owner, path.Base(name), string(text)).Scan(&sum, &old)
		switch {
		case err != nil:
			return fmt.Errorf("migrate %s %s: %w", owner, name, err)
		case old == sum:
			continue
		case old != "":
			return fmt.Errorf("migrate %s %s: applied before with other content; add a new file instead of changing this one", owner, name)
		}
		if _, err := tx.Exec(ctx, render(string(text), schema)); err != nil {
			return fmt.Errorf("migrate %s %s: %w", owner, name, err)
		}
		if _, err := tx.Exec(ctx, render(`INSERT INTO {{schema}}.migration (owner, name, sum) VALUES ($1, $2, $3)`, schema), owner, path.Base(name), sum); err != nil {
			return fmt.Errorf("migrate %s %s: %w", owner, name, err)
		}
	}
	return nil
}

func render(sql, schema string) string { return strings.ReplaceAll(sql, "{{schema}}", schema) }
