package bpmn

func (c *canvas) eventShape(e *Element, s Shape) {
	x, y, r := s.X+s.W/2, s.Y+s.H/2, min(s.W, s.H)/2
	class := "bpmn-shape"
	if e.Kind == KindEndEvent {
		class += " bpmn-thick"
	}
	if !e.Interrupting {
		class += " bpmn-dashed"
	}
	c.f(`<circle class="%v" cx="%v" cy="%v" r="%v"/>`, class, x, y, r)
	if e.Kind != KindStartEvent && e.Kind != KindEndEvent {
		inner := "bpmn-mark"
		if !e.Interrupting {
			inner += " bpmn-dashed"
		}
		c.f(`<circle class="%v" cx="%v" cy="%v" r="%v"/>`, inner, x, y, max(r-3.5, 1))
	}
	if e.Event != nil {
		icon := catchIcons[e.Event.Kind]
		if e.Kind == KindEndEvent || e.Kind == KindThrowEvent {
			icon = throwIcons[e.Event.Kind]
		}
		if icon != "" {
			c.f(`<g transform="translate(%v %v) scale(%v)">%v</g>`, x, y, r/18, icon)
		}
	}
}

// Icons are drawn around (0, 0) for a circle of radius 18: outlined when the
// event catches, filled when it throws.
var catchIcons = map[EventKind]string{
	EventMessage:      `<path class="bpmn-mark" d="M-9 -6H9V6H-9ZM-9 -6L0 1L9 -6"/>`,
	EventTimer:        `<circle class="bpmn-mark" r="10"/><path class="bpmn-line" d="M0 -6V0L4 2M0 -10V-8M0 10V8M-10 0H-8M10 0H8"/>`,
	EventError:        `<path class="bpmn-mark" d="M-8 8L-4 -7L3 3L8 -8L4 8L-3 -2Z"/>`,
	EventCompensation: `<path class="bpmn-mark" d="M0 -6L-9 0L0 6ZM9 -6L0 0L9 6Z"/>`,
	EventSignal:       `<path class="bpmn-mark" d="M0 -9L9 6H-9Z"/>`,
	EventEscalation:   `<path class="bpmn-mark" d="M0 -9L7 8L0 1L-7 8Z"/>`,
	EventLink:         `<path class="bpmn-mark" d="M-9 -4H1V-8L9 0L1 8V4H-9Z"/>`,
	"conditional":     `<path class="bpmn-mark" d="M-7 -9H7V9H-7Z"/><path class="bpmn-line" d="M-4 -5H4M-4 -2H4M-4 2H4M-4 5H4"/>`,
	"cancel":          `<path class="bpmn-mark" d="M-8 -5L-5 -8L0 -3L5 -8L8 -5L3 0L8 5L5 8L0 3L-5 8L-8 5L-3 0Z"/>`,
}

var throwIcons = map[EventKind]string{
	EventMessage:      `<path class="bpmn-fill" d="M-9 -6H9V6H-9Z"/><path class="bpmn-cut" d="M-9 -6L0 1L9 -6"/>`,
	EventError:        `<path class="bpmn-fill" d="M-8 8L-4 -7L3 3L8 -8L4 8L-3 -2Z"/>`,
	EventCompensation: `<path class="bpmn-fill" d="M0 -6L-9 0L0 6ZM9 -6L0 0L9 6Z"/>`,
	EventSignal:       `<path class="bpmn-fill" d="M0 -9L9 6H-9Z"/>`,
	EventEscalation:   `<path class="bpmn-fill" d="M0 -9L7 8L0 1L-7 8Z"/>`,
	EventLink:         `<path class="bpmn-fill" d="M-9 -4H1V-8L9 0L1 8V4H-9Z"/>`,
	EventTerminate:    `<circle class="bpmn-fill" r="10"/>`,
	"cancel":          `<path class="bpmn-fill" d="M-8 -5L-5 -8L0 -3L5 -8L8 -5L3 0L8 5L5 8L0 3L-5 8L-8 5L-3 0Z"/>`,
}
