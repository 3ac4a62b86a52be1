package isotime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cron is a cron text of six fields: second, minute, hour, day of month, month,
// day of week. Fields know *, ?, lists, ranges, steps and English names; a
// weekday counts from 0 or 7 = Sunday. Day of month L is the last day. Unlike
// Unix cron, both day fields must match. It has no state and is safe for
// concurrent use.
type Cron struct {
	text                     string
	second, minute, hour     uint64
	dayOfMonth, month, wkday uint64
	lastDay                  bool
}

var cronMacros = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *",
	"@weekly": "0 0 0 * * 0", "@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

const (
	monthNames = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"
	dayNames   = "SUNMONTUEWEDTHUFRISAT"
)

// ParseCron reads a cron text.
func ParseCron(s string) (*Cron, error) {
	c := &Cron{text: s}
	fields := strings.Fields(s)
	if macro, ok := cronMacros[s]; ok {
		fields = strings.Fields(macro)
	}
	if len(fields) != 6 {
		return nil, fmt.Errorf("cron %q has %d fields: expected second minute hour day month weekday", cut(s), len(fields))
	}
	for _, f := range []struct {
		name     string
		into     *uint64
		min, max int
		names    string
	}{
		{"second", &c.second, 0, 59, ""}, {"minute", &c.minute, 0, 59, ""}, {"hour", &c.hour, 0, 23, ""},
		{"day of month", &c.dayOfMonth, 1, 31, ""}, {"month", &c.month, 1, 12, monthNames}, {"day of week", &c.wkday, 0, 7, dayNames},
	} {
		text := fields[0]
		fields = fields[1:]
		if f.name == "day of month" && text == "L" {
			c.lastDay = true
			continue
		}
		set, err := cronField(text, f.min, f.max, f.names)
		if err != nil {
			return nil, fmt.Errorf("cron %q: %s: %w", cut(s), f.name, err)
		}
		*f.into = set
	}
	if c.wkday&(1<<7) != 0 {
		c.wkday |= 1
	}
	return c, nil
}

func cronField(text string, low, high int, names string) (uint64, error) {
	var set uint64
	for item := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(item, "/")
		from, to := low, high
		switch {
		case span == "*" || span == "?":
		default:
			a, b, isRange := strings.Cut(span, "-")
			var err error
			if from, err = cronValue(a, low, high, names); err != nil {
				return 0, err
			}
			switch {
			case isRange:
				if to, err = cronValue(b, low, high, names); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
		}
		if from > to {
			return 0, fmt.Errorf("range %q runs backwards", cut(span))
		}
		step := 1
		if stepped {
			n, err := strconv.Atoi(stepText)
			if err != nil || n < 1 || n > high {
				return 0, fmt.Errorf("step %q: expected 1 to %d", cut(stepText), high)
			}
			step = n
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

func cronValue(s string, low, high int, names string) (int, error) {
	if len(s) == 3 && names != "" {
		if i := strings.Index(names, strings.ToUpper(s)); i >= 0 && i%3 == 0 {
			return i/3 + low, nil
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%q: expected %d to %d", cut(s), low, high)
	}
	return n, nil
}

// Next returns the first matching time after t, in t's zone, zero when none
// comes within eight years (30 February).
func (c *Cron) Next(t time.Time) time.Time {
	t = t.Truncate(time.Second).Add(time.Second)
	limit := t.AddDate(8, 1, 0)
	for t.Before(limit) {
		y, m, d := t.Date()
		switch {
		case c.month&(1<<m) == 0:
			t = time.Date(y, m+1, 1, 0, 0, 0, 0, t.Location())
		case !c.matchesDay(y, m, d, t.Weekday()):
			t = time.Date(y, m, d+1, 0, 0, 0, 0, t.Location())
		case c.hour&(1<<t.Hour()) == 0:
			t = t.Truncate(time.Second).Add(time.Hour - time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second)
		case c.minute&(1<<t.Minute()) == 0:
			t = t.Add(time.Minute - time.Duration(t.Second())*time.Second)
		case c.second&(1<<t.Second()) == 0:
			t = t.Add(time.Second)
		default:
			return t
		}
	}
	return time.Time{}
}

func (c *Cron) matchesDay(y int, m time.Month, d int, w time.Weekday) bool {
	if c.lastDay {
		if d != DaysIn(y, m) {
			return false
		}
	} else if c.dayOfMonth&(1<<d) == 0 {
		return false
	}
	return c.wkday&(1<<w) != 0
}
