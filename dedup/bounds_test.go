package dedup

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// TestPlans_bounded: a sweep that goes by a time reads what is due and nothing behind it: the time is a bound of the index, not a filter
// of everything the index holds.
func TestPlans_bounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	if err := fillOperations(ctx, pool, 30000); err != nil {
		t.Fatal(err)
	}
	pc, err := pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Release()
	if _, err := pc.Exec(ctx, "ANALYZE journeyman.operation, journeyman.claim_check; SET plan_cache_mode TO force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	q := reflect.ValueOf(render("journeyman"))
	for name, want := range map[string][2]string{
		"expired": {"operation_lease", "lease_until <="}, "askDue": {"operation_ask", "ask_at <="},
		"purge": {"operation_expires", "expires_at <="}, "purgeChecks": {"claim_check_expires", "expires_at <="},
	} {
		p, err := generic(ctx, pc.Conn(), "b_"+name, strings.ReplaceAll(q.FieldByName(name).String(), "{{unless}}", ""))
		if err != nil {
			t.Error(err)
			continue
		}
		bound := ""
		p.walk(func(n plan) {
			if n.Index == want[0] {
				bound = n.Bound
			}
		})
		if !strings.Contains(bound, want[1]) {
			t.Errorf("%s: index %s is read under the condition %q, want it bound by %q", name, want[0], bound, want[1])
		}
	}
}
