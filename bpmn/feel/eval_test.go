package feel_test

import (
	"errors"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn/feel"
)

func scope(tb testing.TB) feel.Scope {
	tb.Helper()
	v, err := feel.FromJSON([]byte(`{
		"x": 7, "amount": 12.50, "name": "Ada", "flag": true, "nothing": null, "a b": 3,
		"list": [1, 2, 3, 4], "empty": [],
		"order": {"total": 100, "lines": [{"sku": "a", "price": 4}, {"sku": "b", "price": 9}], "for": "me"},
		"results": [{"segment": "flight", "status": "refunded"}, {"segment": "hotel", "status": "refused"}],
		"loopCounter": 2, "sagaId": "op_1"
	}`))
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

var now = time.Date(2026, 11, 30, 10, 20, 30, 0, time.UTC)

func TestEval(t *testing.T) {
	t.Parallel()
	for _, group := range []struct {
		name  string
		cases [][2]string // expression, JSON of the result
	}{
		{"literals", [][2]string{
			{`1`, `1`}, {`-1.5`, `-1.5`}, {`.5`, `0.5`}, {`"a\nb"`, `"a\nb"`}, {`"\d"`, `"\\d"`}, {`"\u00e9"`, `"é"`},
			{`"\uD83D\uDE00"`, `"😀"`}, {`true`, `true`}, {`null`, `null`}, {`[]`, `[]`}, {`[1, "a", null]`, `[1,"a",null]`}, {`{}`, `{}`},
			{`{a: 1, "b c": 2, ` + "`d e`" + `: a + 1}`, `{"a":1,"b c":2,"d e":2}`}, {`1 // one`, `1`}, {`/* a */ 2`, `2`},
		}},
		{"decimals", [][2]string{
			{`0.1 + 0.2`, `0.3`}, {`0.1 + 0.2 = 0.3`, `true`}, {`1 / 3`, `0.3333333333333333333333333333333333`}, {`10 / 4`, `2.5`}, {`10 / 5`, `2`},
			{`9007199254740993 + 1`, `9007199254740994`}, {`2 ** 10`, `1024`}, {`-2 ** 2`, `4`}, {`2 ** -1`, `0.5`}, {`7 / 0`, `null`}, {`1.10`, `1.1`},
			{`2 + 3 * 4`, `14`}, {`(2 + 3) * 4`, `20`}, {`10 - 2 - 3`, `5`}, {`-x`, `-7`}, {`100 / 1000000`, `0.0001`}, {`1000000 / 0.001`, `1000000000`},
			{`"a" + "b"`, `"ab"`}, {`1 + "a"`, `null`}, {`1 + null`, `null`}, {`4 ** 0.5`, `2`}, {`10 ** 100000`, `null`},
		}},
		{"logic", [][2]string{
			{`true and false`, `false`}, {`null and true`, `null`}, {`null and false`, `false`}, {`null or true`, `true`}, {`null or false`, `null`},
			{`not(true)`, `false`}, {`not(null)`, `null`}, {`missing = null`, `true`}, {`missing = 1`, `false`}, {`missing < 1`, `null`}, {`1 = "1"`, `null`},
			{`if null then "a" else "b"`, `"b"`}, {`if x > 5 then 1 else 2`, `1`}, {`"x" and true`, `null`}, {`x != 7`, `false`}, {`missing != null`, `false`},
			{`[1,2] = [1,2]`, `true`}, {`{a:1} = {a:1}`, `true`}, {`{a:1} = {a:2}`, `false`}, {`"a" < "b"`, `true`},
		}},
		{"paths", [][2]string{
			{`order.total`, `100`}, {`order.lines.price`, `[4,9]`}, {`order.lines[1].sku`, `"a"`}, {`order.lines[-1].sku`, `"b"`}, {`order.lines[3]`, `null`},
			{`order.lines[price > 5].sku`, `["b"]`}, {`order.lines[item.price > 5]`, `[{"sku":"b","price":9}]`}, {`list[item > 2]`, `[3,4]`}, {`list[loopCounter]`, `2`},
			{`order.for`, `"me"`}, {"`a b` + 1", `4`}, {`missing.a.b`, `null`}, {`order.nope`, `null`}, {`results[status = "refused"][1].segment`, `"hotel"`},
			{`list[0]`, `null`}, {`list[even(item)]`, `[2,4]`}, {`{a: {b: 5}}.a.b`, `5`}, {`x.y`, `null`}, {`nothing[1]`, `null`},
			{`count(results[status != "refunded"]) = 0`, `false`}, {`sagaId + ":" + string(loopCounter)`, `"op_1:2"`},
		}},
		{"in and between", [][2]string{
			{`x in [1..10]`, `true`}, {`x in (7..10]`, `false`}, {`x in ]1..7[`, `false`}, {`x in (1, 7)`, `true`}, {`x in [1, 2]`, `false`}, {`x in < 8`, `true`},
			{`x in (< 3, > 6)`, `true`}, {`x in (? > 5 and ? < 9)`, `true`}, {`x between 7 and 9`, `true`}, {`x between 8 and 9`, `false`}, {`missing between 1 and 2`, `null`},
			{`x in list`, `false`}, {`x in ("a", 7)`, `true`}, {`x in (5 + 1) + 1`, `true`}, {`[1..5[ = [1..5[`, `true`}, {`5 in ([1..3], [5..9])`, `true`},
			{`x in (1..10)`, `true`}, {`(1..10).start`, `1`}, {`[1..10].end included`, `true`}, {`not(x in [1..3])`, `true`},
		}},
		{"loops", [][2]string{
			{`for i in list return i * 2`, `[2,4,6,8]`}, {`for i in 1..3 return i`, `[1,2,3]`}, {`for i in 3..1 return i`, `[3,2,1]`}, {`for a in [1,2], b in [10,20] return a + b`, `[11,21,12,22]`},
			{`for i in 1..4 return if i = 1 then 1 else partial[-1] * i`, `[1,2,6,24]`}, {`some i in list satisfies i > 3`, `true`}, {`every i in list satisfies i > 3`, `false`},
			{`every i in empty satisfies i > 3`, `true`}, {`some i in [null] satisfies i > 1`, `null`}, {`every r in results satisfies r.status = "refunded"`, `false`},
			{`some a in [1,2], b in [2,3] satisfies a = b`, `true`}, {`for i in missing return i`, `null`},
		}},
		{"functions of the expression", [][2]string{
			{`{f: function(a, b) a + b, r: f(2, 3)}.r`, `5`}, {`{f: function(a: number) a + 1}.f(2)`, `3`}, {`sort([3,1,2], function(a, b) a < b)`, `[1,2,3]`},
			{`{f: function(a, b) a - b, r: f(b: 1, a: 5)}.r`, `4`}, {`nope(1)`, `null`}, {`(function(x) x + 1)(1)`, `2`},
		}},
		{"types", [][2]string{
			{`1 instance of number`, `true`}, {`"a" instance of string`, `true`}, {`null instance of Any`, `false`}, {`@"2026-01-01" instance of date`, `true`},
			{`@"P1D" instance of days and time duration`, `true`}, {`[1] instance of list<number>`, `true`}, {`@"2026-01-01T00:00:00Z" instance of date and time`, `true`},
		}},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range group.cases {
				check(t, c[0], c[1])
			}
		})
	}
}

