package conformance

import (
	"fmt"
	"testing"
)

// Cases of the documentation chapter "FEEL expressions" (components/modeler/feel): each
// expression is a script task's, each outcome the variable it leaves in a completed instance.
func TestFEEL(t *testing.T) {
	t.Parallel()
	const vars = `{"n":5,"s":"Journey","flag":true,"none":null,"xs":[3,1,2],"o":{"a":{"b":7},"list":[{"p":4},{"p":9}]}}`
	cases := []struct{ page, name, expression, want string }{
		// Page "Data types" and "Variables".
		{"feel-types", "missing variable is null", `missing`, `null`},
		{"feel-types", "path into a context", `o.a.b`, `7`},
		{"feel-types", "missing path is null", `o.x.y`, `null`},
		{"feel-types", "path over a list", `o.list.p`, `[4,9]`},
		{"feel-types", "context literal", `{a: 1, b: a + 1}`, `{"a":1,"b":2}`},
		{"feel-types", "decimals are exact", `0.1 + 0.2`, `0.3`},
		// Page "Boolean expressions".
		{"feel-boolean", "missing equals null", `missing = null`, `true`},
		{"feel-boolean", "missing equals 1", `missing = 1`, `false`},
		{"feel-boolean", "missing less than 1", `missing < 1`, `null`},
		{"feel-boolean", "null and true", `null and true`, `null`},
		{"feel-boolean", "null and false", `null and false`, `false`},
		{"feel-boolean", "null or true", `null or true`, `true`},
		{"feel-boolean", "null or false", `null or false`, `null`},
		{"feel-boolean", "not of null", `not(null)`, `null`},
		{"feel-boolean", "between includes its ends", `n between 5 and 6`, `true`},
		{"feel-boolean", "in an open interval", `n in (5..6)`, `false`},
		{"feel-boolean", "in a closed interval", `n in [5..6]`, `true`},
		{"feel-boolean", "in a list of values", `n in (1, 5)`, `true`},
		// Page "Numeric expressions".
		{"feel-numeric", "power before product", `2 * 3 ** 2`, `18`},
		{"feel-numeric", "division by zero is null", `1 / 0`, `null`},
		{"feel-numeric", "negation", `-n`, `-5`},
		// Page "String expressions".
		{"feel-string", "concatenation", `s + "!"`, `"Journey!"`},
		{"feel-string", "text plus number is null", `s + n`, `null`},
		// Page "List expressions".
		{"feel-list", "first item", `xs[1]`, `3`},
		{"feel-list", "last item", `xs[-1]`, `2`},
		{"feel-list", "beyond the list", `xs[9]`, `null`},
		{"feel-list", "filter", `xs[item > 1]`, `[3,2]`},
		{"feel-list", "filter by a property", `o.list[p > 5].p`, `[9]`},
		{"feel-list", "some", `some x in xs satisfies x > 2`, `true`},
		{"feel-list", "every", `every x in xs satisfies x > 2`, `false`},
		{"feel-list", "for", `for x in xs return x * 2`, `[6,2,4]`},
		{"feel-list", "for over a range", `for i in 1..3 return i`, `[1,2,3]`},
		// Page "Control flow".
		{"feel-control", "if of null takes else", `if null then "a" else "b"`, `"b"`},
		{"feel-control", "if true", `if flag then "a" else "b"`, `"a"`},
		// Pages "Boolean functions", "String functions", "Numeric functions", "List functions", "Context functions".
		{"feel-functions", "is defined", `is defined(none)`, `false`},
		{"feel-functions", "get or else", `get or else(none, "x")`, `"x"`},
		{"feel-functions", "get or else keeps", `get or else(s, "x")`, `"Journey"`},
		{"feel-functions", "substring", `substring(s, 2, 3)`, `"our"`},
		{"feel-functions", "substring from the end", `substring(s, -2)`, `"ey"`},
		{"feel-scala", "substring from position 0 is past the end", `substring(s, 0)`, `""`},
		{"feel-functions", "string length", `string length(s)`, `7`},
		{"feel-functions", "upper case", `upper case(s)`, `"JOURNEY"`},
		{"feel-functions", "contains", `contains(s, "urn")`, `true`},
		{"feel-functions", "split", `split("a;b", ";")`, `["a","b"]`},
		{"feel-functions", "replace", `replace("abc", "b", "x")`, `"axc"`},
		{"feel-functions", "matches", `matches("abc", "^a.c$")`, `true`},
		{"feel-functions", "string of a number", `string(n)`, `"5"`},
		{"feel-functions", "number of a text", `number("1.5")`, `1.5`},
		{"feel-functions", "floor", `floor(-1.5)`, `-2`},
		{"feel-functions", "ceiling", `ceiling(1.2)`, `2`},
		{"feel-functions", "decimal rounds half to even", `decimal(2.5, 0)`, `2`},
		{"feel-functions", "modulo takes the divisor's sign", `modulo(-12, 5)`, `3`},
		{"feel-functions", "count", `count(xs)`, `3`},
		{"feel-functions", "sum", `sum(xs)`, `6`},
		{"feel-functions", "min", `min(xs)`, `1`},
		{"feel-functions", "max", `max(xs)`, `3`},
		{"feel-functions", "list contains", `list contains(xs, 2)`, `true`},
		{"feel-functions", "append", `append(xs, 4)`, `[3,1,2,4]`},
		{"feel-functions", "concatenate", `concatenate(xs, [4])`, `[3,1,2,4]`},
		{"feel-functions", "insert before", `insert before(xs, 1, 9)`, `[9,3,1,2]`},
		{"feel-functions", "remove", `remove(xs, 1)`, `[1,2]`},
		{"feel-functions", "reverse", `reverse(xs)`, `[2,1,3]`},
		{"feel-functions", "index of", `index of(xs, 1)`, `[2]`},
		{"feel-functions", "distinct values", `distinct values([1,2,1])`, `[1,2]`},
		{"feel-functions", "flatten", `flatten([[1],[2,[3]]])`, `[1,2,3]`},
		{"feel-functions", "sort", `sort(xs, function(a, b) a < b)`, `[1,2,3]`},
		{"feel-functions", "string join", `string join(["a","b"], "-")`, `"a-b"`},
		{"feel-functions", "get value", `get value(o.a, "b")`, `7`},
		{"feel-functions", "context put", `context put({a: 1}, "b", 2)`, `{"a":1,"b":2}`},
		{"feel-functions", "context merge", `context merge([{a: 1}, {a: 2}])`, `{"a":2}`},
		// Pages "Temporal expressions" and "Temporal functions".
		{"feel-temporal", "duration in hours", `duration("PT90M") = @"PT1H30M"`, `true`},
		{"feel-temporal", "date plus period", `string(date("2026-01-31") + duration("P1M"))`, `"2026-02-28"`},
		{"feel-temporal", "difference of dates", `(date("2026-03-01") - date("2026-02-28")) = duration("P1D")`, `true`},
		{"feel-temporal", "day of week", `day of week(date("2026-11-30"))`, `"Monday"`},
		{"feel-temporal", "year of a date", `date("2026-11-30").year`, `2026`},
	}
	z := open(t, "feel-types: an expression gives its value to the script task's result variable")
	for i, c := range cases {
		z.run(t, c.name, fmt.Sprintf("%s: `%s` is %s", c.page, c.expression, c.want), func(_ *testing.T, z *cluster) {
			id := fmt.Sprintf("p%d", i)
			z.deploy(id+".bpmn", model(process(id, start("s"), fmt.Sprintf(`<bpmn:scriptTask id="x"><bpmn:extensionElements><zeebe:script expression="=%s" resultVariable="result"/></bpmn:extensionElements></bpmn:scriptTask>`, escape(c.expression)), end("e"), flow("s", "x", "e"))))
			k := z.create(id, vars)
			z.state(k, "COMPLETED")
			z.noIncident(k)
			z.variable(k, "result", c.want)
		})
	}
}
