package sagas

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// answer is the final answer of an operation (spec I3). It is rendered once, in the closing transaction,
// and stored and sent as these bytes ever after.
type answer struct {
	OperationID  string          `json:"operation_id"`
	Type         string          `json:"type"`
	State        string          `json:"state"`
	OutcomeClass outcome.Class   `json:"outcome_class"`
	Reason       *answerReason   `json:"reason,omitempty"`
	StartedAt    time.Time       `json:"started_at"`
	FinishedAt   time.Time       `json:"finished_at"`
	Undone       []string        `json:"undone,omitempty"` // steps whose effect was undone, in the order of undoing
	Open         []string        `json:"open,omitempty"`   // steps whose effect was left to a person
	Remediation  json.RawMessage `json:"remediation,omitempty"`
	Result       any             `json:"result,omitempty"`
}

type answerReason struct {
	Code string `json:"code"`
}

// closeIn ends a saga: the domain's last word, the final answer, the event that carries it, the saga row.
// undecided says that the decision is taken here too, for sagas that end before any process began.
func (s *Sagas) closeIn(ctx context.Context, tx *outbox.Tx, t *Type, row Saga, e Ending, undecided bool) error {
	if undecided {
		tag, err := tx.Exec(ctx, s.sql.decide, row.ID, string(e.Decision), e.Code, false)
		if err != nil {
			return err
		}
		if tag.RowsAffected() != 1 {
			return outcome.Fatalf("saga", "close saga %s: it was decided meanwhile", row.ID)
		}
	}
	var finished time.Time
	if err := tx.QueryRow(ctx, s.sql.now).Scan(&finished); err != nil {
		return err
	}
	a := answer{
		OperationID: row.ID, Type: row.Type, State: e.State, OutcomeClass: outcome.Success,
		StartedAt: row.StartedAt.UTC().Truncate(time.Millisecond), FinishedAt: finished.UTC().Truncate(time.Millisecond),
		Undone: names(row.ID, e.Undone), Open: names(row.ID, e.Open), Remediation: e.Remediation,
	}
	if e.State != string(Completed) {
		a.OutcomeClass, a.Reason = outcome.Business, &answerReason{Code: e.Code}
	}
	if t.Result != nil {
		result, err := t.Result(ctx, tx, row.attempt(), e)
		if err != nil {
			return fmt.Errorf("result of saga %s: %w", row.ID, err)
		}
		a.Result = result
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return outcome.Fatalf("saga", "final answer of saga %s: %v", row.ID, err)
	}
	tag, err := tx.Exec(ctx, s.sql.closeSaga, row.ID, e.State, e.Code, finished)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != 1 {
		return outcome.Fatalf("saga", "close saga %s: it is closed already", row.ID)
	}
	p := row.progress()
	p.Decision, p.Code, p.Undone, p.Open, p.Final, p.FinishedAt = e.Decision, e.Code, a.Undone, a.Open, body.Bytes(), &finished
	tx.Emit(p.message(endEvent(e.State), row.BusinessKey))
	return nil
}

func endEvent(state string) string {
	switch state {
	case string(Completed):
		return EventCompleted
	case string(Expired):
		return EventExpired
	default:
		return EventFailed
	}
}

// ending reads from saga and ledger how a saga ends. remediation is what a person reported, nil for none.
func ending(row Saga, steps []StepRow, remediation json.RawMessage) (Ending, error) {
	e := Ending{Decision: row.Decision, Code: row.Reason, Remediation: remediation}
	undone := slices.Clone(steps)
	slices.SortStableFunc(undone, func(a, b StepRow) int { return compareTimes(a.UndoAt, b.UndoAt) })
	for _, st := range undone {
		switch st.UndoState {
		case "done":
			e.Undone = append(e.Undone, st.OperationID)
		case "parked", "remediated":
			e.Open = append(e.Open, st.OperationID)
		case "open", "running", "stuck":
			if row.Decision != Completed {
				return e, outcome.Fatalf("saga", "close saga %s: the effect of %s is %s, its undo has not ended; the model must run saga.undo-rest first",
					row.ID, st.OperationID, st.UndoState)
			}
		}
	}
	var person struct {
		Outcome string `json:"outcome"`
	}
	if len(remediation) > 0 {
		_ = json.Unmarshal(remediation, &person) // anything else than an object with an outcome says nothing about the state
	}
	switch row.Decision {
	case Undecided:
		return e, outcome.Fatalf("saga", "close saga %s: nothing was decided; the pivot step must call Decide", row.ID)
	case Completed:
		e.State = string(Completed)
		if person.Outcome == string(Failed) { // past the pivot: forward, or by hand (spec Z5)
			e.State, e.Code = string(Failed), "remediated"
		}
	case Expired:
		e.State = string(Expired)
	default:
		e.State = string(Failed)
	}
	if e.Code == "" && e.State != string(Completed) {
		e.Code = string(row.Decision)
	}
	return e, nil
}

func compareTimes(a, b *time.Time) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	default:
		return a.Compare(*b)
	}
}

func names(sagaID string, operationIDs []string) []string {
	var out []string
	for _, id := range operationIDs {
		out = append(out, stepName(sagaID, id, id))
	}
	return out
}
