package engine

import "time"

// NextDue is when the engine's clock next makes something happen: a timer, a
// job's deadline or back-off, a message that expires. ok is false when nothing
// is set. A test that advances to each in turn sees what happens in between.
func (e *Engine) NextDue() (due time.Time, ok bool) { return e.broker.NextDue() }
