package generate

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/bpmn/feel"
)

// unit is one package under generation.
type unit struct {
	opts     Options
	names    names
	models   []*model
	jobs     map[string]*job   // by job type
	codes    map[string]*code  // by error code
	messages map[string]string // name → where
}

type model struct {
	file, goName string
	sums         []string
	processes    []string
	elements     []*bpmn.Element
	jobs         []string // job types in document order
	codes        []elementCodes
	notes        []string // what has no code, and why
}

// job is one job type.
type job struct {
	jobType, goName string
	in, out         *shape
	inSeen          int      // elements whose inputs were read
	places          []string // "element (model)"
	models          []string // files
	undo            string   // job type of its compensation
	undoes          []string // job types that it compensates; such a type has no handler of its own
	throws          []string // journeyman:errors
}

type code struct{ caught, thrown []string }

// correlation are the variables of worker.Meta.
var correlation = []string{ //nolint:gochecknoglobals // a table
	"businessKey", "operationId", "correlationId", "traceparent", "traceId", "tenant", "sagaId", "actor", "httpIdempotencyKey", "processInstanceKey",
}

// exampleProperty is where Camunda's Modeler keeps an element's example output.
const exampleProperty = "camundaModeler:exampleOutputJson"

func (u *unit) add(m Model) error {
	defs, err := parse(m)
	if err != nil {
		return err
	}
	ex, err := readExample(m)
	if err != nil {
		return err
	}
	stem := strings.TrimSuffix(m.Name, ".bpmn")
	md := &model{file: m.Name, goName: goName(stem), sums: []string{fmt.Sprintf("%s sha256:%x", m.Name, sha256.Sum256(m.Source))}}
	if m.Example != nil {
		md.sums = append(md.sums, fmt.Sprintf("%s.example.json sha256:%x", stem, sha256.Sum256(m.Example)))
	}
	u.models = append(u.models, md)
	c := &collector{unit: u, model: md, example: ex, codes: codesOf(defs)}
	for _, p := range defs.Processes {
		if !p.Executable {
			continue
		}
		md.processes = append(md.processes, p.ID)
		c.scope(&p.Scope)
	}
	c.catches()
	return errors.Join(c.errs...)
}

func readExample(m Model) (Example, error) {
	var ex Example
	if m.Example == nil {
		return ex, nil
	}
	d := json.NewDecoder(bytes.NewReader(m.Example))
	d.DisallowUnknownFields()
	err := d.Decode(&ex)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the value")
		}
	}
	if err != nil {
		return ex, fmt.Errorf("%s.example.json: want {\"variables\": {…}, \"jobs\": {\"TYPE\": {\"input\": {…}, \"output\": {…}}}}: %w", strings.TrimSuffix(m.Name, ".bpmn"), err)
	}
	return ex, nil
}

// collector reads one model.
type collector struct {
	unit    *unit
	model   *model
	example Example
	codes   *modelCodes
	errs    []error
}

func (c *collector) fail(e *bpmn.Element, format string, args ...any) {
	c.errs = append(c.errs, &bpmn.Error{File: c.model.file, Line: e.Line, ElementID: e.ID, Kind: e.Kind, Reason: fmt.Sprintf(format, args...)})
}

func (c *collector) scope(s *bpmn.Scope) {
	for _, e := range s.Elements {
		c.model.elements = append(c.model.elements, e)
		c.event(e)
		if e.Message != nil {
			c.message(e, e.Message)
		}
		if e.Task != nil {
			c.task(e)
		}
		if e.Scope != nil {
			c.scope(e.Scope)
		}
	}
}

func (c *collector) event(e *bpmn.Element) {
	if e.Event == nil {
		return
	}
	if e.Event.Message != nil {
		c.message(e, e.Event.Message)
	}
	if e.Event.Error != nil && e.Event.Error.Code != "" && !strings.HasPrefix(e.Event.Error.Code, "=") {
		k := c.unit.code(e.Event.Error.Code)
		if e.Kind == bpmn.KindEndEvent || e.Kind == bpmn.KindThrowEvent {
			k.thrown = append(k.thrown, c.place(e))
		} else {
			k.caught = append(k.caught, c.place(e))
		}
	}
}

func (u *unit) code(name string) *code {
	if u.codes[name] == nil {
		u.codes[name] = &code{}
	}
	return u.codes[name]
}

