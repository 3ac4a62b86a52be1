package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
)

// clocks are the engine's and the databases', which only ever move together (path rule 8).
type clocks struct {
	db      postgres.Execer
	schemas []string // each has its own clock: the domain's and the record store's, which may be two databases
	engine  interface{ AdvanceClock(d time.Duration) error }

	mu    sync.Mutex
	ahead time.Duration
}

// advance moves all clocks forward: the databases first, so that what the
// engine's timers set off finds the later time there too.
func (c *clocks) advance(ctx context.Context, by time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, schema := range c.schemas {
		if err := postgres.AdvanceClock(ctx, c.db, schema, by); err != nil {
			return fmt.Errorf("advance clock of %s: %w", schema, err)
		}
	}
	if err := c.engine.AdvanceClock(by); err != nil {
		return err
	}
	c.ahead += by
	return nil
}

// offset is how far all clocks are ahead of the machine's.
func (c *clocks) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}
