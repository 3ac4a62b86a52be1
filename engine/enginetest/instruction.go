package enginetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/vitrip/journeyman/bpmn/isotime"
)

// maker is one kind of instruction: its fields, what it is for, and how it is read.
type maker struct {
	doc    string
	fields reflect.Type
	read   func(doc json.RawMessage) (func(e *Env) error, error)
}

// reads makes a maker from a struct of fields, whose tags are its check (rule.go), and the act.
func reads[T any](doc string, run func(in T, e *Env) error) maker {
	return maker{doc: doc, fields: reflect.TypeFor[T](), read: func(doc json.RawMessage) (func(e *Env) error, error) {
		var in T
		if err := json.Unmarshal(doc, &in); err != nil {
			return nil, err
		}
		return func(e *Env) error { return run(in, e) }, nil
	}}
}

type object = map[string]json.RawMessage

// instructions are the acts; assertions are in assertion.go.
func instructions() map[string]maker {
	all := map[string]maker{
		"CREATE_PROCESS_INSTANCE": reads("Starts a process instance.", create.run),
		"PUBLISH_MESSAGE": reads("Publishes a message; nobody has to wait for it.", func(in publish, e *Env) error {
			e.Publish(Message{Name: in.Name, CorrelationKey: in.Key, ID: in.ID, TTL: time.Duration(in.TTL) * time.Millisecond, Variables: in.Variables})
			return nil
		}),
		"CORRELATE_MESSAGE": reads("Sends a message that somebody must wait for.", func(in correlate, e *Env) error {
			e.Correlate(Message{Name: in.Name, CorrelationKey: in.Key, Variables: in.Variables})
			return nil
		}),
		"BROADCAST_SIGNAL": reads("Broadcasts a signal.", func(in broadcast, e *Env) error {
			e.Broadcast(in.Name, in.Variables)
			return nil
		}),
		"MOCK_JOB_WORKER_COMPLETE_JOB":     reads("From now on jobs of this type are completed.", mockComplete.run),
		"MOCK_JOB_WORKER_THROW_BPMN_ERROR": reads("From now on jobs of this type throw a BPMN error.", mockThrow.run),
		"MOCK_JOB_WORKER_FAIL_JOB":         reads("The next jobs of this type fail; then comes the answer of the next instruction for the type. Ours, Camunda has none.", mockFail.run),
		"COMPLETE_JOB":                     reads("Completes one job that is open, by hand.", completeJob.run),
		"THROW_BPMN_ERROR_FROM_JOB":        reads("Throws a BPMN error from one job that is open, by hand.", throwFromJob.run),
		"COMPLETE_USER_TASK":               reads("Completes an open user task.", completeTask.run),
		"INCREASE_TIME":                    reads("Moves the clock forward, from timer to timer.", increase.run),
		"SET_TIME":                         reads("Moves the clock to an instant.", setTime.run),
		"RESOLVE_INCIDENT":                 reads("Gives the job of an incident one more try and resolves the incident.", resolve.run),
		"UPDATE_VARIABLES":                 reads("Sets variables of a process instance, or of one active element.", update.run),
	}
	for name, m := range assertions() {
		all[name] = m
	}
	return all
}

type create struct {
	Selector  processSelector `json:"processDefinitionSelector" rule:"need" doc:"the process, its latest version"`
	Variables object          `json:"variables" doc:"the variables, an object"`
	Start     []struct {
		ElementID string `json:"elementId" rule:"need"`
	} `json:"startInstructions" doc:"start before these elements instead of the start event"`
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
	Name      string `json:"name" rule:"need"`
	Key       string `json:"correlationKey" doc:"the receiver is the instance that waits with this key"`
	ID        string `json:"messageId" doc:"a second message with this id is refused while the first is kept"`
	TTL       int64  `json:"timeToLive" rule:"min=0" doc:"milliseconds that the message waits for a receiver"`
	Variables object `json:"variables" doc:"the variables, an object"`
}

type correlate struct {
	Name      string `json:"name" rule:"need"`
	Key       string `json:"correlationKey" doc:"the receiver is the instance that waits with this key"`
	Variables object `json:"variables" doc:"the variables, an object"`
}

type broadcast struct {
	Name      string `json:"signalName" rule:"need"`
	Variables object `json:"variables" doc:"the variables, an object"`
}

type mockComplete struct {
	JobType   string `json:"jobType" rule:"need"`
	Variables object `json:"variables" doc:"what the worker answers, an object"`
	Example   bool   `json:"useExampleData" doc:"answer with the example data that the element has in the model"`
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
	JobType   string `json:"jobType" rule:"need"`
	Code      string `json:"errorCode" rule:"need"`
	Message   string `json:"errorMessage"`
	Variables object `json:"variables" doc:"the variables, an object"`
}

func (in mockThrow) run(e *Env) error {
	a := Throw(in.Code, in.Variables)
	a.message = in.Message
	e.pending(in.JobType).Answers(a)
	e.Settle()
	return nil
}

type mockFail struct {
	JobType string `json:"jobType" rule:"need"`
	Times   int    `json:"times" rule:"min=1" doc:"how many jobs fail; 1 when it is left out"`
	Message string `json:"errorMessage"`
}

func (in mockFail) run(e *Env) error {
	e.Mock(in.JobType).Fails(max(in.Times, 1), in.Message).failing = true
	return nil
}

type completeJob struct {
	Selector  jobSelector `json:"jobSelector" rule:"need" doc:"the oldest job that it fits"`
	Variables object      `json:"variables" doc:"the variables, an object"`
	Example   bool        `json:"useExampleData" doc:"answer with the example data that the element has in the model"`
}

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
	Selector  jobSelector `json:"jobSelector" rule:"need" doc:"the oldest job that it fits"`
	Code      string      `json:"errorCode" rule:"need"`
	Message   string      `json:"errorMessage"`
	Variables object      `json:"variables" doc:"the variables, an object"`
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
	Selector  userTaskSelector `json:"userTaskSelector" rule:"need" doc:"the oldest open task that it fits"`
	Variables object           `json:"variables" doc:"the variables, an object"`
	Example   bool             `json:"useExampleData" doc:"answer with the example data that the element has in the model"`
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
	Duration string `json:"duration" rule:"need duration" doc:"ISO 8601, such as PT30M"`
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
	Time string `json:"time" rule:"need instant" doc:"such as 2026-01-02T15:04:05Z"`
}

func (in setTime) run(e *Env) error {
	at, err := isotime.ParseDateTime(in.Time)
	if err != nil {
		return err
	}
	e.SetClock(at)
	return nil
}

type resolve struct {
	Selector incidentSelector `json:"incidentSelector" rule:"need" doc:"the oldest open incident that it fits"`
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
	Process   processSelector  `json:"processInstanceSelector" rule:"need" doc:"its newest instance"`
	Element   *elementSelector `json:"elementSelector" doc:"set them in its newest active run"`
	Variables object           `json:"variables" rule:"need" doc:"the variables, an object"`
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
