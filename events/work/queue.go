package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Task is an item as its handler gets it.
type Task struct {
	Queue, ID, Key string
	Payload        json.RawMessage
	Origin         events.Origin
	Attempt        int       // 1 for the first
	NotBefore      time.Time // when it was due
	Put            time.Time
	Result         any // of the queue's Call, nil without one
}

// Handler does one task inside tx, in which the item is deleted: nil is SUCCESS,
// any other error is what outcome.Classify says, a panic FATAL. Events emitted
// on tx are staged in the same transaction. It must not keep tx.
type Handler func(ctx context.Context, tx *outbox.Tx, t Task) error

// Call reaches another system before the transaction. It may happen more than
// once for a task: give the other system Task.ID as the key of idempotency.
type Call func(ctx context.Context, t Task) (any, error)

// Typed makes a handler from one that takes its payload as T. A payload that
// does not fit T, also by a field that T does not have, is FATAL with the reason "payload".
func Typed[T any](h func(ctx context.Context, tx *outbox.Tx, t Task, payload T) error) Handler {
	return func(ctx context.Context, tx *outbox.Tx, t Task) error {
		var payload T
		dec := json.NewDecoder(bytes.NewReader(t.Payload))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&payload); err != nil {
			return outcome.Fatalf(ReasonPayload, "payload: %w", err)
		}
		return h(ctx, tx, t, payload)
	}
}

// Reasons for which items go to the quarantine, beside those of package outcome.
const (
	ReasonPayload   = "payload"    // does not fit its handler, or cannot be decrypted
	ReasonPoisoned  = "poisoned"   // attempts are used up
	ReasonEmit      = "emit"       // the handler emitted a message that cannot be staged
	ReasonCrashLoop = "crash_loop" // it ended its runner or connection again and again
)

// Queue is what a [Runner] does with the items of one queue.
type Queue struct {
	Name          string
	Handler       Handler
	Call          Call            // before the handler, outside the transaction; may be nil
	Concurrency   int             // at once in this runner, at least 1
	Retry         []time.Duration // after the n-th failed attempt; nil means as the runner's catalog says, without one events.DefaultRetry
	PoisonedAfter int             // attempts, 0 means one more than the delays of Retry
	Timeout       time.Duration   // deadline of Call, and of Handler, 0 means 10 s
	Lease         time.Duration   // how long a claim holds, at least twice what Call and Handler may take; 0 means a minute, or that
}

// Bounds of a schedule (spec R5).
const (
	maxRetries    = 32
	maxRetryDelay = 24 * time.Hour
)

func (q Queue) withDefaults() Queue {
	if q.Retry == nil {
		q.Retry = events.DefaultRetry()
	}
	if q.PoisonedAfter == 0 {
		q.PoisonedAfter = len(q.Retry) + 1
	}
	if q.Timeout == 0 {
		q.Timeout = 10 * time.Second
	}
	if q.Lease == 0 {
		q.Lease = max(time.Minute, q.least())
	}
	return q
}

// byCatalog takes over what the catalog says of the queue, nil for none.
func (q *Queue) byCatalog(c *events.Catalog) error {
	if c == nil {
		return nil
	}
	f, ok := c.Queue(q.Name)
	switch {
	case !ok:
		return fmt.Errorf("queue %q: not in the catalog", q.Name)
	case q.Retry != nil && !slices.Equal(q.Retry, f.Retry), q.PoisonedAfter != 0 && q.PoisonedAfter != f.PoisonedAfter:
		return fmt.Errorf("queue %q: retry %v and poisoned after %d, but the catalog says %v and %d", q.Name, q.Retry, q.PoisonedAfter, f.Retry, f.PoisonedAfter)
	}
	q.Retry, q.PoisonedAfter = f.Retry, f.PoisonedAfter
	return nil
}

// least is the shortest lease that no healthy task outlives.
func (q Queue) least() time.Duration {
	if q.Call != nil {
		return 4 * q.Timeout
	}
	return 2 * q.Timeout
}

func (q Queue) check() error {
	errs := []error{checkQueue(q.Name)}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(q.Handler != nil, "handler: missing")
	check(q.Concurrency >= 1, "concurrency %d, want 1 or more", q.Concurrency)
	check(len(q.Retry) <= maxRetries, "retry: %d delays, want at most %d", len(q.Retry), maxRetries)
	for _, d := range q.Retry {
		check(d > 0 && d <= maxRetryDelay, "retry: %v, want above 0 and up to %v", d, maxRetryDelay)
	}
	check(q.PoisonedAfter >= 1 && q.PoisonedAfter <= len(q.Retry)+1, "poisoned after %d, want 1 to %d, one more than the delays of retry", q.PoisonedAfter, len(q.Retry)+1)
	check(q.Timeout > 0, "timeout %v, want above 0", q.Timeout)
	check(q.Lease >= q.least(), "lease %v, want at least %v, twice what a task may take", q.Lease, q.least())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("queue %q: %w", q.Name, err)
	}
	return nil
}
