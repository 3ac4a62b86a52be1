package feel_test

import (
	"slices"
	"testing"

	"github.com/vitrip/journeyman/bpmn/feel"
)

func TestBuiltins(t *testing.T) {
	t.Parallel()
	for _, group := range []struct {
		name  string
		cases [][2]string
	}{
		{"logic", [][2]string{
			{`is defined(x)`, `true`}, {`is defined(missing)`, `false`}, {`is defined(order.total)`, `true`}, {`is defined(order.nope)`, `false`}, {`get or else(missing, 5)`, `5`},
			{`get or else(x, 5)`, `7`}, {`not("a")`, `null`}, {`assert(x, x > 5)`, `7`},
		}},
		{"Zeebe", [][2]string{
			{`cycle(@"PT1H")`, `"R/PT1H"`}, {`cycle(3, duration("PT10S"))`, `"R3/PT10S"`}, {`cycle(null, @"P1M")`, `"R/P1M"`}, {`cycle(-1, @"PT1S")`, `null`}, {`cycle(1, "x")`, `null`},
		}},
		{"context", [][2]string{
			{`get value({a: 1}, "a")`, `1`}, {`get value({a: {b: 2}}, ["a", "b"])`, `2`}, {`get value({a: 1}, "b")`, `null`}, {`get entries({a: 1})`, `[{"key":"a","value":1}]`},
			{`context put({a: 1}, "b", 2)`, `{"a":1,"b":2}`}, {`context put({a: {}}, ["a", "b"], 2)`, `{"a":{"b":2}}`}, {`context put({a: 1}, "a", 2)`, `{"a":2}`},
			{`context merge([{a: 1}, {b: 2, a: 3}])`, `{"a":3,"b":2}`}, {`context merge({a: 1}, {b: 2})`, `{"a":1,"b":2}`}, {`context([{key: "a", value: 1}])`, `{"a":1}`},
			{`context put(context: {a: 1}, key: "b", value: null)`, `{"a":1,"b":null}`},
		}},
		{"conversion", [][2]string{
			{`string(1.10)`, `"1.10"`}, {`string(true)`, `"true"`}, {`string(null)`, `null`}, {`string("a")`, `"a"`}, {`string([1, "a"])`, `"[1, \"a\"]"`}, {`string({a: 1})`, `"{a:1}"`},
			{`string(@"P1D")`, `"P1D"`}, {`number("12.5")`, `12.5`}, {`number("x")`, `null`}, {`number("1,234.5", ",")`, `1234.5`}, {`number("1.234,5", ".", ",")`, `1234.5`},
			{`number(from: "7")`, `7`}, {`date("2026-02-30")`, `null`}, {`date(2026, 2, 28)`, `"2026-02-28"`}, {`date(2026, 2, 29)`, `null`}, {`date(date and time("2026-01-02T03:04:05Z"))`, `"2026-01-02"`},
			{`time("10:11:12")`, `"10:11:12"`}, {`time(10, 11, 12)`, `"10:11:12"`}, {`time(10, 11, 12, duration("PT1H"))`, `"10:11:12+01:00"`}, {`time(25, 0, 0)`, `null`},
			{`date and time("2026-01-02T03:04:05")`, `"2026-01-02T03:04:05"`}, {`date and time(date("2026-01-02"), time("03:04:05Z"))`, `"2026-01-02T03:04:05Z"`},
			{`date and time(date and time("2026-07-01T00:00:00Z"), "Europe/Berlin")`, `"2026-07-01T02:00:00@Europe/Berlin"`}, {`duration("P1DT2H")`, `"P1DT2H"`}, {`duration("P1M")`, `"P1M"`},
			{`duration("P1M1D")`, `null`}, {`years and months duration(date("2025-01-15"), date("2026-11-14"))`, `"P1Y9M"`}, {`years and months duration(date("2026-11-14"), date("2025-01-15"))`, `"-P1Y9M"`},
		}},
		{"list", [][2]string{
			{`list contains(list, 2)`, `true`}, {`list contains([null], null)`, `true`}, {`count(list)`, `4`}, {`count([])`, `0`}, {`count(missing)`, `null`}, {`min(list)`, `1`}, {`max(3, 9, 2)`, `9`}, {`min([])`, `null`},
			{`max("a", "b")`, `"b"`}, {`min(1, "a")`, `null`}, {`sum(list)`, `10`}, {`sum(0.1, 0.2)`, `0.3`}, {`sum([])`, `null`}, {`product(list)`, `24`}, {`mean(1, 2)`, `1.5`}, {`median(8, 2, 5, 3, 4)`, `4`},
			{`median([6, 1, 2, 3])`, `2.5`}, {`stddev(2, 4, 7, 5)`, `2.081665999466132735282297706979931`}, {`mode(6, 3, 9, 6, 6)`, `[6]`}, {`mode([6, 1, 9, 6, 1])`, `[1,6]`}, {`all([true, null])`, `null`},
			{`all([true, false, null])`, `false`}, {`any([false, true])`, `true`}, {`all([])`, `true`}, {`any([])`, `false`}, {`all(true, true)`, `true`}, {`sublist(list, 2)`, `[2,3,4]`}, {`sublist(list, 2, 2)`, `[2,3]`},
			{`sublist(list, -2)`, `[3,4]`}, {`sublist(list, 9)`, `null`}, {`append([1], 2, 3)`, `[1,2,3]`}, {`concatenate([1], [2], [])`, `[1,2]`}, {`insert before([1, 3], 2, 2)`, `[1,2,3]`}, {`remove([1, 2, 3], 2)`, `[1,3]`},
			{`reverse(list)`, `[4,3,2,1]`}, {`index of([1, 2, 1], 1)`, `[1,3]`}, {`union([1, 2], [2, 3])`, `[1,2,3]`}, {`distinct values([1, 2, 1, null, null])`, `[1,2,null]`}, {`duplicate values([1, 2, 1, 1])`, `[1]`},
			{`flatten([[1, [2]], 3])`, `[1,2,3]`}, {`sort(list, function(a, b) a > b)`, `[4,3,2,1]`}, {`string join(["a", null, "b"])`, `"ab"`}, {`string join(["a", "b"], ", ")`, `"a, b"`}, {`string join(["a"], ",", "[", "]")`, `"[a]"`},
			{`string join([1])`, `null`}, {`partition([1, 2, 3], 2)`, `[[1,2],[3]]`}, {`is empty([])`, `true`}, {`count(list: [1])`, `1`}, {`sum([@"PT1H", @"PT30M"])`, `"PT1H30M"`},
		}},
		{"number", [][2]string{
			{`decimal(1 / 3, 2)`, `0.33`}, {`decimal(2.5, 0)`, `2`}, {`decimal(1250, -2)`, `1200`}, {`floor(1.5)`, `1`}, {`floor(-1.5)`, `-2`}, {`floor(-1.56, 1)`, `-1.6`}, {`ceiling(1.5)`, `2`}, {`ceiling(-1.56, 1)`, `-1.5`},
			{`round up(5.5, 0)`, `6`}, {`round up(-5.5, 0)`, `-6`}, {`round down(5.5, 0)`, `5`}, {`round half up(5.5, 0)`, `6`}, {`round half up(-5.5, 0)`, `-6`}, {`round half down(5.5, 0)`, `5`}, {`round half up(1.128, 2)`, `1.13`},
			{`abs(-10)`, `10`}, {`abs(@"-PT5H")`, `"PT5H"`}, {`abs(n: -1)`, `1`}, {`modulo(12, 5)`, `2`}, {`modulo(-12, 5)`, `3`}, {`modulo(12, -5)`, `-3`}, {`modulo(1, 0)`, `null`}, {`sqrt(16)`, `4`}, {`sqrt(-1)`, `null`},
			{`log(1)`, `0`}, {`exp(0)`, `1`}, {`odd(5)`, `true`}, {`odd(-5)`, `true`}, {`even(2)`, `true`}, {`even(1.5)`, `false`}, {`random number() < 1`, `true`}, {`decimal(1, 99999)`, `null`}, {`exp(99999)`, `null`},
		}},
		{"string", [][2]string{
			{`substring("foobar", 3)`, `"obar"`}, {`substring("foobar", 3, 3)`, `"oba"`}, {`substring("foobar", -2, 1)`, `"a"`}, {`substring(string: "foobar", start position: 3, length: 2)`, `"ob"`}, {`substring("foobar", 0)`, `""`}, {`substring("foobar", 0, 3)`, `""`}, {`substring("foobar", 1.5)`, `null`}, {`substring("a", 5)`, `""`},
			{`string length("foo")`, `3`}, {`string length("😀")`, `1`}, {`upper case("aBc")`, `"ABC"`}, {`lower case("aBc")`, `"abc"`}, {`substring before("foobar", "bar")`, `"foo"`}, {`substring before("foobar", "x")`, `""`},
			{`substring after("foobar", "ob")`, `"ar"`}, {`substring after("foobar", "")`, `"foobar"`}, {`contains("foobar", "of")`, `false`}, {`starts with("foobar", "fo")`, `true`}, {`ends with("foobar", "r")`, `true`}, {`matches("foobar", "^fo*bar")`, `true`},
			{`matches("FOO", "foo", "i")`, `true`}, {`matches("a", "(")`, `null`}, {`replace("abcd", "(ab)|(a)", "[1=$1][2=$2]")`, `"[1=ab][2=]cd"`}, {`replace("0123456789", "(\d{3})(\d{3})(\d{4})", "($1) $2-$3")`, `"(012) 345-6789"`},
			{`split("John Doe", "\s")`, `["John","Doe"]`}, {`split("a;b;;c", ";")`, `["a","b","","c"]`}, {`extract("references are 1234, 1256", "12[0-9]*")`, `["1234","1256"]`}, {`string length(uuid())`, `36`}, {`trim(" a ")`, `"a"`}, {`is blank(" ")`, `true`},
			{`to base64("FEEL")`, `"RkVFTA=="`}, {`upper case(null)`, `null`}, {`contains(1, "a")`, `null`},
		}},
		{"temporal", [][2]string{
			{`now()`, `"2026-11-30T10:20:30Z"`}, {`today()`, `"2026-11-30"`}, {`day of week(today())`, `"Monday"`}, {`day of year(date("2026-02-01"))`, `32`}, {`week of year(date("2026-01-01"))`, `1`}, {`month of year(today())`, `"November"`},
			{`last day of month(date("2024-02-03"))`, `"2024-02-29"`}, {`@"2026-01-31" + @"P1M"`, `"2026-02-28"`}, {`@"2026-01-01" + @"P1DT12H"`, `"2026-01-02"`}, {`@"2026-01-03" - @"2026-01-01"`, `"P2D"`}, {`@"2026-01-01T00:00:00Z" + @"PT90M"`, `"2026-01-01T01:30:00Z"`},
			{`@"2026-01-01T01:00:00+01:00" = @"2026-01-01T00:00:00Z"`, `true`}, {`@"2026-01-01T00:00:00Z" < @"2026-01-01T00:00:01Z"`, `true`}, {`@"2026-01-01T00:00:00" = @"2026-01-01T00:00:00Z"`, `null`}, {`@"10:00:00" + @"PT15H"`, `"01:00:00"`},
			{`@"10:00:00Z" < @"10:30:00+01:00"`, `false`}, {`@"PT1H" + @"PT30M"`, `"PT1H30M"`}, {`@"PT1H" * 1.5`, `"PT1H30M"`}, {`2 * @"P1M"`, `"P2M"`}, {`@"PT1H" / 2`, `"PT30M"`}, {`@"PT1H" / @"PT30M"`, `2`}, {`@"P1Y" / @"P1M"`, `12`}, {`-@"PT1H"`, `"-PT1H"`},
			{`@"PT1H" / 0`, `null`}, {`@"P1D" < @"PT25H"`, `true`}, {`@"P1D" < @"P1M"`, `null`}, {`@"2026-11-30".year`, `2026`}, {`@"2026-11-30".weekday`, `1`}, {`@"2026-11-30T10:20:30+02:00".time offset`, `"PT2H"`},
			{`@"2026-11-30T10:20:30@Europe/Berlin".timezone`, `"Europe/Berlin"`}, {`@"2026-11-30T10:20:30Z".minute`, `20`}, {`@"P1DT2H3M4S".hours`, `2`}, {`@"P1DT2H3M4S".days`, `1`}, {`@"P2Y3M".months`, `3`}, {`@"10:20:30".second`, `30`},
			{`now() + @"PT15M" > now()`, `true`}, {`@"2026-01-01" + 1`, `null`}, {`@"9999-12-31" + @"P1D"`, `null`}, {`@"2026-01-15" in [@"2026-01-01"..@"2026-01-31"]`, `true`}, {`(now() - @"2026-11-30T10:00:00Z").minutes`, `20`},
		}},
		{"range", [][2]string{
			{`before(1, 10)`, `true`}, {`before([1..5], [5..9])`, `false`}, {`before([1..5), [5..9])`, `true`}, {`after([5..9], 4)`, `true`}, {`meets([1..5], [5..9])`, `true`}, {`met by([5..9], [1..5])`, `true`}, {`overlaps([1..5], [3..8])`, `true`},
			{`overlaps([1..5], [6..8])`, `false`}, {`overlaps before([1..5], [3..8])`, `true`}, {`overlaps after([3..8], [1..5])`, `true`}, {`finishes(5, [1..5])`, `true`}, {`finished by([1..5], [3..5])`, `true`}, {`includes([1..5], 3)`, `true`}, {`includes([1..5), 5)`, `false`},
			{`during([2..3], [1..5])`, `true`}, {`starts(1, [1..5])`, `true`}, {`started by([1..5], [1..3])`, `true`}, {`coincides([1..5], [1..5])`, `true`}, {`coincides([1..5], [1..5))`, `false`}, {`before(null, 1)`, `null`},
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

// The functions that Camunda documents for feel-scala 1.17 are all there.
func TestFunctions(t *testing.T) {
	t.Parallel()
	have := feel.Functions()
	for _, name := range []string{
		"not", "is defined", "get or else", "assert", "get value", "get entries", "context put", "context merge", "string", "number", "context", "date", "time", "date and time", "duration",
		"years and months duration", "list contains", "count", "min", "max", "sum", "product", "mean", "median", "stddev", "mode", "all", "any", "sublist", "append", "concatenate", "insert before",
		"remove", "reverse", "index of", "union", "distinct values", "duplicate values", "flatten", "sort", "string join", "decimal", "floor", "ceiling", "round up", "round down", "round half up",
		"round half down", "abs", "modulo", "sqrt", "log", "exp", "odd", "even", "random number", "substring", "substring before", "substring after", "string length", "upper case", "lower case",
		"contains", "starts with", "ends with", "matches", "replace", "split", "extract", "now", "today", "day of week", "day of year", "week of year", "month of year", "last day of month",
		"before", "after", "meets", "met by", "overlaps", "overlaps before", "overlaps after", "finishes", "finished by", "includes", "during", "starts", "started by", "coincides", "cycle", "uuid",
	} {
		if !slices.Contains(have, name) {
			t.Errorf("no function %q", name)
		}
	}
}
