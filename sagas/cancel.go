package sagas

import (
	"context"
	"fmt"
	"net/http"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/zeebe"
)

// cancel asks for a cancel (spec W14). The answer is the state as it stands: 202 while the operation runs, its
// final answer when it had ended. Whether the cancel wins is decided by the saga; a repeat does nothing more.
func (a *api) cancel(w http.ResponseWriter, r request) {
	rec, ok := a.find(w, r)
	if !ok {
		return
	}
	when, ok := a.precondition(w, r)
	if !ok {
		return
	}
	if !rec.Gone && !when.holds(rec) {
		a.lost(w, rec)
		return
	}
	if rec.terminal() {
		a.answer(w, r, rec, nil)
		return
	}
	if rec.StartState == "pending" {
		if err := a.begin(r.Context(), rec); err != nil { // without a saga there is nothing to cancel
			a.unavailable(w, r.Request, rec.ID, err)
			return
		}
	}
	if err := a.Cancel(r.Context(), rec.ID); err != nil {
		a.unavailable(w, r.Request, rec.ID, err)
		return
	}
	a.answer(w, r, rec, nil)
}

// Cancel sends the cancel message of a saga through the command queue, unless the saga is decided or closed
// already. The model's cancel path decides (path rule 10). Sending it again does nothing while the engine keeps the first.
func (s *Sagas) Cancel(ctx context.Context, sagaID string) error {
	row, err := scanSaga(s.cfg.Domain.QueryRow(ctx, s.sql.readSaga, sagaID))
	if err != nil {
		return fmt.Errorf("cancel saga %s: %w", sagaID, err)
	}
	if row.Decision != Undecided || row.ClosedAt != nil {
		return nil
	}
	if row.sandbox() { // no model hears the message
		return s.end(ctx, sagaID, Cancelled, string(Cancelled), func(row Saga) bool { return row.Decision == Undecided })
	}
	var cmd *zeebe.Queued
	err = s.inDomain(ctx, row.origin(row.ID+":cancel"), func(tx *outbox.Tx) (err error) {
		cmd, err = s.queueCommand(ctx, tx, zeebe.Command{
			Cluster: s.cfg.Cluster, Kind: zeebe.KindPublish, OperationID: row.ID + ":cancel", Name: MessageCancel,
			CorrelationKey: row.ID, MessageID: row.ID + ":cancel", TTL: s.cfg.MaxStartDelay,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("cancel saga %s: %w", sagaID, err)
	}
	s.send(ctx, cmd)
	return nil
}
