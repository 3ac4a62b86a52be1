package outcome

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Backoff is exponential back-off with full jitter: the n-th wait is drawn evenly
// from [0, min(Max, Min·Factor^(n-1))], but never under Floor. The zero value is
// not valid; use [DefaultBackoff] or fill every field and call Check.
type Backoff struct {
	Min    time.Duration // upper bound of the first wait, above 0
	Max    time.Duration // upper bound of every wait, at least Min, at most 24 h
	Factor float64       // growth, 1 to 10
	Floor  time.Duration // lower bound of every wait, 0 to Min
}

// DefaultBackoff is 1 s doubling to 1 min.
func DefaultBackoff() Backoff {
	return Backoff{Min: time.Second, Max: time.Minute, Factor: 2, Floor: 50 * time.Millisecond}
}

// Check refuses bounds that make no sense, all at once, naming field, value and limit.
func (b Backoff) Check() error {
	var errs []error
	if b.Min <= 0 {
		errs = append(errs, fmt.Errorf("backoff min %s: want above 0", b.Min))
	}
	if b.Max < b.Min || b.Max > 24*time.Hour {
		errs = append(errs, fmt.Errorf("backoff max %s: want between min %s and 24h", b.Max, b.Min))
	}
	if !(b.Factor >= 1 && b.Factor <= 10) {
		errs = append(errs, fmt.Errorf("backoff factor %v: want 1 to 10", b.Factor))
	}
	if b.Floor < 0 || b.Floor > b.Min {
		errs = append(errs, fmt.Errorf("backoff floor %s: want between 0 and min %s", b.Floor, b.Min))
	}
	return errors.Join(errs...)
}

// Wait draws the wait before attempt n+1 after n failures; n below 1 counts as 1. Safe for concurrent use.
func (b Backoff) Wait(n int) time.Duration {
	bound := b.Bound(n)
	if bound <= b.Floor {
		return b.Floor
	}
	return b.Floor + rand.N(bound-b.Floor) //nolint:gosec // jitter needs no secrecy
}

// Bound is the upper bound that Wait draws below.
func (b Backoff) Bound(n int) time.Duration {
	d := float64(b.Min)
	for i := 1; i < n && d < float64(b.Max); i++ {
		d *= b.Factor
		if b.Factor == 1 {
			break
		}
	}
	if d >= float64(b.Max) {
		return b.Max
	}
	return time.Duration(d)
}
