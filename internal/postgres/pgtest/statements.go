package pgtest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Statements prepares every field of a struct of SQL texts with nothing on the
// search path, so that an unqualified name fails. edit, which may be nil, makes
// a statement of a text that is only part of one. An empty text and a
// placeholder that was left fail too.
func Statements(t testing.TB, pool *pgxpool.Pool, statements any, edit func(name, sql string) string) {
	t.Helper()
	ctx := t.Context()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET search_path = ''`); err != nil {
		t.Fatal(err)
	}
	all := reflect.ValueOf(statements)
	for i := range all.NumField() {
		name, sql := all.Type().Field(i).Name, all.Field(i).String()
		if edit != nil {
			sql = edit(name, sql)
		}
		if sql == "" {
			t.Errorf("statement %s is empty", name)
		}
		if strings.Contains(sql, "{{") {
			t.Errorf("statement %s has a placeholder left:\n%s", name, sql)
		}
		if _, err := conn.Conn().Prepare(ctx, name, sql); err != nil {
			t.Errorf("statement %s: %v", name, err)
		}
	}
}
