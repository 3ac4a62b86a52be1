package feel

import (
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/apd/v3"
)

var convertTable = []tableRow{
	{"string(from: *)", func(m *machine, a []Value) Value {
		switch a[0].kind {
		case Null:
			return Value{}
		case List, Context, Range:
			text := fullText(m, a[0])
			return StringValue(text)
		}
		return StringValue(a[0].text())
	}},
	{"number(from: s)", func(m *machine, a []Value) Value {
		s, _ := a[0].Str()
		return toNumber(m, s)
	}},
	{"number(from: s, grouping separator: s0)", func(m *machine, a []Value) Value {
		s, _ := a[0].Str()
		group, _ := a[1].Str()
		return toNumber(m, ungroup(s, group))
	}},
	{"number(from: s, grouping separator: s0, decimal separator: s0)", func(m *machine, a []Value) Value {
		s, _ := a[0].Str()
		group, _ := a[1].Str()
		point, _ := a[2].Str()
		s = ungroup(s, group)
		if point != "" && point != "." {
			s = strings.ReplaceAll(s, point, ".")
		}
		return toNumber(m, s)
	}},
	{"date(from: s)", parsed("date", parseDate)},
	{"date(from: d)", func(_ *machine, a []Value) Value { return a[0] }},
	{"date(from: z)", func(_ *machine, a []Value) Value {
		y, mo, d := a[0].v.(dateTime).t.Date()
		return dateValue(time.Date(y, mo, d, 0, 0, 0, 0, time.UTC))
	}},
	{"date(year: n, month: n, day: n)", func(m *machine, a []Value) Value {
		n, ok := ints(a)
		if !ok || n[0] < -9999 || n[0] > 9999 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 {
			return m.fail("date", "the parts are no existing day")
		}
		t := time.Date(int(n[0]), time.Month(n[1]), int(n[2]), 0, 0, 0, 0, time.UTC)
		if t.Day() != int(n[2]) {
			return m.fail("date", "the parts are no existing day")
		}
		return dateValue(t)
	}},
	{"time(from: s)", parsed("time", parseTime)},
	{"time(from: t)", func(_ *machine, a []Value) Value { return a[0] }},
	{"time(from: z)", func(_ *machine, a []Value) Value { return timeOfDay(a[0].v.(dateTime)) }},
	{"time(hour: n, minute: n, second: n, offset?: p0)", func(m *machine, a []Value) Value {
		n, ok := ints(a[:3])
		if !ok || n[0] < 0 || n[0] > 23 || n[1] < 0 || n[1] > 59 || n[2] < 0 || n[2] > 59 {
			return m.fail("time", "the parts are no time of day")
		}
		c := clockTime{nanos: time.Duration(n[0])*time.Hour + time.Duration(n[1])*time.Minute + time.Duration(n[2])*time.Second}
		if len(a) > 3 && a[3].kind == Duration {
			off := a[3].v.(time.Duration)
			if off < -18*time.Hour || off > 18*time.Hour {
				return m.fail("time", fmt.Sprintf("offset '%s' is out of range", a[3]))
			}
			c.loc = time.FixedZone("", int(off/time.Second))
		}
		return Value{kind: Time, v: c}
	}},
	{"date and time(from: s)", parsed("date and time", parseDateTime)},
	{"date and time(from: z)", func(_ *machine, a []Value) Value { return a[0] }},
	{"date and time(date: dz, time: t)", func(_ *machine, a []Value) Value {
		var day time.Time
		switch x := a[0].v.(type) {
		case date:
			day = x.t
		case dateTime:
			day = x.t
		}
		c := a[1].v.(clockTime)
		loc := c.loc
		if loc == nil {
			loc = time.UTC
		}
		y, mo, d := day.Date()
		t := time.Date(y, mo, d, 0, 0, 0, 0, loc)
		h, mi, s := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(c.nanos).Clock()
		t = time.Date(y, mo, d, h, mi, s, int(c.nanos%time.Second), t.Location())
		return Value{kind: DateTime, v: dateTime{t, c.loc == nil}}
	}},
	{"date and time(date: z, timezone: s)", func(m *machine, a []Value) Value {
		x := a[0].v.(dateTime)
		name, _ := a[1].Str()
		loc, err := time.LoadLocation(name)
		if err != nil || name == "Local" || name == "" {
			return m.fail("date and time", fmt.Sprintf("time zone '%s' is unknown", clip(name)))
		}
		if x.local {
			y, mo, d := x.t.Date()
			h, mi, s := x.t.Clock()
			return Value{kind: DateTime, v: dateTime{t: time.Date(y, mo, d, h, mi, s, x.t.Nanosecond(), loc)}}
		}
		return Value{kind: DateTime, v: dateTime{t: x.t.In(loc)}}
	}},
	{"duration(from: s)", parsed("duration", parseDuration)},
	{"duration(from: py)", func(_ *machine, a []Value) Value { return a[0] }},
	{"years and months duration(from: dz, to: dz)", func(_ *machine, a []Value) Value {
		return Value{kind: Period, v: monthsBetween(dayOf(a[0]), dayOf(a[1]))}
	}},
}

// fullText is what string() makes of a list or context.
func fullText(m *machine, v Value) string {
	switch x := v.v.(type) {
	case []Value:
		parts := make([]string, len(x))
		for i, item := range x {
			if !m.spend(1) {
				return ""
			}
			parts[i] = innerText(m, item)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case *contextValue:
		parts := make([]string, len(x.keys))
		for i, k := range x.keys {
			if !m.spend(1) {
				return ""
			}
			parts[i] = k + ":" + innerText(m, x.values[i])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return v.String()
}

func innerText(m *machine, v Value) string {
	if s, ok := v.Str(); ok {
		return `"` + s + `"`
	}
	return fullText(m, v)
}

func ungroup(s, group string) string {
	if group == "" {
		return s
	}
	return strings.ReplaceAll(s, group, "")
}

func toNumber(m *machine, s string) Value {
	d, err := parseNumber(s)
	if err != nil {
		return m.fail("number", fmt.Sprintf("Can't parse '%s' as a number", clip(s)))
	}
	return NumberValue(d)
}

func parsed(name string, parse func(string) (Value, bool)) func(*machine, []Value) Value {
	return func(m *machine, a []Value) Value {
		s, _ := a[0].Str()
		v, ok := parse(s)
		if !ok {
			return m.fail(name, fmt.Sprintf("Failed to parse %s from '%s'", name, clip(s)))
		}
		return v
	}
}

func ints(a []Value) ([]int64, bool) {
	out := make([]int64, len(a))
	for i, v := range a {
		d, ok := v.Number()
		if !ok {
			return nil, false
		}
		n, err := new(apd.Decimal).Set(d).Int64()
		if err != nil {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

func timeOfDay(x dateTime) Value {
	h, mi, s := x.t.Clock()
	c := clockTime{nanos: time.Duration(h)*time.Hour + time.Duration(mi)*time.Minute + time.Duration(s)*time.Second + time.Duration(x.t.Nanosecond())}
	if !x.local {
		c.loc = x.t.Location()
	}
	return Value{kind: Time, v: c}
}

func dayOf(v Value) time.Time {
	switch x := v.v.(type) {
	case date:
		return x.t
	case dateTime:
		return x.t
	}
	return time.Time{}
}

func monthsBetween(from, to time.Time) months {
	n := int64(to.Year()-from.Year())*12 + int64(to.Month()) - int64(from.Month())
	switch {
	case n > 0 && to.Day() < from.Day():
		n--
	case n < 0 && to.Day() > from.Day():
		n++
	}
	return months(n)
}
