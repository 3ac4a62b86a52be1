package core

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/bpmn"
)

// timerSpec is a timer definition; exactly one expression is set.
type timerSpec struct{ date, duration, cycle *expr }

// firing is an evaluated timer: when it is due and how it goes on.
type firing struct {
	due     time.Time
	repeats int // firings left including the one at due; -1 without end
	every   interval
	cron    *cron
}

// next moves f to its next firing; false when there is none.
func (f *firing) next() bool {
	switch {
	case f.repeats == 0:
		return false
	case f.cron != nil:
		f.due = f.cron.next(f.due)
		return !f.due.IsZero()
	case f.every.zero():
		return false
	}
	f.due = f.every.after(f.due)
	return true
}

func compileTimer(t *bpmn.Timer) (*timerSpec, error) {
	s := &timerSpec{}
	for _, p := range []struct {
		text string
		to   **expr
		ok   func(string) error
	}{
		{t.Date, &s.date, func(x string) error { _, err := parseDate(x); return err }},
		{t.Duration, &s.duration, func(x string) error { _, err := parseInterval(x); return err }},
		{t.Cycle, &s.cycle, func(x string) error { _, err := parseCycle(x, time.Unix(0, 0)); return err }},
	} {
		if p.text == "" {
			continue
		}
		x, err := compileExpr(p.text)
		if err != nil {
			return nil, err
		}
		if x.static {
			if err := p.ok(strings.TrimSpace(p.text)); err != nil {
				return nil, err
			}
		}
		*p.to = x
	}
	return s, nil
}

// interval is an ISO 8601 duration or period.
type interval struct {
	months, days int
	d            time.Duration
}

func (i interval) zero() bool { return i == interval{} }

func (i interval) after(t time.Time) time.Time {
	return t.AddDate(0, i.months, i.days).Add(i.d)
}

// maxAmount bounds each number of a duration; a million hours are 114 years.
const maxAmount = 1_000_000

// forward reports whether every step of i goes on in time, by a millisecond at least.
func (i interval) forward() bool {
	return i.months >= 0 && i.days >= 0 && i.d >= 0 && (i.months > 0 || i.days > 0 || i.d >= time.Millisecond)
}

var isoDuration = regexp.MustCompile(`^([-+]?)P(?:([-+]?\d+)Y)?(?:([-+]?\d+)M)?(?:([-+]?\d+)W)?(?:([-+]?\d+)D)?(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+(?:\.\d{1,9})?)S)?)?$`)

// parseInterval reads an ISO 8601 duration such as PT15M or P1DT2H.
func parseInterval(s string) (interval, error) {
	m := isoDuration.FindStringSubmatch(s)
	if m == nil || s == "P" || strings.HasSuffix(s, "T") || strings.HasSuffix(s, "P") {
		return interval{}, fmt.Errorf("invalid duration %q: want ISO 8601, for example PT15M", clip(s, 100))
	}
	var n [8]int // the groups as numbers; absent = 0
	for i := 2; i < len(n); i++ {
		if m[i] == "" {
			continue
		}
		v, err := strconv.Atoi(m[i])
		if err != nil || v > maxAmount || v < -maxAmount {
			return interval{}, fmt.Errorf("invalid duration %q: %s is out of range", clip(s, 100), clip(m[i], 30))
		}
		n[i] = v
	}
	iv := interval{months: 12*n[2] + n[3], days: 7*n[4] + n[5]}
	iv.d = time.Duration(n[6])*time.Hour + time.Duration(n[7])*time.Minute
	if m[8] != "" {
		sec, err := time.ParseDuration(m[8] + "s")
		if err != nil || sec.Abs() > maxAmount*time.Hour {
			return interval{}, fmt.Errorf("invalid duration %q: the seconds are out of range", clip(s, 100))
		}
		iv.d += sec
	}
	if m[1] == "-" {
		iv.months, iv.days, iv.d = -iv.months, -iv.days, -iv.d
	}
	return iv, nil
}

// parseDate reads an ISO 8601 zoned date-time.
func parseDate(s string) (time.Time, error) {
	zoned := s
	var loc *time.Location
	if i := strings.IndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
		l, err := time.LoadLocation(s[i+1 : len(s)-1])
		if err != nil {
			return time.Time{}, fmt.Errorf("invalid date-time %q: %w", s, err)
		}
		zoned, loc = s[:i], l
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, zoned); err == nil {
			return t.UTC(), nil
		}
	}
	if loc != nil {
		if t, err := time.ParseInLocation("2006-01-02T15:04:05", zoned, loc); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("invalid date-time %q: want ISO 8601 with zone, for example 2026-01-31T09:00:00Z", clip(s, 100))
}

// parseCycle reads R[n]/[start/]duration, or else a cron expression. A start
// in the past fires at once, then each interval after that.
func parseCycle(s string, now time.Time) (firing, error) {
	parts := strings.Split(s, "/")
	if !strings.HasPrefix(s, "R") {
		c, err := parseCron(s)
		if err != nil {
			return firing{}, fmt.Errorf("timer cycle: neither R[n]/[start/]duration nor a %w", err)
		}
		return firing{due: c.next(now), repeats: -1, cron: c}, nil
	}
	if len(parts) < 2 {
		return firing{}, fmt.Errorf("timer cycle %q: want R[n]/[start/]duration", clip(s, 100))
	}
	f := firing{repeats: -1}
	if r := parts[0][1:]; r != "" {
		n, err := strconv.Atoi(r)
		if err != nil {
			return firing{}, fmt.Errorf("timer cycle %q: repetitions %q is not a number", s, r)
		}
		if n >= 0 {
			f.repeats = n
		}
	}
	iv, err := parseInterval(parts[len(parts)-1])
	if err != nil {
		return firing{}, fmt.Errorf("timer cycle %q: %w", s, err)
	}
	if !iv.forward() {
		return firing{}, fmt.Errorf("timer cycle %q: the interval must be at least a millisecond", clip(s, 100))
	}
	f.every = iv
	switch len(parts) {
	case 2:
		f.due = iv.after(now)
	case 3:
		start, err := parseDate(parts[1])
		if err != nil {
			return firing{}, fmt.Errorf("timer cycle %q: %w", s, err)
		}
		if start.Before(now) {
			start = now
		}
		f.due = start
	default:
		return firing{}, fmt.Errorf("timer cycle %q: want R[n]/[start/]duration", s)
	}
	return f, nil
}

// evaluate computes when the timer fires, in the scope of el (nil: a process start).
func (c *Core) evaluateTimer(t *timerSpec, el *Element) (firing, error) {
	switch {
	case t.duration != nil:
		s, err := c.evalTimerText(t.duration, el, "DURATION")
		if err != nil {
			return firing{}, err
		}
		iv, err := parseInterval(s)
		if err != nil {
			return firing{}, err
		}
		return firing{due: iv.after(c.now), repeats: 1}, nil
	case t.date != nil:
		s, err := c.evalTimerText(t.date, el, "DATE_TIME")
		if err != nil {
			return firing{}, err
		}
		due, err := parseDate(s)
		if err != nil {
			return firing{}, err
		}
		return firing{due: due, repeats: 1}, nil
	case t.cycle != nil:
		s, err := c.evalTimerText(t.cycle, el, "CYCLE")
		if err != nil {
			return firing{}, err
		}
		return parseCycle(s, c.now)
	}
	return firing{}, errors.New("timer without date, duration or cycle")
}