func (c *collector) message(e *bpmn.Element, m *bpmn.Message) {
	switch {
	case m.Name == "":
	case strings.HasPrefix(m.Name, "="):
		c.note(e, "its message name is an expression")
	case c.unit.messages[m.Name] == "":
		c.unit.messages[m.Name] = c.place(e)
	}
}

func (c *collector) place(e *bpmn.Element) string {
	return e.ID + " (" + strings.TrimSuffix(c.model.file, ".bpmn") + ")"
}

func (c *collector) note(e *bpmn.Element, why string) {
	c.model.notes = append(c.model.notes, e.ID+": "+why)
}

func (u *unit) foreign(jobType string) bool {
	return slices.ContainsFunc(u.opts.Foreign, func(f string) bool {
		start, open := strings.CutSuffix(f, "*")
		return f == jobType || open && strings.HasPrefix(jobType, start)
	})
}

func (u *unit) job(jobType string) *job {
	j := u.jobs[jobType]
	if j == nil {
		j = &job{jobType: jobType, goName: goName(jobType), in: newObject(), out: newObject()}
		u.jobs[jobType] = j
	}
	return j
}

func (c *collector) task(e *bpmn.Element) {
	t := e.Task.Type
	if strings.HasPrefix(t, "=") || t == "" {
		c.note(e, "its job type is an expression, so it has no handler here")
		return
	}
	j := c.unit.job(t)
	j.places = append(j.places, c.place(e))
	if !slices.Contains(c.model.jobs, t) {
		c.model.jobs = append(c.model.jobs, t)
	}
	if !slices.Contains(j.models, c.model.file) {
		j.models = append(j.models, c.model.file)
	}
	undo, _ := e.Property(bpmn.PropertyUndo)
	if h := e.CompensationHandler; h != nil && h.Task != nil {
		undo = h.Task.Type
	}
	if undo != "" && !strings.HasPrefix(undo, "=") {
		if j.undo != "" && j.undo != undo {
			c.fail(e, "job type %q is undone by %q here and by %q elsewhere: want one", t, undo, j.undo)
		}
		j.undo = undo
		if u := c.unit.job(undo); !slices.Contains(u.undoes, t) {
			u.undoes = append(u.undoes, t)
		}
	}
	if list, ok := e.Property(bpmn.PropertyErrors); ok {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(j.throws, name) {
				j.throws = append(j.throws, name)
				k := c.unit.code(name)
				k.thrown = append(k.thrown, c.place(e))
			}
		}
	}
	if e.Undoes() {
		return // its input is the forward operation's
	}
	c.inputs(e, j)
	c.outputs(e, j)
}

// inputs joins the input of one element into the job's.
func (c *collector) inputs(e *bpmn.Element, j *job) {
	in := newObject()
	vars := c.variables(e)
	for _, m := range e.Inputs {
		if slices.Contains(correlation, m.Target) {
			continue
		}
		s := c.property(e, "journeyman:input."+m.Target)
		if s.empty() {
			s = exampleField(c.example.Jobs[j.jobType].Input, m.Target)
		}
		if s.empty() {
			if x, err := feel.ParseExpression(m.Source); err == nil && len(vars) > 0 {
				if v, _, err := x.Eval(vars); err == nil {
					s = ofValue(v)
				}
			}
		}
		if s.empty() {
			s = ofSource(m.Source)
		}
		if s.empty() && m.Target == "forwardOperationId" {
			s = &shape{kind: text}
		}
		in.put(m.Target, s)
	}
	c.extra(e, in, "journeyman:input.")
	if len(e.Inputs) == 0 {
		for name, doc := range c.example.Jobs[j.jobType].Input {
			if in.fields[name] == nil && !slices.Contains(correlation, name) {
				in.fields[name] = ofJSON(doc)
			}
		}
	}
	j.inSeen++
	merge(j.in, in, j.inSeen > 1)
}

// merge joins b into a; what only one of them has becomes optional when they describe different elements.
func merge(a, b *shape, differ bool) {
	for name, f := range b.fields {
		old := a.fields[name]
		a.fields[name] = join(old, f)
		if old == nil && differ {
			a.fields[name] = optionally(f)
		}
	}
	if differ {
		for name, f := range a.fields {
			if b.fields[name] == nil {
				a.fields[name] = optionally(f)
			}
		}
	}
}

