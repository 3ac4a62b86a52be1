package bpmn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// correlation are the inputs that every job carries (spec B3).
func (l *linter) correlation(e *Element) {
	have := map[string]string{}
	for _, m := range e.Inputs {
		have[m.Target] = m.Source
	}
	want := []string{"businessKey", "operationId", "correlationId", "traceparent"}
	if _, ok := have["traceId"]; ok {
		want = want[:3]
	}
	if e.Undoes() {
		want = append(want, "forwardOperationId")
	}
	var missing []string
	for _, name := range want {
		if have[name] == "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		l.add(e, "correlation", SeverityError, l.defs.CorrelationMappings(e.ID), "lacks the inputs %s", strings.Join(missing, ", "))
	}
	source := have["operationId"]
	if source == "" {
		return
	}
	expr, err := feel.ParseExpression(source)
	if err != nil {
		return // Check says so
	}
	switch {
	case expr.IsStatic(), len(expr.Expr().Variables()) == 0:
		l.add(e, "operation-id", SeverityError, l.defs.CorrelationMappings(e.ID), "operationId %q is the same in every process instance", source)
	case e.insideLoop() && !e.tellsInstances(expr.Expr().Variables()):
		l.add(e, "operation-id", SeverityError, l.defs.CorrelationMappings(e.ID), "operationId %q is the same for every instance of a multi-instance activity: add loopCounter, or the id of the input element", source)
	case strings.Contains(source, "uuid()") || strings.Contains(source, "now()") || strings.Contains(source, "random number()"):
		l.add(e, "operation-id", SeverityError, l.defs.CorrelationMappings(e.ID), "operationId %q changes when the task is entered again", source)
	}
	if !expr.IsStatic() && e.undoesElement(expr.Expr().Variables()) {
		return // the element says what is undone; tasks of one handler are ways of it
	}
	if other := l.operations[source]; other != nil && !sameOperation(e, other) {
		l.add(e, "operation-id", SeverityError, l.defs.CorrelationMappings(e.ID), "operationId %q is also that of %q", source, other.ID)
	}
	l.operations[source] = e
}

// sameOperation says whether two tasks mean one operation on purpose: a
// follow-up asks about the forward operation under the same id.
func sameOperation(a, b *Element) bool {
	return a.followUp() || b.followUp() || a.Machinery() && b.Machinery() && a.Task.Type == b.Task.Type
}

// followUp says whether a job only finds out what became of an earlier one.
func (e *Element) followUp() bool {
	return e.Task != nil && strings.HasSuffix(e.Task.Type, ".follow-up")
}

// tellsInstances says whether an expression of these variables may differ between the instances of the loops around e: it reads
// the counter, or the element that an instance is for.
func (e *Element) tellsInstances(variables []string) bool {
	for at := e; at != nil; at = at.Parent {
		if at.Loop != nil && (slices.Contains(variables, "loopCounter") || at.Loop.InputElement != "" && slices.Contains(variables, at.Loop.InputElement)) {
			return true
		}
	}
	return false
}

// undoesElement says whether e stands in a multi-instance compensation handler and names what it undoes by the handler's element.
func (e *Element) undoesElement(variables []string) bool {
	for at := e; at != nil; at = at.Parent {
		if at.ForCompensation {
			return at.Loop != nil && at.Loop.InputElement != "" && slices.Contains(variables, at.Loop.InputElement)
		}
	}
	return false
}

// insideLoop says whether the element or one around it is multi-instance.
func (e *Element) insideLoop() bool {
	for at := e; at != nil; at = at.Parent {
		if at.Loop != nil {
			return true
		}
	}
	return false
}

// CorrelationMappings returns the zeebe:input lines that give a job its
// correlation fields, ready to paste into its zeebe:ioMapping; "" when no element
// has this id. A compensation handler also gets forwardOperationId, taken from
// the activity that its boundary event is attached to.
func (d *Definitions) CorrelationMappings(elementID string) string {
	e := d.elements[elementID]
	if e == nil {
		return ""
	}
	operation := func(id, tail string) string {
		switch {
		case !e.insideLoop():
			return `=sagaId + ":` + id + tail + `"`
		case tail != "":
			return `=sagaId + ":` + id + `:" + string(loopCounter) + "` + tail + `"`
		}
		return `=sagaId + ":` + id + `:" + string(loopCounter)`
	}
	lines := [][2]string{{"businessKey", "=businessKey"}}
	if forward := d.compensates(e); forward != "" {
		lines = append(lines, [2]string{"operationId", operation(forward, ":undo")}, [2]string{"forwardOperationId", operation(forward, "")})
	} else {
		lines = append(lines, [2]string{"operationId", operation(e.ID, "")})
	}
	for _, name := range []string{"correlationId", "traceparent", "tenant", "sagaId"} {
		lines = append(lines, [2]string{name, "=" + name})
	}
	var b strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&b, "<zeebe:input source=\"%s\" target=\"%s\" />\n", strings.ReplaceAll(line[1], `"`, "&#34;"), line[0])
	}
	return b.String()
}

// compensates names the activity whose handler e is; "" when it is none.
func (d *Definitions) compensates(e *Element) string {
	if !e.ForCompensation {
		return ""
	}
	for _, a := range e.In.Associations {
		if b := d.elements[a.SourceRef]; a.TargetRef == e.ID && b != nil && b.AttachedTo != nil {
			return b.AttachedTo.ID
		}
	}
	return ""
}
