package feel

import (
	"time"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

var temporalTable = []tableRow{
	{"now()", func(m *machine, _ []Value) Value { return DateTimeValue(m.clock()) }},
	{"today()", func(m *machine, _ []Value) Value {
		y, mo, d := m.clock().Date()
		return dateValue(time.Date(y, mo, d, 0, 0, 0, 0, time.UTC))
	}},
	{"day of week(date: dz)", func(_ *machine, a []Value) Value { return StringValue(dayOf(a[0]).Weekday().String()) }},
	{"day of year(date: dz)", func(_ *machine, a []Value) Value { return IntValue(int64(dayOf(a[0]).YearDay())) }},
	{"week of year(date: dz)", func(_ *machine, a []Value) Value {
		_, week := dayOf(a[0]).ISOWeek()
		return IntValue(int64(week))
	}},
	{"month of year(date: dz)", func(_ *machine, a []Value) Value { return StringValue(dayOf(a[0]).Month().String()) }},
	{"last day of month(date: dz)", func(_ *machine, a []Value) Value {
		t := dayOf(a[0])
		last := isotime.DaysIn(t.Year(), t.Month())
		if x, ok := a[0].v.(dateTime); ok {
			return Value{kind: DateTime, v: dateTime{t.AddDate(0, 0, last-t.Day()), x.local}}
		}
		return dateValue(t.AddDate(0, 0, last-t.Day()))
	}},
}
