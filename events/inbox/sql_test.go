package inbox

import (
	"context"
	"reflect"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// Every statement can be prepared with nothing on the search path.
func TestStatements(t *testing.T) {
	t.Parallel()
	ctx, pool := context.Background(), pgtest.Pool(t)
	if err := Migrate(ctx, pool, "other_schema"); err != nil {
		t.Fatal(err)
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SET search_path = ''`); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(render("other_schema"))
	for i := range v.NumField() {
		if _, err := conn.Conn().Prepare(ctx, v.Type().Field(i).Name, v.Field(i).String()); err != nil {
			t.Errorf("%s: %v", v.Type().Field(i).Name, err)
		}
	}
}
