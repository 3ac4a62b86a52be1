package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/outcome"
)

// Cancelled says what [Runtime.Cancel] came to.
type Cancelled struct {
	// Ended: the operation had ended before, its outcome stands and nothing was changed. Undo it where that is wanted.
	Ended   bool
	Outcome outcome.Class // of the operation, when Ended

	// Standing says why the operation cannot be cancelled although it has not ended: a call is under way that nothing compensates. It
	// goes on as if nobody had asked.
	Standing string

	Undo UndoResult // otherwise: what was undone, or Nothing
}

// standingEnded is what revoke says of an operation that is to be left when it has ended.
const standingEnded = "ended"

// Cancel ends an operation that has not ended, by its id (spec W14), and waits until that is certain or ctx is over. An operation that
// never ran will not run; a transaction that runs is waited for, and its outcome stands when it commits; a call that is under way is
// fenced off, the other system is asked what became of it, and what it did is undone, once. The job, when it comes, is answered with
// BUSINESS_ERROR SAGA_GIVEN_UP. An error means that the end is not certain yet (RETRYABLE), or that a person must look (FATAL): the
// operation is cancelled all the same, and Cancel may be called again.
func (r *Runtime) Cancel(ctx context.Context, operationID, reason string) (Cancelled, error) {
	for n := 1; ; n++ {
		op, _, standing, res := r.revokeUnless(ctx, nil, operationID, reason, true)
		switch {
		case standing == standingEnded:
			return Cancelled{Ended: true, Outcome: op.Class}, nil
		case standing != "":
			return Cancelled{Standing: standing}, nil
		case res == nil:
			u, err := r.Undo(ctx, operationID, reason)
			return Cancelled{Undo: u}, err
		}
		if err := pause(ctx, max(res.wait, r.cfg.PollBackoff.Wait(n))); err != nil {
			last := errors.New("waiting for " + res.reason)
			if res.err != nil {
				last = res.err
			}
			return Cancelled{}, outcome.NewUnknown(fmt.Errorf("operation %s is not cancelled yet: %w", operationID, last))
		}
	}
}
