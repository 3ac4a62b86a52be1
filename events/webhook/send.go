package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/crash"
)

// Why a message is dead.
const (
	ReasonUsedUp  = "used_up"          // the schedule is used up
	ReasonGone    = "gone"             // the endpoint answered 410
	ReasonUnknown = "endpoint_unknown" // the directory does not know the endpoint any more
	ReasonChanged = "changed"          // the message is not as it was encrypted
)

// perTurn is how many messages an endpoint gets before others have their turn.
const perTurn = 20

// Run sends what is due until ctx ends; then it finishes the attempts under way and gives nil. Any number of processes may run it.
func (w *Webhooks) Run(ctx context.Context) error {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		busy   = map[string]bool{}
		timer  = time.NewTimer(0)
		purged time.Time
	)
	defer all.Wait()
	defer w.client.CloseIdleConnections()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		mu.Lock()
		free, not := w.cfg.Concurrency-len(busy), keys(busy)
		mu.Unlock()
		due, err := w.due(ctx, not, free)
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn().Err(err).Msg("webhooks not looked for, will look again")
		}
		for _, endpoint := range due {
			mu.Lock()
			busy[endpoint] = true
			mu.Unlock()
			all.Go(func() {
				defer func() { mu.Lock(); delete(busy, endpoint); mu.Unlock() }()
				if _, err := w.turn(ctx, endpoint); err != nil && ctx.Err() == nil {
					w.cfg.Log.Warn().Str("endpoint", endpoint).Err(err).Msg("webhook not sent, will try again")
				}
			})
		}
		if time.Since(purged) > time.Minute {
			purged = time.Now()
			if _, err := w.Purge(ctx); err != nil && ctx.Err() == nil {
				w.cfg.Log.Warn().Err(err).Msg("old webhooks not deleted, will try again")
			}
		}
		timer.Reset(w.cfg.SweepEvery/2 + rand.N(w.cfg.SweepEvery)) //nolint:gosec // jitter
	}
}

