package feel

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cockroachdb/apd/v3"
)

func decimal(v Value) *apd.Decimal { return v.v.(*apd.Decimal) }

var numberTable = []tableRow{
	{"decimal(n: n, scale: n)", rounding("decimal", apd.RoundHalfEven)},
	{"floor(n: n)", rounding("floor", apd.RoundFloor)},
	{"floor(n: n, scale: n)", rounding("floor", apd.RoundFloor)},
	{"ceiling(n: n)", rounding("ceiling", apd.RoundCeiling)},
	{"ceiling(n: n, scale: n)", rounding("ceiling", apd.RoundCeiling)},
	{"round up(n: n, scale: n)", rounding("round up", apd.RoundUp)},
	{"round down(n: n, scale: n)", rounding("round down", apd.RoundDown)},
	{"round half up(n: n, scale: n)", rounding("round half up", apd.RoundHalfUp)},
	{"round half down(n: n, scale: n)", rounding("round half down", apd.RoundHalfDown)},
	{"abs(number: n)", func(_ *machine, a []Value) Value { return NumberValue(new(apd.Decimal).Abs(decimal(a[0]))) }},
	{"abs(n: n)", func(_ *machine, a []Value) Value { return NumberValue(new(apd.Decimal).Abs(decimal(a[0]))) }},
	{"abs(n: py)", func(_ *machine, a []Value) Value {
		switch x := a[0].v.(type) {
		case time.Duration:
			return DurationValue(x.Abs())
		case months:
			return Value{kind: Period, v: max(x, -x)}
		}
		return Value{}
	}},
	{"modulo(dividend: n, divisor: n)", modulo},
	{"sqrt(number: n)", func(m *machine, a []Value) Value { return root(m, "sqrt", a[0], (*apd.Context).Sqrt) }},
	{"log(number: n)", func(m *machine, a []Value) Value { return root(m, "log", a[0], (*apd.Context).Ln) }},
	{"exp(number: n)", func(m *machine, a []Value) Value {
		if decimal(a[0]).Cmp(apd.New(14_000, 0)) > 0 {
			return m.fail("exp", "the result is out of range")
		}
		return root(m, "exp", a[0], (*apd.Context).Exp)
	}},
	{"odd(number: n)", func(_ *machine, a []Value) Value { return parity(a[0], true) }},
	{"even(number: n)", func(_ *machine, a []Value) Value { return parity(a[0], false) }},
	{"random number()", func(m *machine, _ []Value) Value {
		var b [8]byte
		if err := m.bytes(b[:]); err != nil {
			return m.fail("random number", err.Error())
		}
		d, err := parseNumber(strconv.FormatFloat(float64(binary.LittleEndian.Uint64(b[:])>>11)/(1<<53), 'f', -1, 64))
		if err != nil {
			return Value{}
		}
		return NumberValue(d)
	}},
}

// rounding rounds to a number of digits behind the point; negative scales round
// before it.
func rounding(name string, how apd.Rounder) func(*machine, []Value) Value {
	return func(m *machine, a []Value) Value {
		scale := int64(0)
		if len(a) > 1 {
			var ok bool
			if scale, ok = a[1].Int(); !ok || scale < -6111 || scale > 6176 {
				return m.fail(name, fmt.Sprintf("scale '%s' is not a whole number from -6111 to 6176", a[1]))
			}
		}
		x := decimal(a[0])
		if int64(x.Exponent) >= -scale { // nothing behind the wanted digit
			return a[0]
		}
		c := decimals()
		c.Rounding = how
		c.Precision = uint32(max(34, x.NumDigits()+2))
		var out apd.Decimal
		if _, err := c.Quantize(&out, x, int32(-scale)); err != nil || out.Form != apd.Finite {
			return m.fail(name, fmt.Sprintf("can't round '%s' to scale %d", a[0], scale))
		}
		if out.Exponent > 0 {
			expand(&out)
		}
		return NumberValue(&out)
	}
}

