package zeebe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/rule"
)

// Gateway is the part of [Conn] that a sender needs.
type Gateway interface {
	Complete(ctx context.Context, jobKey int64, variables string) error
	Fail(ctx context.Context, r FailRequest) error
	Throw(ctx context.Context, jobKey int64, code, message, variables string) error
	PublishMessage(ctx context.Context, m Message) (int64, error)
	CancelInstance(ctx context.Context, processInstanceKey int64) error
	UpdateJobRetries(ctx context.Context, jobKey int64, retries int32) error
	ResolveIncident(ctx context.Context, incidentKey int64) error
	SetVariables(ctx context.Context, elementInstanceKey int64, variables string, local bool) error
}

// SenderConfig is for [NewSender]. Pool, Gateway and Queue are needed; zero fields get the defaults named.
type SenderConfig struct {
	Pool    *pgxpool.Pool
	Gateway Gateway
	Queue   *Queue
	Every   time.Duration // between two sweeps, jittered; 0 = 500 ms
	Batch   int           // rows of one sweep, so Batch/Every bounds the rate; 0 = 100
	Lanes   int           // calls at once in a sweep; 0 = 8
	// Acked adds statements to the transaction that deletes acknowledged rows: worker.Acknowledged keeps with an operation that
	// the engine has its refusal or failure (path rule 5). nil = sweeps leave refusals and failures to senders that have it.
	Acked func(b *pgx.Batch, acked []Queued)
	Log   zerolog.Logger
}

// Sender sends the commands of its queue's cluster: each one right after its commit ([Sender.Send]), and whatever was left
// by [Sender.Run]. Any number of senders may run, in any number of processes. Delivery is at least once.
type Sender struct {
	cfg  SenderConfig
	wake chan struct{}
	note chan struct{} // something waits to be written down

	mu     sync.Mutex
	acked  []Queued
	failed []failure
}

type failure struct {
	q      Queued
	state  State
	reason string
	err    error
}

// NewSender checks cfg and makes a sender.
func NewSender(cfg SenderConfig) (*Sender, error) {
	var errs []error
	if cfg.Pool == nil {
		errs = append(errs, errors.New("sender pool: nil"))
	}
	if cfg.Gateway == nil {
		errs = append(errs, errors.New("sender gateway: nil"))
	}
	if cfg.Queue == nil {
		errs = append(errs, errors.New("sender queue: nil"))
	}
	if cfg.Every == 0 {
		cfg.Every = 500 * time.Millisecond
	}
	if cfg.Batch == 0 {
		cfg.Batch = 100
	}
	if cfg.Lanes == 0 {
		cfg.Lanes = 8
	}
	if cfg.Every < 0 {
		errs = append(errs, fmt.Errorf("sender every %s: want above 0", cfg.Every))
	}
	if cfg.Batch < 1 || cfg.Batch > 10000 {
		errs = append(errs, fmt.Errorf("sender batch %d: want 1 to 10000", cfg.Batch))
	}
	if cfg.Lanes < 1 || cfg.Lanes > 256 {
		errs = append(errs, fmt.Errorf("sender lanes %d: want 1 to 256", cfg.Lanes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Sender{cfg: cfg, wake: make(chan struct{}, 1), note: make(chan struct{}, 1)}, nil
}

// Send tells the engine now. Call it after the commit of the transaction that queued c. An error is only news: the row is
// there and is sent again. It is safe to call while Run is not running, but rows are deleted by Run alone.
func (s *Sender) Send(ctx context.Context, c *Queued) error {
	if c == nil || c.ID == 0 {
		return errors.New("send command: not queued and committed")
	}
	if c.Cluster != s.cfg.Queue.cluster && !rule.Off(9) {
		return fmt.Errorf("send command: belongs to cluster %q, this sender serves %q", c.Cluster, s.cfg.Queue.cluster)
	}
	return s.deliver(ctx, *c, OK, 0)
}

// Tell makes the call of an answer that has no row, and gives its error: what is told must be known from elsewhere, and [Queue.Queue] is
// for when the call fails.
func (s *Sender) Tell(ctx context.Context, c Command) error {
	if c.Cluster != s.cfg.Queue.cluster && !rule.Off(9) {
		return fmt.Errorf("tell the engine: belongs to cluster %q, this sender serves %q", c.Cluster, s.cfg.Queue.cluster)
	}
	if !c.Kind.answer() {
		return fmt.Errorf("tell the engine: %s is no answer to a job, want complete, fail or throw", c.Kind)
	}
	crash.Point("worker.answer.before", c.OperationID)
	err := s.call(ctx, c)
	if err == nil {
		crash.Point("worker.answer.after", c.OperationID)
	}
	return err
}

// Wake makes Run sweep at once.
func (s *Sender) Wake() { poke(s.wake) }

// Run sweeps until ctx is cancelled, then writes down what was acknowledged and returns nil.
func (s *Sender) Run(ctx context.Context) error {
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		s.flushLoop(ctx)
	}()
	defer func() { <-flushed }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-s.wake:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Str("cluster", s.cfg.Queue.cluster).Msg("command sweep failed, will run again")
		}
		timer.Reset(s.cfg.Every/2 + rand.N(s.cfg.Every)) //nolint:gosec // jitter
	}
}

