package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
)

// clocks are the engine's and the database's, which only ever move together (path rule 8).
type clocks struct {
	db     postgres.Execer
	schema string
	engine interface{ AdvanceClock(d time.Duration) }

	mu    sync.Mutex
	ahead time.Duration
}

// advance moves both clocks forward: the database first, so that what the
// engine's timers set off finds the later time there too.
func (c *clocks) advance(ctx context.Context, by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := postgres.AdvanceClock(ctx, c.db, c.schema, by); err != nil {
		return fmt.Errorf("advance clock: %w", err)
	}
	c.engine.AdvanceClock(by)
	c.ahead += by
	return nil
}

// offset is how far both clocks are ahead of the machine's.
func (c *clocks) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}
