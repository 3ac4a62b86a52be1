package bpmn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// State is what happened to an element in one process instance.
type State string

// The states that Draw paints. Each has a colour and, for those who do not see
// it, a badge and a word in the element's title.
const (
	StateActive      State = "active"
	StateCompleted   State = "completed"
	StateCompensated State = "compensated"
	StateIncident    State = "incident"
	StateTerminated  State = "terminated"
)

// ErrNothingToDraw is returned by [Draw] for a model without elements.
var ErrNothingToDraw = errors.New("bpmn: the file has nothing to draw")

// DrawOptions say how a model is drawn. The zero value draws a file of its own.
type DrawOptions struct {
	Title string           // accessible name; default: the names of the processes
	State map[string]State // by element or flow id; ids the model lacks are ignored
	// Link gives an element the address that a click leads to; nil or "" = none.
	Link func(elementID string) string
	// NoStyle leaves out the style element, for pages whose content security
	// policy forbids it; such a page serves [StyleSheet] itself.
	NoStyle bool
}

// Draw writes a model as SVG, from the layout in the file: shapes, flows,
// associations and labels at the file's own positions. A file without layout
// is sketched in columns. Every shape is a group
// with class "bpmn-el", its kind and its state as further classes, its id in
// data-element and a title. Colours follow prefers-color-scheme. The text holds
// no script and no external reference, and is the same for the same input.
//
// Errors: [ErrNothingToDraw], an unknown [State], and what w returns.
func Draw(w io.Writer, defs *Definitions, opts DrawOptions) error {
	dia := defs.Diagram
	if dia == nil || len(dia.Order) == 0 {
		dia = layout(defs)
	}
	if len(dia.Order) == 0 {
		return ErrNothingToDraw
	}
	for id, s := range opts.State {
		switch s {
		case StateActive, StateCompleted, StateCompensated, StateIncident, StateTerminated:
		default:
			return fmt.Errorf("draw %q: unknown state %q", id, s)
		}
	}
	c := &canvas{defs: defs, dia: dia, opts: opts, flows: map[string]*Flow{}, edges: map[string]string{}}
	c.collect()
	c.open()
	c.layers()
	c.raw("</svg>\n")
	_, err := w.Write(c.b.Bytes())
	return err
}

type canvas struct {
	b     bytes.Buffer
	defs  *Definitions
	dia   *Diagram
	opts  DrawOptions
	flows map[string]*Flow
	edges map[string]string // edge id → association or messageFlow
}

func (c *canvas) collect() {
	var scope func(s *Scope)
	scope = func(s *Scope) {
		for _, f := range s.Flows {
			c.flows[f.ID] = f
		}
		for _, a := range s.Associations {
			c.edges[a.ID] = "association"
		}
		for _, e := range s.Elements {
			if e.Scope != nil {
				scope(e.Scope)
			}
		}
	}
	for _, p := range c.defs.Processes {
		scope(&p.Scope)
	}
	for _, a := range c.defs.Associations {
		c.edges[a.ID] = "association"
	}
	for _, m := range c.defs.MessageFlows {
		c.edges[m.ID] = "messageFlow"
	}
}

func (c *canvas) raw(s string) { c.b.WriteString(s) }

func (c *canvas) f(format string, args ...any) {
	for i, a := range args {
		if v, ok := a.(float64); ok {
			args[i] = num(v)
		}
	}
	fmt.Fprintf(&c.b, format, args...)
}

// num writes a coordinate with at most two digits behind the point.
func num(f float64) string {
	return strconv.FormatFloat(math.Round(f*100)/100+0, 'f', -1, 64)
}

var svgEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

// esc makes text safe inside SVG; characters that XML forbids are dropped.
func esc(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff || r == 0xfffd {
			return -1
		}
		return r
	}, s)
	return svgEscapes.Replace(s)
}

const margin = 24 // around the drawing

