package enginetest

import (
	"encoding/json"
	"slices"
	"time"
)

// Job is a job as a mock gets it.
type Job struct {
	Key        int64
	Type       string
	ElementID  string
	InstanceID int64 // process instance key
	Retries    int32
	Headers    map[string]string
	Variables  map[string]json.RawMessage
}

// Get reads a variable of a job into a T; a missing one is the zero value.
func Get[T any](j Job, name string) T {
	var v T
	if doc, ok := j.Variables[name]; ok {
		_ = json.Unmarshal(doc, &v)
	}
	return v
}

// Answer is what a mock does with a job. Make one with [Complete], [Throw], [Fail] or [Hold].
type Answer struct {
	kind      string
	vars      any
	code      string
	message   string
	retries   int32 // of Fail: those left
	keepTries bool  // of Fail: one fewer than the job had
	wait      time.Duration
}

// Complete completes the job; vars becomes a JSON object, nil = none.
func Complete(vars any) Answer { return Answer{kind: "complete", vars: vars} }

// Throw throws a BPMN error.
func Throw(code string, vars any) Answer { return Answer{kind: "throw", code: code, vars: vars} }

// Fail fails the job with one retry fewer. It comes back after wait, by the engine's clock.
func Fail(message string, wait time.Duration) Answer {
	return Answer{kind: "fail", message: message, keepTries: true, wait: wait}
}

// Incident fails the job with no retries left.
func Incident(message string) Answer { return Answer{kind: "fail", message: message} }

// Hold leaves the job open, as a worker that never answers does. [Mock.Release] ends that.
func Hold() Answer { return Answer{kind: "hold"} }

// Mock stands for the workers of one job type. Its answers are used in the
// order in which they were added, one per job; the last one is used for ever.
// Without any it completes with no variables.
type Mock struct {
	env   *Env
	steps []func(Job) Answer
	jobs  []Job
	held  []Job

	failing bool // a scenario's next mock of the type goes on after its failures
}

// Mock mocks a job type, with no answers yet: those of an earlier Mock of the
// type are forgotten, its jobs and those it holds are kept. A job type that no
// model has ends the test, unless an expression makes it.
func (e *Env) Mock(jobType string) *Mock {
	e.t.Helper()
	if m := e.mocks[jobType]; m != nil {
		m.steps = nil
		return m
	}
	types, dynamic := e.types()
	if !dynamic && !slices.Contains(types, jobType) {
		e.t.Fatalf("enginetest: no model has the job type %q; they have %v", jobType, types)
	}
	m := &Mock{env: e}
	e.mocks[jobType] = m
	return m
}

// Mocked gives the mock of a job type as it is. None ends the test.
func (e *Env) Mocked(jobType string) *Mock {
	e.t.Helper()
	m := e.mocks[jobType]
	if m == nil {
		e.t.Fatalf("enginetest: job type %q has no mock", jobType)
	}
	return m
}

// MockOthers completes the jobs of all job types that have no mock of their own, with these variables.
func (e *Env) MockOthers(vars any) {
	e.rest = &Mock{env: e, steps: []func(Job) Answer{func(Job) Answer { return Complete(vars) }}}
}

// Returns completes jobs with variables.
func (m *Mock) Returns(vars any) *Mock { return m.Answers(Complete(vars)) }

// ThrowsError throws a BPMN error.
func (m *Mock) ThrowsError(code string, vars any) *Mock { return m.Answers(Throw(code, vars)) }

// Fails fails n jobs, each with one retry fewer, at once to be retried.
func (m *Mock) Fails(n int, message string) *Mock {
	for range n {
		m.Answers(Fail(message, 0))
	}
	return m
}

// Holds leaves jobs open until Release.
func (m *Mock) Holds() *Mock { return m.Answers(Hold()) }

// Answers adds answers.
func (m *Mock) Answers(answers ...Answer) *Mock {
	for _, a := range answers {
		m.steps = append(m.steps, func(Job) Answer { return a })
	}
	return m
}

// WithFunc adds a function that answers.
func (m *Mock) WithFunc(f func(Job) Answer) *Mock {
	m.steps = append(m.steps, f)
	return m
}

// Jobs lists the jobs that the mock was given, in order; a retry counts again.
func (m *Mock) Jobs() []Job { return slices.Clone(m.jobs) }

// Release answers the jobs that are held, oldest first, and those that come later.
func (m *Mock) Release(a Answer) {
	m.env.t.Helper()
	held := m.held
	m.held, m.steps = nil, []func(Job) Answer{func(Job) Answer { return a }}
	for _, j := range held {
		m.env.answer(m, j, a)
	}
	m.env.Settle()
}

