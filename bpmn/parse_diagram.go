package bpmn

import (
	"math"
	"strconv"
	"strings"
)

// diagram reads the layout. When a file holds several planes (Modeler writes
// one more for each collapsed subprocess), the first one that draws an element
// wins.
func (p *parser) diagram(root *node) {
	var planes []*node
	for _, d := range root.all(nsDI, "BPMNDiagram") {
		planes = append(planes, d.all(nsDI, "BPMNPlane")...)
	}
	if len(planes) == 0 {
		return
	}
	dia := &Diagram{Shapes: map[string]Shape{}, Edges: map[string]Edge{}}
	for _, n := range planes[0].children {
		id := strings.TrimSpace(n.attr("bpmnElement"))
		if i := strings.IndexByte(id, ':'); i >= 0 {
			if _, ok := p.ids[id]; !ok {
				id = id[i+1:]
			}
		}
		if id == "" {
			continue
		}
		switch {
		case n.is(nsDI, "BPMNShape"):
			r, ok := p.bounds(n)
			if !ok {
				p.problem(n, id, "shape has no usable dc:Bounds")
				continue
			}
			s := Shape{X: r.X, Y: r.Y, W: r.W, H: r.H, Expanded: p.flag(n, "isExpanded", true), Horizontal: p.flag(n, "isHorizontal", true)}
			if l := n.child(nsDI, "BPMNLabel"); l != nil {
				if lr, ok := p.bounds(l); ok {
					s.Label = &lr
				}
			}
			if _, twice := dia.Shapes[id]; !twice {
				dia.Order = append(dia.Order, id)
			}
			dia.Shapes[id] = s
		case n.is(nsDI, "BPMNEdge"):
			var e Edge
			for _, w := range n.all(nsDD, "waypoint") {
				x, okX := coordinate(w.attr("x"))
				y, okY := coordinate(w.attr("y"))
				if okX && okY {
					e.Points = append(e.Points, Point{X: x, Y: y})
				}
			}
			if len(e.Points) < 2 {
				p.problem(n, id, "edge has %d usable way points: expected at least two", len(e.Points))
				continue
			}
			if l := n.child(nsDI, "BPMNLabel"); l != nil {
				if r, ok := p.bounds(l); ok {
					e.Label = &r
				}
			}
			if _, twice := dia.Edges[id]; !twice {
				dia.Order = append(dia.Order, id)
			}
			dia.Edges[id] = e
		}
	}
	p.defs.Diagram = dia
}

func (p *parser) bounds(n *node) (Rect, bool) {
	b := n.child(nsDC, "Bounds")
	if b == nil {
		return Rect{}, false
	}
	x, ok1 := coordinate(b.attr("x"))
	y, ok2 := coordinate(b.attr("y"))
	w, ok3 := coordinate(b.attr("width"))
	h, ok4 := coordinate(b.attr("height"))
	return Rect{X: x, Y: y, W: w, H: h}, ok1 && ok2 && ok3 && ok4 && w >= 0 && h >= 0
}

// coordinate accepts what a screen can show; a diagram of a million pixels is a mistake.
func coordinate(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, err == nil && !math.IsNaN(f) && math.Abs(f) <= 1e6
}
