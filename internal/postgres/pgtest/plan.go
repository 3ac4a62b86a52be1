package pgtest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Plan is a node of a query plan.
type Plan struct {
	Node     string `json:"Node Type"`
	Relation string `json:"Relation Name"`
	Index    string `json:"Index Name"`
	Bound    string `json:"Index Cond"` // what of the index is read
	Plans    []Plan
}

// Walk calls f with the node and all under it.
func (p Plan) Walk(f func(Plan)) {
	f(p)
	for _, s := range p.Plans {
		s.Walk(f)
	}
}

// Generic gives the plan that a prepared statement is run by whatever its values. conn must be set to plan_cache_mode
// force_generic_plan; the statement stays prepared under name.
func Generic(ctx context.Context, conn *pgx.Conn, name, sql string) (Plan, error) {
	name = strings.ToLower(name)
	if _, err := conn.Exec(ctx, "PREPARE "+name+" AS "+sql); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	var args int
	if err := conn.QueryRow(ctx, `SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = $1`, name).Scan(&args); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	call := "EXPLAIN (FORMAT JSON) EXECUTE " + name
	if args > 0 {
		call += "(" + strings.Join(slices.Repeat([]string{"NULL"}, args), ", ") + ")"
	}
	var text string
	if err := conn.QueryRow(ctx, call).Scan(&text); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := conn.Exec(ctx, "DEALLOCATE "+name); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	var got []struct{ Plan Plan }
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 1 {
		return Plan{}, fmt.Errorf("%s: plan %s: %w", name, text, err)
	}
	return got[0].Plan, nil
}
