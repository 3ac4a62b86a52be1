package broker

import (
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// KeepHistory bounds what is kept of ended process instances, see [core.Core.KeepHistory].
func (b *Broker) KeepHistory(limit int, age time.Duration) error {
	return b.Do(func(c *core.Core) error {
		c.KeepHistory(limit, age)
		return nil
	})
}
