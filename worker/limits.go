package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/internal/rule"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// maxCode is the longest BPMN error code we send, in bytes.
const maxCode = 200

// maxOutput is the largest variable document we send: the gateway's message limit with room for the rest.
const maxOutput = 3 << 20

func checkCode(code string) error {
	if code == "" || len(code) > maxCode {
		return fmt.Errorf("error code of %d bytes: want 1 to %d", len(code), maxCode)
	}
	for _, c := range code {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return fmt.Errorf("error code %q: want printable characters", code)
		}
	}
	return nil
}

// judge decides, before the commit, how a handler's end is recorded: shape and size of its output, its error code, a
// transaction it must not have ended (path rule 28). A RETRYABLE end is returned as it is.
func (r *Runtime) judge(t *task, conn *pgx.Conn, tx *outbox.Tx, doc json.RawMessage, end *outcome.Error, used int64) (write, *outcome.Error) {
	switch status := conn.PgConn().TxStatus(); {
	case conn.IsClosed():
		if end == nil || end.Class != outcome.Retryable {
			end = &outcome.Error{Class: outcome.Retryable, Reason: outcome.ReasonUnavailable, Message: "the connection broke while the handler ran"}
		}
		return write{}, end
	case tx.Refused() != nil:
		end = outcome.Fatalf("transaction", "%w", tx.Refused())
	case status == 'E' && end == nil:
		return write{}, outcome.NewRetryable(fmt.Errorf("a statement failed and the handler reported success"), 0)
	}
	if end == nil {
		vars, bad := r.checkOutput(t, doc, used)
		if bad == nil {
			return write{out: dedup.Outcome{Class: outcome.Success, Reason: t.reason, Variables: vars}, result: doc}, nil
		}
		if t.spec.shape == shapeExternal && len(doc) > 0 && strings.TrimSpace(string(doc))[0] == '{' {
			// Never refused after its effect: the engine gets a claim check instead.
			ref, _ := json.Marshal(map[string]string{"claimCheck": t.meta.OperationID}) //nolint:errchkjson // strings
			return write{out: dedup.Outcome{Class: outcome.Success, Reason: "claim_check", Variables: ref}, result: doc, payload: doc}, nil
		}
		end = bad
	}
	if end.Class == outcome.Business {
		if bad := r.checkBusiness(t, end, used); bad != nil {
			end = bad
		}
	}
	return write{out: outcomeOf(end)}, end
}

// unusable says why nothing can be recorded on a handler's connection any more, nil when it can: the handler left a result
// open, as a panic in a loop over rows does, or ended its transaction. The connection is closed then.
func unusable(ctx context.Context, conn *pgx.Conn, end *outcome.Error) *outcome.Error {
	if conn.IsClosed() {
		return nil
	}
	busy, ended := conn.PgConn().IsBusy(), conn.PgConn().TxStatus() == 'I'
	if !busy && !ended {
		return nil
	}
	_ = conn.Close(ctx)
	switch {
	case end != nil && (end.Class == outcome.Fatal || end.Class == outcome.Retryable):
		return end
	case busy:
		return outcome.Fatalf("transaction", "the handler left the result of a query open: close its rows")
	default:
		return outcome.Fatalf("transaction", "the handler ended its transaction")
	}
}

// checkOutput gives the variables to send, or why they cannot be sent.
func (r *Runtime) checkOutput(t *task, doc json.RawMessage, used int64) (json.RawMessage, *outcome.Error) {
	s := strings.TrimSpace(string(doc))
	if s == "" || s == "null" || s == "{}" {
		return nil, nil
	}
	if rule.Off(28) {
		return json.RawMessage(s), nil
	}
	if s[0] != '{' {
		return nil, outcome.Fatalf(outcome.ReasonOutput, "output is no JSON object: the engine takes variables by name")
	}
	if len(s) > maxOutput {
		return nil, outcome.Fatalf(outcome.ReasonOutput, "output of %d bytes: want at most %d; keep a large payload in the database and pass its id", len(s), maxOutput)
	}
	total := used + int64(len(s))
	if t.meta.ProcessInstanceKey == 0 || total <= int64(r.cfg.BudgetWarn) {
		return json.RawMessage(s), nil
	}
	if total > int64(r.cfg.BudgetLimit) && r.cfg.BudgetPolicy == BudgetRefuse {
		return nil, outcome.Fatalf(outcome.ReasonOutput, "output of %d bytes: the process instance would hold %d bytes of our variables, want at most %d (variable budget)", len(s), total, r.cfg.BudgetLimit)
	}
	r.taskLog(t).Warn().Int64("bytes", total).Int("warn", r.cfg.BudgetWarn).Msg("variable budget of the process instance is nearly used up")
	return json.RawMessage(s), nil
}

// checkBusiness gives why a refusal cannot be thrown as it is, nil when it can.
func (r *Runtime) checkBusiness(t *task, e *outcome.Error, used int64) *outcome.Error {
	if rule.Off(28) {
		return nil
	}
	if err := checkCode(e.Code); err != nil {
		return outcome.Fatalf(outcome.ReasonOutput, "refusal with a bad %w", err)
	}
	if c := t.spec.opt.codes; c != nil && !c[e.Code] && e.Code != CodeSagaGivenUp && e.Code != CodeSagaNotMine && e.Code != CodeOutcomeUnknown {
		return outcome.Fatalf(outcome.ReasonOutput, "error code %q is not one of those the handler declares with Throws", e.Code)
	}
	if len(e.Variables) == 0 {
		return nil
	}
	doc, err := json.Marshal(e.Variables)
	if err != nil {
		return outcome.Fatalf(outcome.ReasonOutput, "variables of error %s cannot be written as JSON", e.Code)
	}
	if _, bad := r.checkOutput(t, doc, used); bad != nil {
		return bad
	}
	return nil
}

// outcomeOf is the recorded form of an end other than SUCCESS.
func outcomeOf(e *outcome.Error) dedup.Outcome {
	o := dedup.Outcome{Class: e.Class, Reason: e.Reason, Code: e.Code, Message: clip(e.Message)}
	if len(e.Variables) > 0 {
		if doc, err := json.Marshal(e.Variables); err == nil { // checked in checkBusiness
			o.Variables = doc
		}
	}
	return o
}

func fatal(reason, format string, args ...any) *dedup.Outcome {
	o := outcomeOf(outcome.Fatalf(reason, format, args...))
	return &o
}
