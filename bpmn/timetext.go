package bpmn

import (
	"errors"
	"time"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// Duration is an ISO 8601 duration with calendar parts.
type Duration = isotime.Duration

// Cycle is a repeating timer.
type Cycle = isotime.Cycle

// ParseDuration reads an ISO 8601 duration such as PT10S, P1DT2H or P1Y6M.
func ParseDuration(s string) (Duration, error) { return isotime.ParseDuration(s) }

// ParseCycle reads R3/PT10S, R/PT1H, R3/2026-11-30T10:00:00Z/PT1H or a cron text.
func ParseCycle(s string) (Cycle, error) { return isotime.ParseCycle(s) }

// ParseDateTime reads an ISO 8601 date-time with offset or zone.
func ParseDateTime(s string) (time.Time, error) { return isotime.ParseDateTime(s) }

// check validates the static text of a timer; FEEL is checked elsewhere.
func (t *Timer) check() error {
	var errs []error
	static := func(text string) bool { return text != "" && text[0] != '=' }
	if static(t.Date) {
		_, err := ParseDateTime(t.Date)
		errs = append(errs, err)
	}
	if static(t.Duration) {
		_, err := ParseDuration(t.Duration)
		errs = append(errs, err)
	}
	if static(t.Cycle) {
		_, err := ParseCycle(t.Cycle)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
