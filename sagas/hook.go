package sagas

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
)

// Hook is the seam through which jobs of a saga pass its gate and enter its ledger. Give it to
// worker.Config.Saga in every process that runs steps, also one that declares no types.
func (s *Sagas) Hook() worker.Saga { return hook{s} }

type hook struct{ *Sagas }

// QueueEnter takes the gate shared until the transaction ends and reads what was decided. Giving up takes it
// exclusive, so either this step commits before the give-up looks at the ledger, or it does not get in.
func (h hook) QueueEnter(b *pgx.Batch, m worker.Meta) (check func() error) {
	if rule.Off(10) {
		return func() error { return nil }
	}
	g := gate{meta: m}
	b.Queue(h.sql.lockShared, m.SagaID)
	b.Queue(h.sql.readGate, m.SagaID).QueryRow(func(row pgx.Row) error {
		err := row.Scan(&g.decision, &g.closed, &g.cluster, &g.instance, &g.key)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		g.found = err == nil
		return err
	})
	return g.check
}

type gate struct {
	meta     worker.Meta
	found    bool
	decision Decision
	closed   bool
	cluster  string
	instance int64
	key      string
}

func (g *gate) check() error {
	id := g.meta.SagaID
	switch {
	case !g.found:
		return notMine(fmt.Sprintf("saga %s is unknown here", id))
	case g.decision != Undecided && g.decision != Completed:
		return givenUp(fmt.Sprintf("saga %s was decided %s", id, g.decision))
	case g.closed:
		return givenUp(fmt.Sprintf("saga %s is closed", id))
	case g.instance == 0:
		return outcome.Fatalf("saga", "saga %s has not begun: its model's first task must be saga.begin", id)
	case (g.instance != g.meta.ProcessInstanceKey || g.cluster != g.meta.Cluster) && !rule.Off(15):
		return notMine(fmt.Sprintf("saga %s belongs to process instance %d of cluster %s", id, g.instance, g.cluster))
	case g.key != g.meta.BusinessKey:
		return outcome.Fatalf("saga", "business key is %q, that of saga %s is %q: its steps must map the same, the ledger's order hangs on it", g.meta.BusinessKey, id, g.key)
	}
	return nil
}

// QueueStep writes the ledger row. The batch must hold the key lock of the saga's business key by now: the
// row's commit order is the key's turn.
func (h hook) QueueStep(b *pgx.Batch, st worker.Step) {
	if machinery(st.Type) {
		return
	}
	undo := "none"
	if st.Class == outcome.Success && (st.Undo != "" || strings.HasPrefix(st.Policy, "manual:")) {
		undo = "open"
	}
	var amount any
	if len(st.Amount) > 0 && string(st.Amount) != "null" {
		amount = string(st.Amount)
	}
	b.Queue(h.sql.insertStep, st.OperationID, st.SagaID, stepName(st.SagaID, st.OperationID, st.ElementID), st.Type, st.ElementID,
		string(st.Class), st.Code, st.Undo, st.Policy, st.Pivot, amount, st.BusinessKey, undo)
}

// QueueUndone marks the effect of a forward operation as undone, in the undo's transaction.
func (h hook) QueueUndone(b *pgx.Batch, m worker.Meta, forwardOperationID string) {
	if m.SagaID == "" {
		return
	}
	b.Queue(h.sql.stepUndone, forwardOperationID, m.SagaID, stepName(m.SagaID, forwardOperationID, forwardOperationID), m.ElementID)
}

// Messages gives step_completed or step_failed, with what a partner may see of the step.
func (h hook) Messages(m worker.Meta, st worker.Step) []events.Message {
	if machinery(m.Type) || m.SagaID == "" {
		return nil
	}
	p := Progress{SagaID: m.SagaID, Tenant: m.Tenant, Step: stepName(m.SagaID, m.OperationID, m.ElementID), JobType: m.Type, Code: st.Code, Pivot: st.Pivot}
	if t := h.byProc[m.ProcessID]; t != nil {
		p.SagaType = t.Name
		if t.Partial != nil {
			p.Segment, p.Partial = partial(t, st)
		}
	}
	switch st.Class {
	case outcome.Success:
		return []events.Message{p.message(EventStepCompleted, m.BusinessKey)}
	case outcome.Business:
		return []events.Message{p.message(EventStepFailed, m.BusinessKey)}
	}
	return nil
}

// partial asks the type for the partner's view. A view that cannot be marshalled is a programming mistake
// that must not fail the effect it describes: it is shown as such.
func partial(t *Type, st worker.Step) (string, json.RawMessage) {
	segment, view := t.Partial(st)
	if segment == "" {
		return "", nil
	}
	raw, err := json.Marshal(view)
	if err != nil {
		raw = json.RawMessage(`{"unavailable":true}`)
	}
	return segment, raw
}

// machinery says whether a job type is the saga machinery's own.
func machinery(jobType string) bool { return strings.HasPrefix(jobType, "saga.") }

// PurgeUnless is for worker.Config.PurgeUnless: an operation stays while its saga is open (path rule 25).
func (s *Sagas) PurgeUnless() []string { return []string{s.sql.keepOpen} }
