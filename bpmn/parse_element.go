package bpmn

import "strings"

// element reads one flow node. Unknown kinds are kept.
func (p *parser) element(n *node, in *Scope, parent *Element) *Element {
	e := &Element{
		ID: p.id(n), Name: n.attr("name"), Kind: Kind(n.local), Line: n.line,
		Parent: parent, In: in, Interrupting: true,
	}
	if e.ID == "" {
		p.problem(n, "", "has no id")
	} else if p.defs.elements[e.ID] == nil {
		p.defs.elements[e.ID] = e
	}
	if d := n.child(nsBPMN, "documentation"); d != nil {
		e.Doc = d.trimmed()
	}
	e.ForCompensation = p.flag(n, "isForCompensation", false)
	switch e.Kind {
	case KindBoundaryEvent:
		e.Interrupting = p.flag(n, "cancelActivity", true)
		p.attach(n, e)
	case KindStartEvent:
		e.Interrupting = p.flag(n, "isInterrupting", true)
	case KindReceiveTask:
		e.Message = p.message(n, e.ID)
	}
	if ref, ok := n.lookup("default"); ok {
		p.last = append(p.last, func() { p.defaultFlow(n, e, ref) })
	}
	for _, a := range n.attrs {
		switch a.Name.Space {
		case nsCamunda7:
			e.Unknown = append(e.Unknown, "camunda:"+a.Name.Local)
		case nsZeebe:
			if a.Name.Local == "modelerTemplate" {
				e.Template = a.Value
			}
		}
	}
	if ext := n.child(nsBPMN, "extensionElements"); ext != nil {
		p.extensions(ext, e)
	}
	if e.Kind == KindUserTask && e.UserTask == nil {
		e.UserTask = &UserTask{}
	}
	if e.Kind == KindCallActivity && e.Called == nil {
		e.Called = &CalledElement{PropagateAllChildVariables: true, PropagateAllParentVariables: true}
	}
	p.characteristics(n, e)
	p.event(n, e)
	switch e.Kind {
	case KindSubProcess, "transaction", "adHocSubProcess":
		e.TriggeredByEvent = p.flag(n, "triggeredByEvent", false)
		e.Scope = &Scope{ID: e.ID}
		p.scope(n, e.Scope, e)
	}
	return e
}

func (p *parser) attach(n *node, e *Element) {
	p.later = append(p.later, func() {
		to, ok := ref(p.defs.elements, n.attr("attachedToRef"))
		if !ok {
			p.problem(n, e.ID, "attachedToRef %q leads to no activity", n.attr("attachedToRef"))
			return
		}
		if to.In != e.In {
			p.problem(n, e.ID, "attachedToRef %q stands in another scope", to.ID)
			return
		}
		e.AttachedTo = to
		to.Boundary = append(to.Boundary, e)
		if e.Event != nil && e.Event.Kind == EventCompensation {
			p.wire(e)
		}
	})
}

// wire finds the compensation handler through the association. What is wrong
// about it is for Check to say.
func (p *parser) wire(e *Element) {
	for _, a := range e.In.Associations {
		if a.SourceRef != e.ID {
			continue
		}
		if h, ok := ref(p.defs.elements, a.TargetRef); ok && h.ForCompensation && h.In == e.In && e.AttachedTo.CompensationHandler == nil {
			e.AttachedTo.CompensationHandler = h
		}
	}
}

func (p *parser) defaultFlow(n *node, e *Element, id string) {
	for _, f := range e.Outgoing {
		if f.ID == strings.TrimSpace(id) {
			e.Default = f
			return
		}
	}
	p.problem(n, e.ID, "default flow %q is not one of its outgoing flows", id)
}

func (p *parser) message(n *node, id string) *Message {
	name, ok := n.lookup("messageRef")
	if !ok {
		return nil
	}
	m, ok := ref(p.defs.Messages, name)
	if !ok {
		p.problem(n, id, "messageRef %q leads to no message", name)
		return nil
	}
	return m
}

