package feel

import (
	"time"

	"github.com/cockroachdb/apd/v3"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// Kind is the type of a value, spelled as Zeebe spells it in messages.
type Kind uint8

// The kinds.
const (
	Null Kind = iota
	Boolean
	Number
	String
	List
	Context
	Date
	Time
	DateTime
	Duration // days, hours, minutes, seconds
	Period   // years and months
	Range
	Function
)

var kindNames = [...]string{"NULL", "BOOLEAN", "NUMBER", "STRING", "ARRAY", "OBJECT", "DATE", "TIME", "DATE_TIME", "DURATION", "PERIOD", "RANGE", "FUNCTION"}

// String returns Zeebe's name of the kind.
func (k Kind) String() string { return kindNames[k] }

// Value is one FEEL value. The zero Value is null. Values are immutable: do not
// change a list, map or decimal that an accessor returns.
type Value struct {
	kind Kind
	v    any // nil, bool, *apd.Decimal, string, []Value, *contextValue, date, clockTime, dateTime, time.Duration, months, *rangeValue, *function
}

type (
	months    int64
	date      struct{ t time.Time } // midnight UTC
	clockTime struct {
		nanos time.Duration  // since midnight
		loc   *time.Location // nil = local time
	}
	dateTime struct {
		t     time.Time
		local bool // no offset and no zone; t is then in UTC
	}
	rangeValue struct {
		from, to             Value // null = unbounded
		fromClosed, toClosed bool
	}
)

// Kind returns what v is.
func (v Value) Kind() Kind { return v.kind }

// IsNull says whether v is null.
func (v Value) IsNull() bool { return v.kind == Null }

// NullValue is null; it equals the zero Value.
func NullValue() Value { return Value{} }

// BoolValue wraps a boolean.
func BoolValue(b bool) Value { return Value{kind: Boolean, v: b} }

// StringValue wraps a string.
func StringValue(s string) Value { return Value{kind: String, v: s} }

// IntValue wraps a whole number.
func IntValue(n int64) Value { return Value{kind: Number, v: apd.New(n, 0)} }

// NumberValue wraps a decimal, which must not change afterwards. Infinity and
// NaN become null: FEEL has neither.
func NumberValue(d *apd.Decimal) Value {
	if d == nil || d.Form != apd.Finite {
		return Value{}
	}
	return Value{kind: Number, v: d}
}

// ListValue wraps items, which must not change afterwards.
func ListValue(items ...Value) Value {
	if items == nil {
		items = []Value{}
	}
	return Value{kind: List, v: items}
}

// DateTimeValue wraps an instant with its zone.
func DateTimeValue(t time.Time) Value { return Value{kind: DateTime, v: dateTime{t: t}} }

// DurationValue wraps a duration of days and less.
func DurationValue(d time.Duration) Value { return Value{kind: Duration, v: d} }

// Bool returns the boolean of v; ok is false for another kind.
func (v Value) Bool() (b, ok bool) {
	b, ok = v.v.(bool)
	return b, ok
}

// Str returns the text of a string; ok is false for another kind.
func (v Value) Str() (s string, ok bool) {
	s, ok = v.v.(string)
	return s, ok
}

// Number returns the decimal of v; ok is false for another kind.
func (v Value) Number() (d *apd.Decimal, ok bool) {
	d, ok = v.v.(*apd.Decimal)
	return d, ok
}

// Int returns v as a whole number of 64 bits; ok is false for another kind, for
// a fraction and for a number out of range.
func (v Value) Int() (n int64, ok bool) {
	d, ok := v.Number()
	if !ok {
		return 0, false
	}
	n, err := d.Int64()
	return n, err == nil
}

// List returns the items of a list; ok is false for another kind.
func (v Value) List() (items []Value, ok bool) {
	items, ok = v.v.([]Value)
	return items, ok
}

// Get returns one entry of a context; ok is false when v is no context or has
// no such entry.
func (v Value) Get(key string) (Value, bool) {
	if c, ok := v.v.(*contextValue); ok {
		return c.get(key)
	}
	return Value{}, false
}

// Keys returns the keys of a context in order; nil for another kind.
func (v Value) Keys() []string {
	if c, ok := v.v.(*contextValue); ok {
		return append([]string(nil), c.keys...)
	}
	return nil
}

// Entries calls yield for each entry of a context in order.
func (v Value) Entries(yield func(string, Value) bool) {
	c, ok := v.v.(*contextValue)
	if !ok {
		return
	}
	for i, k := range c.keys {
		if !yield(k, c.values[i]) {
			return
		}
	}
}

// Duration returns a duration of either kind; ok is false for another kind.
// Strings are not read: see isotime.ParseDuration.
func (v Value) Duration() (d isotime.Duration, ok bool) {
	switch x := v.v.(type) {
	case time.Duration:
		return isotime.Duration{Time: x}, true
	case months:
		return isotime.Duration{Months: int64(x)}, true
	}
	return isotime.Duration{}, false
}

// Instant returns the moment of a date and time with zone or offset; ok is
// false for another kind and for local date-times.
func (v Value) Instant() (t time.Time, ok bool) {
	x, ok := v.v.(dateTime)
	return x.t, ok && !x.local
}
