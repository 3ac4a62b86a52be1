package worker

import "time"

// Health is what a worker tells of itself; every field is a count or a state of this moment.
type Health struct {
	Active int // jobs received and not done
	Types  []TypeHealth
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
	Slowed      bool   // its jobs fail in masses: only probes run
	SlowedSince time.Time
	TimesSlowed int64
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
	h := Health{Active: w.Active()}
	for _, in := range w.intakes {
		in.mu.Lock()
		t := TypeHealth{Type: in.jobType, Stream: in.stream, StreamSince: in.since, StreamOpens: in.opens, StreamError: in.err, Streamed: in.streamed, Polled: in.polled}
		in.mu.Unlock()
		t.Slowed, t.SlowedSince, t.TimesSlowed = w.breaker(in.jobType).state()
		h.Types = append(h.Types, t)
	}
	return h
}
