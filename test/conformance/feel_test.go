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
	cases := []struct{ name, expression, want string }{
		// Page "Data types" and "Variables".
		{"missing variable is null", `missing`, `null`},
		{"path into a context", `o.a.b`, `7`},
		{"missing path is null", `o.x.y`, `null`},
		{"path over a list", `o.list.p`, `[4,9]`},
		{"context literal", `{a: 1, b: a + 1}`, `{"a":1,"b":2}`},
		{"decimals are exact", `0.1 + 0.2`, `0.3`},
		// Page "Boolean expressions".
		{"missing equals null", `missing = null`, `true`},
		{"missing equals 1", `missing = 1`, `false`},
		{"missing less than 1", `missing < 1`, `null`},
		{"null and true", `null and true`, `null`},
		{"null and false", `null and false`, `false`},
		{"null or true", `null or true`, `true`},
		{"null or false", `null or false`, `null`},
		{"not of null", `not(null)`, `null`},
		{"between includes its ends", `n between 5 and 6`, `true`},
		{"in an open interval", `n in (5..6)`, `false`},
		{"in a closed interval", `n in [5..6]`, `true`},
		{"in a list of values", `n in (1, 5)`, `true`},
		// Page "Numeric expressions".
		{"power before product", `2 * 3 ** 2`, `18`},
		{"division by zero is null", `1 / 0`, `null`},
		{"negation", `-n`, `-5`},
		// Page "String expressions".
		{"concatenation", `s + "!"`, `"Journey!"`},
		{"text plus number is null", `s + n`, `null`},
		// Page "List expressions".
		{"first item", `xs[1]`, `3`},
		{"last item", `xs[-1]`, `2`},
		{"beyond the list", `xs[9]`, `null`},
		{"filter", `xs[item > 1]`, `[3,2]`},
		{"filter by a property", `o.list[p > 5].p`, `[9]`},
		{"some", `some x in xs satisfies x > 2`, `true`},
		{"every", `every x in xs satisfies x > 2`, `false`},
		{"for", `for x in xs return x * 2`, `[6,2,4]`},
		{"for over a range", `for i in 1..3 return i`, `[1,2,3]`},
		// Page "Control flow".
		{"if of null takes else", `if null then "a" else "b"`, `"b"`},
		{"if true", `if flag then "a" else "b"`, `"a"`},
		// Pages "Boolean functions", "String functions", "Numeric functions", "List functions", "Context functions".
		{"is defined", `is defined(none)`, `false`},
		{"get or else", `get or else(none, "x")`, `"x"`},
		{"get or else keeps", `get or else(s, "x")`, `"Journey"`},
		{"substring", `substring(s, 2, 3)`, `"our"`},
		{"substring from the end", `substring(s, -2)`, `"ey"`},
		{"string length", `string length(s)`, `7`},
		{"upper case", `upper case(s)`, `"JOURNEY"`},
		{"contains", `contains(s, "urn")`, `true`},
		{"split", `split("a;b", ";")`, `["a","b"]`},
		{"replace", `replace("abc", "b", "x")`, `"axc"`},
		{"matches", `matches("abc", "^a.c$")`, `true`},
		{"string of a number", `string(n)`, `"5"`},
		{"number of a text", `number("1.5")`, `1.5`},
		{"floor", `floor(-1.5)`, `-2`},
		{"ceiling", `ceiling(1.2)`, `2`},
		{"decimal rounds half to even", `decimal(2.5, 0)`, `2`},
		{"modulo takes the divisor's sign", `modulo(-12, 5)`, `3`},
		{"count", `count(xs)`, `3`},
		{"sum", `sum(xs)`, `6`},
		{"min", `min(xs)`, `1`},
		{"max", `max(xs)`, `3`},
		{"list contains", `list contains(xs, 2)`, `true`},
		{"append", `append(xs, 4)`, `[3,1,2,4]`},
		{"concatenate", `concatenate(xs, [4])`, `[3,1,2,4]`},
		{"insert before", `insert before(xs, 1, 9)`, `[9,3,1,2]`},
		{"remove", `remove(xs, 1)`, `[1,2]`},
		{"reverse", `reverse(xs)`, `[2,1,3]`},
		{"index of", `index of(xs, 1)`, `[2]`},
		{"distinct values", `distinct values([1,2,1])`, `[1,2]`},
		{"flatten", `flatten([[1],[2,[3]]])`, `[1,2,3]`},
		{"sort", `sort(xs, function(a, b) a < b)`, `[1,2,3]`},
		{"string join", `string join(["a","b"], "-")`, `"a-b"`},
		{"get value", `get value(o.a, "b")`, `7`},
		{"context put", `context put({a: 1}, "b", 2)`, `{"a":1,"b":2}`},
		{"context merge", `context merge([{a: 1}, {a: 2}])`, `{"a":2}`},
		// Pages "Temporal expressions" and "Temporal functions".
		{"duration in hours", `duration("PT90M") = @"PT1H30M"`, `true`},
		{"date plus period", `string(date("2026-01-31") + duration("P1M"))`, `"2026-02-28"`},
		{"difference of dates", `(date("2026-03-01") - date("2026-02-28")) = duration("P1D")`, `true`},
		{"day of week", `day of week(date("2026-11-30"))`, `"Monday"`},
		{"year of a date", `date("2026-11-30").year`, `2026`},
	}
	z := open(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id := fmt.Sprintf("p%d", i)
			z.deploy(id+".bpmn", model(process(id, start("s"), fmt.Sprintf(`<bpmn:scriptTask id="x"><bpmn:extensionElements><zeebe:script expression="=%s" resultVariable="result"/></bpmn:extensionElements></bpmn:scriptTask>`, escape(c.expression)), end("e"), flow("s", "x", "e"))))
			k := z.create(id, vars)
			z.state(k, "COMPLETED")
			z.noIncident(k)
			z.variable(k, "result", c.want)
		})
	}
}
