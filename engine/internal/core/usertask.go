package core

import (
	"encoding/json"
	"time"
)

// TaskState is the state of a native user task, as REST v2 spells it.
type TaskState string

// User task states.
const (
	TaskCreated   TaskState = "CREATED"
	TaskCompleted TaskState = "COMPLETED"
	TaskCanceled  TaskState = "CANCELED"
)

// UserTask is a native user task (zeebe:userTask): no job, completed over REST.
type UserTask struct {
	Key       int64
	El        *Element
	State     TaskState
	Assignee  string
	Groups    []string
	Users     []string
	Due       string
	FollowUp  string
	Priority  int32
	Created   time.Time
	Completed time.Time
}

func (c *Core) createUserTask(e *Element) error {
	t := &UserTask{El: e, State: TaskCreated, Created: c.now, Priority: 50}
	u := e.Node.user
	var err error
	text := func(x *expr) string {
		if x == nil || err != nil {
			return ""
		}
		var v value
		if v, err = x.eval(c, e.lookup); err != nil || v.kind == "NULL" {
			return ""
		}
		return v.plain()
	}
	list := func(x *expr) []string {
		if x == nil || err != nil {
			return nil
		}
		var v value
		if v, err = x.eval(c, e.lookup); err != nil {
			return nil
		}
		return v.strings()
	}
	t.Assignee, t.Groups, t.Users, t.Due, t.FollowUp = text(u.assignee), list(u.groups), list(u.users), text(u.due), text(u.followUp)
	if u.priority != nil && err == nil {
		t.Priority, err = u.priority.integer(c, e.lookup)
	}
	if err != nil {
		return err
	}
	t.Key = c.key()
	e.task = t
	c.userTasks[t.Key] = t
	c.taskOrder.add(t)
	e.Inst.tasks = append(e.Inst.tasks, t)
	return nil
}

// CompleteUserTask completes a native user task; its variables go like a job's.
func (c *Core) CompleteUserTask(key int64, vars Doc) error {
	c.record(Record{Op: opTaskComplete, Key: key, Vars: vars})
	const intent = "COMPLETE"
	t := c.userTasks[key]
	if t == nil || t.State != TaskCreated {
		return reject(intent, NotFound, "Expected to complete user task with key '%d', but no such user task was found", key)
	}
	t.State, t.Completed = TaskCompleted, c.now
	t.El.task = nil
	t.El.doc = vars
	t.El.State = Completing
	c.push(opComplete, t.El)
	return nil
}

// AssignUserTask sets the assignee; empty takes it away. Without override a task that has one is refused.
func (c *Core) AssignUserTask(key int64, assignee string, override bool) error {
	c.record(Record{Op: opTaskAssign, Key: key, Text: assignee, Flag: override})
	const intent = "ASSIGN"
	t := c.userTasks[key]
	if t == nil || t.State != TaskCreated {
		return reject(intent, NotFound, "Expected to assign user task with key '%d', but no such user task was found", key)
	}
	if !override && t.Assignee != "" {
		return reject(intent, InvalidState, "Expected to claim user task with key '%d', but it has already been assigned", key)
	}
	t.Assignee = assignee
	return nil
}

// TaskChange is what an update of a user task sets; nil leaves as it is, empty takes away.
type TaskChange struct {
	Due, FollowUp *string   `json:",omitempty"`
	Groups, Users *[]string `json:",omitempty"`
	Priority      *int32    `json:",omitempty"`
}

// UpdateUserTask changes the properties of a native user task.
func (c *Core) UpdateUserTask(key int64, change TaskChange) error {
	c.record(Record{Op: opTaskUpdate, Key: key, Task: &change})
	t := c.userTasks[key]
	if t == nil || t.State != TaskCreated {
		return reject("UPDATE", NotFound, "Expected to update user task with key '%d', but no such user task was found", key)
	}
	set(&t.Due, change.Due)
	set(&t.FollowUp, change.FollowUp)
	set(&t.Groups, change.Groups)
	set(&t.Users, change.Users)
	set(&t.Priority, change.Priority)
	return nil
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// userTaskHeaders are the headers of a job-based user task: its own and the assignment.
func (c *Core) userTaskHeaders(e *Element) (json.RawMessage, error) {
	h := map[string]string{}
	for k, v := range e.Node.headerMap {
		h[k] = v
	}
	u := e.Node.user
	for _, p := range []struct {
		name string
		x    *expr
	}{{"assignee", u.assignee}, {"candidateGroups", u.groups}, {"candidateUsers", u.users}, {"dueDate", u.due}, {"followUpDate", u.followUp}} {
		if p.x == nil {
			continue
		}
		v, err := p.x.eval(c, e.lookup)
		if err != nil {
			return nil, err
		}
		switch v.kind {
		case "NULL":
		case "ARRAY":
			h["io.camunda.zeebe:"+p.name] = string(v.raw)
		default:
			h["io.camunda.zeebe:"+p.name] = v.plain()
		}
	}
	if u.formKey != "" {
		h["io.camunda.zeebe:formKey"] = u.formKey
	}
	return marshalHeaders(h), nil
}
