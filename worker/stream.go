package worker

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/vitrip/journeyman/zeebe"
)

// streamer is a gateway that has job streams; [zeebe.Conn] is one.
type streamer interface {
	StreamJobs(ctx context.Context, req zeebe.ActivateRequest) (*zeebe.JobStream, error)
}

// The states of a type's job stream.
const (
	StreamOff         = "off"         // by choice, or too few places in MaxJobsActive for a stream beside the poll
	StreamUnsupported = "unsupported" // the gateway answered UNIMPLEMENTED: polling alone
	StreamDown        = "down"        // not open; it is tried again, and polls go on
	StreamUp          = "up"
	StreamPaused      = "paused" // closed while the type's jobs fail in masses
	StreamFull        = "full"   // closed because more was pushed than this worker gets through; polls go on, and it opens again when they find nothing
)

// intake is how jobs of one type come in.
type intake struct {
	jobType string
	nudge   chan struct{} // poll now: the stream's state changed, or a place came free after it had been full
	empty   chan struct{} // a poll found nothing
	shut    chan struct{} // closed when nothing comes in any more: the worker stops
	live    chan struct{} // closed when the stream that was opened last has ended; nil = none was

	mu       sync.Mutex
	stream   string
	since    time.Time
	opens    int64
	err      string
	streamed int64
	polled   int64
	back     int64 // handed back untouched
}

func newIntake(jobType string) *intake {
	return &intake{jobType: jobType, nudge: make(chan struct{}, 1), empty: make(chan struct{}, 1), shut: make(chan struct{}), stream: StreamOff, since: time.Now()}
}

func (in *intake) set(state string, err error) {
	in.mu.Lock()
	if in.stream != state {
		in.stream, in.since = state, time.Now()
	}
	if state == StreamUp {
		in.opens++
	}
	if err != nil {
		in.err = err.Error()
	}
	in.mu.Unlock()
	in.poke()
}

// begin says that the type is to be streamed.
func (in *intake) begin() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stream, in.since = StreamDown, time.Now()
}

func (in *intake) poke() { poke(in.nudge) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (in *intake) is(state string) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stream == state
}

func (in *intake) count(to *int64, n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	*to += int64(n)
}

// streams says whether jobs of a type are streamed beside being polled.
func (w *Worker) streams(jobType string) bool {
	types := w.rt.mux.Types()
	switch {
	case w.cfg.PollOnly, w.rt.mux.pollOnly(jobType):
		return false
	case w.cfg.MaxJobsActive < 2*len(types):
		// A stream that waits for a job holds a place; the polls need one too.
		w.cfg.Log.Info().Str("job_type", jobType).Int("max_jobs_active", w.cfg.MaxJobsActive).Int("types", len(types)).
			Msg("polling alone: a stream beside the poll needs max jobs active of at least twice the number of job types")
		return false
	}
	_, ok := w.conn.(streamer)
	return ok
}

// stream keeps a job stream open until ctx ends. Every way out of a stream, whatever the error and wherever it came from, leads
// to the next try with back-off, or to the end of ctx; only a gateway without streams ends it for good (path rule 27).
func (w *Worker) stream(ctx, hard context.Context, in *intake, jobs *sync.WaitGroup) {
	for failures := 0; ctx.Err() == nil; {
		if err := w.breaker(in.jobType).closed(ctx, func() { in.set(StreamPaused, nil) }); err != nil {
			return
		}
		got, err := w.streamOnce(ctx, hard, in, jobs)
		switch {
		case ctx.Err() != nil:
			return
		case zeebe.Code(err) == zeebe.Unimplemented:
			in.set(StreamUnsupported, err)
			w.cfg.Log.Info().Str("job_type", in.jobType).Msg("the gateway has no job streams: polling alone")
			return
		case errors.Is(err, errPaused):
			in.set(StreamPaused, nil)
			continue
		case errors.Is(err, errFull):
			failures = 0
			in.set(StreamFull, nil)
			w.cfg.Log.Warn().Str("job_type", in.jobType).Dur("behind", w.cfg.JobTimeout/3).Msg("more jobs are pushed than this worker gets through: polling alone until it has caught up")
			if in.caughtUp(ctx) != nil {
				return
			}
			continue
		}
		in.set(StreamDown, err)
		if got > 0 {
			failures = 0
		}
		failures++
		wait := w.cfg.PollBackoff.Wait(failures)
		w.cfg.Log.Warn().Err(err).Str("job_type", in.jobType).Dur("wait", wait).Int("failures", failures).Msg("job stream ended, will open again")
		if pause(ctx, wait) != nil {
			return
		}
	}
}

