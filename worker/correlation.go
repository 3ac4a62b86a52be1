package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// Names of the correlation variables (spec W2).
const (
	varBusinessKey   = "businessKey"
	varOperationID   = "operationId"
	varCorrelationID = "correlationId"
	varTraceparent   = "traceparent"
	varTraceID       = "traceId"
	varTenant        = "tenant"
	varSagaID        = "sagaId"
	varActor         = "actor"
	varHTTPKey       = "httpIdempotencyKey"
	varInstance      = "processInstanceKey"
	varForward       = "forwardOperationId"
)

func correlationNames() []string {
	return []string{varBusinessKey, varOperationID, varCorrelationID, varTraceparent, varTraceID, varTenant, varSagaID, varActor, varHTTPKey, varInstance}
}

// maxID bounds business keys and other ids, in bytes; the outbox's keys have the same limit.
const maxID = 200

var traceIDForm = regexp.MustCompile(`^[0-9a-f]{32}$`) //nolint:gochecknoglobals // compiled once

// metaOf reads the correlation variables of a job. The error is FATAL, names what is wrong and shows the input mappings to paste.
func metaOf(j zeebe.Job, cluster string, vars map[string]any) (Meta, error) {
	m := Meta{
		Key: j.Key, Type: j.Type, Cluster: cluster, ProcessID: j.ProcessID, ProcessInstanceKey: j.ProcessInstanceKey,
		ElementID: j.ElementID, ElementInstanceKey: j.ElementInstanceKey, Retries: j.Retries,
	}
	if j.Headers != "" {
		if err := json.Unmarshal([]byte(j.Headers), &m.Headers); err != nil {
			return m, outcome.Fatalf(outcome.ReasonInput, "task headers cannot be decoded: %s", unquoted(err))
		}
	}
	var bad, missing []string
	text := func(name string, required bool) string {
		switch v := vars[name].(type) {
		case nil:
		case string:
			if len(v) > maxID || strings.ContainsRune(v, 0) {
				bad = append(bad, fmt.Sprintf("%s: %d bytes, want at most %d and no NUL", name, len(v), maxID))
			}
			if v != "" {
				return v
			}
		default:
			bad = append(bad, fmt.Sprintf("%s: is %s, want string", name, kindOf(v)))
			return ""
		}
		if required {
			missing = append(missing, name)
		}
		return ""
	}
	m.BusinessKey, m.OperationID, m.CorrelationID = text(varBusinessKey, true), text(varOperationID, true), text(varCorrelationID, true)
	m.Tenant, m.SagaID, m.HTTPIdempotencyKey = text(varTenant, false), text(varSagaID, false), text(varHTTPKey, false)
	m.Traceparent = text(varTraceparent, false)
	if m.Traceparent == "" {
		if id := strings.ToLower(text(varTraceID, false)); traceIDForm.MatchString(id) {
			sum := sha256.Sum256([]byte(m.OperationID))
			m.Traceparent = "00-" + id + "-" + hex.EncodeToString(sum[:8]) + "-00"
		} else {
			missing = append(missing, varTraceparent)
		}
	}
	if a := vars[varActor]; a != nil {
		raw, err := json.Marshal(a)
		var actor events.Actor
		if err != nil || json.Unmarshal(raw, &actor) != nil {
			bad = append(bad, "actor: want an object of userId, actorContext, serviceClient")
		}
		m.Actor = actor
	}
	if len(bad)+len(missing) == 0 {
		return m, nil
	}
	slices.Sort(missing)
	msg := ""
	if len(missing) > 0 {
		msg = "missing " + strings.Join(missing, ", ")
	}
	if len(bad) > 0 {
		msg = strings.TrimPrefix(msg+"; "+strings.Join(bad, "; "), "; ")
	}
	if len(missing) > 0 {
		msg += "\nAdd to the zeebe:ioMapping of service task " + j.ElementID + ":\n" + mappings(j.ElementID, missing)
	}
	return m, outcome.Fatalf(outcome.ReasonInput, "correlation variables: %s", msg)
}

// mappings gives the input mappings for the missing correlation variables, to paste into the model.
func mappings(element string, missing []string) string {
	var b strings.Builder
	for _, name := range missing {
		source := "=" + name
		if name == varOperationID {
			// Stable across retries, unique per task; inside multi-instance the loop counter makes it so.
			source = "=sagaId + &#34;:" + element + "&#34;"
		}
		fmt.Fprintf(&b, "  <zeebe:input source=%q target=%q />\n", source, name)
	}
	if slices.Contains(missing, varOperationID) {
		fmt.Fprintf(&b, "  (inside multi-instance: source=\"=sagaId + &#34;:%s:&#34; + string(loopCounter)\")\n", element)
	}
	return b.String()
}

// instanceMismatch reports a processInstanceKey variable that names another instance than the job's: an ancestor's is usual
// below a call activity, so it is only logged.
func instanceMismatch(m Meta, vars map[string]any) bool {
	v := vars[varInstance]
	if v == nil {
		return false
	}
	return fmt.Sprint(v) != strconv.FormatInt(m.ProcessInstanceKey, 10)
}
