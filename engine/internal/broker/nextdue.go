package broker

import "time"

// NextDue is when the earliest timer is due, by the engine's clock; ok is false when there is none.
func (b *Broker) NextDue() (due time.Time, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.core.NextDue()
}
