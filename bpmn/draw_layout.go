package bpmn

// layout places a model that has no diagram of its own: elements in columns by
// their distance from the start, handlers under their activities, event
// subprocesses at the bottom. It is a sketch to look at, not a layout to keep.
func layout(d *Definitions) *Diagram {
	l := newLayouter(map[*Element][2]float64{})
	y := 0.0
	for _, p := range d.Processes {
		_, h := l.scope(&p.Scope, 0, y)
		l.edges(&p.Scope)
		y += h + 60
	}
	return l.dia
}

type layouter struct {
	dia   *Diagram
	sizes map[*Element][2]float64 // measured once, or nesting would cost powers
}

func newLayouter(sizes map[*Element][2]float64) *layouter {
	return &layouter{dia: &Diagram{Shapes: map[string]Shape{}, Edges: map[string]Edge{}}, sizes: sizes}
}

const (
	gapX, gapY = 60.0, 50.0
	padding    = 40.0
	headroom   = 30.0 // for the name of a subprocess
)

func (l *layouter) put(e *Element, x, y, w, h float64) {
	l.dia.Shapes[e.ID] = Shape{X: x, Y: y, W: w, H: h, Expanded: true}
	l.dia.Order = append(l.dia.Order, e.ID)
}

// size measures an element; a subprocess is measured by laying it out aside.
func (l *layouter) size(e *Element) (w, h float64) {
	switch {
	case e.Scope != nil:
		if known, ok := l.sizes[e]; ok {
			return known[0], known[1]
		}
		w, h = newLayouter(l.sizes).scope(e.Scope, 0, 0)
		w, h = w+2*padding, h+2*padding+headroom
		l.sizes[e] = [2]float64{w, h}
		return w, h
	case e.Kind.isEvent():
		return 36, 36
	case e.Kind.isActivity():
		return 100, 80
	}
	return 50, 50
}

func (l *layouter) place(e *Element, x, y, w, h float64) {
	l.put(e, x, y, w, h)
	if e.Scope != nil {
		l.scope(e.Scope, x+padding, y+padding+headroom)
	}
	for i, b := range e.Boundary {
		l.put(b, x+w-28-float64(i)*42, y+h-18, 36, 36)
	}
}

// scope lays out the elements of a scope with its corner at x, y.
func (l *layouter) scope(s *Scope, x, y float64) (w, h float64) {
	column, row := cells(s)
	var widths, heights []float64
	grow := func(list []float64, at int, v float64) []float64 {
		for len(list) <= at {
			list = append(list, 0)
		}
		list[at] = max(list[at], v)
		return list
	}
	for _, e := range s.Elements {
		if _, ok := column[e]; !ok {
			continue
		}
		ew, eh := l.size(e)
		if e.CompensationHandler != nil {
			hw, hh := l.size(e.CompensationHandler)
			ew, eh = max(ew, 60+hw), eh+gapY+hh
		}
		widths, heights = grow(widths, column[e], ew), grow(heights, row[e], eh)
	}
	offset := func(list []float64, at int, gap float64) float64 {
		sum := 0.0
		for _, v := range list[:at] {
			sum += v + gap
		}
		return sum
	}
	w, h = offset(widths, len(widths), gapX)-gapX, offset(heights, len(heights), gapY)
	for _, e := range s.Elements {
		if _, ok := column[e]; !ok {
			continue
		}
		ew, eh := l.size(e)
		ex, ey := x+offset(widths, column[e], gapX), y+offset(heights, row[e], gapY)
		if eh < 80 {
			ey += (80 - eh) / 2 // events and gateways stand level with tasks
		}
		l.place(e, ex, ey, ew, eh)
		if c := e.CompensationHandler; c != nil {
			if _, done := l.dia.Shapes[c.ID]; !done {
				cw, ch := l.size(c)
				l.place(c, ex+60, ey+eh+gapY, cw, ch)
			}
		}
	}
	for _, e := range s.Elements { // event subprocesses, and handlers that nothing leads to
		if _, done := l.dia.Shapes[e.ID]; done || e.AttachedTo != nil {
			continue
		}
		ew, eh := l.size(e)
		l.place(e, x, y+h, ew, eh)
		w, h = max(w, ew), h+eh+gapY
	}
	return max(w, 100), max(h-gapY, 80)
}

