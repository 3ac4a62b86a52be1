package bpmn

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode"
)

// Parse reads one BPMN 2.0 XML document of at most [MaxBytes] bytes.
//
// An error means that the text is no BPMN document: not well-formed, too
// large, too deep, with a document type declaration, or with another root.
// What is well-formed but wrong (a flow without target, an id used twice) is
// kept and reported by [Definitions.Check]: run nothing that Check refuses.
// Elements of the BPMN namespace that Parse does not know are kept as
// [Element] with their local name as kind. The error holds [*Error] values.
func Parse(r io.Reader) (*Definitions, error) {
	root, err := readTree(r)
	if err != nil {
		return nil, err
	}
	if !root.is(nsBPMN, "definitions") {
		return nil, &Error{Line: root.line, Reason: fmt.Sprintf("root element is %q of namespace %q: expected definitions of %q", root.local, root.space, nsBPMN)}
	}
	p := &parser{
		defs: &Definitions{
			ID:          root.attr("id"),
			Messages:    map[string]*Message{},
			Errors:      map[string]*ErrorDef{},
			Signals:     map[string]*Signal{},
			Escalations: map[string]*Escalation{},
			Artifacts:   map[string]*Artifact{},
			elements:    map[string]*Element{},
		},
		ids: map[string]int{},
	}
	for _, a := range root.attrs {
		if a.Name.Space == nsModeler && a.Name.Local == "executionPlatform" {
			p.defs.Platform = a.Value
		}
	}
	p.id(root)
	p.rootElements(root)
	for _, n := range root.all(nsBPMN, "process") {
		p.process(n)
	}
	for _, n := range root.all(nsBPMN, "collaboration") {
		p.collaboration(n)
	}
	for _, resolve := range append(p.later, p.last...) {
		resolve()
	}
	p.diagram(root)
	sort.SliceStable(p.defs.problems, func(i, j int) bool { return p.defs.problems[i].Line < p.defs.problems[j].Line })
	return p.defs, nil
}

type parser struct {
	defs  *Definitions
	ids   map[string]int // id → line of its first use
	later []func()       // references to flow nodes, resolved when everything is known
	last  []func()       // references to flows, resolved after those
}

func (p *parser) problem(n *node, id, format string, args ...any) {
	p.defs.problems = append(p.defs.problems, &Error{Line: n.line, ElementID: id, Kind: Kind(n.local), Reason: fmt.Sprintf(format, args...)})
}

// id registers the id of an element; ids are unique in a file.
func (p *parser) id(n *node) string {
	id := n.attr("id")
	if id == "" {
		return ""
	}
	if first, ok := p.ids[id]; ok {
		p.problem(n, id, "id is already used at line %d: expected a unique id", first)
	} else {
		p.ids[id] = n.line
	}
	if !isName(id) {
		p.problem(n, id, "id is no XML name: expected a letter or _, then letters, digits, dots, - and _")
	}
	return id
}

// isName says whether an id is an NCName of XML, as far as letters and digits go.
func isName(id string) bool {
	for i, r := range id {
		switch {
		case r == '_' || unicode.IsLetter(r):
		case i > 0 && (r == '-' || r == '.' || r == '\u00b7' || unicode.IsDigit(r) || unicode.IsMark(r)):
		default:
			return false
		}
	}
	return id != ""
}

// flag reads an xsd:boolean attribute.
func (p *parser) flag(n *node, name string, absent bool) bool {
	v, ok := n.lookup(name)
	if !ok {
		return absent
	}
	switch strings.TrimSpace(v) {
	case "true", "1":
		return true
	case "false", "0":
		return false
	}
	p.problem(n, n.attr("id"), "attribute %s is %q: expected true or false", name, v)
	return absent
}

// ref strips the prefix of a QName reference when the bare name is what exists.
func ref[T any](known map[string]T, name string) (T, bool) {
	name = strings.TrimSpace(name)
	if v, ok := known[name]; ok {
		return v, true
	}
	if i := strings.IndexByte(name, ':'); i >= 0 {
		v, ok := known[name[i+1:]]
		return v, ok
	}
	var none T
	return none, false
}

func (p *parser) rootElements(root *node) {
	d := p.defs
	for _, n := range root.children {
		if n.space != nsBPMN {
			continue
		}
		switch n.local {
		case "message":
			m := &Message{ID: p.id(n), Name: n.attr("name"), Line: n.line}
			if ext := n.child(nsBPMN, "extensionElements"); ext != nil {
				if s := ext.child(nsZeebe, "subscription"); s != nil {
					m.CorrelationKey = strings.TrimSpace(s.attr("correlationKey"))
				}
			}
			d.Messages[m.ID] = m
		case "error":
			e := &ErrorDef{ID: p.id(n), Name: n.attr("name"), Code: strings.TrimSpace(n.attr("errorCode")), Line: n.line}
			d.Errors[e.ID] = e
		case "signal":
			s := &Signal{ID: p.id(n), Name: n.attr("name")}
			d.Signals[s.ID] = s
		case "escalation":
			e := &Escalation{ID: p.id(n), Name: n.attr("name"), Code: strings.TrimSpace(n.attr("escalationCode"))}
			d.Escalations[e.ID] = e
		}
	}
}

