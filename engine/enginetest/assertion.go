package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// assertions are the ASSERT instructions of scenarios.
func assertions() map[string]maker {
	return map[string]maker{
		"ASSERT_PROCESS_INSTANCE":  reads(assertInstance.check, assertInstance.run),
		"ASSERT_ELEMENT_INSTANCE":  reads(assertElement.check, assertElement.run),
		"ASSERT_ELEMENT_INSTANCES": reads(assertElements.check, assertElements.run),
		"ASSERT_VARIABLE":          reads(assertVariable.check, assertVariable.run),
		"ASSERT_VARIABLES":         reads(func(in assertVariables) error { return in.Process.check() }, assertVariables.run),
		"ASSERT_USER_TASK":         reads(assertTask.check, assertTask.run),
		"ASSERT_COMPENSATION":      reads(func(in assertCompensation) error { return in.Process.check() }, assertCompensation.run),
	}
}

func oneOf(value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("state is %q: want one of %s", value, strings.Join(allowed, ", "))
}

type assertInstance struct {
	Process   processSelector `json:"processInstanceSelector"`
	State     string          `json:"state"`
	Incidents *bool           `json:"hasActiveIncidents"`
}

func (in assertInstance) check() error {
	if in.State == "" && in.Incidents == nil {
		return errors.Join(in.Process.check(), errors.New("says nothing: want state or hasActiveIncidents"))
	}
	if in.State == "" {
		return in.Process.check()
	}
	return errors.Join(in.Process.check(), oneOf(in.State, "IS_ACTIVE", "IS_COMPLETED", "IS_CREATED", "IS_TERMINATED"))
}

func (in assertInstance) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	switch got := "IS_" + p.State(); {
	case in.State == "" || in.State == "IS_CREATED": // it was, or there were none to look at
	case got != in.State:
		return fmt.Errorf("process instance %s, want %s; %s", got, in.State, p.where())
	}
	if in.Incidents != nil && (len(p.Incidents()) > 0) != *in.Incidents {
		return fmt.Errorf("active incidents: want %v; %s", *in.Incidents, p.where())
	}
	return nil
}

type assertElement struct {
	Process processSelector `json:"processInstanceSelector"`
	Element elementSelector `json:"elementSelector"`
	State   string          `json:"state"`
	Amount  *int            `json:"amount"`
}

func (in assertElement) check() error {
	var errs []error
	if in.Amount != nil && *in.Amount < 1 {
		errs = append(errs, fmt.Errorf("amount is %d: want 1 or more", *in.Amount))
	}
	return errors.Join(append(errs, in.Process.check(), in.Element.check(), oneOf(in.State, "IS_ACTIVE", "IS_COMPLETED", "IS_TERMINATED"))...)
}

// in counts the runs of an element that are in a state.
func (p *Instance) count(ids []string, state string) (n int) {
	for _, e := range p.Elements() {
		if slices.Contains(ids, e.ElementID) && e.State == state {
			n++
		}
	}
	return n
}

func (in assertElement) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	ids, err := in.Element.ids(e)
	if err != nil {
		return err
	}
	want := 1
	if in.Amount != nil {
		want = *in.Amount
	}
	if n := p.count(ids, strings.TrimPrefix(in.State, "IS_")); n != want {
		return fmt.Errorf("element %s: %d runs %s, want %d; %s", in.Element, n, in.State, want, p.where())
	}
	return nil
}

type assertElements struct {
	Process  processSelector   `json:"processInstanceSelector"`
	Elements []elementSelector `json:"elementSelectors"`
	State    string            `json:"state"`
}

func (in assertElements) check() error {
	errs := []error{in.Process.check(), oneOf(in.State, "IS_ACTIVE", "IS_COMPLETED", "IS_TERMINATED", "IS_NOT_ACTIVE", "IS_NOT_ACTIVATED", "IS_ACTIVE_EXACTLY", "IS_COMPLETED_IN_ORDER")}
	if len(in.Elements) == 0 {
		errs = append(errs, errors.New("elementSelectors is empty"))
	}
	for _, s := range in.Elements {
		errs = append(errs, s.check())
	}
	return errors.Join(errs...)
}

