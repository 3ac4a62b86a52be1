package sagas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/worker"
)

// CheckModel compares a saga as it is declared (its type, and what its handlers say about themselves) with the model that runs
// it, and reports every difference at once. Call it at start-up and in a test of the model: what it finds would otherwise show
// when something has to be undone. It does not look at what bpmn.Lint looks at.
//
// It wants, of the process with the type's ProcessID:
//
//   - the start message saga.start.<type>, saga.begin behind it, saga.close before each end that is not "not mine";
//   - undo paths for a failure, the deadline and a cancel, each beginning with saga.give-up of that reason and ending with
//     saga.undo-rest, what is drawn between them undoing each drawn step once, later steps first;
//   - for each task a handler; as its drawn compensation, or in the property journeyman:undo, the job type that the handler
//     declares with CompensatedBy, and that job type in the handler of a subprocess around it which is compensated as a whole (a multi-instance can be compensated in no other way); no compensation for one that has no effect or cannot be undone; for one that a person undoes,
//     that task;
//   - the pivot where the handler says so and nowhere else; behind it nothing that is compensated, and tasks marked as such;
//   - the steps that the type shows and the job types it gives SLAs to;
//   - handlers, the machinery's too, that keep what they did (worker.Retain) as long as the type keeps its answers (spec D1), and a
//     type that is declared to move money when one of its handlers does (spec D3).
//
// Handlers of other processes are not looked at. An unknown handler is a difference, unless none of the model's job types has
// one: then this process runs no workers, and only the model itself is checked.
func CheckModel(model *bpmn.Definitions, t Type, handlers []worker.Declared) error {
	full := t.withDefaults()
	c := &modelCheck{t: full, declared: map[string]worker.Declared{}}
	for _, d := range handlers {
		c.declared[d.JobType] = d
	}
	for _, p := range model.Processes {
		if p.ID == full.ProcessID {
			c.process = p
		}
	}
	if c.process == nil {
		return fmt.Errorf("saga type %q: the model has no process %q", t.Name, full.ProcessID)
	}
	c.walk(&c.process.Scope)
	c.frame()
	c.undoPaths()
	c.tasks()
	c.pivots()
	c.shown()
	c.kept()
	return errors.Join(c.errs...)
}

// CheckModels is [CheckModel] for every declared type, each with the model among models that has its process. A type whose
// process is in none of them is a difference.
func (s *Sagas) CheckModels(handlers []worker.Declared, models ...*bpmn.Definitions) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.types)) {
		t := s.types[name]
		at := slices.IndexFunc(models, func(m *bpmn.Definitions) bool {
			return slices.ContainsFunc(m.Processes, func(p *bpmn.Process) bool { return p.ID == t.ProcessID })
		})
		if at < 0 {
			errs = append(errs, fmt.Errorf("saga type %q: no model has process %q", name, t.ProcessID))
			continue
		}
		errs = append(errs, CheckModel(models[at], *t, handlers))
	}
	return errors.Join(errs...)
}

type modelCheck struct {
	t        *Type
	process  *bpmn.Process
	declared map[string]worker.Declared
	all      []*bpmn.Element // every element of the process, document order
	errs     []error
}

func (c *modelCheck) bad(e *bpmn.Element, format string, args ...any) {
	at := ""
	if e != nil {
		at = fmt.Sprintf(", line %d, %s", e.Line, e.ID)
	}
	c.errs = append(c.errs, fmt.Errorf("saga type %q%s: "+format, append([]any{c.t.Name, at}, args...)...))
}

func (c *modelCheck) walk(s *bpmn.Scope) {
	for _, e := range s.Elements {
		c.all = append(c.all, e)
		if e.Scope != nil {
			c.walk(e.Scope)
		}
	}
}

func jobType(e *bpmn.Element) string {
	if e.Task == nil {
		return ""
	}
	return e.Task.Type
}

func (c *modelCheck) ofType(typ string) (out []*bpmn.Element) {
	for _, e := range c.all {
		if jobType(e) == typ {
			out = append(out, e)
		}
	}
	return out
}

// behind gives what can run after e, e itself not: the flows and boundary events, out of a subprocess that ends, and into one.
func behind(from *bpmn.Element) map[*bpmn.Element]bool {
	seen := map[*bpmn.Element]bool{}
	var visit func(e *bpmn.Element)
	next := func(e *bpmn.Element) {
		for _, f := range e.Outgoing {
			visit(f.Target)
		}
		if len(e.Outgoing) == 0 && e.Parent != nil && !e.Parent.TriggeredByEvent { // the subprocess may end here
			for _, f := range e.Parent.Outgoing {
				visit(f.Target)
			}
		}
	}
	visit = func(e *bpmn.Element) {
		if e == nil || seen[e] {
			return
		}
		seen[e] = true
		for _, b := range e.Boundary {
			if b.Event == nil || b.Event.Kind != bpmn.EventCompensation {
				visit(b)
			}
		}
		if e.Scope != nil {
			for _, in := range e.Scope.Elements {
				if in.Kind == bpmn.KindStartEvent {
					visit(in)
				}
			}
		}
		next(e)
	}
	next(from)
	return seen
}

