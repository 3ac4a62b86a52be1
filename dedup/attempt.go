package dedup

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Process is a worker process as the crash-loop guard knows it. ID is a UUID.
type Process struct{ ID, Name string }

// Beat says that the process lives.
func (s *Store) Beat(ctx context.Context, db DB, p Process) error {
	_, err := exec(ctx, db, "heartbeat", s.q.beat, p.ID, p.Name)
	return err
}

// Bye says that the process ends in order.
func (s *Store) Bye(ctx context.Context, db DB, p Process) error {
	_, err := exec(ctx, db, "heartbeat", s.q.bye, p.ID)
	return err
}

// Attempts is what is known of a job's earlier attempts.
type Attempts struct {
	Runs       int // before this one, of any process
	Deaths     int // attempts that dead processes left open
	DeathAlone int // of these, where nothing else ran in the process
	ReceivedAt time.Time
}

// OpenAttempts opens one attempt for each job of an activated batch, in one statement whose commit is asynchronous (path rule
// 7). A process counts as dead when it has not beaten for deadAfter.
func (s *Store) OpenAttempts(ctx context.Context, db DB, p Process, cluster string, jobKeys []int64, operationIDs []string, deadAfter time.Duration) (map[int64]Attempts, error) {
	out := make(map[int64]Attempts, len(jobKeys))
	rows, err := db.Query(ctx, s.q.openAttempts, cluster, p.ID, jobKeys, operationIDs, deadAfter)
	if err == nil {
		var key int64
		var a Attempts
		_, err = pgx.ForEachRow(rows, []any{&key, &a.Runs, &a.Deaths, &a.DeathAlone, &a.ReceivedAt}, func() error {
			out[key] = a
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("open attempts: %w", err)
	}
	return out, nil
}

// Alone marks that this attempt runs with nothing beside it in the process.
func (s *Store) Alone(ctx context.Context, db DB, p Process, cluster string, jobKey int64) error {
	_, err := exec(ctx, db, "mark attempt", s.q.alone, cluster, jobKey, p.ID)
	return err
}

// CloseAttempt records the end of an attempt that left no outcome.
func (s *Store) CloseAttempt(ctx context.Context, db DB, p Process, cluster string, jobKey int64) error {
	_, err := exec(ctx, db, "close attempt", s.q.closeAttempt, cluster, jobKey, p.ID)
	return err
}

// QueueDropAttempts adds the end of all attempts of a job, for the transaction that records its outcome or its operator's retry.
func (s *Store) QueueDropAttempts(b *pgx.Batch, cluster string, jobKey int64) {
	b.Queue(s.q.dropAttempt, cluster, jobKey)
}
