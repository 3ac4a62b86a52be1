package core

import (
	"regexp"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// refuseUnsupported names what this engine cannot run, so that a model never
// runs with half its meaning.
func (c *compiler) refuseUnsupported(e *bpmn.Element) {
	if elementType(e) == "UNKNOWN" {
		c.refuse(e, "element type %q is not supported by the embedded engine", e.Kind)
	}
	for _, u := range e.Unknown {
		if u == "zeebe:formDefinition" && e.Kind == bpmn.KindStartEvent {
			continue // a start form concerns the task list only
		}
		if strings.HasPrefix(u, "zeebe:") || strings.HasPrefix(u, "bpmn:") {
			c.refuse(e, "%s is not supported by the embedded engine", u)
		}
	}
	if e.Decision != nil {
		c.refuse(e, "zeebe:calledDecision is not supported by the embedded engine (no DMN); use zeebe:taskDefinition")
	}
	if c.compat85 && e.Kind == bpmn.KindInclusiveGateway && len(e.Incoming) > 1 {
		c.refuse(e, "currently the inclusive gateway can only have one incoming sequence flow")
	}
	if c.compat85 && e.UserTask != nil && e.UserTask.Priority != "" {
		c.refuse(e, "zeebe:priorityDefinition is not known to 8.5 (8.6 and later)")
	}
	if c.compat85 && e.Called != nil && e.Called.VersionTag != "" {
		c.refuse(e, "zeebe:calledElement bindingType versionTag is not known to 8.5 (8.6 and later)")
	}
	if e.Event == nil {
		return
	}
	switch {
	case e.Event.Kind == bpmn.EventCompensation && e.Kind == bpmn.KindStartEvent:
		c.refuse(e, "compensation event subprocess is not supported")
	case e.Event.Kind == bpmn.EventCompensation && e.Event.NoWait:
		c.refuse(e, "waitForCompletion=\"false\" is not supported")
	}
}

// refuseProcess names what the engine cannot do with the process itself.
func (c *compiler) refuseProcess(p *bpmn.Process) {
	for _, u := range p.Unknown {
		c.problems = append(c.problems, &bpmn.Error{Line: p.Line, ElementID: p.ID, Kind: "process", Reason: u + " is not supported by the embedded engine"})
	}
}

// feelText is a string literal of FEEL; feelNewer a call of a function that the FEEL of 8.5 has not.
var (
	feelText  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	feelNewer = regexp.MustCompile(`\b(uuid|trim|is blank|is empty|to base64|partition)\s*\(`)
)

// refuseNewerFEEL refuses functions that 8.5 would answer with null and a warning.
func (c *compiler) refuseNewerFEEL(e *bpmn.Element, name string, x *expr) {
	if !c.compat85 || x.static {
		return
	}
	if m := feelNewer.FindStringSubmatch(feelText.ReplaceAllString(x.src, `""`)); m != nil {
		c.refuse(e, "%s: the FEEL function %s() is not known to 8.5", name, m[1])
	}
}