func optionally(s *shape) *shape {
	o := *s
	o.optional = true
	return &o
}

// lookup is an expression that only looks a value up.
var lookup = regexp.MustCompile(`^=\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*$`) //nolint:gochecknoglobals // compiled once

// outputs joins what one element's output mappings read into the job's output.
func (c *collector) outputs(e *bpmn.Element, j *job) {
	out := newObject()
	given := map[string]bool{}
	for _, m := range e.Inputs {
		name, _, _ := strings.Cut(m.Target, ".")
		given[name] = true
	}
	for at := e; at != nil; at = at.Parent {
		if at.Loop != nil { // what an instance of a loop is for, the job did not give
			given["loopCounter"], given[at.Loop.InputElement] = true, true
		}
	}
	samples := c.example.Jobs[j.jobType].Output
	if doc, ok := e.Property(exampleProperty); ok {
		var own map[string]json.RawMessage
		if err := json.Unmarshal([]byte(doc), &own); err != nil {
			c.fail(e, "%s: want a JSON object: %v", exampleProperty, err)
		}
		samples = maps.Clone(samples)
		if samples == nil {
			samples = map[string]json.RawMessage{}
		}
		for name, v := range own {
			if samples[name] == nil {
				samples[name] = v
			}
		}
	}
	for _, m := range e.Outputs {
		x, err := feel.ParseExpression(m.Source)
		if err != nil || x.IsStatic() {
			continue
		}
		for _, name := range x.Expr().Variables() {
			if given[name] || slices.Contains(correlation, name) {
				continue
			}
			at, s := name, c.property(e, "journeyman:output."+name)
			if s.empty() {
				s = exampleField(samples, name)
			}
			if found := lookup.FindStringSubmatch(m.Source); s.empty() && found != nil {
				at, s = found[1], c.property(e, "journeyman:output."+found[1])
				if s.empty() {
					s = exampleField(c.example.Variables, m.Target)
				}
			}
			if s == nil {
				s = &shape{}
			}
			if old := out.at(at); old != nil {
				s = join(old, s)
			}
			out.put(at, s)
		}
	}
	if len(e.Outputs) == 0 { // everything the handler gives becomes a variable
		for name, doc := range samples {
			out.fields[name] = ofJSON(doc)
		}
	}
	c.extra(e, out, "journeyman:output.")
	merge(j.out, out, false)
}

// extra adds fields that only a property names, and refuses types that are spelled wrongly.
func (c *collector) extra(e *bpmn.Element, s *shape, prefix string) {
	for _, p := range e.Properties {
		name, ok := strings.CutPrefix(p.Key, prefix)
		if !ok {
			continue
		}
		f, err := ofText(p.Value)
		if err != nil {
			c.fail(e, "property %s: %v", p.Key, err)
			continue
		}
		if s.at(name) == nil {
			s.put(name, f)
		}
	}
}

func (c *collector) property(e *bpmn.Element, key string) *shape {
	v, ok := e.Property(key)
	if !ok {
		return nil
	}
	s, err := ofText(v)
	if err != nil {
		return nil // reported by extra
	}
	return s
}

func exampleField(samples map[string]json.RawMessage, path string) *shape {
	first, rest, nested := strings.Cut(path, ".")
	doc, ok := samples[first]
	if !ok {
		return nil
	}
	s := ofJSON(doc)
	if nested {
		return s.at(rest)
	}
	return s
}

// variables are the example's, with those that the loops around e set.
func (c *collector) variables(e *bpmn.Element) feel.Variables {
	vars := feel.Variables{}
	for name, doc := range c.example.Variables {
		if v, err := feel.FromJSON(doc); err == nil {
			vars[name] = v
		}
	}
	for at := e; at != nil; at = at.Parent {
		if at.Loop == nil {
			continue
		}
		vars["loopCounter"] = feel.IntValue(1)
		if x, err := feel.ParseExpression(at.Loop.InputCollection); err == nil && at.Loop.InputElement != "" {
			if v, _, err := x.Eval(vars); err == nil {
				if items, ok := v.List(); ok && len(items) > 0 {
					vars[at.Loop.InputElement] = items[0]
				}
			}
		}
	}
	return vars
}