func (c *canvas) open() {
	low, high := Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	grow := func(x, y, w, h float64) {
		low.X, low.Y = min(low.X, x), min(low.Y, y)
		high.X, high.Y = max(high.X, x+w), max(high.Y, y+h)
	}
	for id, s := range c.dia.Shapes {
		grow(s.X, s.Y, s.W, s.H)
		if l := c.labelBox(id, s); l != nil {
			grow(l.X, l.Y, l.W, l.H)
		}
	}
	for _, e := range c.dia.Edges {
		for _, p := range e.Points {
			grow(p.X, p.Y, 0, 0)
		}
		if e.Label != nil {
			grow(e.Label.X, e.Label.Y, e.Label.W, e.Label.H)
		}
	}
	w, h := high.X-low.X+2*margin, high.Y-low.Y+2*margin
	c.f(`<svg xmlns="http://www.w3.org/2000/svg" class="bpmn" role="img" width="%v" height="%v" viewBox="%v %v %v %v">`, w, h, low.X-margin, low.Y-margin, w, h)
	c.f("\n<title>%v</title>\n", esc(c.title()))
	if !c.opts.NoStyle {
		c.f("<style>%v</style>\n", StyleSheet())
	}
}

func (c *canvas) title() string {
	if c.opts.Title != "" {
		return c.opts.Title
	}
	var names []string
	for _, p := range c.defs.Processes {
		name := p.Name
		if name == "" {
			name = p.ID
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// layers paints from back to front.
func (c *canvas) layers() {
	const (
		pools = iota
		containers
		groups
		edges
		nodes
		boundaries
		count
	)
	layer := func(id string) int {
		if a := c.defs.Artifacts[id]; a != nil {
			switch a.Kind {
			case "participant", "lane":
				return pools
			case "group":
				return groups
			}
			return nodes
		}
		e := c.defs.elements[id]
		switch {
		case e == nil:
			return edges
		case e.Kind == KindBoundaryEvent:
			return boundaries
		case e.Scope != nil && c.expanded(e):
			return containers
		}
		return nodes
	}
	for at := range count {
		for _, id := range c.dia.Order {
			if edge, ok := c.dia.Edges[id]; ok && at == edges {
				c.edge(id, edge)
			}
			if s, ok := c.dia.Shapes[id]; ok && layer(id) == at {
				c.shape(id, s)
			}
		}
	}
	c.front()
}

// front paints labels and badges over everything else.
func (c *canvas) front() {
	for _, id := range c.dia.Order {
		if s, ok := c.dia.Shapes[id]; ok && c.defs.elements[id] != nil {
			if l := c.labelBox(id, s); l != nil {
				c.label(c.defs.elements[id].Name, *l)
			}
			c.badge(c.opts.State[id], s)
		}
		if edge, ok := c.dia.Edges[id]; ok {
			if f := c.flows[id]; f != nil && f.Name != "" {
				c.label(f.Name, c.edgeLabel(edge, f.Name))
			}
		}
	}
}

// expanded says whether a subprocess shows its content.
func (c *canvas) expanded(e *Element) bool {
	if !c.dia.Shapes[e.ID].Expanded {
		return false
	}
	for _, inner := range e.Scope.Elements {
		if _, ok := c.dia.Shapes[inner.ID]; ok {
			return true
		}
	}
	return len(e.Scope.Elements) == 0
}

// group opens the group of one element and returns what closes it.
func (c *canvas) group(id, classes, title string) (end string) {
	state := c.opts.State[id]
	if state != "" {
		classes += " is-" + string(state)
		title += ": " + string(state)
	}
	end = "</g>\n"
	if c.opts.Link != nil {
		if href := c.opts.Link(id); href != "" {
			c.f(`<a href="%v">`, esc(href))
			end = "</g></a>\n"
		}
	}
	c.f(`<g class="%v" data-element="%v"><title>%v</title>`, esc(classes), esc(id), esc(title))
	return end
}
