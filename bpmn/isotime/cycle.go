package isotime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Forever is the number of repetitions of a cycle without an end.
const Forever = -1

// Cycle is a repeating timer: an ISO 8601 repeating interval or a cron text.
type Cycle struct {
	Repetitions int       // how often it fires; Forever = no end
	Start       time.Time // zero = when the timer is created
	Interval    Duration  // zero when Cron is set
	Cron        *Cron     // nil for an interval
}

// ParseCycle reads R3/PT10S, R/PT1H, R3/2026-11-30T10:00:00Z/PT1H or a cron
// text of six fields (second minute hour day month weekday) or a macro such as @daily.
func ParseCycle(s string) (Cycle, error) {
	if !strings.HasPrefix(s, "R") {
		c, err := ParseCron(s)
		if err != nil {
			return Cycle{}, fmt.Errorf("cycle %q is neither a repeating interval such as R3/PT10S nor cron: %w", cut(s), err)
		}
		return Cycle{Repetitions: Forever, Cron: c}, nil
	}
	parts := strings.Split(s[1:], "/")
	if len(parts) < 2 || len(parts) > 3 {
		return Cycle{}, fmt.Errorf("cycle %q has %d parts: expected R[n]/[start/]duration", cut(s), len(parts))
	}
	c := Cycle{Repetitions: Forever}
	if parts[0] != "" && parts[0] != "-1" {
		n, err := strconv.Atoi(parts[0])
		if err != nil || n < 0 {
			return Cycle{}, fmt.Errorf("cycle %q: repetitions %q: expected a whole number, or nothing for no end", cut(s), cut(parts[0]))
		}
		c.Repetitions = n
	}
	if len(parts) == 3 {
		start, err := ParseDateTime(parts[1])
		if err != nil {
			return Cycle{}, fmt.Errorf("cycle %q: %w", cut(s), err)
		}
		c.Start = start
	}
	d, err := ParseDuration(parts[len(parts)-1])
	if err != nil {
		return Cycle{}, fmt.Errorf("cycle %q: %w", cut(s), err)
	}
	c.Interval = d
	return c, nil
}

// Next returns the due time that follows last. The result is zero when a cron
// text names no further time.
func (c Cycle) Next(last time.Time) time.Time {
	if c.Cron != nil {
		return c.Cron.Next(last)
	}
	return c.Interval.AddTo(last)
}

// String renders a cycle of intervals as ISO 8601, or the cron text.
func (c Cycle) String() string {
	if c.Cron != nil {
		return c.Cron.text
	}
	var b strings.Builder
	b.WriteByte('R')
	if c.Repetitions != Forever {
		b.WriteString(strconv.Itoa(c.Repetitions))
	}
	b.WriteByte('/')
	if !c.Start.IsZero() {
		b.WriteString(c.Start.Format(time.RFC3339Nano))
		b.WriteByte('/')
	}
	b.WriteString(c.Interval.String())
	return b.String()
}
