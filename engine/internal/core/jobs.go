package core

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/bpmn"
)

// JobState is the state of a job's life cycle.
type JobState int

// Job states. The last three are ends.
const (
	JobActivatable JobState = iota
	JobActivated
	JobFailed
	JobErrorThrown
	JobCompleted
	JobCanceled
	JobCaught // its error was caught
)

// Job is one unit of work for a worker.
type Job struct {
	Key       int64
	Type      string
	El        *Element
	State     JobState
	Retries   int32
	Headers   json.RawMessage
	Deadline  time.Time
	Worker    string
	Error     string // message of the last failure
	ErrorCode string
	End       time.Time
	Recorded  string // last exported state, as REST v2 shows it

	index    int // position in its type's queue, -1 when not activatable
	timer    *timer
	incident *Incident
}

// maxErrorMessage is where Zeebe cuts the message of a failure.
const maxErrorMessage = 10000

// jobValues are the evaluated properties of a job.
type jobValues struct {
	typ     string
	retries int32
	headers json.RawMessage
}

func (c *Core) evalJob(e *Element) (*jobValues, error) {
	n := e.Node
	typ, err := n.job.typ.text(c, e.lookup)
	if err != nil {
		return nil, err
	}
	retries, err := n.job.retries.integer(c, e.lookup)
	if err != nil {
		return nil, err
	}
	v := &jobValues{typ, retries, n.headers}
	if n.user != nil {
		if v.headers, err = c.userTaskHeaders(e); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (c *Core) createJob(e *Element, v *jobValues) {
	j := &Job{Key: c.key(), Type: v.typ, El: e, Retries: v.retries, Headers: v.headers, index: -1, Recorded: "CREATED"}
	c.jobs[j.Key] = j
	c.jobOrder.add(j)
	e.Inst.jobs = append(e.Inst.jobs, j)
	e.job = j
	c.makeActivatable(j)
}

// makeActivatable puts the job into its queue and announces it.
func (c *Core) makeActivatable(j *Job) {
	c.stop(j.timer)
	j.timer = nil
	j.State, j.Worker, j.Deadline = JobActivatable, "", time.Time{}
	if j.index < 0 {
		c.enqueue(j)
	}
	c.fresh = append(c.fresh, j)
}

// Return gives an activated job back unchanged, as when a stream yields it.
// With quiet, streams do not hear of it again: only polls find it.
func (c *Core) Return(j *Job, quiet bool) {
	if j.State != JobActivated {
		return
	}
	c.record(Record{Op: opReturnJob, Key: j.Key, Flag: quiet})
	n := len(c.fresh)
	c.makeActivatable(j)
	if quiet {
		c.fresh = c.fresh[:n]
	}
}

// retire takes a job out of the life cycle.
func (c *Core) retire(j *Job, s JobState, recorded string) {
	c.stop(j.timer)
	j.timer = nil
	c.dequeue(j)
	j.State, j.Recorded, j.End = s, recorded, c.now
	if j.incident != nil {
		c.closeIncident(j.incident)
	}
	if j.El.job == j {
		j.El.job = nil
	}
}

func (c *Core) cancelJob(j *Job) { c.retire(j, JobCanceled, "CANCELED") }

// liveJob finds a job for a worker's command, or says why it cannot be used.
func (c *Core) liveJob(intent, verb string, key int64) (*Job, error) {
	j := c.jobs[key]
	if j == nil || j.State >= JobCompleted {
		return nil, reject(intent, NotFound, "Expected to %s job with key '%d', but no such job was found", verb, key)
	}
	switch j.State {
	case JobFailed:
		return nil, reject(intent, InvalidState, "Expected to %s job with key '%d', but it is in state 'FAILED'", verb, key)
	case JobErrorThrown:
		return nil, reject(intent, InvalidState, "Expected to %s job with key '%d', but it is in state 'ERROR_THROWN'", verb, key)
	}
	return j, nil
}

// CompleteJob ends a job with success; its variables go the way of the element's output mappings.
func (c *Core) CompleteJob(key int64, vars Doc) error {
	c.record(Record{Op: opCompleteJob, Key: key, Vars: vars})
	j, err := c.liveJob("COMPLETE", "complete", key)
	if err != nil {
		return err
	}
	e := j.El
	c.retire(j, JobCompleted, "COMPLETED")
	e.doc = vars
	e.State = Completing
	c.push(opComplete, e)
	return nil
}

// FailJob records a failure. Retries are taken as given: at most 0 raises an
// incident, otherwise the job can be activated again after backoff.
func (c *Core) FailJob(key int64, retries int32, message string, backoff time.Duration, vars Doc) error {
	c.record(Record{Op: opFailJob, Key: key, N: int64(retries), Text: message, D: backoff, Vars: vars})
	j, err := c.liveJob("FAIL", "fail", key)
	if err != nil {
		return err
	}
	if len(message) > maxErrorMessage {
		message = clip(message, maxErrorMessage)
	}
	c.stop(j.timer)
	j.timer = nil
	c.dequeue(j)
	j.Retries, j.Error, j.State, j.Recorded = retries, message, JobFailed, "FAILED"
	j.Worker, j.Deadline = "", time.Time{}
	c.mergeLocal(j.El, vars)
	switch {
	case retries <= 0:
		if message == "" {
			message = "No more retries left."
		}
		c.raiseJob(j, JobNoRetries, message)
	case backoff <= 0:
		c.makeActivatable(j)
	default:
		j.timer = c.at(c.now.Add(backoff), c.backoffOver(j))
	}
	return nil
}

// ThrowError makes a BPMN error happen at the job's element. Uncaught, the job waits with an incident.
func (c *Core) ThrowError(key int64, code, message string, vars Doc) error {
	c.record(Record{Op: opThrow, Key: key, Code: code, Text: message, Vars: vars})
	j, err := c.liveJob("THROW_ERROR", "throw an error for", key)
	if err != nil {
		return err
	}
	j.Error, j.ErrorCode = clip(message, maxErrorMessage), code
	at, available := findCatcher(j.El, bpmn.EventError, code)
	if at.node == nil {
		c.stop(j.timer)
		j.timer = nil
		c.dequeue(j)
		j.State, j.Recorded, j.Worker, j.Deadline = JobErrorThrown, "ERROR_THROWN", "", time.Time{}
		c.raiseJob(j, UnhandledErrorEvent, uncaught(code, message, available))
		return nil
	}
	c.retire(j, JobCaught, "ERROR_THROWN")
	c.catch(at, vars)
	return nil
}

// UpdateRetries sets the retries of a job in any state; it never makes a job activatable.
func (c *Core) UpdateRetries(key int64, retries int32) error {
	c.record(Record{Op: opRetries, Key: key, N: int64(retries)})
	const intent = "UPDATE_RETRIES"
	if retries < 1 {
		return reject(intent, InvalidArgument, "Expected to update retries for job with key '%d' with a positive amount of retries, but the amount given was '%d'", key, retries)
	}
	j := c.jobs[key]
	if j == nil || j.State >= JobCompleted {
		return reject(intent, NotFound, "Expected to update retries for job with key '%d', but no such job was found", key)
	}
	j.Retries = retries
	j.Recorded = "RETRIES_UPDATED"
	return nil
}

// UpdateTimeout moves the deadline of an activated job to timeout from now.
func (c *Core) UpdateTimeout(key int64, timeout time.Duration) error {
	c.record(Record{Op: opTimeout, Key: key, D: timeout})
	const intent = "UPDATE_TIMEOUT"
	j := c.jobs[key]
	if j == nil || j.State >= JobCompleted {
		return reject(intent, NotFound, "Expected to update job deadline with key '%d', but no such job was found", key)
	}
	if j.State != JobActivated {
		return reject(intent, InvalidState, "Expected to update the timeout of job with key '%d', but it is not active", key)
	}
	c.deadline(j, timeout)
	return nil
}

func (c *Core) deadline(j *Job, timeout time.Duration) {
	c.stop(j.timer)
	j.Deadline = c.now.Add(timeout)
	j.timer = c.at(j.Deadline, c.timedOut(j))
}

func (c *Core) timedOut(j *Job) func() {
	return func() {
		j.timer = nil
		j.Recorded = "TIMED_OUT"
		c.makeActivatable(j)
	}
}

func (c *Core) backoffOver(j *Job) func() {
	return func() {
		j.timer = nil
		c.makeActivatable(j)
	}
}

// Activation is a request for jobs.
type Activation struct {
	Type    string
	Worker  string
	Timeout time.Duration
	Max     int
	Fetch   []string // names of variables; empty = all
}

// Activated is a job as a worker receives it: a copy, safe without the engine's lock.
type Activated struct {
	Job       *Job
	Key       int64
	Type      string
	Instance  int64
	ProcessID string
	Version   int32
	Process   int64
	ElementID string
	Element   int64
	Headers   json.RawMessage
	Worker    string
	Retries   int32
	Deadline  time.Time
	Variables string
	Tags      []string // of the process instance
}

// maxBatch bounds the variables of one batch and of one job, just under gRPC's 4 MB.
const maxBatch = 4<<20 - 8<<10

// Validate reports what is wrong with the request, in Zeebe's words.
func (a Activation) Validate() error {
	const text = "Expected to activate job batch with %s to be %s, but it was %s"
	switch {
	case a.Max < 1:
		return reject("ACTIVATE", InvalidArgument, text, "max jobs to activate", "greater than zero", fmt.Sprintf("'%d'", a.Max))
	case a.Timeout < time.Millisecond:
		return reject("ACTIVATE", InvalidArgument, text, "timeout", "greater than zero", fmt.Sprintf("'%d'", a.Timeout.Milliseconds()))
	case blank(a.Type):
		return reject("ACTIVATE", InvalidArgument, text, "type", "present", "blank")
	}
	return nil
}

// Activate takes up to a.Max jobs in the order of their keys. A job whose
// variables fit no message gets an incident instead.
func (c *Core) Activate(a Activation) []*Activated {
	if c.ready[a.Type] == nil {
		return nil // an empty poll is no change
	}
	c.record(Record{Op: opActivateJobs, Take: &a})
	var out []*Activated
	size := 0
	for len(out) < a.Max {
		q := c.ready[a.Type]
		if q == nil {
			break
		}
		j := q.jobs[0]
		vars := j.El.visible(a.Fetch).JSON()
		if len(vars)+len(j.Headers) > maxBatch {
			c.dequeue(j)
			j.State, j.Recorded = JobFailed, "FAILED"
			c.raiseJob(j, MessageSizeExceeded, fmt.Sprintf("The job with key '%d' can not be activated, because with %d bytes it is larger than the configured message size (per default is 4 MB). Try to reduce the size by reducing the number of fetched variables or modifying the variable values.", j.Key, len(vars)))
			continue
		}
		if size += len(vars) + len(j.Headers); size > maxBatch {
			break
		}
		out = append(out, c.hand(j, a, vars))
	}
	return out
}

// ActivateOne activates one job that is activatable; nil when it is not, or does not fit a message.
func (c *Core) ActivateOne(j *Job, a Activation) *Activated {
	if j.State != JobActivatable {
		return nil
	}
	c.record(Record{Op: opPushJob, Key: j.Key, Take: &a})
	vars := j.El.visible(a.Fetch).JSON()
	if len(vars)+len(j.Headers) > maxBatch {
		return nil
	}
	return c.hand(j, a, vars)
}

func (c *Core) hand(j *Job, a Activation, vars string) *Activated {
	c.dequeue(j)
	j.State, j.Worker = JobActivated, a.Worker
	c.deadline(j, a.Timeout)
	e := j.El
	return &Activated{
		Job: j, Key: j.Key, Type: j.Type, Instance: e.Inst.Key, ProcessID: e.Inst.Process.ID, Version: e.Inst.Process.Version,
		Process: e.Inst.Process.Key, ElementID: e.Node.ID, Element: e.Key, Headers: j.Headers, Worker: a.Worker,
		Retries: j.Retries, Deadline: j.Deadline, Variables: vars, Tags: e.Inst.tags,
	}
}
