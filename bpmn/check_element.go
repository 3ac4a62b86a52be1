package bpmn

import "strings"

// isActivity says whether boundary events may be attached to a kind.
func (k Kind) isActivity() bool {
	switch k {
	case KindServiceTask, KindSendTask, KindReceiveTask, KindUserTask, KindManualTask, KindTask, KindScriptTask,
		KindBusinessRuleTask, KindSubProcess, KindCallActivity, "transaction", "adHocSubProcess":
		return true
	}
	return false
}

func (k Kind) isEvent() bool { return strings.HasSuffix(string(k), "Event") }

func (c *checker) element(e *Element) {
	if camunda7 := prefixed(e.Unknown, "camunda:"); camunda7 != "" {
		c.fail(e, "has the Camunda 7 attribute or element %q, which Zeebe ignores: convert the model to Camunda 8 (zeebe:taskDefinition and so on)", camunda7)
	}
	switch e.Kind {
	case KindServiceTask:
		c.job(e, true)
	case KindSendTask:
		c.job(e, true)
	case KindScriptTask:
		c.eitherJobOr(e, "zeebe:script", e.Script != nil)
	case KindBusinessRuleTask:
		c.eitherJobOr(e, "zeebe:calledDecision", e.Decision != nil)
	case KindReceiveTask:
		c.message(e, e.Message, true)
	case KindUserTask:
		c.userTask(e)
	case KindCallActivity:
		if e.Called.ProcessID == "" {
			c.fail(e, "has no zeebe:calledElement with a processId")
		}
		c.attribute(e, "processId", e.Called.ProcessID, false)
	case KindEventBasedGateway:
		c.eventGateway(e)
	}
	if e.Kind.isEvent() {
		c.event(e)
	}
	c.mappings(e)
	c.loop(e)
	c.compensation(e)
	c.equalCatches(e.Boundary, "one activity")
}

func prefixed(all []string, prefix string) string {
	for _, s := range all {
		if strings.HasPrefix(s, prefix) {
			return s
		}
	}
	return ""
}

func (c *checker) job(e *Element, required bool) {
	switch {
	case e.Task == nil && required:
		c.fail(e, "has no zeebe:taskDefinition: expected a job type")
	case e.Task == nil:
	case e.Task.Type == "":
		c.fail(e, "has an empty job type")
	default:
		c.attribute(e, "job type", e.Task.Type, false)
		c.attribute(e, "retries", e.Task.Retries, false)
	}
}

func (c *checker) eitherJobOr(e *Element, other string, has bool) {
	if (e.Task != nil) == has {
		c.fail(e, "needs either a zeebe:taskDefinition or a %s", other)
	}
	c.job(e, false)
	if e.Script != nil {
		c.attribute(e, "script expression", e.Script.Expression, true)
		if e.Script.Expression == "" || e.Script.ResultVariable == "" {
			c.fail(e, "zeebe:script needs an expression and a resultVariable")
		}
	}
	if e.Decision != nil {
		c.attribute(e, "decisionId", e.Decision.DecisionID, false)
		if e.Decision.DecisionID == "" || e.Decision.ResultVariable == "" {
			c.fail(e, "zeebe:calledDecision needs a decisionId and a resultVariable")
		}
	}
}

func (c *checker) userTask(e *Element) {
	u := e.UserTask
	for _, a := range []struct {
		name, text string
		date       bool
	}{
		{"assignee", u.Assignee, false}, {"candidateGroups", u.CandidateGroups, false}, {"candidateUsers", u.CandidateUsers, false},
		{"dueDate", u.DueDate, true}, {"followUpDate", u.FollowUpDate, true}, {"priority", u.Priority, false},
	} {
		c.attribute(e, a.name, a.text, false)
		if !a.date || a.text == "" || a.text[0] == '=' {
			continue
		}
		if _, err := ParseDateTime(a.text); err != nil {
			c.fail(e, "%s: %v", a.name, err)
		}
	}
	if e.Task != nil {
		c.fail(e, "is a user task with a zeebe:taskDefinition: expected none")
	}
}

func (c *checker) mappings(e *Element) {
	for _, m := range e.Inputs {
		if m.Source == "" {
			c.fail(e, "input mapping to %q has no source", m.Target)
		}
		c.attribute(e, "input mapping to "+m.Target, m.Source, false)
		c.target(e, "input", m.Target)
	}
	for _, m := range e.Outputs {
		if m.Source == "" {
			c.fail(e, "output mapping to %q has no source", m.Target)
		}
		c.attribute(e, "output mapping to "+m.Target, m.Source, true)
		c.target(e, "output", m.Target)
	}
}

// target checks the name that a mapping writes: a.b.c of plain names.
func (c *checker) target(e *Element, direction, target string) {
	if target == "" {
		c.fail(e, "%s mapping has no target", direction)
		return
	}
	for part := range strings.SplitSeq(target, ".") {
		if !isVariableName(part) {
			c.fail(e, "%s mapping target %q is not a variable name", direction, short(target))
			return
		}
	}
}

func isVariableName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 0x7f
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	switch s {
	case "", "null", "true", "false", "function", "if", "then", "else", "for", "between", "instance", "of", "not", "in", "and", "or", "some", "every", "satisfies", "return":
		return false
	}
	return true
}

func (c *checker) loop(e *Element) {
	l := e.Loop
	if l == nil {
		return
	}
	if l.InputCollection == "" {
		c.fail(e, "is multi-instance without an inputCollection in zeebe:loopCharacteristics")
	}
	c.attribute(e, "inputCollection", l.InputCollection, true)
	c.attribute(e, "outputElement", l.OutputElement, true)
	c.attribute(e, "completionCondition", l.CompletionCondition, true)
	if (l.OutputCollection == "") != (l.OutputElement == "") {
		c.fail(e, "has one of outputCollection and outputElement: expected both or none")
	}
}

func (c *checker) eventGateway(e *Element) {
	if len(e.Outgoing) < 2 {
		c.fail(e, "has %d outgoing flows: expected at least two", len(e.Outgoing))
	}
	var targets []*Element
	for _, f := range e.Outgoing {
		t := f.Target
		ok := t.Kind == KindCatchEvent && t.Event != nil
		if ok {
			switch t.Event.Kind {
			case EventMessage, EventTimer, EventSignal:
			default:
				ok = false
			}
		}
		if !ok {
			c.fail(e, "leads to %q: expected an intermediate message, timer or signal catch event", t.ID)
			continue
		}
		if len(t.Incoming) > 1 {
			c.fail(t, "follows an event-based gateway and has %d incoming flows: expected one", len(t.Incoming))
		}
		targets = append(targets, t)
	}
	c.equalCatches(targets, "one event-based gateway")
}
