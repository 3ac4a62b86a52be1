package bpmn

import (
	"math"
	"strings"
)

func (c *canvas) edge(id string, e Edge) {
	kind := c.edges[id]
	name := ""
	if f := c.flows[id]; f != nil {
		kind, name = "sequenceFlow", f.Name
	}
	if kind == "" {
		return
	}
	class := "bpmn-el " + kind
	if s := c.opts.State[id]; s != "" {
		class += " is-" + string(s)
	}
	c.f(`<g class="%v" data-element="%v">`, class, esc(id))
	if name != "" {
		c.f(`<title>%v</title>`, esc(strings.Join(strings.Fields(name), " ")))
	}
	points := e.Points
	line := "bpmn-flow"
	if kind != "sequenceFlow" {
		line += " bpmn-dashed"
	}
	c.f(`<path class="%v" d="`, line)
	for i, p := range points {
		step := "L"
		if i == 0 {
			step = "M"
		}
		c.f("%v%v %v", step, p.X, p.Y)
	}
	c.raw(`"/>`)
	last, before := points[len(points)-1], points[len(points)-2]
	switch kind {
	case "sequenceFlow":
		c.arrow(before, last, "bpmn-arrow")
		if f := c.flows[id]; f.Source.Default == f {
			c.slash(points[0], points[1])
		}
	case "messageFlow":
		c.f(`<circle class="bpmn-open" cx="%v" cy="%v" r="3.5"/>`, points[0].X, points[0].Y)
		c.arrow(before, last, "bpmn-open")
	}
	c.raw("</g>\n")
}

// unit is the direction from a to b.
func unit(a, b Point) (x, y float64) {
	x, y = b.X-a.X, b.Y-a.Y
	n := math.Hypot(x, y)
	if n == 0 {
		return 1, 0
	}
	return x / n, y / n
}

func (c *canvas) arrow(from, to Point, class string) {
	x, y := unit(from, to)
	const length, half = 10, 4.5
	bx, by := to.X-x*length, to.Y-y*length
	c.f(`<path class="%v" d="M%v %vL%v %vL%v %vZ"/>`, class, to.X, to.Y, bx-y*half, by+x*half, bx+y*half, by-x*half)
}

// slash marks a default flow near its source.
func (c *canvas) slash(from, to Point) {
	x, y := unit(from, to)
	mx, my := from.X+x*12, from.Y+y*12
	c.f(`<path class="bpmn-line" d="M%v %vL%v %v"/>`, mx-x*4+y*6, my-y*4-x*6, mx+x*4-y*6, my+y*4+x*6)
}

// edgeLabel is the label's own place, or one beside the middle of the way.
func (c *canvas) edgeLabel(e Edge, name string) Rect {
	if e.Label != nil {
		return widen(*e.Label)
	}
	w := min(textWidth(name)+8, 100)
	total := 0.0
	for i := 1; i < len(e.Points); i++ {
		total += math.Hypot(e.Points[i].X-e.Points[i-1].X, e.Points[i].Y-e.Points[i-1].Y)
	}
	half := total / 2
	for i := 1; i < len(e.Points); i++ {
		a, b := e.Points[i-1], e.Points[i]
		d := math.Hypot(b.X-a.X, b.Y-a.Y)
		if half <= d && d > 0 {
			x, y := a.X+(b.X-a.X)*half/d, a.Y+(b.Y-a.Y)*half/d
			if math.Abs(b.X-a.X) < math.Abs(b.Y-a.Y) {
				return Rect{x + 5, y - 8, w, 16} // beside a vertical line
			}
			return Rect{x - w/2, y - 18, w, 16}
		}
		half -= d
	}
	p := e.Points[0]
	return Rect{p.X, p.Y - 18, w, 16}
}
