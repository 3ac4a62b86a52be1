package worker

import (
	"time"

	"github.com/vitrip/journeyman/dedup"
)

// askEnd is how long after AskFrom the other system is asked about a call: as long as the call can land, or until the time that a person
// has stated, who had it asked about again although it was never seen ([dedup.Store.AskFurther]).
func (s *spec) askEnd(op dedup.Operation, c Config) time.Duration {
	end := s.lands(c)
	switch {
	case !op.AskUntil.IsZero():
		return op.AskUntil.Sub(op.AskFrom)
	case !op.CalledAt.IsZero() && op.OperatorRetries == 0: // the call in question may be that of the retry
		end -= op.AskFrom.Sub(op.CalledAt)
	}
	return end
}
