package supplier

import (
	"context"
	"errors"

	"github.com/vitrip/journeyman/worker"
)

// Held is what a supplier holds for us, or has done: what handlers keep of a [Thing]. ID is empty where nothing was asked of it.
type Held struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Amount   int64  `json:"amount"` // minor units
	Currency string `json:"currency"`
}

// Held is what is kept of the thing.
func (t Thing) Held() Held { return Held{t.ID, t.Status, t.Amount, t.Currency} }

// Resolve asks what a call with this reference made: the Resolve of a worker.Remote.
//
// Errors: worker.ErrNotHappened when the supplier has nothing under the reference; an unknown outcome when it could not be asked.
func Resolve(ctx context.Context, c *Client, path, reference, booking, segment string) (Held, error) {
	t, err := c.Ask(ctx, path, reference, booking, segment)
	switch {
	case errors.Is(err, ErrNotFound):
		return Held{}, worker.ErrNotHappened
	case err != nil:
		return Held{}, worker.Unknown(err)
	}
	return t.Held(), nil
}

// Found makes of a [Resolve] the answer of a follow-up: what is not there is refused with this code.
func Found(res Held, err error, code string) (Held, error) {
	if errors.Is(err, worker.ErrNotHappened) {
		return Held{}, worker.BusinessError(code, "the supplier has nothing under the reference of the forward operation")
	}
	return res, err
}

// Became asks whether an undo took effect, nil = the thing has this status: the Resolve of a worker.RemoteUndo.
//
// Errors: worker.ErrNotHappened when it has another; an unknown outcome when the supplier could not be asked.
func Became(ctx context.Context, c *Client, path, reference, booking, segment, status string) error {
	t, err := c.Ask(ctx, path, reference, booking, segment)
	if err != nil {
		return worker.Unknown(err)
	}
	if t.Status != status {
		return worker.ErrNotHappened
	}
	return nil
}
