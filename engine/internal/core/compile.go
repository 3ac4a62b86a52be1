package core

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// compiler turns a checked model into nodes and collects what it refuses.
type compiler struct {
	proc     *Process
	defs     *bpmn.Definitions
	byEl     map[*bpmn.Element]*Node
	flows    map[*bpmn.Flow]*Flow
	problems []*bpmn.Error
	compat85 bool
}

func compile(defs *bpmn.Definitions, p *bpmn.Process, compat85 bool) (*Process, []*bpmn.Error) {
	proc := &Process{ID: p.ID, Name: p.Name, Tag: p.VersionTag, nodes: map[string]*Node{}}
	c := &compiler{proc: proc, defs: defs, byEl: map[*bpmn.Element]*Node{}, flows: map[*bpmn.Flow]*Flow{}, compat85: compat85}
	proc.root = &Node{ID: p.ID, Name: p.Name, Kind: "process", Type: "PROCESS", Proc: proc}
	proc.nodes[p.ID] = proc.root
	c.refuseProcess(p)
	c.scope(proc.root, &p.Scope)
	c.link(&p.Scope)
	for _, n := range proc.nodes {
		if n.Kind == bpmn.KindInclusiveGateway && n.isJoin() {
			n.reach = reaching(n)
		}
	}
	return proc, c.problems
}

func (c *compiler) refuse(e *bpmn.Element, format string, args ...any) {
	c.problems = append(c.problems, &bpmn.Error{Line: e.Line, ElementID: e.ID, Kind: e.Kind, Reason: fmt.Sprintf(format, args...)})
}

// expr compiles text at e; name says which property it is.
func (c *compiler) expr(e *bpmn.Element, name, text string) *expr {
	x, err := compileExpr(text)
	if err != nil {
		c.refuse(e, "%s: %v", name, err)
		return staticExpr("")
	}
	c.refuseNewerFEEL(e, name, x)
	return x
}

func (c *compiler) optional(e *bpmn.Element, name, text string) *expr {
	if text == "" {
		return nil
	}
	return c.expr(e, name, text)
}

// scope creates the nodes of s under parent.
func (c *compiler) scope(parent *Node, s *bpmn.Scope) {
	for _, e := range s.Elements {
		n := &Node{ID: e.ID, Name: e.Name, Kind: e.Kind, Type: elementType(e), El: e, Proc: c.proc, Parent: parent}
		c.byEl[e] = n
		c.proc.nodes[e.ID] = n
		parent.children = append(parent.children, n)
		n.interrupting = e.Interrupting
		n.forCompensation = e.ForCompensation
		n.isESP = e.TriggeredByEvent
		c.refuseUnsupported(e)
		c.properties(n, e)
		if e.Kind == bpmn.KindStartEvent {
			parent.starts = append(parent.starts, n)
			if e.Event == nil {
				parent.start = n
			}
		}
		if e.TriggeredByEvent {
			parent.eventSubs = append(parent.eventSubs, n)
		}
		if e.Scope != nil {
			c.scope(n, e.Scope)
		}
	}
}

// link connects flows, boundary events and compensation handlers once all nodes exist.
func (c *compiler) link(s *bpmn.Scope) {
	for _, e := range s.Elements {
		n := c.byEl[e]
		for _, f := range e.Outgoing {
			to := c.byEl[f.Target]
			if to == nil {
				continue // the model check has refused it
			}
			fl := &Flow{ID: f.ID, from: n, to: to, index: len(to.in), condition: c.optional(e, "condition of flow "+f.ID, f.Condition)}
			n.out = append(n.out, fl)
			to.in = append(to.in, fl)
			if e.Default == f {
				n.def = fl
			}
		}
		if e.AttachedTo != nil {
			if host := c.byEl[e.AttachedTo]; host != nil {
				n.attached = host
				if n.event != bpmn.EventCompensation {
					host.boundary = append(host.boundary, n)
				}
			}
		}
		if e.CompensationHandler != nil {
			n.handler = c.byEl[e.CompensationHandler]
		}
		if e.Scope != nil {
			c.link(e.Scope)
		}
	}
}

