package core

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// cron is a Spring cron expression: second minute hour day-of-month month
// day-of-week, or a macro such as @daily. Each field is a set of bits; times are UTC.
// L, W and # are not supported.
type cron struct {
	sec, min, hour, dom, month, dow uint64
	anyDom, anyDow                  bool
}

var cronMacros = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *",
	"@weekly": "0 0 0 * * 0", "@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

var (
	cronMonths = strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")
	cronDays   = strings.Fields("SUN MON TUE WED THU FRI SAT")
)

func parseCron(s string) (*cron, error) {
	if m, ok := cronMacros[strings.ToLower(s)]; ok {
		s = m
	}
	f := strings.Fields(s)
	if len(f) != 6 {
		return nil, fmt.Errorf("cron expression %q: want 6 fields, second minute hour day month weekday, got %d", clip(s, 100), len(f))
	}
	c := &cron{anyDom: f[3] == "*" || f[3] == "?", anyDow: f[5] == "*" || f[5] == "?"}
	for i, p := range []struct {
		to     *uint64
		lo, hi int
		names  []string
	}{{&c.sec, 0, 59, nil}, {&c.min, 0, 59, nil}, {&c.hour, 0, 23, nil}, {&c.dom, 1, 31, nil}, {&c.month, 1, 12, cronMonths}, {&c.dow, 0, 7, cronDays}} {
		set, err := cronField(f[i], p.lo, p.hi, p.names)
		if err != nil {
			return nil, fmt.Errorf("cron expression %q: %w", clip(s, 100), err)
		}
		*p.to = set
	}
	if c.dow&(1<<7) != 0 { // 7 is Sunday too
		c.dow |= 1
	}
	if c.next(time.Unix(0, 0).UTC()).IsZero() {
		return nil, fmt.Errorf("cron expression %q never comes true", clip(s, 100))
	}
	return c, nil
}

func cronField(s string, lo, hi int, names []string) (uint64, error) {
	value := func(t string) (int, error) {
		for i, n := range names {
			if strings.EqualFold(t, n) {
				return lo + i, nil
			}
		}
		v, err := strconv.Atoi(t)
		if err != nil || v < lo || v > hi {
			return 0, fmt.Errorf("%q is not within %d and %d", clip(t, 20), lo, hi)
		}
		return v, nil
	}
	var set uint64
	for part := range strings.SplitSeq(s, ",") {
		span, by, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			n, err := strconv.Atoi(by)
			if err != nil || n < 1 {
				return 0, fmt.Errorf("step %q is not a positive number", clip(by, 20))
			}
			step = n
		}
		from, to := lo, hi
		if span != "*" && span != "?" {
			a, b, ranged := strings.Cut(span, "-")
			var err error
			if from, err = value(a); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = value(b); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if to < from {
				return 0, fmt.Errorf("range %q goes backwards", clip(span, 20))
			}
		}
		for v := from; v <= to; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

// next is the first match after t; zero when there is none within eight years,
// which holds every 29th of February.
func (c *cron) next(t time.Time) time.Time {
	t = t.UTC().Truncate(time.Second).Add(time.Second)
	limit := t.AddDate(8, 0, 1)
	for t.Before(limit) {
		switch {
		case c.month&(1<<t.Month()) == 0:
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		case !c.day(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, time.UTC)
		case c.hour&(1<<t.Hour()) == 0:
			t = t.Truncate(time.Hour).Add(time.Hour)
		case c.min&(1<<t.Minute()) == 0:
			t = t.Truncate(time.Minute).Add(time.Minute)
		case c.sec&(1<<t.Second()) == 0:
			rest := c.sec >> t.Second()
			if rest == 0 {
				t = t.Truncate(time.Minute).Add(time.Minute)
			} else {
				t = t.Add(time.Duration(bits.TrailingZeros64(rest)) * time.Second)
			}
		default:
			return t
		}
	}
	return time.Time{}
}

// day matches both day fields; a field that is * or ? always matches.
func (c *cron) day(t time.Time) bool {
	return (c.anyDom || c.dom&(1<<t.Day()) != 0) && (c.anyDow || c.dow&(1<<t.Weekday()) != 0)
}
