package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Schedule is how long to wait after the first, second, … attempt that failed. A message whose schedule is used up is dead: it
// is sent len+1 times at most.
type Schedule []time.Duration

// DefaultSchedule goes on for about two days.
func DefaultSchedule() Schedule {
	return Schedule{5 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour}
}

// maxRetryAfter bounds what an endpoint may ask for.
const maxRetryAfter = 24 * time.Hour

func (s Schedule) check() error {
	if len(s) == 0 || len(s) > 50 {
		return fmt.Errorf("webhook: Schedule has %d waits, want 1 to 50", len(s))
	}
	for i, wait := range s {
		if wait <= 0 || wait > 7*24*time.Hour {
			return fmt.Errorf("webhook: Schedule[%d] is %v, want more than 0 and at most 7 days", i, wait)
		}
	}
	return nil
}

// Wait is the wait after so many attempts (from 1), a fifth more or less by spread (0 to 1), so that messages that failed
// together do not come together again. An endpoint that asked for more gets it. ok is false when the schedule is used up.
func (s Schedule) Wait(attempts int, spread float64, retryAfter time.Duration) (wait time.Duration, ok bool) {
	if attempts < 1 || attempts > len(s) {
		return 0, false
	}
	wait = s[attempts-1]
	wait += time.Duration((spread - 0.5) * 0.4 * float64(wait))
	return max(wait, min(retryAfter, maxRetryAfter)), true
}

var errRetryAfter = errors.New("header Retry-After is neither seconds nor a date")

// retryAfter reads the header (RFC 9110, 10.2.3); 0 = it is not there or lies in the past.
func retryAfter(h http.Header, now time.Time) (time.Duration, error) {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if text == "" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, errRetryAfter
	}
	return max(at.Sub(now), 0), nil
}