// characteristics reads loop markers.
func (p *parser) characteristics(n *node, e *Element) {
	if n.child(nsBPMN, "standardLoopCharacteristics") != nil {
		e.Unknown = append(e.Unknown, "bpmn:standardLoopCharacteristics")
	}
	loop := n.child(nsBPMN, "multiInstanceLoopCharacteristics")
	if loop == nil {
		return
	}
	e.Loop = &MultiInstance{Sequential: p.flag(loop, "isSequential", false)}
	if ext := loop.child(nsBPMN, "extensionElements"); ext != nil {
		if z := ext.child(nsZeebe, "loopCharacteristics"); z != nil {
			e.Loop.InputCollection = strings.TrimSpace(z.attr("inputCollection"))
			e.Loop.InputElement = strings.TrimSpace(z.attr("inputElement"))
			e.Loop.OutputCollection = strings.TrimSpace(z.attr("outputCollection"))
			e.Loop.OutputElement = strings.TrimSpace(z.attr("outputElement"))
		}
	}
	if c := loop.child(nsBPMN, "completionCondition"); c != nil {
		e.Loop.CompletionCondition = c.trimmed()
	}
	if loop.child(nsBPMN, "loopCardinality") != nil {
		e.Unknown = append(e.Unknown, "bpmn:loopCardinality")
	}
}

// extensions reads the zeebe extension elements of one flow node.
func (p *parser) extensions(ext *node, e *Element) {
	for _, z := range ext.children {
		if z.space == nsCamunda7 {
			e.Unknown = append(e.Unknown, "camunda:"+z.local)
			continue
		}
		if z.space != nsZeebe {
			continue
		}
		switch z.local {
		case "taskDefinition":
			if e.Task != nil {
				p.problem(z, e.ID, "has more than one zeebe:taskDefinition: expected one")
				continue
			}
			e.Task = &TaskDefinition{Type: strings.TrimSpace(z.attr("type")), Retries: strings.TrimSpace(z.attr("retries"))}
			if e.Task.Retries == "" {
				e.Task.Retries = "3"
			} else {
				e.Task.Declared = true
			}
		case "taskHeaders":
			for _, h := range z.all(nsZeebe, "header") {
				e.Headers = append(e.Headers, Header{Key: h.attr("key"), Value: h.attr("value")})
			}
		case "properties":
			for _, h := range z.all(nsZeebe, "property") {
				e.Properties = append(e.Properties, Header{Key: h.attr("name"), Value: h.attr("value")})
			}
		case "ioMapping":
			for _, m := range z.children {
				mapping := Mapping{Source: strings.TrimSpace(m.attr("source")), Target: strings.TrimSpace(m.attr("target"))}
				if m.is(nsZeebe, "input") {
					e.Inputs = append(e.Inputs, mapping)
				} else if m.is(nsZeebe, "output") {
					e.Outputs = append(e.Outputs, mapping)
				}
			}
		case "calledElement":
			e.Called = &CalledElement{
				ProcessID:                   strings.TrimSpace(z.attr("processId")),
				PropagateAllChildVariables:  p.flag(z, "propagateAllChildVariables", true),
				PropagateAllParentVariables: p.flag(z, "propagateAllParentVariables", true),
			}
			switch b := z.attr("bindingType"); b {
			case "", "latest":
			case "versionTag":
				if e.Called.VersionTag = strings.TrimSpace(z.attr("versionTag")); e.Called.VersionTag == "" {
					p.problem(z, e.ID, "zeebe:calledElement has bindingType versionTag and no versionTag")
				}
			default:
				e.Unknown = append(e.Unknown, "zeebe:calledElement bindingType "+b)
			}
		case "script":
			e.Script = &Script{Expression: strings.TrimSpace(z.attr("expression")), ResultVariable: strings.TrimSpace(z.attr("resultVariable"))}
		case "calledDecision":
			e.Decision = &Decision{DecisionID: strings.TrimSpace(z.attr("decisionId")), ResultVariable: strings.TrimSpace(z.attr("resultVariable"))}
		case "userTask", "assignmentDefinition", "taskSchedule", "formDefinition", "priorityDefinition":
			p.userTask(z, e)
		default:
			e.Unknown = append(e.Unknown, "zeebe:"+z.local)
		}
	}
}

func (p *parser) userTask(z *node, e *Element) {
	if e.Kind != KindUserTask {
		e.Unknown = append(e.Unknown, "zeebe:"+z.local)
		return
	}
	if e.UserTask == nil {
		e.UserTask = &UserTask{}
	}
	u := e.UserTask
	switch z.local {
	case "userTask":
		u.Native = true
	case "assignmentDefinition":
		u.Assignee, u.CandidateGroups, u.CandidateUsers = z.attr("assignee"), z.attr("candidateGroups"), z.attr("candidateUsers")
	case "taskSchedule":
		u.DueDate, u.FollowUpDate = z.attr("dueDate"), z.attr("followUpDate")
	case "formDefinition":
		u.FormKey, u.FormID, u.ExternalReference = z.attr("formKey"), z.attr("formId"), z.attr("externalReference")
	case "priorityDefinition":
		u.Priority = z.attr("priority")
	}
}