// Sweep claims due rows once, sends them and returns when all have been tried. What was acknowledged is deleted by Run, or by [Sender.Flush].
func (s *Sender) Sweep(ctx context.Context) error {
	rows, err := s.cfg.Pool.Query(ctx, s.cfg.Queue.q.claimDue, s.cfg.Queue.cluster, s.cfg.Batch, rule.Off(9), s.cfg.Acked != nil)
	if err != nil {
		return fmt.Errorf("claim commands: %w", err)
	}
	due, err := pgx.CollectRows(rows, scanRow)
	if err != nil {
		return fmt.Errorf("claim commands: %w", err)
	}
	var g errgroup.Group
	g.SetLimit(s.cfg.Lanes)
	for _, r := range due {
		g.Go(func() error {
			_ = s.deliver(ctx, r.Queued, r.LastCode, r.Attempts) // recorded and logged there
			return nil
		})
	}
	return g.Wait()
}

// deliver makes the call and notes what it came to. last and attempts tell of earlier tries.
func (s *Sender) deliver(ctx context.Context, c Queued, last ErrorCode, attempts int32) error {
	if c.Kind.answer() {
		crash.Point("worker.answer.before", c.OperationID)
	}
	err := s.call(ctx, c.Command)
	if err == nil && c.Kind.answer() {
		crash.Point("worker.answer.after", c.OperationID)
	}
	state, reason := verdict(c.Kind, err)
	if state == StatePending && arrivedBefore(c.Command, err, last, attempts) {
		state = delivered
	}
	switch state { // the log line only where there is something to say
	case delivered:
		s.mu.Lock()
		s.acked = append(s.acked, c)
		s.mu.Unlock()
		poke(s.note)
		return nil
	case StateGone, StateParked:
		about(s.cfg.Log.Warn(), c).Str("state", string(state)).Err(err).Msg("command not accepted")
	default:
		about(s.cfg.Log.Debug(), c).Err(err).Msg("command to be sent again")
	}
	s.mu.Lock()
	s.failed = append(s.failed, failure{c, state, reason, err})
	s.mu.Unlock()
	poke(s.note)
	return err
}

// about says which command a line of the log is about.
func about(line *zerolog.Event, c Queued) *zerolog.Event {
	return line.Str("kind", string(c.Kind)).Int64("job_key", c.JobKey).Int64("process_instance_id", c.ProcessInstanceKey).Str("operation_id", c.OperationID)
}

const delivered State = "delivered"

// verdict says what an answer of the engine means for the row (path rules 6, 14, 15).
func verdict(k Kind, err error) (State, string) {
	switch code := Code(err); {
	case code == OK:
		return delivered, ""
	case code == NotFound && k.answer():
		return StateGone, "the engine knows no such job"
	case code == NotFound && (k == KindCancel || k == KindResolve):
		return delivered, "" // it has ended, which is what was wanted
	case code == NotFound:
		return StateParked, "the engine knows no such element"
	case code == AlreadyExists && k == KindPublish:
		return delivered, ""
	case code == InvalidArgument && !rule.Off(6):
		return StateParked, "the engine refuses it for good"
	case code == FailedPrecondition && rule.Off(6):
		return StateParked, ""
	default:
		return StatePending, ""
	}
}

// triesToIncident is after how many tries, over a minute, a job that still stands failed stands behind an incident: no back-off
// that a worker asks for lasts as long.
const triesToIncident = 6

// arrivedBefore reports that a recorded refusal or failure is what the job already stands on: its reply was lost. Left pending,
// it would hit the job again after a person resolved the incident.
func arrivedBefore(c Command, err error, last ErrorCode, attempts int32) bool {
	var e *Error
	if !errors.As(err, &e) || e.Code != FailedPrecondition || rule.Off(5) {
		return false
	}
	unanswered := last == Unavailable || last == DeadlineExceeded || last == Canceled || last == Internal || last == Unknown
	switch {
	case c.Kind == KindThrow:
		return strings.Contains(e.Detail, "ERROR_THROWN")
	case c.Kind == KindFail && c.Retries <= 0:
		return strings.Contains(e.Detail, "'FAILED'") && (unanswered || attempts >= triesToIncident)
	}
	return false
}

func (s *Sender) call(ctx context.Context, c Command) error {
	switch c.Kind {
	case KindComplete:
		return s.cfg.Gateway.Complete(ctx, c.JobKey, c.Variables)
	case KindFail:
		return s.cfg.Gateway.Fail(ctx, FailRequest{JobKey: c.JobKey, Retries: c.Retries, Message: c.Message, Variables: c.Variables})
	case KindThrow:
		return s.cfg.Gateway.Throw(ctx, c.JobKey, c.Code, c.Message, c.Variables)
	case KindPublish:
		_, err := s.cfg.Gateway.PublishMessage(ctx, Message{Name: c.Name, CorrelationKey: c.CorrelationKey, ID: c.MessageID, TTL: c.TTL, Variables: c.Variables})
		return err
	case KindCancel:
		return s.cfg.Gateway.CancelInstance(ctx, c.ProcessInstanceKey)
	case KindResolve:
		if c.JobKey != 0 && c.Retries > 0 {
			if err := s.cfg.Gateway.UpdateJobRetries(ctx, c.JobKey, c.Retries); err != nil {
				return err
			}
		}
		return s.cfg.Gateway.ResolveIncident(ctx, c.IncidentKey)
	case KindSetVariables:
		return s.cfg.Gateway.SetVariables(ctx, c.ElementInstanceKey, c.Variables, c.Local)
	default:
		return &Error{Call: string(c.Kind), Code: InvalidArgument, Detail: "unknown kind of command"}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