func check(t *testing.T, src, want string) {
	t.Helper()
	expr, err := feel.Compile(src)
	if err != nil {
		t.Errorf("Compile(%s): %v", src, err)
		return
	}
	v, warnings, err := expr.EvalWith(scope(t), feel.Options{Now: now})
	if err != nil {
		t.Errorf("Eval(%s): %v", src, err)
		return
	}
	if got := string(v.JSON()); got != want {
		t.Errorf("Eval(%s) = %s, want %s (warnings %v)", src, got, want, warnings)
	}
}

func TestEval_warnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`amountPaid > 5`, []string{"[NO_VARIABLE_FOUND] No variable found with name 'amountPaid'"}},
		{`order.nope`, []string{"[NO_CONTEXT_ENTRY_FOUND] No context entry found with key 'nope'. Available keys: 'total', 'lines', 'for'"}},
		{`1 = "1"`, []string{`[NOT_COMPARABLE] Can't compare '1' with '"1"'`}},
		{`nope(1, 2)`, []string{"[NO_FUNCTION_FOUND] No function found with name 'nope' and 2 parameters"}},
		{`1 + "a"`, []string{`[INVALID_TYPE] Can't add '"a"' to '1'`}},
		{`x = 7`, nil},
	} {
		expr, err := feel.Compile(c.src)
		if err != nil {
			t.Fatal(err)
		}
		_, warnings, err := expr.Eval(scope(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) != len(c.want) {
			t.Errorf("%s: warnings %v, want %v", c.src, warnings, c.want)
			continue
		}
		for i, w := range warnings {
			if w.String() != c.want[i] {
				t.Errorf("%s: warning %q, want %q", c.src, w, c.want[i])
			}
		}
	}
}

func TestCompile_errors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src          string
		line, column int
	}{
		{``, 1, 1}, {`1 +`, 1, 4}, {`x >`, 1, 4}, {`(1`, 1, 3}, {`[1, 2`, 1, 6}, {`{a 1}`, 1, 2}, {`"abc`, 1, 1}, {"x =\n  = y", 2, 3}, {`if a then b`, 1, 12},
		{`for x in y`, 1, 11}, {`${order.total > 5}`, 1, 2}, {`a b`, 1, 3}, {`@"nope"`, 1, 1}, {`a # b`, 1, 3}, {`x == 1`, 1, 4}, {`1 2`, 1, 3}, {"/* open", 1, 1}, {`a.`, 1, 3},
	} {
		_, err := feel.Compile(c.src)
		syntax, ok := errors.AsType[*feel.SyntaxError](err)
		if !ok {
			t.Errorf("Compile(%q): %v, want a syntax error", c.src, err)
			continue
		}
		if syntax.Line != c.line || syntax.Column != c.column {
			t.Errorf("Compile(%q): error at %d:%d, want %d:%d (%v)", c.src, syntax.Line, syntax.Column, c.line, c.column, err)
		}
	}
}
