package feel

import (
	"strings"
	"time"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

func dateValue(t time.Time) Value { return Value{kind: Date, v: date{t}} }

// parseTemporal reads what may stand in @"...".
func parseTemporal(s string) (Value, bool) {
	switch {
	case strings.HasPrefix(s, "P") || strings.HasPrefix(s, "-P"):
		return parseDuration(s)
	case strings.Contains(s, "T"):
		return parseDateTime(s)
	case len(s) > 2 && s[2] == ':':
		return parseTime(s)
	}
	return parseDate(s)
}

func parseDate(s string) (Value, bool) {
	t, err := isotime.ParseDate(s)
	return dateValue(t), err == nil
}

func parseTime(s string) (Value, bool) {
	nanos, loc, err := isotime.ParseTime(strings.TrimPrefix(s, "T"))
	return Value{kind: Time, v: clockTime{nanos, loc}}, err == nil
}

func parseDateTime(s string) (Value, bool) {
	t, zoned, err := isotime.ParseLocalOrZoned(s)
	return Value{kind: DateTime, v: dateTime{t, !zoned}}, err == nil
}

// parseDuration reads days and less, or years and months, not both.
func parseDuration(s string) (Value, bool) {
	d, err := isotime.ParseDuration(s)
	if err != nil {
		return Value{}, false
	}
	switch {
	case strings.ContainsAny(s, "YM") && !strings.Contains(s, "T"):
		return Value{kind: Period, v: months(d.Months)}, d.Days == 0
	case d.Months != 0 || d.Days > 100_000 || d.Days < -100_000:
		return Value{}, false
	}
	days := time.Duration(d.Days) * 24 * time.Hour
	sum := days + d.Time
	return DurationValue(sum), (d.Time >= 0) == (sum >= days)
}

// utc is the time of day in UTC. A zone with daylight saving counts with
// its offset of 1 January 1970, since a time has no date.
func (c clockTime) utc() time.Duration {
	if c.loc == nil {
		return c.nanos
	}
	_, sec := time.Date(1970, 1, 1, 0, 0, 0, 0, c.loc).Zone()
	return c.nanos - time.Duration(sec)*time.Second
}

func temporalProperty(v Value, key string) (Value, bool) {
	switch x := v.v.(type) {
	case date:
		return dateProperty(x.t, key)
	case dateTime:
		if p, ok := dateProperty(x.t, key); ok {
			return p, true
		}
		loc := x.t.Location()
		if x.local {
			loc = nil
		}
		return clockProperty(x.t, loc, key)
	case clockTime:
		loc := x.loc
		if loc == nil {
			loc = time.UTC
		}
		return clockProperty(time.Date(1970, 1, 1, 0, 0, 0, 0, loc).Add(x.nanos), x.loc, key)
	case time.Duration:
		switch key {
		case "days":
			return IntValue(int64(x / (24 * time.Hour))), true
		case "hours":
			return IntValue(int64(x % (24 * time.Hour) / time.Hour)), true
		case "minutes":
			return IntValue(int64(x % time.Hour / time.Minute)), true
		case "seconds":
			return IntValue(int64(x % time.Minute / time.Second)), true
		}
	case months:
		switch key {
		case "years":
			return IntValue(int64(x) / 12), true
		case "months":
			return IntValue(int64(x) % 12), true
		}
	case *rangeValue:
		switch key {
		case "start":
			return x.from, true
		case "end":
			return x.to, true
		case "start included":
			return BoolValue(x.fromClosed), true
		case "end included":
			return BoolValue(x.toClosed), true
		}
	}
	return Value{}, false
}

func dateProperty(t time.Time, key string) (Value, bool) {
	switch key {
	case "year":
		return IntValue(int64(t.Year())), true
	case "month":
		return IntValue(int64(t.Month())), true
	case "day":
		return IntValue(int64(t.Day())), true
	case "weekday": // 1 = Monday
		return IntValue(int64((t.Weekday()+6)%7) + 1), true
	}
	return Value{}, false
}

func clockProperty(t time.Time, loc *time.Location, key string) (Value, bool) {
	switch key {
	case "hour":
		return IntValue(int64(t.Hour())), true
	case "minute":
		return IntValue(int64(t.Minute())), true
	case "second":
		return IntValue(int64(t.Second())), true
	case "time offset":
		if loc == nil {
			return Value{}, true
		}
		_, sec := t.Zone()
		return DurationValue(time.Duration(sec) * time.Second), true
	case "timezone":
		if name := zoneName(loc); name != "" {
			return StringValue(name), true
		}
		return Value{}, true
	}
	return Value{}, false
}

// zoneName is the IANA name, empty for no zone and for a bare offset.
func zoneName(loc *time.Location) string {
	if loc == nil || loc == time.UTC {
		return ""
	}
	if name := loc.String(); strings.Contains(name, "/") {
		return name
	}
	return ""
}
