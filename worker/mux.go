package worker

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Mux holds the handlers of a worker by job type. The zero value works. Fill it before [New]; it must not change afterwards.
type Mux struct {
	forward map[string]*spec
	twice   []string
	around  []Middleware
}

// NewMux makes an empty Mux.
func NewMux() *Mux { return &Mux{} }

// Handle registers h for a job type, with further options. Mistakes are reported by [New], all at once.
func (m *Mux) Handle(jobType string, h Handler, opts ...Option) {
	if m.forward == nil {
		m.forward = map[string]*spec{}
	}
	if _, ok := m.forward[jobType]; ok {
		m.twice = append(m.twice, jobType)
		return
	}
	s := &spec{}
	if h != nil {
		*s = *h.handler()
	} else {
		s.missing = append(s.missing, "handler")
	}
	for _, o := range opts {
		o.apply(&s.opt)
	}
	m.forward[jobType] = s
}

// Types lists the job types that a worker with this Mux activates, sorted: those of its handlers and of their compensations.
func (m *Mux) Types() []string {
	t := slices.Collect(maps.Keys(m.forward))
	for _, s := range m.forward {
		if u := s.opt.undo; u != nil && u.jobType != "" && !slices.Contains(t, u.jobType) {
			t = append(t, u.jobType)
		}
	}
	slices.Sort(t)
	return t
}

// pollOnly reports whether a job type, or the handler that it compensates, asks for polling alone.
func (m *Mux) pollOnly(jobType string) bool {
	for t, s := range m.forward {
		if s.opt.pollOnly && (t == jobType || s.opt.undo != nil && s.opt.undo.jobType == jobType) {
			return true
		}
	}
	return false
}

// undoTypes maps the compensation job types to true.
func (m *Mux) undoTypes() map[string]bool {
	t := map[string]bool{}
	for _, s := range m.forward {
		if s.opt.undo != nil {
			t[s.opt.undo.jobType] = true
		}
	}
	return t
}

// check reports every mistake in the declarations (spec W15, path rules 8, 18).
func (m *Mux) check(handlerTimeout time.Duration) error {
	var errs []error
	bad := func(jobType, format string, args ...any) {
		errs = append(errs, fmt.Errorf("job type %q: "+format, append([]any{jobType}, args...)...))
	}
	if len(m.forward) == 0 {
		errs = append(errs, errors.New("mux: no handler"))
	}
	for _, t := range m.twice {
		bad(t, "registered twice")
	}
	for i, mw := range m.around {
		if mw == nil {
			errs = append(errs, fmt.Errorf("mux: middleware %d of Use is nil", i+1))
		}
	}
	undoTypes := m.undoTypes()
	for _, t := range slices.Sorted(maps.Keys(m.forward)) {
		s := m.forward[t]
		if t == "" {
			errs = append(errs, errors.New("job type: empty"))
		}
		if undoTypes[t] {
			bad(t, "is the compensation of another handler, which serves it; want no handler of its own")
		}
		for _, f := range s.missing {
			bad(t, "%s is nil", f)
		}
		if s.in != nil && s.in.Kind() != reflect.Struct {
			bad(t, "input is %s, want a struct whose fields name the variables", s.in)
		}
		m.checkDeclaration(t, s, bad)
		m.checkExternal(t, s, bad)
		if s.opt.sla < 0 {
			bad(t, "SLA %s: want above 0", s.opt.sla)
		}
		if s.opt.timeout < 0 || s.opt.timeout > handlerTimeout {
			bad(t, "timeout %s: want at most the worker's %s; longer work is External", s.opt.timeout, handlerTimeout)
		}
		if s.opt.backoff != nil {
			if err := s.opt.backoff.Check(); err != nil {
				bad(t, "%w", err)
			}
		}
		for c := range s.opt.codes {
			if err := checkCode(c); err != nil {
				bad(t, "Throws: %w", err)
			}
		}
		if s.opt.amountType != nil && s.opt.amountType != s.in {
			bad(t, "Amount takes %s, the input is %s", s.opt.amountType, s.in)
		}
	}
	return errors.Join(errs...)
}

func (m *Mux) checkDeclaration(t string, s *spec, bad func(string, string, ...any)) {
	const choices = "CompensatedBy, NotCompensable, Manual, NoEffect"
	switch {
	case len(s.opt.declared) == 0:
		bad(t, "says nothing of compensation; want exactly one of %s", choices)
	case len(s.opt.declared) > 1:
		bad(t, "declares %v; want exactly one of %s", s.opt.declared, choices)
	case s.opt.policy == "none:":
		bad(t, "NotCompensable without a reason")
	case s.opt.policy == "manual:":
		bad(t, "Manual without a task")
	}
	u := s.opt.undo
	if u == nil {
		if s.opt.orphans == Undo {
			bad(t, "Orphan(Undo) without CompensatedBy")
		}
		return
	}
	if u.jobType == "" {
		bad(t, "CompensatedBy without a job type")
	}
	if u.jobType == t {
		bad(t, "CompensatedBy names its own job type")
	}
	for _, f := range u.missing {
		bad(t, "compensation: %s is nil", f)
	}
	if s.in != nil && u.in != s.in {
		bad(t, "compensation takes input %s, the handler's is %s", u.in, s.in)
	}
	if s.res != nil && u.res != s.res {
		bad(t, "compensation takes result %s, the handler's is %s", u.res, s.res)
	}
}

func (m *Mux) checkExternal(t string, s *spec, bad func(string, string, ...any)) {
	if s.shape != shapeExternal {
		if s.opt.keyFor != 0 || s.opt.keyIgnored || s.opt.askFor != 0 {
			bad(t, "KeyValidFor, KeyIgnored and AskFor are for external handlers")
		}
		return
	}
	switch {
	case s.opt.askFor < 0:
		bad(t, "AskFor %s: want above 0", s.opt.askFor)
	case s.opt.askFor > 0 && s.resolve == nil:
		bad(t, "AskFor without Resolve: there is nobody to ask")
	}
	switch {
	case s.opt.keyFor < 0:
		bad(t, "KeyValidFor %s: want above 0", s.opt.keyFor)
	case s.opt.keyFor > 0 && s.opt.keyIgnored:
		bad(t, "declares both KeyValidFor and KeyIgnored")
	case s.opt.keyFor == 0 && !s.opt.keyIgnored:
		bad(t, "is external and does not say how long the other system honours its key; want KeyValidFor or KeyIgnored")
	case s.opt.keyIgnored && s.resolve == nil:
		bad(t, "KeyIgnored without Resolve: an unknown result could never be found out")
	}
}
