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
		"ASSERT_PROCESS_INSTANCE":  reads("How the process's newest instance stands.", assertInstance.run),
		"ASSERT_ELEMENT_INSTANCE":  reads("How often an element is in a state.", assertElement.run),
		"ASSERT_ELEMENT_INSTANCES": reads("How several elements stand.", assertElements.run),
		"ASSERT_VARIABLE":          reads("One variable satisfies an expression.", assertVariable.run),
		"ASSERT_VARIABLES":         reads("Variables exist, or have these values.", assertVariables.run),
		"ASSERT_USER_TASK":         reads("How the newest user task that the selector fits stands.", assertTask.run),
		"ASSERT_COMPENSATION":      reads("Exactly these compensation handlers ran, in this order. Ours, Camunda has none.", assertCompensation.run),
	}
}

type assertInstance struct {
	_ struct{} `rule:"any=state|hasActiveIncidents"`

	Process   processSelector `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	State     string          `json:"state" rule:"enum=IS_ACTIVE|IS_COMPLETED|IS_CREATED|IS_TERMINATED"`
	Incidents *bool           `json:"hasActiveIncidents" doc:"whether an incident is open"`
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
	Process processSelector `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Element elementSelector `json:"elementSelector" rule:"need"`
	State   string          `json:"state" rule:"need enum=IS_ACTIVE|IS_COMPLETED|IS_TERMINATED"`
	Amount  *int            `json:"amount" rule:"min=1" doc:"how many runs; 1 when it is left out"`
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
	Process  processSelector   `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Elements []elementSelector `json:"elementSelectors" rule:"need min=1"`
	State    string            `json:"state" rule:"need enum=IS_ACTIVE|IS_COMPLETED|IS_TERMINATED|IS_NOT_ACTIVE|IS_NOT_ACTIVATED|IS_ACTIVE_EXACTLY|IS_COMPLETED_IN_ORDER"`
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
	Process    processSelector  `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Element    *elementSelector `json:"elementSelector" doc:"look in its newest run"`
	Name       string           `json:"variableName" rule:"need"`
	Expression string           `json:"satisfiesExpression" rule:"need feel" doc:"FEEL that becomes true, such as price > 10"`
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
	_ struct{} `rule:"any=variableNames|variables"`

	Process   processSelector  `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Element   *elementSelector `json:"elementSelector" doc:"look in its newest run"`
	Names     []string         `json:"variableNames" doc:"these exist"`
	Variables object           `json:"variables" doc:"these have these values"`
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
	Selector  userTaskSelector `json:"userTaskSelector" rule:"need"`
	State     string           `json:"state" rule:"enum=IS_CREATED|IS_COMPLETED|IS_CANCELED|IS_FAILED"`
	Assignee  *string          `json:"assignee"`
	ElementID *string          `json:"elementId"`
	Name      *string          `json:"name"`
	Priority  *int32           `json:"priority"`
	Groups    []string         `json:"candidateGroups"`
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
	Process  processSelector   `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Elements []elementSelector `json:"elementSelectors" rule:"need" doc:"compensation handlers; an empty list: none ran"`
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
