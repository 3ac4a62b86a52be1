package feel

import (
	"errors"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// decimals is IEEE 754 decimal128: 34 digits, half to even.
func decimals() *apd.Context {
	return &apd.Context{Precision: 34, MaxExponent: 6144, MinExponent: -6143, Rounding: apd.RoundHalfEven}
}

var errNumber = errors.New("not a number in range")

func parseNumber(s string) (*apd.Decimal, error) {
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && !strings.ContainsRune("+-.eE", rune(c)) {
			return nil, errNumber
		}
	}
	d, _, err := apd.NewFromString(s)
	if err != nil || d.Form != apd.Finite {
		return nil, errNumber
	}
	if e := int64(d.Exponent) + d.NumDigits(); e > 6145 || e < -6143 || int64(d.Exponent) < -2*6143 {
		return nil, errNumber
	}
	return d, nil
}

type arithNode struct {
	op          string
	left, right node
}

func (n *arithNode) eval(m *machine) Value {
	a, b := m.eval(n.left), m.eval(n.right)
	if m.err != nil {
		return Value{}
	}
	if x, ok := a.Number(); ok {
		if y, ok := b.Number(); ok {
			return m.numbers(n.op, x, y)
		}
	}
	if v, ok := m.otherArith(n.op, a, b); ok {
		return v
	}
	switch n.op {
	case "+":
		return m.warn(InvalidType, "Can't add '%s' to '%s'", b, a)
	case "-":
		return m.warn(InvalidType, "Can't subtract '%s' from '%s'", b, a)
	case "*":
		return m.warn(InvalidType, "Can't multiply '%s' by '%s'", a, b)
	case "/":
		return m.warn(InvalidType, "Can't divide '%s' by '%s'", a, b)
	}
	return m.warn(InvalidType, "Can't raise '%s' to the power of '%s'", a, b)
}

func (m *machine) numbers(op string, x, y *apd.Decimal) Value {
	var out apd.Decimal
	var err error
	var cond apd.Condition
	c := decimals()
	switch op {
	case "+":
		cond, err = c.Add(&out, x, y)
	case "-":
		cond, err = c.Sub(&out, x, y)
	case "*":
		cond, err = c.Mul(&out, x, y)
	case "/":
		if y.IsZero() {
			return m.warn(InvalidType, "Can't divide '%s' by zero", NumberValue(x))
		}
		if cond, err = c.Quo(&out, x, y); err == nil {
			tidy(&out)
		}
	case "**":
		return m.power(x, y)
	}
	if err != nil || out.Form != apd.Finite {
		return m.warn(InvalidType, "Can't compute '%s %s %s': the result is out of range (%s)", NumberValue(x), op, NumberValue(y), cond)
	}
	return NumberValue(&out)
}

// tidy drops zeros behind the point that a division leaves.
func tidy(d *apd.Decimal) {
	if d.Exponent < 0 {
		d.Reduce(d)
		if d.Exponent > 0 {
			d.Coeff.Mul(&d.Coeff, new(apd.BigInt).Exp(apd.NewBigInt(10), apd.NewBigInt(int64(d.Exponent)), nil))
			d.Exponent = 0
		}
	}
}

// power raises to whole exponents exactly; others go by logarithms. The
// exponent is bounded as in Java's BigDecimal.pow, here by 9999.
func (m *machine) power(x, y *apd.Decimal) Value {
	var out apd.Decimal
	if limit := apd.New(9_999, 0); new(apd.Decimal).Abs(y).Cmp(limit) > 0 {
		return m.warn(InvalidType, "Can't raise '%s' to the power of '%s': the exponent is out of range", NumberValue(x), NumberValue(y))
	}
	m.spend(100)
	_, err := decimals().Pow(&out, x, y)
	if err != nil || out.Form != apd.Finite {
		return m.warn(InvalidType, "Can't raise '%s' to the power of '%s'", NumberValue(x), NumberValue(y))
	}
	tidy(&out)
	return NumberValue(&out)
}

// otherArith is arithmetic on strings, dates, times and durations. ok is false
// for kinds that do not go together.
func (m *machine) otherArith(op string, a, b Value) (Value, bool) {
	switch op {
	case "+":
		if x, ok := a.Str(); ok {
			y, ok := b.Str()
			if !ok || !m.spend((len(x)+len(y))/64) {
				return Value{}, false
			}
			return StringValue(x + y), true
		}
		if v, ok := addTemporal(a, b, 1); ok {
			return v, true
		}
		return addTemporal(b, a, 1)
	case "-":
		if v, ok := addTemporal(a, b, -1); ok {
			return v, true
		}
		return between(a, b)
	case "*":
		if v, ok := scale(a, b, false); ok {
			return v, true
		}
		return scale(b, a, false)
	case "/":
		if v, ok := scale(a, b, true); ok {
			return v, true
		}
		return ratio(a, b)
	}
	return Value{}, false
}

