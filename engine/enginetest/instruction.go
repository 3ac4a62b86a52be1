package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// maker reads an instruction and gives what it does.
type maker func(doc json.RawMessage) (func(e *Env) error, error)

// reads makes a maker from a struct of fields, a check of them, and the act.
func reads[T any](check func(T) error, run func(in T, e *Env) error) maker {
	return func(doc json.RawMessage) (func(e *Env) error, error) {
		var in T
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(doc, &fields); err != nil {
			return nil, err
		}
		delete(fields, "type")
		rest, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		if err := strict(rest, &in); err != nil {
			return nil, err
		}
		if err := check(in); err != nil {
			return nil, err
		}
		return func(e *Env) error { return run(in, e) }, nil
	}
}

type object = map[string]json.RawMessage

func need(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is missing", name)
	}
	return nil
}

// instructions are the acts; assertions are in assertion.go.
func instructions() map[string]maker {
	all := map[string]maker{
		"CREATE_PROCESS_INSTANCE": reads(func(in create) error { return in.Selector.check() }, create.run),
		"PUBLISH_MESSAGE": reads(func(in publish) error { return need("name", in.Name) }, func(in publish, e *Env) error {
			e.Publish(Message{Name: in.Name, CorrelationKey: in.Key, ID: in.ID, TTL: time.Duration(in.TTL) * time.Millisecond, Variables: in.Variables})
			return nil
		}),
		"CORRELATE_MESSAGE": reads(func(in correlate) error { return need("name", in.Name) }, func(in correlate, e *Env) error {
			e.Correlate(Message{Name: in.Name, CorrelationKey: in.Key, Variables: in.Variables})
			return nil
		}),
		"BROADCAST_SIGNAL": reads(func(in broadcast) error { return need("signalName", in.Name) }, func(in broadcast, e *Env) error {
			e.Broadcast(in.Name, in.Variables)
			return nil
		}),
		"MOCK_JOB_WORKER_COMPLETE_JOB": reads(func(in mockComplete) error { return need("jobType", in.JobType) }, mockComplete.run),
		"MOCK_JOB_WORKER_THROW_BPMN_ERROR": reads(func(in mockThrow) error {
			return errors.Join(need("jobType", in.JobType), need("errorCode", in.Code))
		}, mockThrow.run),
		"MOCK_JOB_WORKER_FAIL_JOB": reads(func(in mockFail) error {
			if in.Times < 0 {
				return fmt.Errorf("times is %d: want 1 or more", in.Times)
			}
			return need("jobType", in.JobType)
		}, mockFail.run),
		"COMPLETE_JOB": reads(func(in completeJob) error { return in.check() }, completeJob.run),
		"THROW_BPMN_ERROR_FROM_JOB": reads(func(in throwFromJob) error {
			return errors.Join(in.Selector.check(), need("errorCode", in.Code))
		}, throwFromJob.run),
		"COMPLETE_USER_TASK": reads(func(in completeTask) error {
			if in.Selector == (userTaskSelector{}) {
				return errNoSelector
			}
			return nil
		}, completeTask.run),
		"INCREASE_TIME":    reads(increase.check, increase.run),
		"SET_TIME":         reads(setTime.check, setTime.run),
		"RESOLVE_INCIDENT": reads(resolve.check, resolve.run),
		"UPDATE_VARIABLES": reads(func(in update) error { return in.Process.check() }, update.run),
	}
	for name, m := range assertions() {
		all[name] = m
	}
	return all
}

type create struct {
	Selector  processSelector `json:"processDefinitionSelector"`
	Variables object          `json:"variables"`
	Start     []struct {
		ElementID string `json:"elementId"`
	} `json:"startInstructions"`
}

func (in create) run(e *Env) error {
	body := map[string]any{"processDefinitionId": in.Selector.ID, "variables": e.object(in.Variables)}
	if len(in.Start) > 0 {
		body["startInstructions"] = in.Start
	}
	err := e.call("POST", "/process-instances", body, nil)
	e.Settle()
	return err
}