var (
	errPaused = errors.New("paused: jobs of the type fail in masses")
	errFull   = errors.New("full: pushed jobs wait too long")
)

// opened notes that a stream is open until over is called.
func (in *intake) opened() (over func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	c := make(chan struct{})
	in.live = c
	return func() { close(c) }
}

// ended waits until no stream is open, and when the worker stops until nothing comes in any more: what is handed back before would
// come again.
func (in *intake) ended(ctx context.Context, stopping bool) {
	in.mu.Lock()
	c := in.live
	in.mu.Unlock()
	if stopping {
		c = in.shut
	}
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// caughtUp waits until a poll finds nothing.
func (in *intake) caughtUp(ctx context.Context) error {
	select {
	case <-in.empty: // of before
	default:
	}
	select {
	case <-in.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// streamOnce opens one stream and takes what it gives. While no place of MaxJobsActive is free it does not receive: the gateway
// sees a client that is not ready, and what was pushed before waits in the transport, at most [zeebe.StreamWindow] there and
// the gateway's own buffers. When ctx ends, the type's jobs fail in masses or pushed jobs wait too long, all that was pushed is
// read first, then the stream is cancelled, then what was read is handed back: cancelling first would leave what the gateway
// has buffered to the job time-out, and handing back first would have it pushed again.
func (w *Worker) streamOnce(ctx, hard context.Context, in *intake, jobs *sync.WaitGroup) (got int, err error) {
	sctx, cancel := context.WithCancel(hard)
	defer cancel()
	take, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	unhook := w.breaker(in.jobType).onOpen(func() { stop(errPaused) })
	defer unhook()
	s, err := w.conn.(streamer).StreamJobs(sctx, zeebe.ActivateRequest{ //nolint:forcetypeassert // asked in streams
		Type: in.jobType, Worker: w.cfg.Name, Timeout: w.cfg.JobTimeout, Variables: w.fetch(in.jobType), Tenants: w.cfg.Tenants,
	})
	if err != nil {
		return 0, err
	}
	in.set(StreamUp, nil)
	over := in.opened()
	// While the attempts of one batch are opened the next one gathers; places of MaxJobsActive bound it.
	came := make(chan pushed, streamBatch)
	end := make(chan error, 1)
	go func() {
		defer close(came)
		end <- w.receive(take, stop, s, in, came)
	}()
	for more := true; more; {
		var p pushed
		select {
		case p, more = <-came:
		case <-take.Done():
			more = false
		}
		if !more {
			break
		}
		batch, since := []zeebe.Job{p.Job}, p.at
		for more && len(batch) < streamBatch {
			select {
			case p, ok := <-came:
				if more = ok; ok {
					batch = append(batch, p.Job)
				}
				continue
			default:
			}
			break
		}
		got += len(batch)
		in.count(&in.streamed, len(batch))
		w.accept(ctx, hard, in, batch, since, false, jobs)
	}
	left := runDry(came, cancel, min(runMost, w.cfg.DrainTimeout/4))
	if take.Err() != nil {
		ectx, cancel := context.WithTimeout(hard, runMost)
		if err := s.Ended(ectx); err != nil {
			w.cfg.Log.Debug().Err(err).Str("job_type", in.jobType).Msg("cannot tell whether the gateway has seen the stream's end")
		}
		cancel()
	}
	over()
	got += len(left)
	in.count(&in.streamed, len(left))
	back := w.giveBack(hard, in, left, reasonOf(take), jobs)
	err = <-end
	switch cause := context.Cause(take); {
	case errors.Is(cause, errPaused), errors.Is(cause, errFull):
		<-back
		return got, cause
	case errors.Is(err, io.EOF):
		return got, errors.Join(errors.New("the gateway ended the stream"), err)
	}
	return got, err
}
