package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ModelCodes says what a model does with the error codes of one task's handler. `journeyman generate` writes them from the
// model; see [Mux.CheckCodes].
type ModelCodes struct {
	Element, JobType string
	Boundary         []string // caught by code on the task itself
	Scope            []string // caught by code around the task, and thrown by the model nowhere
	Throws           []string // declared in the model for this task; nil = the model says nothing
	Any              bool     // every other code is caught too
}

// Codes gives the error codes that the handler of a job type declares with [Throws], sorted. ok is false when there is no
// handler or it declares none.
func (m *Mux) Codes(jobType string) (codes []string, ok bool) {
	s := m.forward[jobType]
	if s == nil || s.opt.codes == nil {
		return nil, false
	}
	return slices.Sorted(maps.Keys(s.opt.codes)), true
}

// CheckCodes compares the codes that the handlers declare with [Throws] with those that a model catches (spec B6), and reports
// every difference at once: a code that would end in an incident because nothing catches it, a catch event that no handler
// reaches, a task whose handler declares nothing although the model catches codes of it by name. Job types without a handler
// in m are another worker's and not looked at. The codes of the runtime itself (SAGA_GIVEN_UP, SAGA_NOT_MINE, OUTCOME_UNKNOWN)
// need no declaration.
func (m *Mux) CheckCodes(model string, codes []ModelCodes) error {
	var errs []error
	bad := func(c ModelCodes, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: element %q, job type %q: "+format, append([]any{model, c.Element, c.JobType}, args...)...))
	}
	around := map[string]bool{} // code caught by a scope → some handler inside throws it, or nobody can tell
	for _, c := range codes {
		if m.forward[c.JobType] == nil {
			for _, code := range c.Scope {
				around[code] = true
			}
			continue
		}
		throws, declared := m.Codes(c.JobType)
		for _, code := range c.Boundary {
			switch {
			case runtimeCode(code) || slices.Contains(throws, code):
			case !declared:
				bad(c, "the model catches %s, the handler declares no codes; want Throws(…)", code)
			default:
				bad(c, "the model catches %s, which the handler does not declare with Throws", code)
			}
		}
		for _, code := range c.Scope {
			around[code] = around[code] || !declared || runtimeCode(code) || slices.Contains(throws, code)
		}
		for _, code := range throws {
			if !c.Any && !slices.Contains(c.Boundary, code) && !slices.Contains(c.Scope, code) && !runtimeCode(code) {
				bad(c, "the handler throws %s, which nothing in the model catches: it would be an incident", code)
			}
			if c.Throws != nil && !slices.Contains(c.Throws, code) {
				bad(c, "the handler throws %s, which the model does not declare in journeyman:errors", code)
			}
		}
		for _, code := range c.Throws {
			if declared && !slices.Contains(throws, code) {
				bad(c, "the model declares %s in journeyman:errors, the handler does not throw it", code)
			}
		}
	}
	for _, code := range slices.Sorted(maps.Keys(around)) {
		if !around[code] {
			errs = append(errs, fmt.Errorf("%s: a scope catches %s, which no handler inside it declares with Throws", model, code))
		}
	}
	return errors.Join(errs...)
}

func runtimeCode(code string) bool {
	return code == CodeSagaGivenUp || code == CodeSagaNotMine || code == CodeOutcomeUnknown
}