// cells gives each element in the sequence flow a column and a row.
func cells(s *Scope) (column, row map[*Element]int) {
	column, row = map[*Element]int{}, map[*Element]int{}
	taken := map[[2]int]bool{}
	next := func(e *Element) (out []*Element) {
		for _, f := range e.Outgoing {
			out = append(out, f.Target)
		}
		for _, b := range e.Boundary {
			for _, f := range b.Outgoing {
				out = append(out, f.Target)
			}
		}
		return out
	}
	// Depth first, so that the longest way decides and a loop ends.
	path := map[*Element]bool{}
	steps := 0
	var visit func(e *Element, at int)
	visit = func(e *Element, at int) {
		if at0, ok := column[e]; ok && at0 >= at || path[e] || steps > 20_000 {
			return
		}
		steps++
		column[e] = at
		path[e] = true
		for _, n := range next(e) {
			visit(n, at+1)
		}
		delete(path, e)
	}
	stands := func(e *Element) bool { return e.AttachedTo == nil && !e.ForCompensation && !e.TriggeredByEvent }
	for _, e := range s.Elements {
		if stands(e) && len(e.Incoming) == 0 {
			visit(e, 0)
		}
	}
	for _, e := range s.Elements {
		if _, ok := column[e]; stands(e) && !ok {
			visit(e, 0)
		}
	}
	var settle func(e *Element, at int)
	settle = func(e *Element, at int) {
		if _, ok := row[e]; ok {
			return
		}
		for taken[[2]int{column[e], at}] {
			at++
		}
		taken[[2]int{column[e], at}] = true
		row[e] = at
		for _, n := range next(e) {
			settle(n, at)
		}
	}
	for _, e := range s.Elements {
		if _, ok := column[e]; ok && column[e] == 0 {
			settle(e, 0)
		}
	}
	for _, e := range s.Elements {
		if _, ok := column[e]; ok {
			settle(e, 0)
		}
	}
	return column, row
}

// edges draws flows and associations between the shapes that were placed.
func (l *layouter) edges(s *Scope) {
	for _, f := range s.Flows {
		a, b := l.dia.Shapes[f.Source.ID], l.dia.Shapes[f.Target.ID]
		from, to := Point{a.X + a.W, a.Y + a.H/2}, Point{b.X, b.Y + b.H/2}
		var points []Point
		switch {
		case f.Source.AttachedTo != nil:
			from = Point{a.X + a.W/2, a.Y + a.H}
			points = []Point{from, {from.X, max(to.Y, from.Y+20)}, {b.X - 20, max(to.Y, from.Y+20)}, {b.X - 20, to.Y}, to}
		case to.X < from.X: // backwards, over the top
			top := min(a.Y, b.Y) - 20
			points = []Point{{a.X + a.W/2, a.Y}, {a.X + a.W/2, top}, {b.X + b.W/2, top}, {b.X + b.W/2, b.Y}}
		case from.Y == to.Y:
			points = []Point{from, to}
		default:
			points = []Point{from, {to.X - gapX/2, from.Y}, {to.X - gapX/2, to.Y}, to}
		}
		l.dia.Edges[f.ID] = Edge{Points: points}
		l.dia.Order = append(l.dia.Order, f.ID)
	}
	for _, a := range s.Associations {
		from, ok1 := l.dia.Shapes[a.SourceRef]
		to, ok2 := l.dia.Shapes[a.TargetRef]
		if ok1 && ok2 {
			start := Point{from.X + from.W/2, from.Y + from.H}
			end := Point{to.X + to.W/2, to.Y}
			l.dia.Edges[a.ID] = Edge{Points: []Point{start, {start.X, (start.Y + end.Y) / 2}, {end.X, (start.Y + end.Y) / 2}, end}}
			l.dia.Order = append(l.dia.Order, a.ID)
		}
	}
	for _, e := range s.Elements {
		if e.Scope != nil {
			l.edges(e.Scope)
		}
	}
}