// frame wants the beginning and the end of every saga.
func (c *modelCheck) frame() {
	begins, closes := c.ofType(JobBegin), c.ofType(JobClose)
	if len(begins) != 1 {
		c.bad(nil, "the model has %d tasks %s, want one", len(begins), JobBegin)
	}
	if len(closes) != 1 {
		c.bad(nil, "the model has %d tasks %s, want one", len(closes), JobClose)
	}
	want := "saga.start." + c.t.Name
	for _, e := range c.process.Elements {
		if e.Kind != bpmn.KindStartEvent {
			continue
		}
		switch {
		case e.Event == nil || e.Event.Message == nil || e.Event.Message.Name != want:
			c.bad(e, "is no start by message %s", want)
		case len(e.Outgoing) != 1 || jobType(e.Outgoing[0].Target) != JobBegin:
			c.bad(e, "does not lead to %s at once", JobBegin)
		}
	}
	for _, e := range c.process.Elements {
		if e.Kind != bpmn.KindEndEvent || len(closes) != 1 || behind(closes[0])[e] {
			continue
		}
		for _, f := range e.Incoming { // only "not mine" may end without closing
			if b := f.Source; b.AttachedTo == nil || jobType(b.AttachedTo) != JobBegin {
				c.bad(e, "ends the saga without %s", JobClose)
			}
		}
	}
}

// undoPaths wants a way back for each reason.
func (c *modelCheck) undoPaths() {
	found := map[Decision]bool{}
	drawn := c.drawn()
	for _, e := range c.ofType(JobGiveUp) {
		reason := Decision("")
		for _, h := range e.Headers {
			if h.Key == "reason" {
				reason = Decision(h.Value)
			}
		}
		if !slices.Contains([]Decision{Failed, Expired, Cancelled}, reason) {
			c.bad(e, "header reason is %q, want failed, expired or cancelled", reason)
			continue
		}
		found[reason] = true
		path := behind(e)
		if !slices.ContainsFunc(c.ofType(JobUndoRest), func(r *bpmn.Element) bool { return path[r] }) {
			c.bad(e, "is not followed by %s: what the drawing does not reach stays", JobUndoRest)
		}
		c.order(e, drawn)
	}
	for _, reason := range []Decision{Failed, Expired, Cancelled} {
		if len(drawn) > 0 && !found[reason] {
			c.bad(nil, "the model has no %s with reason %s", JobGiveUp, reason)
		}
	}
	for _, r := range c.ofType(JobUndoRest) {
		for e := range behind(r) {
			if e.Event != nil && e.Event.Kind == bpmn.EventCompensation && e.AttachedTo == nil && e.In == r.In {
				c.bad(e, "compensates behind %s", JobUndoRest)
			}
		}
	}
}

// drawn are the steps with a drawn compensation.
func (c *modelCheck) drawn() (out []*bpmn.Element) {
	for _, e := range c.all {
		if e.CompensationHandler != nil {
			out = append(out, e)
		}
	}
	return out
}

// order follows one undo path and wants each drawn step undone once, later ones first.
func (c *modelCheck) order(giveUp *bpmn.Element, drawn []*bpmn.Element) {
	var thrown []string
	seen := map[*bpmn.Element]bool{}
	all := false
	for queue := []*bpmn.Element{giveUp}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		if seen[e] || e.In != giveUp.In {
			continue
		}
		seen[e] = true
		if e.Event != nil && e.Event.Kind == bpmn.EventCompensation && e.AttachedTo == nil {
			all = all || e.Event.ActivityRef == ""
			thrown = append(thrown, e.Event.ActivityRef)
		}
		for _, f := range e.Outgoing {
			queue = append(queue, f.Target)
		}
	}
	if all || len(thrown) == 0 {
		return // all at once, or everything from the ledger
	}
	for _, step := range drawn {
		n := 0
		for _, id := range thrown {
			if id == step.ID {
				n++
			}
		}
		if n != 1 && (step.In == giveUp.In || giveUp.Parent != nil && step.In == giveUp.Parent.In) {
			c.bad(giveUp, "its path compensates %s %d times, want once", step.ID, n)
		}
		for _, later := range drawn {
			a, b := slices.Index(thrown, step.ID), slices.Index(thrown, later.ID)
			if a >= 0 && b >= 0 && a < b && behind(step)[later] && !behind(later)[step] {
				c.bad(giveUp, "its path undoes %s before %s, which is done later", step.ID, later.ID)
			}
		}
	}
}

// tasks compares each task with its handler.
func (c *modelCheck) tasks() {
	undoes := map[string]bool{}
	for _, d := range c.declared {
		undoes[d.Undo] = true
	}
	known := slices.ContainsFunc(c.all, func(e *bpmn.Element) bool {
		_, ok := c.declared[jobType(e)]
		return ok && !e.Machinery()
	})
	for _, e := range c.all {
		typ := jobType(e)
		if typ == "" || e.Machinery() || strings.HasPrefix(typ, "=") || !known {
			continue
		}
		if e.Undoes() {
			if !undoes[typ] {
				c.bad(e, "no handler declares CompensatedBy(%q)", typ)
			}
			continue
		}
		d, ok := c.declared[typ]
		if !ok {
			c.bad(e, "job type %q has no handler", typ)
			continue
		}
		c.task(e, d)
	}
}

