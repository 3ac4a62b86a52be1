package dedup

import (
	"reflect"
	"regexp"
	"testing"

	"github.com/vitrip/journeyman/outcome"
)

// TestStatesAreTheOnesDeclared: the statements name no state, effect, class or orphan that is not one of the constants. The table has
// no CHECK for them.
func TestStatesAreTheOnesDeclared(t *testing.T) {
	t.Parallel()
	known := map[string]map[string]bool{
		"state":  {string(Claimed): true, string(Calling): true, string(Called): true, string(Undoing): true, string(Done): true, string(Revoked): true},
		"effect": {string(EffectNone): true, string(EffectMaybe): true, string(EffectKnown): true},
		"class":  {"": true, string(outcome.Success): true, string(outcome.Retryable): true, string(outcome.Business): true, string(outcome.Fatal): true},
		"orphan": {"": true, OrphanOpen: true, "undone": true, OrphanParked: true},
	}
	one := regexp.MustCompile(`\b(state|effect|class|orphan) (?:=|<>) '([^']*)'`)
	list := regexp.MustCompile(`\b(state|effect|class|orphan) (?:NOT )?IN \(([^)]*)\)`)
	quoted := regexp.MustCompile(`'([^']*)'`)
	seen := 0
	for _, set := range []any{render("journeyman"), renderRecord("journeyman")} {
		v := reflect.ValueOf(set)
		for i := range v.NumField() {
			name, sql := v.Type().Field(i).Name, v.Field(i).String()
			say := func(column, value string) {
				seen++
				if !known[column][value] {
					t.Errorf("%s: %s %q is not declared", name, column, value)
				}
			}
			for _, m := range one.FindAllStringSubmatch(sql, -1) {
				say(m[1], m[2])
			}
			for _, m := range list.FindAllStringSubmatch(sql, -1) {
				for _, q := range quoted.FindAllStringSubmatch(m[2], -1) {
					say(m[1], q[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d values looked at", seen)
	}
}
