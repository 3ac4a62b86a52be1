// Package isotime reads the ISO 8601 durations, cycles and date-times that BPMN
// timers and FEEL expressions are written in, and the cron text that Camunda
// accepts for a cycle.
package isotime

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is an ISO 8601 duration such as P1Y2M3DT4H. Calendar parts are kept
// apart from the exact part, because a month has no fixed length. Parts may be
// negative.
type Duration struct {
	Months int64         // years count as 12 months
	Days   int64         // weeks count as 7 days
	Time   time.Duration // hours, minutes, seconds
}

// ParseDuration reads P[nY][nM][nW][nD][T[nH][nM][n[.n]S]] with an optional
// leading sign, and signs on single parts as Java writes them.
func ParseDuration(s string) (Duration, error) {
	bad := func(why string) (Duration, error) {
		return Duration{}, fmt.Errorf("duration %q: %s: expected ISO 8601 such as PT10S, P1DT2H or P1Y6M", cut(s), why)
	}
	rest := s
	sign := int64(1)
	switch {
	case strings.HasPrefix(rest, "-"):
		sign, rest = -1, rest[1:]
	case strings.HasPrefix(rest, "+"):
		rest = rest[1:]
	}
	rest, ok := strings.CutPrefix(rest, "P")
	if !ok {
		return bad("does not start with P")
	}
	var d Duration
	const dateUnits, timeUnits = "YMWD", "HMS"
	units, parts, inTime := dateUnits, 0, false
	for rest != "" {
		if rest[0] == 'T' && !inTime {
			inTime, units, rest = true, timeUnits, rest[1:]
			if rest == "" {
				return bad("nothing follows T")
			}
			continue
		}
		i := 0
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '.' || i == 0 && (rest[i] == '-' || rest[i] == '+')) {
			i++
		}
		if i == 0 || i == len(rest) {
			return bad("a number with its unit is missing")
		}
		number, unit := rest[:i], rest[i]
		at := strings.IndexByte(units, unit)
		if at < 0 {
			return bad(fmt.Sprintf("unit %q is unknown or out of order", string(rune(unit))))
		}
		units, rest, parts = units[at+1:], rest[i+1:], parts+1
		if inTime && unit == 'S' {
			ns, err := seconds(number)
			if err != nil {
				return bad(err.Error())
			}
			if d.Time, ok = addDuration(d.Time, time.Duration(sign)*ns); !ok {
				return bad("is too long")
			}
			continue
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > math.MaxInt32 || n < -math.MaxInt32 {
			return bad(fmt.Sprintf("%q is not a whole number in range", number))
		}
		n *= sign
		switch {
		case !inTime && unit == 'Y':
			d.Months += 12 * n
		case !inTime && unit == 'M':
			d.Months += n
		case !inTime && unit == 'W':
			d.Days += 7 * n
		case !inTime:
			d.Days += n
		default:
			size := time.Hour
			if unit == 'M' {
				size = time.Minute
			}
			if n > int64(math.MaxInt64/size) || n < -int64(math.MaxInt64/size) {
				return bad("is too long")
			}
			if d.Time, ok = addDuration(d.Time, time.Duration(n)*size); !ok {
				return bad("is too long")
			}
		}
	}
	if parts == 0 {
		return bad("has no parts")
	}
	return d, nil
}

func cut(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

func addDuration(a, b time.Duration) (time.Duration, bool) {
	sum := a + b
	return sum, (b >= 0) == (sum >= a)
}

// seconds reads [-]n[.n] with up to nine digits after the point.
func seconds(s string) (time.Duration, error) {
	whole, frac, point := strings.Cut(s, ".")
	negative := strings.HasPrefix(whole, "-")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || n > math.MaxInt64/int64(time.Second)-1 || n < -(math.MaxInt64/int64(time.Second)-1) {
		return 0, fmt.Errorf("%q is not a number of seconds in range", s)
	}
	d := time.Duration(n) * time.Second
	if !point {
		return d, nil
	}
	if frac == "" || len(frac) > 9 {
		return 0, fmt.Errorf("%q needs one to nine digits after the point", s)
	}
	f, err := strconv.ParseUint(frac+strings.Repeat("0", 9-len(frac)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number of seconds", s)
	}
	if negative {
		return d - time.Duration(f), nil
	}
	return d + time.Duration(f), nil
}

// IsZero says whether d is no time at all.
func (d Duration) IsZero() bool { return d == Duration{} }

// Calendar says whether d has parts without a fixed length (years and months).
func (d Duration) Calendar() bool { return d.Months != 0 }

// AddTo returns t plus d. Months and days move the calendar of t's zone; a day
// that the target month lacks becomes its last day, as in Java.
func (d Duration) AddTo(t time.Time) time.Time {
	return AddMonths(t, d.Months).AddDate(0, 0, int(d.Days)).Add(d.Time)
}

// AddMonths moves t by whole months; a day that the target month lacks becomes
// its last day.
func AddMonths(t time.Time, months int64) time.Time {
	if months == 0 {
		return t
	}
	y, m, day := t.Date()
	total := int64(y)*12 + int64(m-1) + months
	year, month := total/12, total%12
	if month < 0 {
		year, month = year-1, month+12
	}
	if last := DaysIn(int(year), time.Month(month+1)); day > last {
		day = last
	}
	h, mi, s := t.Clock()
	return time.Date(int(year), time.Month(month+1), day, h, mi, s, t.Nanosecond(), t.Location())
}

// DaysIn returns how many days a month has.
func DaysIn(year int, m time.Month) int {
	return time.Date(year, m+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// String renders d in ISO 8601; no time at all is PT0S.
func (d Duration) String() string {
	if d.IsZero() {
		return "PT0S"
	}
	var b strings.Builder
	if d.Months <= 0 && d.Days <= 0 && d.Time <= 0 {
		b.WriteByte('-')
		d = Duration{Months: -d.Months, Days: -d.Days, Time: -d.Time}
	}
	b.WriteByte('P')
	part := func(n int64, unit byte) {
		if n != 0 {
			b.WriteString(strconv.FormatInt(n, 10))
			b.WriteByte(unit)
		}
	}
	part(d.Months/12, 'Y')
	part(d.Months%12, 'M')
	part(d.Days, 'D')
	if d.Time != 0 {
		b.WriteByte('T')
		part(int64(d.Time/time.Hour), 'H')
		part(int64(d.Time%time.Hour/time.Minute), 'M')
		if s := d.Time % time.Minute; s != 0 {
			if s < 0 {
				b.WriteByte('-')
				s = -s
			}
			b.WriteString(strconv.FormatInt(int64(s/time.Second), 10))
			if f := s % time.Second; f != 0 {
				b.WriteByte('.')
				b.WriteString(strings.TrimRight(fmt.Sprintf("%09d", int64(f)), "0"))
			}
			b.WriteByte('S')
		}
	}
	return b.String()
}