func (c *compiler) properties(n *Node, e *bpmn.Element) {
	for _, m := range e.Inputs {
		n.inputs = append(n.inputs, c.mapping(e, "input", m))
	}
	for _, m := range e.Outputs {
		n.outputs = append(n.outputs, c.mapping(e, "output", m))
	}
	n.headerMap = map[string]string{}
	for _, h := range e.Headers {
		n.headerMap[h.Key] = h.Value
	}
	if e.Task != nil {
		n.job = &jobSpec{c.expr(e, "job type", e.Task.Type), c.expr(e, "job retries", e.Task.Retries)}
	}
	if e.Kind == bpmn.KindUserTask {
		c.userTask(n, e)
	}
	n.headers = marshalHeaders(n.headerMap)
	if e.Script != nil {
		n.script, n.resultVariable = c.expr(e, "script", e.Script.Expression), e.Script.ResultVariable
	}
	if e.Message != nil { // receive task
		n.event, n.isCatch = bpmn.EventMessage, true
		n.message = c.catchMessage(e, e.Message)
	}
	if e.Called != nil {
		n.called = &calledSpec{c.expr(e, "called process id", e.Called.ProcessID), e.Called.VersionTag, e.Called.PropagateAllChildVariables, e.Called.PropagateAllParentVariables}
	}
	if l := e.Loop; l != nil {
		n.loop = &loopSpec{
			sequential: l.Sequential, collection: c.expr(e, "input collection", l.InputCollection), element: l.InputElement,
			output: l.OutputCollection, outElement: c.optional(e, "output element", l.OutputElement),
			condition: c.optional(e, "completion condition", l.CompletionCondition),
		}
	}
	if e.Event != nil {
		c.event(n, e, e.Event)
	}
}

func (c *compiler) event(n *Node, e *bpmn.Element, d *bpmn.EventDefinition) {
	n.event = d.Kind
	n.isCatch = e.Kind == bpmn.KindStartEvent || e.Kind == bpmn.KindCatchEvent || e.Kind == bpmn.KindBoundaryEvent
	switch d.Kind {
	case bpmn.EventMessage:
		if d.Message != nil {
			n.message = c.catchMessage(e, d.Message)
		}
	case bpmn.EventTimer:
		if d.Timer != nil {
			spec, err := compileTimer(d.Timer)
			if err != nil {
				c.refuse(e, "timer: %v", err)
			}
			n.timer = spec
		}
	case bpmn.EventError:
		if d.Error != nil {
			n.errorCode = c.expr(e, "error code", d.Error.Code)
		}
		n.interrupting = true
	case bpmn.EventEscalation:
		if d.Escalation != nil {
			n.escalation = c.expr(e, "escalation code", d.Escalation.Code)
		}
	case bpmn.EventSignal:
		if d.Signal != nil {
			n.signal = c.expr(e, "signal name", d.Signal.Name)
		}
	case bpmn.EventCompensation:
		n.activityRef = d.ActivityRef
	case bpmn.EventLink:
		n.link = d.LinkName
	}
}

func (c *compiler) catchMessage(e *bpmn.Element, m *bpmn.Message) *catchMessage {
	return &catchMessage{c.expr(e, "message name", m.Name), c.optional(e, "correlation key", m.CorrelationKey)}
}

func (c *compiler) mapping(e *bpmn.Element, kind string, m bpmn.Mapping) mapping {
	x := c.expr(e, kind+" source of "+m.Target, m.Source)
	if kind == "input" && x.static {
		x = staticString(m.Source)
	}
	return mapping{x, strings.Split(m.Target, ".")}
}

func marshalHeaders(m map[string]string) json.RawMessage {
	d := Doc{}
	for k, v := range m {
		d[k] = jsonString(v)
	}
	return json.RawMessage(d.JSON())
}

// reaching returns the nodes from which a path leads to g.
func reaching(g *Node) map[*Node]bool {
	seen := map[*Node]bool{}
	var visit func(n *Node)
	visit = func(n *Node) {
		if n == g || seen[n] {
			return
		}
		seen[n] = true
		for _, f := range n.in {
			visit(f.from)
		}
		if n.attached != nil {
			visit(n.attached)
		}
	}
	for _, f := range g.in {
		visit(f.from)
	}
	return seen
}
