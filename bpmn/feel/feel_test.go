package feel_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn/feel"
)

func compile(t testing.TB, src string) *feel.Expr {
	t.Helper()
	e, err := feel.Compile(src)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEval_limits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, src string
		want      error
	}{
		{"long loop", `for i in 1..1000000000 return i`, feel.ErrBudget},
		{"nested loops", `for a in 1..10000, b in 1..10000 return a * b`, feel.ErrBudget},
		{"recursion", `{f: function(n) f(n + 1), r: f(1)}.r`, feel.ErrDepth},
		{"doubling lists", `{f: function(l, n) if n = 0 then l else f(concatenate(l, l), n - 1), r: f([1], 60)}.r`, feel.ErrBudget},
		{"doubling strings", `{f: function(s, n) if n = 0 then s else f(s + s, n - 1), r: f("ab", 60)}.r`, feel.ErrBudget},
		{"quantifier", `every i in 1..1000000000 satisfies i > 0`, feel.ErrBudget},
		{"tree of shared parts", `for i in 1..60 return partial`, feel.ErrBudget},
		{"deep value", `{f: function(v, n) if n = 0 then v else f([v], n - 1), r: f(1, 600)}.r[true]`, feel.ErrDepth},
		{"assertion", `assert(x, x > 100, "too small")`, feel.ErrAssert},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, _, err := compile(t, c.src).Eval(scope(t))
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, %v, want %v", v, err, c.want)
			}
		})
	}
	_, _, err := compile(t, `for i in 1..100 return i`).EvalWith(nil, feel.Options{MaxSteps: 50})
	if !errors.Is(err, feel.ErrBudget) {
		t.Errorf("own budget: got %v", err)
	}
}