func (c *modelCheck) task(e *bpmn.Element, d worker.Declared) {
	undo, drawn := "", e.CompensationHandler
	switch {
	case drawn != nil && drawn.Scope != nil:
		undo, drawn = d.Undo, nil // compared below
	case drawn != nil:
		undo = jobType(drawn)
	}
	marked, isMarked := e.Property(bpmn.PropertyUndo)
	switch {
	case drawn != nil && d.Undo == "":
		c.bad(e, "is compensated by %q, its handler declares no compensation", undo)
	case drawn != nil && d.Undo != undo:
		c.bad(e, "is compensated by %q, its handler by %q", undo, d.Undo)
	case isMarked && d.Undo != marked:
		c.bad(e, "%s is %q, its handler is compensated by %q", bpmn.PropertyUndo, marked, d.Undo)
	case drawn == nil && undo == "" && !isMarked && d.Undo != "":
		c.bad(e, "its handler is compensated by %q, the model neither draws nor names that", d.Undo)
	}
	for at := e; at != nil && d.Undo != ""; at = at.Parent { // a subprocess that is undone as a whole
		if h := at.CompensationHandler; h != nil && h.Scope != nil && !draws(h, d.Undo) {
			c.bad(e, "is compensated by %q, which %s, the compensation of %s, does not draw", d.Undo, h.ID, at.ID)
		}
	}
	if effect, _ := e.Property(bpmn.PropertyEffect); effect == "none" && !d.NoEffect {
		c.bad(e, "has no effect by the model (%s), its handler does not declare NoEffect", bpmn.PropertyEffect)
	}
	if d.Manual != "" && !slices.ContainsFunc(c.all, func(p *bpmn.Element) bool { return p.ID == d.Manual && p.Kind == bpmn.KindUserTask }) {
		c.bad(e, "is undone by a person in task %q, which is no user task of the model", d.Manual)
	}
}

// draws says whether a subprocess has a task of a job type.
func draws(sub *bpmn.Element, typ string) bool {
	return slices.ContainsFunc(sub.Scope.Elements, func(e *bpmn.Element) bool {
		return jobType(e) == typ || e.Scope != nil && draws(e, typ)
	})
}

// pivots wants the pivot in one place for model and handlers.
func (c *modelCheck) pivots() {
	var pivots []*bpmn.Element
	for _, e := range c.all {
		_, marked := e.Property(bpmn.PropertyPivot)
		d, known := c.declared[jobType(e)]
		if known && marked != d.Pivot {
			c.bad(e, "is the pivot by the model: %v, by its handler: %v", marked, d.Pivot)
		}
		if marked {
			pivots = append(pivots, e)
		}
	}
	if len(pivots) == 0 {
		c.bad(nil, "no task is the pivot (%s): nothing takes the decision completed", bpmn.PropertyPivot)
	}
	for _, p := range pivots {
		for e := range behind(p) {
			_, after := e.Property(bpmn.PropertyAfterPivot)
			_, also := e.Property(bpmn.PropertyPivot)
			_, known := c.declared[jobType(e)]
			switch {
			case e.Task == nil || e.Machinery() || also:
			case e.CompensationHandler != nil || known && c.declared[jobType(e)].Undo != "":
				c.bad(e, "stands behind the pivot %s and is compensated: what was decided is not rolled back", p.ID)
			case !after && !e.Undoes():
				c.bad(e, "stands behind the pivot %s without %s", p.ID, bpmn.PropertyAfterPivot)
			}
		}
	}
}

// shown wants the steps that partners are shown, and those with an SLA, to be there.
func (c *modelCheck) shown() {
	for _, id := range c.t.Steps {
		id, _, _ = strings.Cut(id, ":")
		if !slices.ContainsFunc(c.all, func(e *bpmn.Element) bool { return e.ID == id && e.Task != nil }) {
			c.bad(nil, "step %q is shown to partners, the model has no such task", id)
		}
	}
	for _, job := range slices.Sorted(maps.Keys(c.t.StepSLA)) {
		if len(c.ofType(job)) == 0 {
			c.bad(nil, "job type %q has an SLA, the model has no such task", job)
		}
	}
}

// kept wants the operations behind the answer known as long as the answer itself.
func (c *modelCheck) kept() {
	seen := map[string]bool{}
	for _, e := range c.all {
		d, ok := c.declared[jobType(e)]
		if !ok || seen[d.JobType] {
			continue
		}
		seen[d.JobType] = true
		if keep := max(d.Retain, worker.RetainDefault); keep < c.t.Retention {
			c.bad(e, "its handler keeps what it did for %v, want at least the %v that the type keeps its answers", keep, c.t.Retention)
		}
		if d.Money && !c.t.Money {
			c.bad(e, "its handler moves money, the type does not declare Money")
		}
	}
}
