package zeebe

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// flushLoop writes down what the engine said: while one batch is being written the next one gathers.
func (s *Sender) flushLoop(ctx context.Context) {
	retry := time.NewTimer(time.Hour)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			if err := s.Flush(last); err != nil {
				s.cfg.Log.Warn().Err(err).Msg("acknowledged commands stay and will be sent again")
			}
			return
		case <-s.note:
			s.gather(ctx)
		case <-retry.C:
		}
		if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("acknowledged commands not deleted yet")
			retry.Reset(time.Second)
		}
	}
}

// gather lets few acknowledgements wait for more: nothing waits for them, and a transaction costs as much for one as for many.
func (s *Sender) gather(ctx context.Context) {
	s.mu.Lock()
	few := len(s.acked)+len(s.failed) < flushFew
	s.mu.Unlock()
	if !few {
		return
	}
	t := time.NewTimer(flushWait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

const (
	flushFew  = 100
	flushWait = 10 * time.Millisecond
)

// flushMost bounds one batch.
const flushMost = 500

// Flush deletes the rows that were acknowledged so far, marks the gone and the parked ones, and returns when that is committed.
func (s *Sender) Flush(ctx context.Context) error {
	for {
		s.mu.Lock()
		acked, failed := s.acked, s.failed
		s.acked, s.failed = nil, nil
		if len(acked) > flushMost {
			s.acked, acked = acked[flushMost:], acked[:flushMost:flushMost]
		}
		if len(failed) > flushMost {
			s.failed, failed = failed[flushMost:], failed[:flushMost:flushMost]
		}
		s.mu.Unlock()
		if len(acked)+len(failed) == 0 {
			return nil
		}
		if err := s.write(ctx, acked, failed); err != nil {
			s.mu.Lock()
			s.acked, s.failed = append(acked, s.acked...), append(failed, s.failed...)
			s.mu.Unlock()
			return err
		}
	}
}

func (s *Sender) write(ctx context.Context, acked []Queued, failed []failure) error {
	q := s.cfg.Queue.q
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	// Plans are kept: one made while the table was short would read all of it for ever after. Nor is one made anew for each number of ids.
	b.Queue("SELECT set_config('enable_seqscan', 'off', true), set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)")
	if len(acked) > 0 {
		byRev := map[int32][]int64{} // nearly all have the first
		for _, c := range acked {
			byRev[c.Rev] = append(byRev[c.Rev], c.ID)
		}
		for rev, ids := range byRev {
			b.Queue(q.acked, ids, rev)
		}
		if s.cfg.Acked != nil {
			s.cfg.Acked(b, acked)
		}
	}
	for _, f := range failed {
		b.Queue(q.failed, f.q.ID, f.q.Rev, string(f.state), f.reason, string(Code(f.err)), f.err.Error())
	}
	b.Queue("COMMIT")
	if err := s.cfg.Pool.SendBatch(ctx, b).Close(); err != nil { // a connection whose transaction failed is not given back to the pool
		return fmt.Errorf("write down acknowledgements: %w", err)
	}
	return nil
}
