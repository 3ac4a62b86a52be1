package worker

import (
	"slices"
	"time"
)

// Health is what a worker tells of itself; every field is a count or a state of this moment.
type Health struct {
	Active   int // jobs received and not done
	Stalled  int // jobs that have held a slot for longer than Config.StallAfter
	Types    []TypeHealth
	Unserved []Unserved // where Config.Waiting, or Elements, can tell
}

// TypeHealth is one job type.
type TypeHealth struct {
	Type        string
	Stream      string    // StreamUp, StreamDown, ...
	StreamSince time.Time // in this state
	StreamOpens int64
	StreamError string // the last one; it stays when the stream is up again
	Streamed    int64  // jobs received by stream
	Polled      int64  // jobs received by poll
	HandedBack  int64  // untouched jobs that were given back with their retries unchanged: drain, breaker, more pushed than got through
	Slowed      bool   // its jobs fail in masses: only probes run
	SlowedSince time.Time
	HandlerP95  time.Duration // of the last 64 runs of a transactional handler; 0 = not known yet
	Grouped     int64         // jobs that ended in a transaction shared with others (path rule 26)
	Splits      int64         // shared transactions that were rolled back
	TimesSlowed int64

	ExpectedPerSecond float64       // declared with [Expect] (spec W10); 0 = not declared
	ExpectedCost      time.Duration // of one job
	JobsPerSecond     float64       // jobs that ended, in the last minute
	JobCost           time.Duration // time of a handler's slot that one of them took
}

// StreamsDown lists the job types whose stream should be open and is not. Their jobs come by poll meanwhile.
func (h Health) StreamsDown() []string {
	var down []string
	for _, t := range h.Types {
		if t.Stream == StreamDown {
			down = append(down, t.Type)
		}
	}
	return down
}

// Health tells how the worker does. It never blocks on anything but short locks.
func (w *Worker) Health() Health {
	h := Health{Active: w.Active(), Stalled: len(w.stalled())}
	w.watch.mu.Lock()
	h.Unserved = slices.Clone(w.watch.unserved)
	w.watch.mu.Unlock()
	for _, in := range w.intakes {
		in.mu.Lock()
		t := TypeHealth{Type: in.jobType, Stream: in.stream, StreamSince: in.since, StreamOpens: in.opens, StreamError: in.err, Streamed: in.streamed, Polled: in.polled, HandedBack: in.back}
		in.mu.Unlock()
		t.Slowed, t.SlowedSince, t.TimesSlowed = w.breaker(in.jobType).state()
		t.ExpectedPerSecond, t.ExpectedCost = w.rt.mux.Expected(in.jobType)
		t.JobsPerSecond, t.JobCost = w.rates.of(in.jobType, time.Now())
		if p := w.rt.paces[in.jobType]; p != nil {
			p.mu.Lock()
			t.HandlerP95, t.Grouped, t.Splits = p.p95, p.grouped, p.splits
			p.mu.Unlock()
		}
		h.Types = append(h.Types, t)
	}
	return h
}
