package dedup

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// TestStatements prepares every statement of the package against the migrated schema.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	for range 2 {
		if err := Migrate(ctx, pool, "jm_other"); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	v := reflect.ValueOf(render("jm_other"))
	for i := range v.NumField() {
		name, sql := v.Type().Field(i).Name, strings.ReplaceAll(v.Field(i).String(), "{{unless}}", "")
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