// addTemporal adds sign times a duration to a temporal value or a duration of the same kind.
func addTemporal(a, b Value, sign int64) (Value, bool) {
	switch d := b.v.(type) {
	case time.Duration:
		by := d * time.Duration(sign)
		switch x := a.v.(type) {
		case time.Duration:
			sum := x + by
			if (by >= 0) != (sum >= x) {
				return Value{}, false
			}
			return DurationValue(sum), true
		case date:
			return inYears(dateValue(x.t.Add(by).Truncate(24 * time.Hour)))
		case dateTime:
			return inYears(Value{kind: DateTime, v: dateTime{x.t.Add(by), x.local}})
		case clockTime:
			nanos := (x.nanos + by%(24*time.Hour) + 24*time.Hour) % (24 * time.Hour)
			return Value{kind: Time, v: clockTime{nanos, x.loc}}, true
		}
	case months:
		by := int64(d) * sign
		switch x := a.v.(type) {
		case months:
			return Value{kind: Period, v: x + months(by)}, true
		case date:
			return inYears(dateValue(isotime.AddMonths(x.t, by)))
		case dateTime:
			return inYears(Value{kind: DateTime, v: dateTime{isotime.AddMonths(x.t, by), x.local}})
		}
	}
	return Value{}, false
}

// inYears refuses a date whose year has not one to four digits.
func inYears(v Value) (Value, bool) {
	var t time.Time
	switch x := v.v.(type) {
	case date:
		t = x.t
	case dateTime:
		t = x.t
	}
	return v, t.Year() >= -9999 && t.Year() <= 9999
}

// between is the duration from b to a.
func between(a, b Value) (Value, bool) {
	if a.kind != b.kind {
		return Value{}, false
	}
	switch x := a.v.(type) {
	case date:
		return DurationValue(x.t.Sub(b.v.(date).t)), true
	case dateTime:
		y := b.v.(dateTime)
		return DurationValue(x.t.Sub(y.t)), x.local == y.local
	case clockTime:
		y := b.v.(clockTime)
		return DurationValue(x.utc() - y.utc()), (x.loc == nil) == (y.loc == nil)
	}
	return Value{}, false
}

// scale multiplies or divides a duration by a number.
func scale(a, by Value, divide bool) (Value, bool) {
	factor, ok := by.Number()
	if !ok {
		return Value{}, false
	}
	var x int64
	switch d := a.v.(type) {
	case time.Duration:
		x = int64(d)
	case months:
		x = int64(d)
	default:
		return Value{}, false
	}
	c := decimals()
	c.Rounding = apd.RoundDown
	var out, whole apd.Decimal
	var err error
	if divide {
		if factor.IsZero() {
			return Value{}, false
		}
		_, err = c.Quo(&out, apd.New(x, 0), factor)
	} else {
		_, err = c.Mul(&out, apd.New(x, 0), factor)
	}
	if err != nil || out.Form != apd.Finite || out.NumDigits()+int64(out.Exponent) > 19 {
		return Value{}, false
	}
	if _, err = c.Quantize(&whole, &out, 0); err != nil {
		return Value{}, false
	}
	n, err := whole.Int64()
	if err != nil {
		return Value{}, false
	}
	if a.kind == Period {
		return Value{kind: Period, v: months(n)}, true
	}
	return DurationValue(time.Duration(n)), true
}

// ratio divides two durations of the same kind.
func ratio(a, b Value) (Value, bool) {
	var x, y int64
	switch d := a.v.(type) {
	case time.Duration:
		e, ok := b.v.(time.Duration)
		if !ok {
			return Value{}, false
		}
		x, y = int64(d), int64(e)
	case months:
		e, ok := b.v.(months)
		if !ok {
			return Value{}, false
		}
		x, y = int64(d), int64(e)
	default:
		return Value{}, false
	}
	if y == 0 {
		return Value{}, false
	}
	var out apd.Decimal
	if _, err := decimals().Quo(&out, apd.New(x, 0), apd.New(y, 0)); err != nil {
		return Value{}, false
	}
	tidy(&out)
	return NumberValue(&out), true
}