// expand writes a positive exponent out as zeros.
func expand(d *apd.Decimal) {
	d.Coeff.Mul(&d.Coeff, new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(d.Exponent)), nil))
	d.Exponent = 0
}

func root(m *machine, name string, v Value, fn func(*apd.Context, *apd.Decimal, *apd.Decimal) (apd.Condition, error)) Value {
	var out apd.Decimal
	m.spend(100)
	if _, err := fn(decimals(), &out, decimal(v)); err != nil || out.Form != apd.Finite {
		return m.fail(name, fmt.Sprintf("can't compute %s of '%s'", name, v))
	}
	tidy(&out)
	return NumberValue(&out)
}

// modulo takes the sign of the divisor.
func modulo(m *machine, a []Value) Value {
	x, y := decimal(a[0]), decimal(a[1])
	var rem apd.Decimal
	c := decimals()
	if y.IsZero() {
		return m.fail("modulo", "the divisor is zero")
	}
	if _, err := c.Rem(&rem, x, y); err != nil || rem.Form != apd.Finite {
		return m.fail("modulo", fmt.Sprintf("can't divide '%s' by '%s'", a[0], a[1]))
	}
	if !rem.IsZero() && rem.Negative != y.Negative {
		if _, err := c.Add(&rem, &rem, y); err != nil {
			return m.fail("modulo", fmt.Sprintf("can't divide '%s' by '%s'", a[0], a[1]))
		}
	}
	if rem.IsZero() {
		rem.Negative = false
	}
	return NumberValue(&rem)
}

func parity(v Value, odd bool) Value {
	var rem apd.Decimal
	if _, err := decimals().Rem(&rem, decimal(v), apd.New(2, 0)); err != nil {
		return Value{}
	}
	rem.Abs(&rem)
	if odd {
		return BoolValue(rem.Cmp(apd.New(1, 0)) == 0)
	}
	return BoolValue(rem.IsZero())
}

func mean(m *machine, items []Value) Value {
	sum, ok := total(m, "mean", items, "+").Number()
	if !ok {
		return Value{}
	}
	return m.numbers("/", sum, apd.New(int64(len(items)), 0))
}

func median(m *machine, items []Value) Value {
	all, ok := numbers(items)
	if !ok {
		return m.fail("median", "expected numbers")
	}
	if len(all) == 0 {
		return Value{}
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *apd.Decimal) int { return a.Cmp(b) })
	mid := len(all) / 2
	if len(all)%2 == 1 {
		return NumberValue(all[mid])
	}
	sum, ok := m.numbers("+", all[mid-1], all[mid]).Number()
	if !ok {
		return Value{}
	}
	return m.numbers("/", sum, apd.New(2, 0))
}

// stddev is the deviation of a sample.
func stddev(m *machine, items []Value) Value {
	all, ok := numbers(items)
	if !ok || len(all) < 2 {
		return m.fail("stddev", "expected at least two numbers")
	}
	avg, ok := mean(m, items).Number()
	if !ok {
		return Value{}
	}
	sum := IntValue(0)
	for _, x := range all {
		diff, ok := m.numbers("-", x, avg).Number()
		if !ok {
			return Value{}
		}
		square, ok := m.numbers("*", diff, diff).Number()
		if !ok {
			return Value{}
		}
		if sum = m.numbers("+", decimal(sum), square); sum.IsNull() {
			return Value{}
		}
	}
	v := m.numbers("/", decimal(sum), apd.New(int64(len(all)-1), 0))
	if v.IsNull() {
		return v
	}
	return root(m, "stddev", v, (*apd.Context).Sqrt)
}

func mode(m *machine, items []Value) Value {
	all, ok := numbers(items)
	if !ok {
		return m.fail("mode", "expected numbers")
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *apd.Decimal) int { return a.Cmp(b) })
	best, out := 0, []Value{}
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].Cmp(all[i]) == 0 {
			j++
		}
		if j-i > best {
			best, out = j-i, []Value{}
		}
		if j-i == best {
			out = append(out, NumberValue(all[i]))
		}
		i = j
	}
	return ListValue(out...)
}