func (p *parser) process(n *node) {
	proc := &Process{Name: n.attr("name"), Executable: p.flag(n, "isExecutable", false), Line: n.line}
	proc.ID = p.id(n)
	if proc.ID == "" {
		p.problem(n, "", "process has no id")
	}
	p.defs.Processes = append(p.defs.Processes, proc)
	if ext := n.child(nsBPMN, "extensionElements"); ext != nil {
		p.processExtensions(ext, proc)
	}
	p.scope(n, &proc.Scope, nil)
}

func (p *parser) processExtensions(ext *node, proc *Process) {
	for _, z := range ext.children {
		switch {
		case z.space != nsZeebe:
		case z.local == "versionTag":
			proc.VersionTag = strings.TrimSpace(z.attr("value"))
		case z.local == "properties" || z.local == "userTaskForm": // nothing of a run depends on them
		default:
			proc.Unknown = append(proc.Unknown, "zeebe:"+z.local)
		}
	}
}

func (p *parser) collaboration(n *node) {
	for _, c := range n.children {
		if c.space != nsBPMN {
			continue
		}
		switch c.local {
		case "participant":
			a := p.artifact(c, c.attr("name"))
			a.ProcessRef = c.attr("processRef")
			p.defs.Participants = append(p.defs.Participants, a)
		case "messageFlow":
			p.defs.MessageFlows = append(p.defs.MessageFlows, &Association{ID: p.id(c), SourceRef: c.attr("sourceRef"), TargetRef: c.attr("targetRef"), Line: c.line})
		case "association":
			p.defs.Associations = append(p.defs.Associations, p.association(c))
		case "textAnnotation":
			p.annotation(c)
		case "group":
			p.artifact(c, "")
		}
	}
}

func (p *parser) artifact(n *node, name string) *Artifact {
	a := &Artifact{ID: p.id(n), Kind: Kind(n.local), Name: name, Line: n.line}
	if a.ID != "" {
		p.defs.Artifacts[a.ID] = a
	}
	return a
}

func (p *parser) annotation(n *node) {
	text := ""
	if t := n.child(nsBPMN, "text"); t != nil {
		text = t.trimmed()
	}
	p.artifact(n, text)
}

func (p *parser) association(n *node) *Association {
	return &Association{ID: p.id(n), SourceRef: n.attr("sourceRef"), TargetRef: n.attr("targetRef"), Line: n.line}
}

func (p *parser) lanes(n *node) {
	for _, lane := range n.all(nsBPMN, "lane") {
		p.artifact(lane, lane.attr("name"))
		for _, inner := range lane.all(nsBPMN, "childLaneSet") {
			p.lanes(inner)
		}
	}
}

// notFlowNodes are children of a process or subprocess that do not execute.
var notFlowNodes = map[string]bool{
	"documentation": true, "extensionElements": true, "incoming": true, "outgoing": true, "ioSpecification": true,
	"property": true, "dataObject": true, "auditing": true, "monitoring": true, "resourceRole": true, "performer": true,
	"correlationSubscription": true, "supports": true, "dataInputAssociation": true, "dataOutputAssociation": true,
	"multiInstanceLoopCharacteristics": true, "standardLoopCharacteristics": true, "completionCondition": true,
	"categoryValueRef": true, "ioBinding": true, "potentialOwner": true, "humanPerformer": true,
}

// scope reads the flow elements of a process or subprocess.
func (p *parser) scope(n *node, s *Scope, parent *Element) {
	for _, c := range n.children {
		if c.space != nsBPMN || notFlowNodes[c.local] {
			continue
		}
		switch c.local {
		case "sequenceFlow":
			p.flow(c, s)
		case "association":
			s.Associations = append(s.Associations, p.association(c))
		case "textAnnotation":
			p.annotation(c)
		case "group", "dataObjectReference", "dataStoreReference":
			p.artifact(c, c.attr("name"))
		case "laneSet":
			p.lanes(c)
		default:
			s.Elements = append(s.Elements, p.element(c, s, parent))
		}
	}
}

// flow keeps a sequence flow whose two ends exist; another one is a problem.
func (p *parser) flow(n *node, s *Scope) {
	f := &Flow{ID: p.id(n), Name: n.attr("name"), Line: n.line}
	if c := n.child(nsBPMN, "conditionExpression"); c != nil {
		f.Condition = c.trimmed()
	}
	p.later = append(p.later, func() {
		source, okSource := ref(p.defs.elements, n.attr("sourceRef"))
		target, okTarget := ref(p.defs.elements, n.attr("targetRef"))
		if !okSource {
			p.problem(n, f.ID, "sourceRef %q leads to no flow node", n.attr("sourceRef"))
		}
		if !okTarget {
			p.problem(n, f.ID, "targetRef %q leads to no flow node", n.attr("targetRef"))
		}
		if !okSource || !okTarget {
			return
		}
		if source.In != s || target.In != s {
			p.problem(n, f.ID, "goes from %q to %q: expected both ends in the scope %q that holds the flow", source.ID, target.ID, s.ID)
			return
		}
		f.Source, f.Target = source, target
		s.Flows = append(s.Flows, f)
		source.Outgoing = append(source.Outgoing, f)
		target.Incoming = append(target.Incoming, f)
	})
}
