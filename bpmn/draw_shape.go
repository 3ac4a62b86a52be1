package bpmn

import "strings"

func (c *canvas) shape(id string, s Shape) {
	if a := c.defs.Artifacts[id]; a != nil {
		c.artifact(a, s)
		return
	}
	e := c.defs.elements[id]
	if e == nil {
		return // an edge's label or something the model lacks
	}
	end := c.group(id, "bpmn-el "+string(e.Kind), describe(e))
	switch {
	case e.Kind.isEvent():
		c.eventShape(e, s)
	case strings.HasSuffix(string(e.Kind), "Gateway"):
		c.gateway(e, s)
	default:
		c.activity(e, s)
	}
	c.raw(end)
}

// describe is the title of an element: its name, kind and what it does.
func describe(e *Element) string {
	name := e.Name
	if name == "" {
		name = e.ID
	}
	var parts []string
	if e.Event != nil {
		parts = append(parts, string(e.Event.Kind))
	}
	if e.TriggeredByEvent {
		parts = append(parts, "event")
	}
	parts = append(parts, words(string(e.Kind)))
	what := strings.Join(parts, " ")
	if e.Task != nil && e.Task.Type != "" {
		what += ", " + e.Task.Type
	}
	if e.ForCompensation {
		what += ", compensation handler"
	}
	return strings.Join(strings.Fields(name), " ") + " (" + what + ")"
}