func keys(m map[string]bool) []string {
	out := []string{}
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Pass makes one attempt, or more where they succeed, for each endpoint with something due, and gives how many attempts it made.
func (w *Webhooks) Pass(ctx context.Context) (attempts int, err error) {
	due, err := w.due(ctx, []string{}, 1000)
	if err != nil {
		return 0, err
	}
	var (
		g  errgroup.Group
		mu sync.Mutex
	)
	g.SetLimit(w.cfg.Concurrency)
	for _, endpoint := range due {
		g.Go(func() error {
			n, err := w.turn(ctx, endpoint)
			mu.Lock()
			defer mu.Unlock()
			attempts += n
			return err
		})
	}
	err = g.Wait()
	return attempts, err
}

func (w *Webhooks) due(ctx context.Context, not []string, limit int) ([]string, error) {
	if limit < 1 {
		return nil, nil
	}
	rows, err := w.cfg.Pool.Query(ctx, w.sql.due, not, limit)
	if err != nil {
		return nil, fmt.Errorf("webhooks due: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// turn sends to one endpoint until it fails once, has nothing due, or has had its turn.
func (w *Webhooks) turn(ctx context.Context, endpoint string) (attempts int, err error) {
	for attempts < perTurn && ctx.Err() == nil {
		d, err := w.take(ctx, endpoint)
		if errors.Is(err, pgx.ErrNoRows) {
			return attempts, nil
		}
		if err != nil {
			return attempts, fmt.Errorf("take a webhook of %s: %w", endpoint, err)
		}
		attempts++
		ok, err := w.attempt(context.WithoutCancel(ctx), d)
		if err != nil || !ok {
			return attempts, err
		}
	}
	return attempts, nil
}

// taken is a message under way.
type taken struct {
	id, endpoint, typ, tenant, operationID string
	body                                   []byte
	attempts, tries                        int
}

func (w *Webhooks) take(ctx context.Context, endpoint string) (taken, error) {
	d := taken{endpoint: endpoint}
	err := w.cfg.Pool.QueryRow(ctx, w.sql.take, endpoint, w.cfg.Timeout+20*time.Second).Scan(&d.id, &d.typ, &d.tenant, &d.operationID, &d.body, &d.attempts, &d.tries)
	return d, err
}

// answer is what came of an attempt.
type answer struct {
	status int // 0: none
	after  time.Duration
	err    string
	took   time.Duration
}

func (a answer) ok() bool { return a.status >= 200 && a.status < 300 }

// attempt sends a message once and writes down what came of it. ok is false when it did not arrive.
func (w *Webhooks) attempt(ctx context.Context, d taken) (ok bool, err error) {
	e, err := w.cfg.Directory.Endpoint(ctx, d.endpoint)
	if errors.Is(err, ErrUnknown) {
		return false, w.bury(ctx, d, answer{err: err.Error()}, ReasonUnknown)
	}
	if err != nil {
		return false, err // its lease runs out
	}
	if err := e.check(w.cfg.Plaintext); err != nil {
		return false, w.fail(ctx, d, answer{err: err.Error()})
	}
	switch d.body, err = w.clear(d.body, d.id); {
	case errors.Is(err, seal.ErrNoKey):
		return false, w.fail(ctx, d, answer{err: err.Error()}) // it may be given to us yet
	case err != nil:
		return false, w.bury(ctx, d, answer{err: err.Error()}, ReasonChanged)
	}
	crash.Point("webhook.before", d.id)
	a := w.send(ctx, e, d)
	crash.Point("webhook.after", d.id)
	if w.cfg.Hooks.Attempt != nil {
		w.cfg.Hooks.Attempt(d.endpoint, a.status, a.took)
	}
	switch {
	case a.ok():
		b := &pgx.Batch{}
		w.wrote(b, d, a)
		b.Queue(w.sql.delivered, d.id, d.attempts)
		b.Queue(w.sql.well, d.endpoint)
		return true, w.record(ctx, d, b)
	case a.status == http.StatusGone:
		return false, w.stop(ctx, d, a)
	default:
		return false, w.fail(ctx, d, a)
	}
}

// send is one request.
func (w *Webhooks) send(ctx context.Context, e Endpoint, d taken) (a answer) {
	start := time.Now()
	defer func() { a.took = time.Since(start) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(d.body))
	if err != nil {
		return answer{err: plain(err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "journeyman-webhook/1")
	Sign(req.Header, d.id, w.now(), d.body, e.Secrets...)
	res, err := w.client.Do(req)
	if err != nil {
		return answer{err: plain(err)}
	}
	defer res.Body.Close()                                          //nolint:errcheck // read only
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // so that the connection can be used again; what it says is of no use
	a.status = res.StatusCode
	if !a.ok() {
		a.err = "answered " + res.Status[:min(len(res.Status), 100)]
		if a.after, err = retryAfter(res.Header, w.now()); err != nil {
			a.err += "; " + err.Error()
		}
	}
	return a
}

// fail plans the next attempt, or buries the message.
func (w *Webhooks) fail(ctx context.Context, d taken, a answer) error {
	wait, ok := w.cfg.Schedule.Wait(d.tries, w.spread(), a.after)
	if !ok {
		return w.bury(ctx, d, a, ReasonUsedUp)
	}
	b := &pgx.Batch{}
	w.wrote(b, d, a)
	b.Queue(w.sql.again, d.id, d.attempts, wait)
	if a.after > 0 && (a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable) { // the others can wait as well
		b.Queue(w.sql.pause, d.endpoint, min(a.after, maxRetryAfter))
	} else {
		b.Queue(w.sql.failing, d.endpoint)
	}
	w.cfg.Log.Info().Str("delivery", d.id).Str("endpoint", d.endpoint).Str("operation_id", d.operationID).Int("attempt", d.attempts).Dur("wait", wait).Str("error", a.err).
		Msg("webhook not taken, will be sent again")
	return w.record(ctx, d, b)
}

func (w *Webhooks) bury(ctx context.Context, d taken, a answer, reason string) error {
	b := &pgx.Batch{}
	w.wrote(b, d, a)
	b.Queue(w.sql.dead, d.id, d.attempts, reason)
	b.Queue(w.sql.failing, d.endpoint)
	if err := w.record(ctx, d, b); err != nil {
		return err
	}
	w.died(d, reason, a)
	return nil
}

// stop takes a 410 as it is meant: nothing is sent there any more until a person says so.
func (w *Webhooks) stop(ctx context.Context, d taken, a answer) error {
	b := &pgx.Batch{}
	w.wrote(b, d, a)
	b.Queue(w.sql.gone, d.endpoint)
	b.Queue(w.sql.goneAll, d.endpoint)
	if err := w.record(ctx, d, b); err != nil {
		return err
	}
	w.died(d, ReasonGone, a)
	return nil
}

func (w *Webhooks) died(d taken, reason string, a answer) {
	w.cfg.Log.Error().Str("delivery", d.id).Str("endpoint", d.endpoint).Str("operation_id", d.operationID).Str("reason", reason).Str("error", a.err).Msg("webhook is dead")
	if w.cfg.Hooks.Dead != nil {
		w.cfg.Hooks.Dead(d.endpoint, d.id, reason)
	}
}

func (w *Webhooks) wrote(b *pgx.Batch, d taken, a answer) {
	b.Queue(w.sql.attempted, d.id, d.attempts, a.took.Milliseconds(), a.status, a.err)
}

// record runs a batch as one transaction.
func (w *Webhooks) record(ctx context.Context, d taken, b *pgx.Batch) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pgx.BeginFunc(ctx, w.cfg.Pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() }); err != nil {
		return fmt.Errorf("record an attempt of %s: %w", d.id, err)
	}
	return nil
}
