package bpmn

import (
	"strconv"
	"strings"
)

// connector refuses calls from the model to the outside: they bypass the
// worker's dedup, outbox and undo ledger.
func (l *linter) connector(e *Element) {
	if strings.HasPrefix(e.Task.Type, "io.camunda:http") || strings.Contains(e.Template, "connectors.HttpJson") {
		l.add(e, "rest-connector", SeverityError, "replace it by a job type of a worker", "calls REST from the model (job type %q)", e.Task.Type)
	}
}

func (l *linter) retries(e *Element) {
	r := e.Task.Retries
	n, err := strconv.Atoi(r)
	switch {
	case !e.Task.Declared:
		l.add(e, "retries", SeverityError, `retries="3" on zeebe:taskDefinition`, "does not say how many retries its job has")
	case strings.HasPrefix(r, "="):
		l.add(e, "retries", SeverityWarning, "", "takes its retries from the expression %q, which nothing bounds", short(r))
	case err != nil || n < 1:
		l.add(e, "retries", SeverityError, "", "retries %q: expected a whole number from 1 to %d", short(r), MaxRetries)
	case n > MaxRetries:
		l.add(e, "retries", SeverityError, "", "retries %d: expected at most %d; wait in the model instead", n, MaxRetries)
	}
}

// timeout wants something that ends the waiting for a job: a timer on the task
// or around it, or the promise of the worker. A handler cannot carry a timer,
// and after the pivot there is no giving up.
func (l *linter) timeout(e *Element) {
	if e.Undoes() || e.Machinery() {
		return
	}
	if _, ok := e.Property(PropertyAfterPivot); ok {
		return
	}
	if text, ok := e.Property(PropertyTimeout); ok {
		if d, err := ParseDuration(text); err != nil || d.IsZero() {
			l.add(e, "timeout", SeverityError, "", "%s %q: expected an ISO 8601 duration such as PT30S", PropertyTimeout, short(text))
		}
		return
	}
	for at := e; at != nil; at = at.Parent {
		for _, b := range at.Boundary {
			if b.Event != nil && b.Event.Kind == EventTimer {
				return
			}
		}
		if hasTimerSubprocess(at.In) {
			return
		}
	}
	l.add(e, "timeout", SeverityWarning, `<zeebe:property name="`+PropertyTimeout+`" value="PT30S" />`, "has no time-out: no timer on it or around it, and no %s", PropertyTimeout)
}

// Undoes says whether the element is a compensation handler or part of one.
func (e *Element) Undoes() bool {
	for at := e; at != nil; at = at.Parent {
		if at.ForCompensation {
			return true
		}
	}
	return false
}

func hasTimerSubprocess(s *Scope) bool {
	for _, sub := range s.Elements {
		if !sub.TriggeredByEvent || sub.Scope == nil {
			continue
		}
		for _, start := range sub.Scope.Elements {
			if start.Kind == KindStartEvent && start.Event != nil && start.Event.Kind == EventTimer {
				return true
			}
		}
	}
	return false
}

// compensable wants every side effect to have a way back (spec S2): a handler,
// an undo job from the ledger, a branch to a person, or a mark that says why not.
func (l *linter) compensable(e *Element) {
	if e.Undoes() || e.Machinery() || e.followUp() || e.CompensationHandler != nil {
		return
	}
	for at := e; at != nil; at = at.Parent {
		if at != e && at.CompensationHandler != nil {
			return // the subprocess around it is undone as a whole
		}
		for _, name := range []string{PropertyPivot, PropertyAfterPivot, PropertyUndo, PropertyNoUndo, PropertyManual} {
			if v, ok := at.Property(name); ok && strings.TrimSpace(v) != "" {
				return
			}
		}
		if v, _ := at.Property(PropertyEffect); v == "none" {
			return
		}
		for _, b := range at.Boundary {
			if b.Event != nil && b.Event.Kind != EventCompensation && reachesUserTask(b) {
				return
			}
		}
	}
	l.add(e, "compensation", SeverityError, "a compensation boundary event with a handler, or one of the properties "+strings.Join([]string{PropertyUndo, PropertyEffect, PropertyPivot, PropertyAfterPivot, PropertyNoUndo, PropertyManual}, ", "),
		"has a side effect and no way back")
}

func reachesUserTask(from *Element) bool {
	seen := map[*Element]bool{from: true}
	queue := []*Element{from}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if e.Kind == KindUserTask {
			return true
		}
		for _, f := range e.Outgoing {
			if !seen[f.Target] {
				seen[f.Target] = true
				queue = append(queue, f.Target)
			}
		}
	}
	return false
}

// declaredErrors wants every business error code that a task declares to be caught.
func (l *linter) declaredErrors(e *Element) {
	codes, _ := e.Property(PropertyErrors)
	for code := range strings.SplitSeq(codes, ",") {
		if code = strings.TrimSpace(code); code != "" && !caught(e, code) {
			l.add(e, "errors", SeverityError, "", "throws the business error %q, which nothing catches", code)
		}
	}
}

// thrown wants the code of an error end event to be caught in this process. An
// error that leaves the process is for a call activity; that is a warning.
func (l *linter) thrown(e *Element) {
	if e.Kind != KindEndEvent || e.Event == nil || e.Event.Kind != EventError || e.Event.Error == nil {
		return
	}
	code := e.Event.Error.Code
	if code == "" || strings.HasPrefix(code, "=") {
		return
	}
	at := e.Parent
	if at == nil || !caught(at, code) && !caughtBeside(e, code) {
		l.add(e, "errors", SeverityWarning, "", "throws the error %q, which nothing in this process catches", code)
	}
}

// caught walks outward from an activity: its boundary events, then event
// subprocesses of the scope around it.
func caught(e *Element, code string) bool {
	for at := e; at != nil; at = at.Parent {
		for _, b := range at.Boundary {
			if catches(b, code) {
				return true
			}
		}
		if caughtBeside(at, code) {
			return true
		}
	}
	return false
}

// caughtBeside looks at the event subprocesses of the scope in which e stands;
// one does not catch what comes from inside itself.
func caughtBeside(e *Element, code string) bool {
	for _, sub := range e.In.Elements {
		if !sub.TriggeredByEvent || sub.Scope == nil || sub == e || sub == e.Parent {
			continue
		}
		for _, start := range sub.Scope.Elements {
			if start.Kind == KindStartEvent && catches(start, code) {
				return true
			}
		}
	}
	return false
}

func catches(e *Element, code string) bool {
	return e.Event != nil && e.Event.Kind == EventError && (e.Event.Error == nil || e.Event.Error.Code == "" || e.Event.Error.Code == code)
}