func (in assertElements) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	var all []string
	var order [][]string
	for _, s := range in.Elements {
		ids, err := s.ids(e)
		if err != nil {
			return err
		}
		all, order = append(all, ids...), append(order, ids)
	}
	switch in.State {
	case "IS_ACTIVE_EXACTLY":
		for _, id := range p.in("ACTIVE") {
			if el := e.element(id); !slices.Contains(all, id) && (el == nil || el.Scope == nil) {
				return fmt.Errorf("element %s is active too; %s", id, p.where())
			}
		}
		fallthrough
	case "IS_ACTIVE", "IS_COMPLETED", "IS_TERMINATED":
		state := strings.TrimSuffix(strings.TrimPrefix(in.State, "IS_"), "_EXACTLY")
		for i, ids := range order {
			if p.count(ids, state) == 0 {
				return fmt.Errorf("element %s: no run %s; %s", in.Elements[i], in.State, p.where())
			}
		}
	case "IS_NOT_ACTIVE", "IS_NOT_ACTIVATED":
		for _, el := range p.Elements() {
			if slices.Contains(all, el.ElementID) && (el.State == "ACTIVE" || in.State == "IS_NOT_ACTIVATED") {
				return fmt.Errorf("element %s is %s; want %s", el.ElementID, el.State, in.State)
			}
		}
	case "IS_COMPLETED_IN_ORDER":
		rest := p.completed()
		for i, ids := range order {
			at := slices.IndexFunc(rest, func(id string) bool { return slices.Contains(ids, id) })
			if at < 0 {
				return fmt.Errorf("element %s did not complete, or not in order; completed: %v", in.Elements[i], p.completed())
			}
			rest = rest[at+1:]
		}
	}
	return nil
}

// completed lists the completed elements in the order in which they ended; those of one millisecond as they began.
func (p *Instance) completed() []string {
	all := slices.DeleteFunc(p.Elements(), func(e ElementInstance) bool { return e.State != "COMPLETED" })
	slices.SortStableFunc(all, func(a, b ElementInstance) int { return strings.Compare(a.End, b.End) })
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ElementID
	}
	return ids
}

// active is the key of the element's newest active run.
func (p *Instance) active(s elementSelector) (key, error) {
	ids, err := s.ids(p.env)
	if err != nil {
		return 0, err
	}
	for _, e := range slices.Backward(p.Elements()) {
		if slices.Contains(ids, e.ElementID) && e.State == "ACTIVE" {
			return e.Key, nil
		}
	}
	return 0, fmt.Errorf("element %s is not active; %s", s, p.where())
}

// local gives the variables of an element's newest run, or of the instance when there is no selector.
func (p *Instance) local(s *elementSelector) (map[string]json.RawMessage, error) {
	if s == nil {
		return p.Variables(), nil
	}
	ids, err := s.ids(p.env)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(p.Elements()) {
		if slices.Contains(ids, e.ElementID) {
			return p.scope(e.Key), nil
		}
	}
	return nil, fmt.Errorf("element %s was not entered", s)
}

type assertVariable struct {
	Process    processSelector  `json:"processInstanceSelector"`
	Element    *elementSelector `json:"elementSelector"`
	Name       string           `json:"variableName"`
	Expression string           `json:"satisfiesExpression"`
}

func (in assertVariable) check() error {
	errs := []error{in.Process.check(), need("variableName", in.Name), need("satisfiesExpression", in.Expression)}
	if in.Expression != "" {
		if _, err := feel.Compile(strings.TrimPrefix(in.Expression, "=")); err != nil {
			errs = append(errs, fmt.Errorf("satisfiesExpression: %w", err))
		}
	}
	return errors.Join(errs...)
}

