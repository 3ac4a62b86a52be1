package worker

import (
	"context"
	"errors"
	"time"

	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/zeebe"
)

// streamBatch bounds the jobs of a stream whose attempts are opened in one statement.
const streamBatch = 64

// pushed is a job of a stream and since when it may have waited in the transport: its time-out runs from there.
type pushed struct {
	zeebe.Job
	at time.Time
}

// How a stream is read to its end: until nothing came for runQuiet, which is longer than a round trip, at most for runMost.
const (
	runQuiet = 150 * time.Millisecond
	runMost  = time.Second
)

// runDry reads what was pushed, then ends the stream, and gives all of it.
func runDry(came <-chan pushed, end func(), most time.Duration) (left []pushed) {
	quiet, last := time.NewTimer(min(runQuiet, most)), time.NewTimer(most)
	defer quiet.Stop()
	defer last.Stop()
	for {
		select {
		case p, ok := <-came:
			if !ok {
				return left
			}
			left = append(left, p)
			quiet.Reset(min(runQuiet, most))
		case <-quiet.C:
			end()
		case <-last.C:
			end()
		}
	}
}

func reasonOf(take context.Context) string {
	switch cause := context.Cause(take); {
	case errors.Is(cause, errPaused):
		return backSlowed
	case errors.Is(cause, errFull):
		return backFull
	}
	return backStopping
}

// behind says since when jobs may wait in the transport of a stream: since reading first paused, until a read had to wait for a
// job, or more was read without a pause than the transport and the gateway hold.
type behind struct {
	since time.Time // zero = every job is fresh
	read  int       // bytes since the last pause
}

// What counts as a pause between reads, and as a read that had to wait.
const (
	pauseAfter = 2 * time.Millisecond
	waitedFor  = 5 * time.Millisecond
)

// paused notes a pause between two reads.
func (b *behind) paused(from, to time.Time) {
	if to.Sub(from) < pauseAfter {
		return
	}
	b.read = 0
	if b.since.IsZero() {
		b.since = from
	}
}

// got notes a read and gives since when its job may have waited.
func (b *behind) got(from, to time.Time, size int) time.Time {
	b.read += size
	if b.since.IsZero() || to.Sub(from) >= waitedFor || b.read > 4*zeebe.StreamWindow {
		b.since, b.read = time.Time{}, 0
		return to
	}
	return b.since
}

// receive reads a stream to its end, taking a place of MaxJobsActive for each job while take lasts. It calls stop when pushed
// jobs have waited for a third of their time-out.
func (w *Worker) receive(take context.Context, stop func(error), s *zeebe.JobStream, in *intake, came chan<- pushed) error {
	var b behind
	last := time.Now()
	for {
		reserved := w.seat(take, stop, in, &b, last)
		from := time.Now()
		b.paused(last, from)
		j, err := s.Recv()
		if last = time.Now(); err != nil {
			if reserved {
				w.release(1)
			}
			return err
		}
		if !reserved {
			w.active.Add(1) // received after the end began: counted all the same
		}
		came <- pushed{j, b.got(from, last, len(j.Variables)+len(j.Headers)+200)}
	}
}

// seat takes a place for the next job of a stream, waiting for it; false = the stream is to be read to its end without.
func (w *Worker) seat(take context.Context, stop func(error), in *intake, b *behind, from time.Time) bool {
	if rule.Off(27) {
		return false
	}
	if !b.since.IsZero() {
		from = b.since
	}
	until := from.Add(w.cfg.JobTimeout / 3)
	if b.since.IsZero() || time.Now().Before(until) {
		if take.Err() == nil && w.tryReserve(1) == 1 {
			return true
		}
		ctx, cancel := context.WithDeadline(take, until)
		ok := w.reserve(ctx, 1) == 1
		cancel()
		if ok || take.Err() != nil {
			in.poke() // it was full: the gateway may have passed jobs by
			return ok
		}
	}
	stop(errFull)
	return false
}
