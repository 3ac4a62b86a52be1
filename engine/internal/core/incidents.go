package core

import "time"

// ErrorType is the kind of an incident.
type ErrorType string

// Incident types.
const (
	IOMappingError      ErrorType = "IO_MAPPING_ERROR"
	JobNoRetries        ErrorType = "JOB_NO_RETRIES"
	ConditionError      ErrorType = "CONDITION_ERROR"
	ExtractValueError   ErrorType = "EXTRACT_VALUE_ERROR"
	CalledElementError  ErrorType = "CALLED_ELEMENT_ERROR"
	UnhandledErrorEvent ErrorType = "UNHANDLED_ERROR_EVENT"
	MessageSizeExceeded ErrorType = "MESSAGE_SIZE_EXCEEDED"
)

// Incident stops one element instance until a person resolves it.
type Incident struct {
	Key     int64
	El      *Element
	Job     *Job // nil unless the job is stopped
	Type    ErrorType
	Message string
	Created time.Time
	Active  bool

	op op // step to run again
}

// raise stops e: step o is run again when the incident is resolved.
func (c *Core) raise(e *Element, o op, t ErrorType, message string) {
	inc := &Incident{El: e, Type: t, Message: message, op: o}
	e.incident = inc
	c.addIncident(inc)
}

func (c *Core) raiseJob(j *Job, t ErrorType, message string) {
	inc := &Incident{El: j.El, Job: j, Type: t, Message: message}
	j.incident = inc
	c.addIncident(inc)
}

func (c *Core) addIncident(inc *Incident) {
	inc.Key, inc.Created, inc.Active = c.key(), c.now, true
	c.incidents[inc.Key] = inc
	c.incOrder.add(inc)
	inc.El.Inst.incs = append(inc.El.Inst.incs, inc)
	inc.El.count(1)
}

// count adds n to the active incidents of e and of all that stands around it,
// calling instances included: each shows that it has one.
func (e *Element) count(n int) {
	for e != nil {
		e.incidents += n
		if e.Parent == nil {
			e = e.Inst.Caller
			continue
		}
		e = e.Parent
	}
}

// closeIncident marks inc as resolved without running anything.
func (c *Core) closeIncident(inc *Incident) {
	if !inc.Active {
		return
	}
	inc.Active = false
	inc.El.count(-1)
	if inc.Job != nil {
		inc.Job.incident = nil
	} else {
		inc.El.incident = nil
	}
}

// ResolveIncident closes the incident and runs the stopped step, or the job,
// again. A cause that persists gives a new incident with a new key.
func (c *Core) ResolveIncident(key int64) error {
	c.record(Record{Op: opResolve, Key: key})
	const intent = "RESOLVE"
	inc := c.incidents[key]
	if inc == nil || !inc.Active {
		return reject(intent, NotFound, "Expected to resolve incident with key '%d', but no such incident was found", key)
	}
	if j := inc.Job; j != nil {
		if j.Retries <= 0 {
			return reject(intent, InvalidState, "Expected to resolve incident with key '%d', but job with key '%d' has no retries left. Please update the job retries and retry resolving the incident", key, j.Key)
		}
		c.closeIncident(inc)
		c.makeActivatable(j)
		return nil
	}
	c.closeIncident(inc)
	c.push(inc.op, inc.El)
	return nil
}
