package worker

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/vitrip/journeyman/internal/rule"
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
)

// intake is how jobs of one type come in.
type intake struct {
	jobType string
	nudge   chan struct{} // poll now: the stream's state changed, or a place came free after it had been full

	mu       sync.Mutex
	stream   string
	since    time.Time
	opens    int64
	err      string
	streamed int64
	polled   int64
}

func newIntake(jobType string) *intake {
	return &intake{jobType: jobType, nudge: make(chan struct{}, 1), stream: StreamOff, since: time.Now()}
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

func (in *intake) poke() {
	select {
	case in.nudge <- struct{}{}:
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

var errPaused = errors.New("paused: jobs of the type fail in masses")

// streamOnce opens one stream and takes what it gives. While no place of MaxJobsActive is free it does not receive: the gateway
// sees a client that is not ready, and what was pushed before waits in the transport, at most [zeebe.StreamWindow] there and
// the gateway's own buffers. When ctx ends the stream is cancelled and read to its end; all of that is handed back.
func (w *Worker) streamOnce(ctx, hard context.Context, in *intake, jobs *sync.WaitGroup) (got int, err error) {
	sctx, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	unhook := w.breaker(in.jobType).onOpen(func() { cancel(errPaused) })
	defer unhook()
	stop := context.AfterFunc(ctx, func() { cancel(ctx.Err()) })
	defer stop()
	s, err := w.conn.(streamer).StreamJobs(sctx, zeebe.ActivateRequest{ //nolint:forcetypeassert // asked in streams
		Type: in.jobType, Worker: w.cfg.Name, Timeout: w.cfg.JobTimeout, Variables: w.fetch(in.jobType), Tenants: w.cfg.Tenants,
	})
	if err != nil {
		return 0, err
	}
	in.set(StreamUp, nil)
	// While the attempts of one batch are opened the next one gathers; places of MaxJobsActive bound it.
	came := make(chan zeebe.Job, streamBatch)
	end := make(chan error, 1)
	go func() {
		defer close(came)
		for {
			reserved := w.seat(sctx, in)
			j, err := s.Recv()
			if err != nil {
				if reserved {
					w.release(1)
				}
				end <- err
				return
			}
			if !reserved {
				w.active.Add(1) // received after the end began: counted all the same
			}
			came <- j
		}
	}()
	for j := range came {
		batch := []zeebe.Job{j}
		for more := true; more && len(batch) < streamBatch; {
			select {
			case j, ok := <-came:
				if more = ok; ok {
					batch = append(batch, j)
				}
			default:
				more = false
			}
		}
		got += len(batch)
		in.count(&in.streamed, len(batch))
		w.accept(ctx, hard, in.jobType, batch, time.Now(), jobs)
	}
	err = <-end
	switch {
	case errors.Is(context.Cause(sctx), errPaused):
		return got, errPaused
	case errors.Is(err, io.EOF):
		return got, errors.Join(errors.New("the gateway ended the stream"), err)
	}
	return got, err
}

// streamBatch bounds the jobs of a stream whose attempts are opened in one statement.
const streamBatch = 64

// seat takes a place for the next job of a stream, waiting for it; false = the stream is to be read to its end without.
func (w *Worker) seat(sctx context.Context, in *intake) bool {
	if rule.Off(27) {
		return false
	}
	if n := w.tryReserve(1); n == 1 {
		return true
	}
	ok := w.reserve(sctx, 1) == 1
	in.poke() // it was full: the gateway may have passed jobs by
	return ok
}
