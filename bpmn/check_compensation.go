package bpmn

// compensation checks boundary events, handlers and throw events.
func (c *checker) compensation(e *Element) {
	if e.ForCompensation {
		c.handler(e)
	}
	count := 0
	for _, b := range e.Boundary {
		if b.Event != nil && b.Event.Kind == EventCompensation {
			count++
		}
	}
	if count > 1 {
		c.fail(e, "has %d compensation boundary events: expected at most one", count)
	}
	if e.Event == nil || e.Event.Kind != EventCompensation {
		return
	}
	switch e.Kind {
	case KindBoundaryEvent:
		c.compensationBoundary(e)
	case KindEndEvent, KindThrowEvent:
		c.compensationThrow(e)
	}
}

func (c *checker) handler(e *Element) {
	if !e.Kind.isActivity() {
		c.fail(e, "is marked isForCompensation: expected an activity")
		return
	}
	if len(e.Incoming) > 0 || len(e.Outgoing) > 0 {
		c.fail(e, "is a compensation handler with sequence flows: expected none")
	}
	if len(e.Boundary) > 0 {
		c.fail(e, "is a compensation handler with boundary events: expected none")
	}
	for _, a := range e.In.Associations {
		if a.TargetRef != e.ID {
			continue
		}
		if src := c.defs.elements[a.SourceRef]; src != nil && src.Kind == KindBoundaryEvent {
			return
		}
	}
	c.fail(e, "is a compensation handler that no compensation boundary event is associated with")
}

func (c *checker) compensationBoundary(e *Element) {
	if len(e.Outgoing) > 0 {
		c.fail(e, "has outgoing sequence flows: a compensation boundary event leads to its handler by an association")
	}
	handlers := 0
	for _, a := range e.In.Associations {
		if a.SourceRef != e.ID {
			continue
		}
		h := c.defs.elements[a.TargetRef]
		switch {
		case h == nil:
			if c.defs.Artifacts[a.TargetRef] != nil {
				continue // a note
			}
			c.fail(e, "association %q leads to %q, which does not exist", a.ID, a.TargetRef)
		case h.In != e.In:
			c.fail(e, "association %q leads to %q in another scope", a.ID, h.ID)
		case !h.ForCompensation:
			c.fail(e, "association %q leads to %q, which has no isForCompensation=\"true\"", a.ID, h.ID)
		}
		handlers++
	}
	if handlers != 1 {
		c.fail(e, "has %d associations to a compensation handler: expected exactly one", handlers)
	}
}

func (c *checker) compensationThrow(e *Element) {
	if e.Event.NoWait {
		c.fail(e, "has waitForCompletion=\"false\", which Zeebe does not support")
	}
	if e.Event.ActivityRef == "" {
		return
	}
	target, ok := ref(c.defs.elements, e.Event.ActivityRef)
	if !ok {
		c.fail(e, "activityRef %q leads to no activity", e.Event.ActivityRef)
		return
	}
	if !inCompensationScope(e, target) {
		c.fail(e, "activityRef %q stands in another scope: expected the scope of the event, or the scope around its event subprocess", target.ID)
		return
	}
	if target.Kind == KindSubProcess {
		return
	}
	for _, b := range target.Boundary {
		if b.Event != nil && b.Event.Kind == EventCompensation {
			return
		}
	}
	c.fail(e, "activityRef %q has no compensation boundary event", target.ID)
}

// inCompensationScope says whether a throw event reaches target: its own scope,
// and from inside an event subprocess the scope around that.
func inCompensationScope(e, target *Element) bool {
	if target.In == e.In {
		return true
	}
	return e.Parent != nil && e.Parent.TriggeredByEvent && target.In == e.Parent.In
}
