package replay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
)

// The replay's own events (spec Z9).
const (
	typeStarted    = "platform.replay.started"
	typeProgressed = "platform.replay.progressed"
	typeCompleted  = "platform.replay.completed"
)

// maxBatchBytes bounds the bodies of one batch.
const maxBatchBytes = 8 << 20

// run delivers from the replay's place to its end.
func (r *Runner) run(ctx context.Context, id string, fence int64, s Source, t Target) (Replay, error) {
	p, err := r.Get(ctx, id)
	if err != nil {
		return p, err
	}
	limit := rate.NewLimiter(rate.Inf, 0)
	batchSize := r.cfg.Batch
	if p.Rate > 0 {
		batchSize = min(batchSize, max(1, p.Rate/4)) // so that the rate is one, and not bursts
		limit = rate.NewLimiter(rate.Limit(p.Rate), batchSize)
	}
	var items []Item
	size := 0
	flush := func() error {
		if len(items) == 0 {
			return nil
		}
		if err := limit.WaitN(ctx, len(items)); err != nil {
			return err
		}
		after, err := r.batch(ctx, p, fence, t, items)
		if err != nil {
			return err
		}
		p, items, size = after, items[:0], 0
		if r.cfg.Progress != nil {
			r.cfg.Progress(p)
		}
		return nil
	}
	err = s.Read(ctx, p.Place, p.Filter, func(item Item) error {
		items = append(items, item)
		size += len(item.Record.Body)
		if len(items) < batchSize && size < maxBatchBytes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	return r.end(ctx, p, fence, err)
}

// batch delivers some messages and moves the place, in one transaction that only the replay's own runner can commit.
func (r *Runner) batch(ctx context.Context, p Replay, fence int64, t Target, items []Item) (Replay, error) {
	d := events.Redelivery{ID: p.ID, Mode: p.Mode}
	if err := t.prepare(ctx, items, d); err != nil {
		return p, err
	}
	crash.Point("replay.prepared", p.ID)
	var after Replay
	told := false
	err := pgx.BeginFunc(ctx, r.cfg.DB, func(tx pgx.Tx) error {
		var before int64
		err := tx.QueryRow(ctx, r.sql.own, p.ID, fence).Scan(&before)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrTaken
		}
		if err != nil {
			return err
		}
		suppressed, err := t.deliver(ctx, tx, items, d)
		if err != nil {
			return err
		}
		crash.Point("replay.delivered", p.ID)
		n := int64(len(items))
		told = p.Delivered+n-before >= r.cfg.ProgressEvery
		rows, err := tx.Query(ctx, r.sql.move, p.ID, fence, items[len(items)-1].Place, n, suppressed, told)
		if err != nil {
			return err
		}
		if after, err = pgx.CollectExactlyOneRow(rows, scanReplay); err != nil || !told {
			return err
		}
		b := &pgx.Batch{}
		if err := r.tell(b, typeProgressed, after); err != nil {
			return err
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return p, err
	}
	crash.Point("replay.committed", p.ID)
	if told {
		r.cfg.Stager.Wake()
	}
	return after, nil
}

// endWithin bounds the last statement of a run that was cancelled.
const endWithin = 10 * time.Second

// end writes down how a run ended.
func (r *Runner) end(ctx context.Context, p Replay, fence int64, cause error) (Replay, error) {
	state, text := Completed, ""
	switch {
	case errors.Is(cause, ErrTaken):
		return p, fmt.Errorf("replay %s: %w", p.ID, cause)
	case cause != nil && ctx.Err() != nil:
		state = Paused
	case cause != nil:
		state, text = Failed, clip(cause.Error())
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	err := pgx.BeginFunc(work, r.cfg.DB, func(tx pgx.Tx) error {
		rows, err := tx.Query(work, r.sql.end, p.ID, fence, state, text)
		if err != nil {
			return err
		}
		after, err := pgx.CollectExactlyOneRow(rows, scanReplay)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrTaken
		}
		if err != nil {
			return err
		}
		p = after
		kind := typeProgressed
		if state == Completed {
			kind = typeCompleted
		}
		b := &pgx.Batch{}
		if err := r.tell(b, kind, p); err != nil {
			return err
		}
		return tx.SendBatch(work, b).Close()
	})
	if err == nil {
		r.cfg.Stager.Wake()
	}
	if err := errors.Join(cause, err); err != nil {
		return p, fmt.Errorf("replay %s: %w", p.ID, err)
	}
	return p, nil
}

// tell stages one of the replay's events.
func (r *Runner) tell(b *pgx.Batch, kind string, p Replay) error {
	data := map[string]any{
		"replayId": p.ID, "source": p.Source, "target": p.Target, "mode": p.Mode, "actor": p.Actor, "reason": p.Reason,
		"delivered": p.Delivered, "suppressed": p.Suppressed,
	}
	if p.State != "" {
		data["state"] = p.State
	}
	if p.Error != "" {
		data["error"] = p.Error
	}
	key := "replay:" + p.ID
	return r.cfg.Stager.Queue(b, events.Origin{
		OperationID: p.ID, BusinessKey: key, CorrelationID: p.ID, Actor: events.Actor{UserID: p.Actor},
		IDSeed: p.ID + "/" + p.State + "/" + strconv.FormatInt(p.Delivered, 10) + "/" + p.Updated.String(),
	}, []events.Message{{Type: kind, BusinessKey: key, Data: data}})
}

// clip bounds an error text and makes it storable.
func clip(s string) string {
	out := make([]rune, 0, 1000)
	for _, c := range s {
		if len(out) == 1000 {
			break
		}
		if c == 0 {
			c = '\uFFFD'
		}
		out = append(out, c)
	}
	return string(out)
}

// Plan is what a replay would deliver.
type Plan struct {
	Source   string           `json:"source"`
	Filter   Filter           `json:"filter"` // with the end of the range
	Messages int64            `json:"messages"`
	Keys     int              `json:"keys"` // distinct business keys
	Bytes    int64            `json:"bytes"`
	Types    map[string]int64 `json:"types"`
	First    *time.Time       `json:"first,omitempty"`
	Last     *time.Time       `json:"last,omitempty"`
}

// Plan is the dry run: it reads what a replay would deliver and counts it.
// Nothing is written. progress, which may be nil, is called every thousand messages.
func (r *Runner) Plan(ctx context.Context, s Source, f Filter, progress func(n int64)) (Plan, error) {
	f, err := settle(ctx, s, f)
	if err != nil {
		return Plan{}, fmt.Errorf("replay plan: %w", err)
	}
	p := Plan{Source: s.Name(), Filter: f, Types: map[string]int64{}}
	keys := map[string]struct{}{}
	err = s.Read(ctx, f.After, f, func(item Item) error {
		if p.Messages == 0 {
			p.First = &item.Published
		}
		p.Last = &item.Published
		p.Messages++
		p.Bytes += int64(len(item.Record.Body))
		p.Types[item.Type]++
		keys[item.Record.Key] = struct{}{}
		if progress != nil && p.Messages%1000 == 0 {
			progress(p.Messages)
		}
		return nil
	})
	p.Keys = len(keys)
	if err != nil {
		return p, fmt.Errorf("replay plan: %w", err)
	}
	return p, nil
}
