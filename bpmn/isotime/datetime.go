package isotime

import (
	"fmt"
	"strings"
	"time"
)

// ParseDateTime reads an ISO 8601 date-time with an offset or a zone, as BPMN
// timer dates are written: 2026-11-30T10:00:00Z, 2026-11-30T10:00+01:00,
// 2026-11-30T10:00:00+01:00[Europe/Berlin].
func ParseDateTime(s string) (time.Time, error) {
	t, zoned, err := ParseLocalOrZoned(s)
	if err == nil && !zoned {
		err = fmt.Errorf("date-time %q has no offset: expected for example 2026-11-30T10:00:00Z", cut(s))
	}
	if err != nil {
		return time.Time{}, err
	}
	return t, nil
}

// ParseLocalOrZoned reads a date-time and says whether it names an offset or a
// zone. Without one the result is in UTC and stands for local time.
// A zone may also follow an @, as FEEL writes it: 2026-11-30T10:00:00@Europe/Berlin.
func ParseLocalOrZoned(s string) (t time.Time, zoned bool, err error) {
	bad := func(why string) (time.Time, bool, error) {
		return time.Time{}, false, fmt.Errorf("date-time %q: %s: expected for example 2026-11-30T10:00:00Z", cut(s), why)
	}
	date, clock, ok := strings.Cut(s, "T")
	if !ok {
		return bad("has no T")
	}
	day, err := ParseDate(date)
	if err != nil {
		return bad("date part is wrong")
	}
	nanos, loc, err := ParseTime(clock)
	if err != nil {
		return bad("time part is wrong")
	}
	y, m, d := day.Date()
	in := loc
	if in == nil {
		in = time.UTC
	}
	return time.Date(y, m, d, int(nanos/time.Hour), int(nanos%time.Hour/time.Minute), int(nanos%time.Minute/time.Second), int(nanos%time.Second), in), loc != nil, nil
}

// ParseDate reads YYYY-MM-DD into midnight UTC.
func ParseDate(s string) (time.Time, error) {
	t, err := time.Parse("2006-01-02", s)
	if err != nil {
		return time.Time{}, fmt.Errorf("date %q: expected an existing day such as 2026-11-30", cut(s))
	}
	return t, nil
}

// ParseTime reads HH:MM[:SS[.n]] with an optional offset, [zone] or @zone. The
// location is nil when there is none.
func ParseTime(s string) (sinceMidnight time.Duration, loc *time.Location, err error) {
	bad := func() (time.Duration, *time.Location, error) {
		return 0, nil, fmt.Errorf("time %q: expected for example 10:00:00, 10:00:00Z or 10:00:00@Europe/Berlin", cut(s))
	}
	text := s
	zone := ""
	if i := strings.IndexAny(text, "@["); i >= 0 {
		zone = text[i+1:]
		if text[i] == '[' {
			var closed bool
			if zone, closed = strings.CutSuffix(zone, "]"); !closed {
				return bad()
			}
		}
		if zone == "" || zone == "Local" {
			return bad()
		}
		if loc, err = time.LoadLocation(zone); err != nil {
			return 0, nil, fmt.Errorf("time zone %q is unknown", cut(zone))
		}
		text = text[:i]
	}
	if i := strings.IndexAny(text, "Z+-"); i >= 0 {
		fixed, ok := offset(text[i:])
		if !ok {
			return bad()
		}
		if loc == nil {
			loc = fixed
		}
		text = text[:i]
	}
	layout := "15:04:05"
	if len(text) == 5 {
		layout = "15:04"
	}
	if len(text) < 5 || len(text) == 9 || len(text) > 18 {
		return bad()
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		return bad()
	}
	midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	return t.Sub(midnight), loc, nil
}

func offset(s string) (*time.Location, bool) {
	if s == "Z" {
		return time.UTC, true
	}
	layout := ""
	switch len(s) {
	case len("+01:00"):
		layout = "-07:00"
	case len("+0100"):
		layout = "-0700"
	case len("+01"):
		layout = "-07"
	case len("+01:00:00"):
		layout = "-07:00:00"
	default:
		return nil, false
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return nil, false
	}
	_, sec := t.Zone()
	if sec > 18*3600 || sec < -18*3600 {
		return nil, false
	}
	if sec == 0 {
		return time.UTC, true
	}
	return time.FixedZone("", sec), true
}