func (in assertVariable) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	vars, err := p.local(in.Element)
	if err != nil {
		return err
	}
	doc, ok := vars[in.Name]
	if !ok {
		return fmt.Errorf("variable %s does not exist; there are %v", in.Name, slices.Sorted(maps.Keys(vars)))
	}
	v, err := feel.FromJSON(doc)
	if err != nil {
		return err
	}
	x, err := feel.Compile(strings.TrimPrefix(in.Expression, "="))
	if err != nil {
		return err
	}
	got, warnings, err := x.EvalWith(feel.Variables{in.Name: v}, feel.Options{Now: e.Now()})
	if err != nil {
		return err
	}
	if yes, is := got.Bool(); !is || !yes {
		return fmt.Errorf("%s is %s for %s = %s, want true %v", in.Expression, got.JSON(), in.Name, doc, warnings)
	}
	return nil
}

type assertVariables struct {
	Process   processSelector  `json:"processInstanceSelector"`
	Element   *elementSelector `json:"elementSelector"`
	Names     []string         `json:"variableNames"`
	Variables object           `json:"variables"`
}

func (in assertVariables) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	vars, err := p.local(in.Element)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range in.Names {
		if _, ok := vars[name]; !ok {
			errs = append(errs, fmt.Errorf("variable %s does not exist; there are %v", name, slices.Sorted(maps.Keys(vars))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.Variables)) {
		if said := differs(vars, name, in.Variables[name]); said != "" {
			errs = append(errs, errors.New(said))
		}
	}
	return errors.Join(errs...)
}

type assertTask struct {
	Selector  userTaskSelector `json:"userTaskSelector"`
	State     string           `json:"state"`
	Assignee  *string          `json:"assignee"`
	ElementID *string          `json:"elementId"`
	Name      *string          `json:"name"`
	Priority  *int32           `json:"priority"`
	Groups    []string         `json:"candidateGroups"`
}

func (in assertTask) check() error {
	var errs []error
	if in.Selector == (userTaskSelector{}) {
		errs = append(errs, errNoSelector)
	}
	if in.State != "" {
		errs = append(errs, oneOf(in.State, "IS_CREATED", "IS_COMPLETED", "IS_CANCELED", "IS_FAILED"))
	}
	return errors.Join(errs...)
}

func (in assertTask) run(e *Env) error {
	all := in.Selector.tasks(e)
	if len(all) == 0 {
		return fmt.Errorf("no user task for %+v", in.Selector)
	}
	u := all[len(all)-1]
	var errs []error
	differ := func(what string, got, want any) {
		if got != want {
			errs = append(errs, fmt.Errorf("user task %s: %s is %v, want %v", u.ElementID, what, got, want))
		}
	}
	if in.State != "" {
		differ("state", "IS_"+u.State, in.State)
	}
	if in.Assignee != nil {
		differ("assignee", u.Assignee, *in.Assignee)
	}
	if in.ElementID != nil {
		differ("elementId", u.ElementID, *in.ElementID)
	}
	if in.Name != nil {
		differ("name", u.Name, *in.Name)
	}
	if in.Priority != nil {
		differ("priority", u.Priority, *in.Priority)
	}
	if in.Groups != nil && !slices.Equal(u.Groups, in.Groups) {
		errs = append(errs, fmt.Errorf("user task %s: candidateGroups are %v, want %v", u.ElementID, u.Groups, in.Groups))
	}
	return errors.Join(errs...)
}

type assertCompensation struct {
	Process  processSelector   `json:"processInstanceSelector"`
	Elements []elementSelector `json:"elementSelectors"`
}

func (in assertCompensation) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	got := p.Compensated()
	if len(got) != len(in.Elements) {
		return fmt.Errorf("compensation handlers %v, want %v", got, in.Elements)
	}
	for i, s := range in.Elements {
		ids, err := s.ids(e)
		if err != nil {
			return err
		}
		if !slices.Contains(ids, got[i]) {
			return fmt.Errorf("compensation handlers %v, want %v", got, in.Elements)
		}
	}
	return nil
}