// words turns serviceTask into "service task".
func words(kind string) string {
	var b strings.Builder
	for i, r := range kind {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte(' ')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (c *canvas) activity(e *Element, s Shape) {
	class := "bpmn-shape"
	switch {
	case e.Kind == KindCallActivity:
		class += " bpmn-thick"
	case e.TriggeredByEvent:
		class += " bpmn-dotted"
	}
	open := e.Scope != nil && c.expanded(e)
	if open {
		class += " bpmn-container"
	}
	c.f(`<rect class="%v" x="%v" y="%v" width="%v" height="%v" rx="10"/>`, class, s.X, s.Y, s.W, s.H)
	if e.Kind == "transaction" {
		c.f(`<rect class="bpmn-mark" x="%v" y="%v" width="%v" height="%v" rx="7"/>`, s.X+3, s.Y+3, max(s.W-6, 0), max(s.H-6, 0))
	}
	if icon := taskIcons[e.Kind]; icon != "" {
		c.f(`<g transform="translate(%v %v)">%v</g>`, s.X+15, s.Y+15, icon)
	}
	if open {
		c.text(e.Name, Rect{s.X + 8, s.Y + 5, max(s.W-16, 20), 30}, alignTop)
	} else {
		box := Rect{s.X + 5, s.Y + 4, max(s.W-10, 20), max(s.H-8, 14)}
		if taskIcons[e.Kind] != "" && s.H >= 60 && len(wrap(e.Name, box.W, 9)) > 2 {
			box.Y, box.H = box.Y+14, box.H-14 // keep clear of the icon
		}
		if s.H >= 60 && (e.Loop != nil || e.ForCompensation || e.Scope != nil) {
			box.H -= 14 // and of the markers
		}
		c.text(e.Name, box, alignMiddle)
	}
	c.markers(e, s, open)
}

// markers stand in a row at the bottom of an activity.
func (c *canvas) markers(e *Element, s Shape, open bool) {
	var marks []string
	if e.Loop != nil && e.Loop.Sequential {
		marks = append(marks, `<path class="bpmn-line" d="M-6 -5H6M-6 0H6M-6 5H6"/>`)
	} else if e.Loop != nil {
		marks = append(marks, `<path class="bpmn-line" d="M-5 -6V6M0 -6V6M5 -6V6"/>`)
	}
	if e.ForCompensation {
		marks = append(marks, `<path class="bpmn-mark" d="M0 -6L-7 0L0 6ZM7 -6L0 0L7 6Z"/>`)
	}
	if e.Scope != nil && !open {
		marks = append(marks, `<path class="bpmn-mark" d="M-7 -7H7V7H-7Z"/><path class="bpmn-line" d="M-4 0H4M0 -4V4"/>`)
	}
	if e.Kind == "adHocSubProcess" {
		marks = append(marks, `<path class="bpmn-mark" d="M-7 2C-4 -5 -1 -3 0 0S4 5 7 -2"/>`)
	}
	x := s.X + s.W/2 - float64(len(marks)-1)*9
	for _, m := range marks {
		c.f(`<g transform="translate(%v %v)">%v</g>`, x, s.Y+s.H-11, m)
		x += 18
	}
}

// taskIcons are drawn around (0, 0), about 16 pixels wide.
var taskIcons = map[Kind]string{
	KindServiceTask:      `<circle class="bpmn-mark" r="4.5"/><circle class="bpmn-gear" r="6.2" stroke-dasharray="2.6 2.27"/><circle class="bpmn-mark" r="1.8"/>`,
	KindUserTask:         `<path class="bpmn-mark" d="M-7 7C-7 1 -4 0 0 0S7 1 7 7Z"/><circle class="bpmn-mark" cy="-3.5" r="3.5"/>`,
	KindSendTask:         `<path class="bpmn-fill" d="M-8 -5H8V5H-8Z"/><path class="bpmn-cut" d="M-8 -5L0 1L8 -5"/>`,
	KindReceiveTask:      `<path class="bpmn-mark" d="M-8 -5H8V5H-8ZM-8 -5L0 1L8 -5"/>`,
	KindScriptTask:       `<path class="bpmn-mark" d="M-4 -7H7C3 -3 3 -1 5 2S5 7 4 7H-7C-3 3 -4 1 -5 -2S-5 -6 -4 -7Z"/><path class="bpmn-line" d="M-3 -3H2M-3 0H3M-2 3H4"/>`,
	KindManualTask:       `<path class="bpmn-mark" d="M-7 -2L-2 -6H0L-1 -3H7V-1H1V0H7V2H1V3H6V5H1V6H-4L-7 4Z"/>`,
	KindBusinessRuleTask: `<path class="bpmn-mark" d="M-8 -6H8V6H-8Z"/><path class="bpmn-line" d="M-8 -2H8M-8 2H8M-3 -2V6"/>`,
}

func (c *canvas) gateway(e *Element, s Shape) {
	x, y := s.X+s.W/2, s.Y+s.H/2
	c.f(`<path class="bpmn-shape" d="M%v %vL%v %vL%v %vL%v %vZ"/>`, x, s.Y, s.X+s.W, y, x, s.Y+s.H, s.X, y)
	c.f(`<g transform="translate(%v %v) scale(%v)">`, x, y, min(s.W, s.H)/50)
	switch e.Kind {
	case KindParallelGateway:
		c.raw(`<path class="bpmn-bold" d="M-11 0H11M0 -11V11"/>`)
	case KindExclusiveGateway:
		c.raw(`<path class="bpmn-bold" d="M-7 -9L7 9M7 -9L-7 9"/>`)
	case KindInclusiveGateway:
		c.raw(`<circle class="bpmn-bold" r="11"/>`)
	case KindEventBasedGateway:
		c.raw(`<circle class="bpmn-mark" r="14"/><circle class="bpmn-mark" r="11"/><path class="bpmn-mark" d="M0 -8L7.6 -2.5L4.7 6.5H-4.7L-7.6 -2.5Z"/>`)
	case "complexGateway":
		c.raw(`<path class="bpmn-bold" d="M-11 0H11M0 -11V11M-8 -8L8 8M8 -8L-8 8"/>`)
	}
	c.raw("</g>")
}

// badge tells the state by a sign, not by colour alone.
func (c *canvas) badge(state State, s Shape) {
	sign := map[State]string{
		StateActive:      `<path d="M-2.5 -4L4 0L-2.5 4Z"/>`,
		StateCompleted:   `<path fill="none" d="M-3.5 0L-1 3L3.5 -3"/>`,
		StateCompensated: `<path d="M0 -3.5L-4.5 0L0 3.5ZM4.5 -3.5L0 0L4.5 3.5Z"/>`,
		StateIncident:    `<path fill="none" d="M0 -4.5V1M0 3.6V4"/>`,
		StateTerminated:  `<path fill="none" d="M-3 -3L3 3M3 -3L-3 3"/>`,
	}[state]
	if sign != "" {
		c.f(`<g class="is-%v"><g class="bpmn-badge" transform="translate(%v %v)"><circle r="8"/>%v</g></g>`+"\n", state, s.X+s.W-3, s.Y+3, sign)
	}
}

func (c *canvas) artifact(a *Artifact, s Shape) {
	end := c.group(a.ID, "bpmn-el "+string(a.Kind), strings.TrimSpace(strings.Join(strings.Fields(a.Name), " ")+" ("+words(string(a.Kind))+")"))
	switch a.Kind {
	case "participant", "lane":
		c.f(`<rect class="bpmn-shape bpmn-pool" x="%v" y="%v" width="%v" height="%v"/>`, s.X, s.Y, s.W, s.H)
		if s.W < 2*lineHeight || s.H < 2*lineHeight {
			break // too small for a name
		}
		if s.Horizontal {
			if a.Kind == "participant" {
				c.f(`<path class="bpmn-line" d="M%v %vV%v"/>`, s.X+30, s.Y, s.Y+s.H)
			}
			c.f(`<g transform="translate(%v %v) rotate(-90)">`, s.X+15, s.Y+s.H/2)
			c.text(a.Name, Rect{-s.H / 2, -14, s.H, 28}, alignMiddle)
			c.raw("</g>")
		} else {
			c.text(a.Name, Rect{s.X, s.Y + 2, s.W, 26}, alignMiddle)
		}
	case "textAnnotation":
		c.f(`<path class="bpmn-line" d="M%v %vH%vV%vH%v"/>`, s.X+12, s.Y, s.X, s.Y+s.H, s.X+12)
		c.text(a.Name, Rect{s.X + 6, s.Y + 2, max(s.W-8, 20), max(s.H-4, 14)}, alignLeft)
	case "group":
		c.f(`<rect class="bpmn-mark bpmn-dashed" x="%v" y="%v" width="%v" height="%v" rx="10"/>`, s.X, s.Y, s.W, s.H)
	case "dataStoreReference":
		c.f(`<path class="bpmn-shape" d="M%v %vC%v %v %v %v %v %vV%vC%v %v %v %v %v %vZ"/>`, s.X, s.Y+8, s.X, s.Y-3, s.X+s.W, s.Y-3, s.X+s.W, s.Y+8, s.Y+s.H-8, s.X+s.W, s.Y+s.H+3, s.X, s.Y+s.H+3, s.X, s.Y+s.H-8)
		c.f(`<path class="bpmn-line" d="M%v %vC%v %v %v %v %v %v"/>`, s.X, s.Y+8, s.X, s.Y+19, s.X+s.W, s.Y+19, s.X+s.W, s.Y+8)
		c.text(a.Name, *c.below(s), alignTop)
	default:
		c.page(s)
		c.text(a.Name, *c.below(s), alignTop)
	}
	c.raw(end)
}

// page draws a sheet with a folded corner.
func (c *canvas) page(s Shape) {
	right, bottom, fold := s.X+s.W, s.Y+s.H, min(10, s.W/3)
	c.f(`<path class="bpmn-shape" d="M%v %vH%vL%v %vV%vH%vZ"/>`, s.X, s.Y, right-fold, right, s.Y+fold, bottom, s.X)
	c.f(`<path class="bpmn-line" d="M%v %vV%vH%v"/>`, right-fold, s.Y, s.Y+fold, right)
}