type publish struct {
	Name      string `json:"name"`
	Key       string `json:"correlationKey"`
	ID        string `json:"messageId"`
	TTL       int64  `json:"timeToLive"` // milliseconds
	Variables object `json:"variables"`
}

type correlate struct {
	Name      string `json:"name"`
	Key       string `json:"correlationKey"`
	Variables object `json:"variables"`
}

type broadcast struct {
	Name      string `json:"signalName"`
	Variables object `json:"variables"`
}

type mockComplete struct {
	JobType   string `json:"jobType"`
	Variables object `json:"variables"`
	Example   bool   `json:"useExampleData"`
}

// pending is the mock that a MOCK_JOB_WORKER instruction goes on with: failures that were asked for before come first.
func (e *Env) pending(jobType string) *Mock {
	e.t.Helper()
	if m := e.mocks[jobType]; m != nil && m.failing {
		m.failing = false
		return m
	}
	return e.Mock(jobType)
}

func (in mockComplete) run(e *Env) error {
	m := e.pending(in.JobType)
	if !in.Example {
		m.Returns(in.Variables)
		e.Settle()
		return nil
	}
	m.WithFunc(func(j Job) Answer { return Complete(e.example(j.ElementID)) })
	e.Settle()
	return nil
}

// example is the example output that the Modeler keeps with an element.
func (e *Env) example(id string) json.RawMessage {
	e.t.Helper()
	if el := e.element(id); el != nil {
		if doc, ok := el.Property("camundaModeler:exampleOutputJson"); ok {
			return json.RawMessage(doc)
		}
	}
	e.t.Fatalf("enginetest: element %q has no example data (property camundaModeler:exampleOutputJson)", id)
	return nil
}

type mockThrow struct {
	JobType   string `json:"jobType"`
	Code      string `json:"errorCode"`
	Message   string `json:"errorMessage"`
	Variables object `json:"variables"`
}

func (in mockThrow) run(e *Env) error {
	a := Throw(in.Code, in.Variables)
	a.message = in.Message
	e.pending(in.JobType).Answers(a)
	e.Settle()
	return nil
}

type mockFail struct {
	JobType string `json:"jobType"`
	Times   int    `json:"times"` // 0 = 1
	Message string `json:"errorMessage"`
}

func (in mockFail) run(e *Env) error {
	e.Mock(in.JobType).Fails(max(in.Times, 1), in.Message).failing = true
	return nil
}

func (s jobSelector) check() error {
	if s == (jobSelector{}) {
		return errNoSelector
	}
	return nil
}

type completeJob struct {
	Selector  jobSelector `json:"jobSelector"`
	Variables object      `json:"variables"`
	Example   bool        `json:"useExampleData"`
}

func (in completeJob) check() error { return in.Selector.check() }

func (in completeJob) run(e *Env) error {
	j, err := in.Selector.job(e)
	if err != nil {
		return err
	}
	vars := e.object(in.Variables)
	if in.Example {
		vars = e.example(j.ElementID)
	}
	if err := e.take(j); err != nil {
		return err
	}
	err = e.call("POST", "/jobs/"+itoa(int64(j.Key))+"/completion", map[string]any{"variables": vars}, nil)
	e.Settle()
	return err
}

// take activates the job's type, so that the job may be answered; other jobs of the type are given back.
func (e *Env) take(j openJob) error {
	found := false
	for _, got := range e.activate(j.Type) {
		if got.Key == int64(j.Key) {
			found = true
			continue
		}
		if err := e.call("POST", "/jobs/"+itoa(got.Key)+"/failure", map[string]any{"retries": got.Retries, "errorMessage": "given back"}, nil); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("job of type %q at %q cannot be activated now", j.Type, j.ElementID)
	}
	return nil
}

type throwFromJob struct {
	Selector  jobSelector `json:"jobSelector"`
	Code      string      `json:"errorCode"`
	Message   string      `json:"errorMessage"`
	Variables object      `json:"variables"`
}

