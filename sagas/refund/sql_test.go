package refund

import (
	"reflect"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Every statement fits the migrated tables, in a schema of another name too.
func TestStatements_prepare(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for range 2 { // the second run finds nothing to do
		if err := Migrate(t.Context(), pool, "elsewhere"); err != nil {
			t.Fatal(err)
		}
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	all := reflect.ValueOf(render("elsewhere"))
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if _, err := conn.Conn().Prepare(t.Context(), name, all.Field(i).String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