func (m *Mock) next(j Job) Answer {
	m.jobs = append(m.jobs, j)
	if len(m.steps) == 0 {
		return Complete(nil)
	}
	step := m.steps[0]
	if len(m.steps) > 1 {
		m.steps = m.steps[1:]
	}
	return step(j)
}

// types lists the job types of the models; dynamic says that one is an expression.
func (e *Env) types() (types []string, dynamic bool) {
	for _, m := range e.models {
		for _, el := range elements(m.defs) {
			switch {
			case el.Task == nil:
			case len(el.Task.Type) > 0 && el.Task.Type[0] == '=':
				dynamic = true
			case !slices.Contains(types, el.Task.Type):
				types = append(types, el.Task.Type)
			}
		}
	}
	slices.Sort(types)
	return types, dynamic
}

// jobTimeout is how long a mock keeps a job that it holds: longer than any test advances.
const jobTimeout = 90 * 24 * time.Hour

// mostRounds bounds the jobs that one call may lead to.
const mostRounds = 10_000

// Settle lets mocks work until none of them has a job. Every call that changes
// something does it by itself.
func (e *Env) Settle() {
	e.t.Helper()
	for range mostRounds {
		worked := false
		for _, jobType := range e.waiting() {
			m := e.mocks[jobType]
			if m == nil {
				m = e.rest
			}
			for _, j := range e.activate(jobType) {
				worked = true
				e.answer(m, j, m.next(j))
			}
		}
		if !worked {
			return
		}
	}
	e.t.Fatalf("enginetest: mocks worked on jobs for %d rounds and there are still more: the model goes in circles", mostRounds)
}

// waiting lists the mocked job types with jobs that could be activated.
func (e *Env) waiting() []string {
	e.t.Helper()
	if len(e.mocks) == 0 && e.rest == nil {
		return nil
	}
	var types []string
	filter := map[string]any{"state": map[string]any{"$in": []string{"CREATED", "FAILED", "TIMED_OUT", "RETRIES_UPDATED"}}}
	for _, j := range search[struct {
		Type    string
		Retries int32
		Key     key `json:"jobKey"`
	}](e, "/jobs/search", filter) {
		mocked := e.mocks[j.Type] != nil || e.rest != nil
		if mocked && j.Retries > 0 && !e.isHeld(j.Type, int64(j.Key)) && !slices.Contains(types, j.Type) {
			types = append(types, j.Type)
		}
	}
	return types
}

func (e *Env) isHeld(jobType string, k int64) bool {
	m := e.mocks[jobType]
	return m != nil && slices.ContainsFunc(m.held, func(j Job) bool { return j.Key == k })
}

func (e *Env) activate(jobType string) []Job {
	e.t.Helper()
	var out struct {
		Jobs []struct {
			Key       key                        `json:"jobKey"`
			ElementID string                     `json:"elementId"`
			Instance  key                        `json:"processInstanceKey"`
			Retries   int32                      `json:"retries"`
			Headers   map[string]any             `json:"customHeaders"`
			Variables map[string]json.RawMessage `json:"variables"`
		}
	}
	e.must("POST", "/jobs/activation", map[string]any{
		"type": jobType, "timeout": jobTimeout.Milliseconds(), "maxJobsToActivate": 100, "requestTimeout": -1, "worker": "enginetest",
	}, &out)
	jobs := make([]Job, len(out.Jobs))
	for i, j := range out.Jobs {
		jobs[i] = Job{Key: int64(j.Key), Type: jobType, ElementID: j.ElementID, InstanceID: int64(j.Instance), Retries: j.Retries, Headers: map[string]string{}, Variables: j.Variables}
		for name, v := range j.Headers {
			if s, ok := v.(string); ok {
				jobs[i].Headers[name] = s
			}
		}
	}
	return jobs
}

// answer does what a mock says. A job that is gone meanwhile, ended by an interrupting event, is left.
func (e *Env) answer(m *Mock, j Job, a Answer) {
	e.t.Helper()
	route := "/jobs/" + itoa(j.Key)
	var err error
	switch a.kind {
	case "hold":
		m.held = append(m.held, j)
	case "throw":
		err = e.call("POST", route+"/error", map[string]any{"errorCode": a.code, "errorMessage": a.message, "variables": e.object(a.vars)}, nil)
	case "fail":
		retries := a.retries
		if a.keepTries {
			retries = max(j.Retries-1, 0)
		}
		err = e.call("POST", route+"/failure", map[string]any{"retries": retries, "errorMessage": a.message, "retryBackOff": a.wait.Milliseconds()}, nil)
	default:
		err = e.call("POST", route+"/completion", map[string]any{"variables": e.object(a.vars)}, nil)
	}
	if err != nil && !isGone(err) {
		e.t.Fatalf("enginetest: job type %q at %q: %v", j.Type, j.ElementID, err)
	}
}