func (in throwFromJob) run(e *Env) error {
	j, err := in.Selector.job(e)
	if err != nil {
		return err
	}
	if err := e.take(j); err != nil {
		return err
	}
	err = e.call("POST", "/jobs/"+itoa(int64(j.Key))+"/error", map[string]any{"errorCode": in.Code, "errorMessage": in.Message, "variables": e.object(in.Variables)}, nil)
	e.Settle()
	return err
}

type completeTask struct {
	Selector  userTaskSelector `json:"userTaskSelector"`
	Variables object           `json:"variables"`
	Example   bool             `json:"useExampleData"`
}

func (in completeTask) run(e *Env) error {
	for _, u := range in.Selector.tasks(e) {
		if u.State != "CREATED" {
			continue
		}
		vars := e.object(in.Variables)
		if in.Example {
			vars = e.example(u.ElementID)
		}
		err := e.call("POST", "/user-tasks/"+itoa(int64(u.Key))+"/completion", map[string]any{"variables": vars}, nil)
		e.Settle()
		return err
	}
	return fmt.Errorf("no open user task for %+v", in.Selector)
}

type increase struct {
	Duration string `json:"duration"`
}

func (in increase) check() error {
	d, err := isotime.ParseDuration(in.Duration)
	if err == nil && !d.AddTo(time.Unix(0, 0)).After(time.Unix(0, 0)) {
		err = errors.New("want more than no time")
	}
	if err != nil {
		return fmt.Errorf("duration %q: want an ISO 8601 duration such as PT30M: %w", in.Duration, err)
	}
	return nil
}

func (in increase) run(e *Env) error {
	d, err := isotime.ParseDuration(in.Duration)
	if err != nil {
		return err
	}
	now := e.Now()
	e.AdvanceClock(d.AddTo(now).Sub(now))
	return nil
}

type setTime struct {
	Time string `json:"time"`
}

func (in setTime) check() error {
	if _, err := time.Parse(time.RFC3339, in.Time); err != nil {
		return fmt.Errorf("time %q: want an instant such as 2026-03-15T10:00:00Z", in.Time)
	}
	return nil
}

func (in setTime) run(e *Env) error {
	at, err := time.Parse(time.RFC3339, in.Time)
	if err != nil {
		return err
	}
	e.SetClock(at)
	return nil
}

type resolve struct {
	Selector incidentSelector `json:"incidentSelector"`
}

func (in resolve) check() error {
	if in.Selector == (incidentSelector{}) {
		return errNoSelector
	}
	return nil
}

func (in resolve) run(e *Env) error {
	e.Settle()
	filter := map[string]any{"state": "ACTIVE"}
	if in.Selector.ElementID != "" {
		filter["elementId"] = in.Selector.ElementID
	}
	if in.Selector.Process != "" {
		filter["processDefinitionId"] = in.Selector.Process
	}
	found := search[IncidentInfo](e, "/incidents/search", filter)
	if len(found) == 0 {
		return fmt.Errorf("no open incident for %+v", in.Selector)
	}
	i := found[0]
	if i.Job != 0 {
		if err := e.call("PATCH", "/jobs/"+itoa(int64(i.Job)), map[string]any{"changeset": map[string]any{"retries": 1}}, nil); err != nil {
			return err
		}
	}
	err := e.call("POST", "/incidents/"+itoa(int64(i.Key))+"/resolution", map[string]any{}, nil)
	e.Settle()
	return err
}

type update struct {
	Process   processSelector  `json:"processInstanceSelector"`
	Element   *elementSelector `json:"elementSelector"`
	Variables object           `json:"variables"`
}

func (in update) run(e *Env) error {
	p, err := in.Process.instance(e)
	if err != nil {
		return err
	}
	scope, local := p.key, false
	if in.Element != nil {
		if scope, err = p.active(*in.Element); err != nil {
			return err
		}
		local = true
	}
	err = e.call("PUT", "/element-instances/"+itoa(int64(scope))+"/variables", map[string]any{"variables": e.object(in.Variables), "local": local}, nil)
	e.Settle()
	return err
}
