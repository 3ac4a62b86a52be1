package core

import (
	"fmt"
	"time"
)

// Record is one call that changed a [Core], as the command log keeps it: with
// the time it happened at and everything it was given. [Core.Apply] makes the same call again.
type Record struct {
	Op   string        `json:"o"`
	At   stamp         `json:"t"`           // the core's time before the call
	Till stamp         `json:"u,omitzero"`  // FireNext: the time it was given
	Key  int64         `json:"k,omitempty"` // job, instance, incident … of the call
	N    int64         `json:"n,omitempty"` // retries, steps
	D    time.Duration `json:"d,omitempty"` // timeout, back-off
	Code string        `json:"c,omitempty"`
	Text string        `json:"s,omitempty"`
	Flag bool          `json:"f,omitempty"`
	Vars Doc           `json:"v,omitempty"`

	Resources []Resource    `json:"resources,omitempty"`
	Create    *Creation     `json:"create,omitempty"`
	Change    *Modification `json:"change,omitempty"`
	Move      *Migration    `json:"move,omitempty"`
	Message   *Publication  `json:"message,omitempty"`
	Take      *Activation   `json:"take,omitempty"`
	Task      *TaskChange   `json:"task,omitempty"`
}

// The operations of a [Record]. OpClock is the broker's: Apply refuses it.
const (
	OpRun          = "run"
	OpFire         = "fire"
	OpClock        = "clock"
	opDeploy       = "deploy"
	opDelete       = "delete"
	opCreate       = "create"
	opCancel       = "cancel"
	opModify       = "modify"
	opMigrate      = "migrate"
	opSetVars      = "set-variables"
	opActivateJobs = "activate-jobs"
	opPushJob      = "push-job"
	opReturnJob    = "return-job"
	opCompleteJob  = "complete-job"
	opFailJob      = "fail-job"
	opThrow        = "throw-error"
	opRetries      = "update-retries"
	opTimeout      = "update-timeout"
	opResolve      = "resolve"
	opPublish      = "publish"
	opSignal       = "signal"
	opTaskComplete = "complete-task"
	opTaskAssign   = "assign-task"
	opTaskUpdate   = "update-task"
	opHistory      = "history"
)

// stamp is a time as seconds and nanoseconds, in any year.
type stamp [2]int64

func stampOf(t time.Time) stamp { return stamp{t.Unix(), int64(t.Nanosecond())} }

func (s stamp) time() time.Time { return time.Unix(s[0], s[1]).UTC() }

// RecordTo makes c hand every call that may change it to fn, before the call
// takes effect; calls that are refused are included, because some use up keys.
func (c *Core) RecordTo(fn func(Record)) { c.recorder = fn }

func (c *Core) record(r Record) {
	if c.recorder == nil {
		return
	}
	r.At = stampOf(c.now)
	c.recorder(r)
}

// Apply makes the recorded call again. A call that was refused is refused
// again, which is no error here; an error is a record that cannot have been written for this state.
func (c *Core) Apply(r Record) error {
	c.now = r.At.time()
	job := func() (*Job, error) {
		if j := c.jobs[r.Key]; j != nil {
			return j, nil
		}
		return nil, fmt.Errorf("record %q names job %d, which does not exist", r.Op, r.Key)
	}
	var refused error // repeats what the caller was told then
	switch r.Op {
	case OpRun:
		c.Run(int(r.N))
	case OpFire:
		if !c.FireNext(r.Till.time()) {
			return fmt.Errorf("record %q: no timer is due", r.Op)
		}
	case opDeploy:
		_, refused = c.Deploy(r.Resources, r.Flag)
	case opDelete:
		refused = c.DeleteResource(r.Key)
	case opCreate:
		_, refused = c.CreateInstance(*r.Create)
	case opCancel:
		refused = c.CancelInstance(r.Key)
	case opModify:
		refused = c.Modify(*r.Change)
	case opMigrate:
		refused = c.Migrate(*r.Move)
	case opSetVars:
		_, refused = c.SetVariables(r.Key, r.Vars, r.Flag)
	case opActivateJobs:
		c.Activate(*r.Take)
	case opPushJob:
		j, err := job()
		if err != nil {
			return err
		}
		c.ActivateOne(j, *r.Take)
	case opReturnJob:
		j, err := job()
		if err != nil {
			return err
		}
		c.Return(j, r.Flag)
	case opCompleteJob:
		refused = c.CompleteJob(r.Key, r.Vars)
	case opFailJob:
		refused = c.FailJob(r.Key, int32(r.N), r.Text, r.D, r.Vars)
	case opThrow:
		refused = c.ThrowError(r.Key, r.Code, r.Text, r.Vars)
	case opRetries:
		refused = c.UpdateRetries(r.Key, int32(r.N))
	case opTimeout:
		refused = c.UpdateTimeout(r.Key, r.D)
	case opResolve:
		refused = c.ResolveIncident(r.Key)
	case opPublish:
		_, refused = c.Publish(*r.Message)
	case opSignal:
		c.Broadcast(r.Text, r.Vars)
	case opTaskComplete:
		refused = c.CompleteUserTask(r.Key, r.Vars)
	case opTaskUpdate:
		refused = c.UpdateUserTask(r.Key, *r.Task)
	case opHistory:
		c.KeepHistory(int(r.N), r.D)
	case opTaskAssign:
		refused = c.AssignUserTask(r.Key, r.Text, r.Flag)
	default:
		return fmt.Errorf("record %q: no such operation", r.Op)
	}
	_ = refused //nolint:errcheck // it was told to the caller of then
	c.fresh, c.finished = nil, nil
	return nil
}
