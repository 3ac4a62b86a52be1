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
		case <-retry.C:
		}
		if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn().Err(err).Msg("acknowledged commands not deleted yet")
			retry.Reset(time.Second)
		}
	}
}

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
	b.Queue("SET LOCAL enable_seqscan TO off") // plans are kept: one made while the table was short would read all of it for ever after
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
	err := pgx.BeginFunc(ctx, s.cfg.Pool, func(tx pgx.Tx) error { return tx.SendBatch(ctx, b).Close() })
	if err != nil {
		return fmt.Errorf("write down acknowledgements: %w", err)
	}
	return nil
}