func TestCompile_limits(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"parentheses": strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"signs":       strings.Repeat("-", 5000) + "1",
		"chain":       "1" + strings.Repeat(" + 1", 5000),
		"path":        "a" + strings.Repeat(".a", 5000),
		"in":          "1" + strings.Repeat(" in (1", 300),
		"size":        `"` + strings.Repeat("a", feel.MaxSource) + `"`,
	} {
		if _, err := feel.Compile(src); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

func TestExpr_Variables(t *testing.T) {
	t.Parallel()
	got := compile(t, `sagaId + string(loopCounter) + {a: b, c: a}.c + string(for i in xs return i + k)`).Variables()
	if diff := cmp.Diff([]string{"b", "k", "loopCounter", "sagaId", "xs"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestExpr_Computes(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		`sagaDecision = "completed"`: false, `gaveUp`: false, `undoOpen > 0`: false, `every r in results satisfies r.status = "refunded"`: false, `count(list) = 0`: false, `not(flag)`: false,
		`sagaId + ":" + string(n) = key`: false, `amount > 1000`: true, `a * b > 0`: true, `total - discount = 0`: true, `age between 18 and 65`: true, `x in [1..5]`: true, `now() > @"2026-01-01T00:00:00Z"`: true,
	} {
		if got := compile(t, src).Computes(); got != want {
			t.Errorf("Computes(%s) = %v, want %v", src, got, want)
		}
	}
}

func TestParseExpression(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		static bool
		kind   feel.Kind
		json   string
	}{
		{`=1 + 1`, false, feel.Number, `2`}, {`= "a"`, false, feel.String, `"a"`}, {`3`, true, feel.Number, `3`}, {`-1.50`, true, feel.Number, `-1.5`}, {`1E3`, true, feel.Number, `1000`},
		{`flight.reserve`, true, feel.String, `"flight.reserve"`}, {``, true, feel.String, `""`}, {`=`, true, feel.String, `"="`}, {`Infinity`, true, feel.String, `"Infinity"`}, {`NaN`, true, feel.String, `"NaN"`}, {` 3`, true, feel.String, `" 3"`},
	} {
		e, err := feel.ParseExpression(c.text)
		if err != nil {
			t.Errorf("ParseExpression(%q): %v", c.text, err)
			continue
		}
		v, _, err := e.Eval(nil)
		if err != nil || e.IsStatic() != c.static || v.Kind() != c.kind || string(v.JSON()) != c.json {
			t.Errorf("ParseExpression(%q): static %v, kind %s, %s, %v", c.text, e.IsStatic(), v.Kind(), v.JSON(), err)
		}
	}
	if _, err := feel.ParseExpression("=a +"); err == nil {
		t.Error("a syntax error passed")
	}
}

// The text that Zeebe writes into an incident, see zeebe EXTRACT_VALUE_ERROR.
func TestMismatch(t *testing.T) {
	t.Parallel()
	e := compile(t, `amount > 5`)
	v, warnings, err := e.Eval(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "Expected result of the expression 'amount > 5' to be 'BOOLEAN', but was 'NULL'. The evaluation reported the following warnings:\n[NO_VARIABLE_FOUND] No variable found with name 'amount'"
	if diff := cmp.Diff(want, feel.Mismatch(e.Source(), v, warnings, feel.Boolean)); diff != "" {
		t.Error(diff)
	}
	if got := feel.Mismatch("x", feel.BoolValue(true), nil, feel.String, feel.Number); got != "Expected result of the expression 'x' to be one of '[STRING, NUMBER]', but was 'BOOLEAN'." {
		t.Error(got)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":[1.50,null,true,"x\u00e9\"<"]}`: `{"b":1,"a":[1.5,null,true,"xé\"<"]}`,
		`12345678901234567890.123456789`:            `12345678901234567890.123456789`,
		`9223372036854775808`:                       `9223372036854775808`, `1e2`: `100`, `-0`: `0`, `1E-7`: `0.0000001`, `0.1e400`: `1E+399`, `{"a":1,"a":2}`: `{"a":2}`, ` [ ] `: `[]`, `"\ud83d\ude00"`: `"😀"`,
	} {
		v, err := feel.FromJSON([]byte(in))
		if err != nil {
			t.Errorf("FromJSON(%s): %v", in, err)
			continue
		}
		if got := string(v.JSON()); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	for _, in := range []string{``, `{`, `[1`, `{"a"}`, `1 2`, `nope`, `1e99999`, strings.Repeat("[", 600) + strings.Repeat("]", 600), `"a`, `{"a":}`} {
		if v, err := feel.FromJSON([]byte(in)); err == nil {
			t.Errorf("FromJSON(%.20s) = %s, want an error", in, v)
		}
	}
}

func TestValue_accessors(t *testing.T) {
	t.Parallel()
	v, err := feel.FromJSON([]byte(`{"s":"a","n":7,"f":1.5,"b":true,"l":[1,2],"c":{"k":1},"z":null}`))
	if err != nil {
		t.Fatal(err)
	}
	get := func(k string) feel.Value {
		x, ok := v.Get(k)
		if !ok {
			t.Fatalf("no %s", k)
		}
		return x
	}
	if s, ok := get("s").Str(); s != "a" || !ok {
		t.Error("Str")
	}
	if n, ok := get("n").Int(); n != 7 || !ok {
		t.Error("Int")
	}
	if _, ok := get("f").Int(); ok {
		t.Error("Int of a fraction")
	}
	if b, ok := get("b").Bool(); !b || !ok {
		t.Error("Bool")
	}
	if l, ok := get("l").List(); len(l) != 2 || !ok {
		t.Error("List")
	}
	if !get("z").IsNull() || get("z").Kind() != feel.Null {
		t.Error("null")
	}
	if diff := cmp.Diff([]string{"s", "n", "f", "b", "l", "c", "z"}, v.Keys()); diff != "" {
		t.Error(diff)
	}
	changed := v.With("s", feel.StringValue("b"))
	if s, _ := get("s").Str(); s != "a" {
		t.Error("With changed the original")
	}
	if s, _ := changed.Get("s"); s.String() != `"b"` {
		t.Errorf("With: %s", s)
	}
	d, _, err := compile(t, `duration("P1DT2H")`).Eval(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := d.Duration(); !ok || got.String() != "PT26H" {
		t.Errorf("Duration: %s", got)
	}
	var b feel.Builder
	for i := range 20 {
		b.Put(fmt.Sprint("k", i), feel.IntValue(int64(i)))
	}
	b.Put("k3", feel.NullValue())
	if x, _ := b.Value().Get("k19"); x.String() != "19" || len(b.Value().Keys()) != 20 {
		t.Error("Builder")
	}
}

func TestKind_names(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		`null`: "NULL", `true`: "BOOLEAN", `1`: "NUMBER", `"a"`: "STRING", `[]`: "ARRAY", `{}`: "OBJECT", `@"2026-01-01"`: "DATE", `now()`: "DATE_TIME", `@"PT1S"`: "DURATION", `@"P1M"`: "PERIOD",
	} {
		v, _, err := compile(t, src).Eval(nil)
		if err != nil || v.Kind().String() != want {
			t.Errorf("%s: %s, %v, want %s", src, v.Kind(), err, want)
		}
	}
}

func TestExpr_concurrent(t *testing.T) {
	t.Parallel()
	e := compile(t, `sum(for i in 1..50 return i * x)`)
	s := scope(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				v, _, err := e.Eval(s)
				if err != nil || v.String() != "8925" {
					t.Errorf("got %s, %v", v, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`1 + 2 * 3`, `if a then b else c`, `for x in 1..3, y in [1] return x + y`, `some x in xs satisfies x > 1`, `{a: 1, "b": a}.b[1]`, `x in (1, < 5, [1..9])`, `@"2026-01-01T00:00:00@Europe/Berlin" + @"P1M"`,
		`function(a) a + 1`, `date and time(date(2026,1,1), time("10:00:00"))`, `not(x) and null or "a" < "b"`, "`a b`.c", `[1..5[`, `]1..5[`, `-2 ** 3`, `x instance of list<number>`, `replace("a", "(", "$1")`, `"\uD83D\uDE00"`, `2 ** 9999`,
		`sort(xs, function(a, b) a < b)`, `decimal(1/3, 40)`, `duration("P99999999Y") * 99999999999`, `substring("äöü", -2)`, `x in (x in (x in (1)))`, `string(1e6000) + string(1e-6000)`, `partition([1,2], 1e9)`, `cycle(3, @"PT1S")`, `/* */ 1 // x`,
	} {
		f.Add(s)
	}
	s := feel.Scopes{feel.Variables{"x": feel.IntValue(7), "a": feel.BoolValue(true), "xs": feel.ListValue(feel.IntValue(3), feel.StringValue("s"), feel.NullValue())}}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := feel.Compile(src)
		if err != nil {
			if syntax, ok := errors.AsType[*feel.SyntaxError](err); !ok || syntax.Line < 1 || syntax.Column < 1 || syntax.Offset < 0 || syntax.Offset > len(src) {
				t.Errorf("%q: %#v", src, err)
			}
			return
		}
		v, _, err := e.EvalWith(s, feel.Options{MaxSteps: 20_000, Now: now})
		if err != nil {
			return
		}
		_, _ = e.Computes(), e.Variables()
		back, err := feel.FromJSON(v.JSON())
		if err != nil {
			t.Errorf("%q: JSON %s cannot be read: %v", src, v.JSON(), err)
			return
		}
		if string(back.JSON()) != string(v.JSON()) {
			t.Errorf("%q: JSON %s reads back as %s", src, v.JSON(), back.JSON())
		}
	})
}

func BenchmarkEval(b *testing.B) {
	e := compile(b, `amountPaid >= order.total and status = "captured"`)
	v, err := feel.FromJSON([]byte(`{"amountPaid": 120, "order": {"total": 100}, "status": "captured"}`))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if r, _, err := e.Eval(v); err != nil || r.String() != "true" {
			b.Fatal(r, err)
		}
	}
}
