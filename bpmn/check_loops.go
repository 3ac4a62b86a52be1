package bpmn

import "strings"

// passesThrough says whether an element completes without waiting for anybody.
func passesThrough(e *Element) bool {
	switch e.Kind {
	case KindManualTask, KindTask:
		return e.Loop == nil
	case KindExclusiveGateway, KindParallelGateway, KindInclusiveGateway:
		return true
	case KindThrowEvent:
		return e.Event == nil || e.Event.Kind == EventEscalation || e.Event.Kind == EventSignal || e.Event.Kind == EventLink
	case KindCatchEvent:
		return e.Event != nil && e.Event.Kind == EventLink
	}
	return false
}

// loops refuses a loop that waits for nobody and holds a task: it would run for ever.
func (c *checker) loops(s *Scope) {
	next := func(e *Element) []*Element {
		var out []*Element
		for _, f := range e.Outgoing {
			if passesThrough(f.Target) {
				out = append(out, f.Target)
			}
		}
		if e.Kind == KindThrowEvent && e.Event != nil && e.Event.Kind == EventLink {
			for _, other := range s.Elements {
				if other.Kind == KindCatchEvent && other.Event != nil && other.Event.Kind == EventLink && other.Event.LinkName == e.Event.LinkName {
					out = append(out, other)
				}
			}
		}
		return out
	}
	onLoop := cyclic(s.Elements, next)
	for _, start := range s.Elements {
		if start.Kind != KindManualTask && start.Kind != KindTask || !onLoop[start] {
			continue
		}
		from := map[*Element]*Element{}
		queue := next(start)
		for _, e := range queue {
			from[e] = start
		}
		for len(queue) > 0 {
			e := queue[0]
			queue = queue[1:]
			if e == start {
				ids := []string{start.ID}
				for at := from[start]; at != start; at = from[at] {
					ids = append(ids, at.ID)
					delete(onLoop, at) // named here
				}
				ids = append(ids, start.ID)
				for i, j := 0, len(ids)-1; i < j; i, j = i+1, j-1 {
					ids[i], ids[j] = ids[j], ids[i]
				}
				c.fail(start, "is part of a loop that waits for nobody and would never end: %s", strings.Join(ids, " > "))
				break
			}
			for _, n := range next(e) {
				if _, seen := from[n]; !seen {
					from[n] = e
					queue = append(queue, n)
				}
			}
		}
	}
}

// cyclic keeps the elements that may be part of a loop: those that remain when
// elements without a predecessor are taken away again and again.
func cyclic(all []*Element, next func(*Element) []*Element) map[*Element]bool {
	left, degree := map[*Element]bool{}, map[*Element]int{}
	for _, e := range all {
		if passesThrough(e) {
			left[e] = true
			for _, n := range next(e) {
				degree[n]++
			}
		}
	}
	var free []*Element
	for e := range left {
		if degree[e] == 0 {
			free = append(free, e)
		}
	}
	for len(free) > 0 {
		e := free[len(free)-1]
		free = free[:len(free)-1]
		delete(left, e)
		for _, n := range next(e) {
			if degree[n]--; degree[n] == 0 && left[n] {
				free = append(free, n)
			}
		}
	}
	return left
}
