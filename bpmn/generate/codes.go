package generate

import (
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// elementCodes says what becomes of the error codes that one task's handler throws.
type elementCodes struct {
	element, jobType string
	boundary         []string // caught by code on the task itself
	scope            []string // caught by code around it, and thrown by no end event
	any              bool     // everything else is caught somewhere
}

// modelCodes knows which codes a model throws itself.
type modelCodes struct{ ends map[string]bool }

func codesOf(defs *bpmn.Definitions) *modelCodes {
	c := &modelCodes{ends: map[string]bool{}}
	var scan func(s *bpmn.Scope)
	scan = func(s *bpmn.Scope) {
		for _, e := range s.Elements {
			if e.Kind == bpmn.KindEndEvent && e.Event != nil && e.Event.Kind == bpmn.EventError && e.Event.Error != nil {
				c.ends[e.Event.Error.Code] = true
			}
			if e.Scope != nil {
				scan(e.Scope)
			}
		}
	}
	for _, p := range defs.Processes {
		scan(&p.Scope)
	}
	return c
}

// catches fills in the codes of every task with a handler in this package.
func (c *collector) catches() {
	for _, e := range c.model.elements {
		if e.Task == nil || e.Undoes() || strings.HasPrefix(e.Task.Type, "=") || c.unit.foreign(e.Task.Type) {
			continue
		}
		k := elementCodes{element: e.ID, jobType: e.Task.Type}
		for _, b := range e.Boundary {
			if code, all, ok := catchesError(b); ok {
				k.any = k.any || all
				if !all {
					k.boundary = append(k.boundary, code)
				}
			}
		}
		c.around(e, &k)
		slices.Sort(k.boundary)
		slices.Sort(k.scope)
		k.scope = slices.Compact(k.scope)
		c.model.codes = append(c.model.codes, k)
	}
}

// around walks outwards: the event subprocesses of each scope, then the
// boundary events of the subprocess that holds it. An event subprocess does not
// catch what is thrown inside it or inside another one of its scope.
func (c *collector) around(e *bpmn.Element, k *elementCodes) {
	note := func(catcher *bpmn.Element) {
		code, all, ok := catchesError(catcher)
		switch {
		case !ok:
		case all:
			k.any = true
		case !c.codes.ends[code]:
			k.scope = append(k.scope, code)
		}
	}
	for at := e; at != nil; at = at.Parent {
		if !at.TriggeredByEvent {
			for _, sub := range at.In.Elements {
				if !sub.TriggeredByEvent || sub.Scope == nil {
					continue
				}
				for _, start := range sub.Scope.Elements {
					if start.Kind == bpmn.KindStartEvent {
						note(start)
					}
				}
			}
		}
		if at.Parent != nil {
			for _, b := range at.Parent.Boundary {
				note(b)
			}
		}
	}
}

func catchesError(e *bpmn.Element) (code string, all, ok bool) {
	if e.Event == nil || e.Event.Kind != bpmn.EventError {
		return "", false, false
	}
	if e.Event.Error == nil || e.Event.Error.Code == "" {
		return "", true, true
	}
	return e.Event.Error.Code, false, true
}
