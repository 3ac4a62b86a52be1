package core

import "github.com/vitrip/journeyman/bpmn"

// jobUserTaskType is the job type of user tasks without zeebe:userTask.
const jobUserTaskType = "io.camunda.zeebe:userTask"

// userTaskSpec holds the expressions of a user task.
type userTaskSpec struct {
	assignee, groups, users, due, followUp *expr
	formKey                                string
	priority                               *expr
}

// userTask compiles a user task: native, or a job with the assignment in its headers.
func (c *compiler) userTask(n *Node, e *bpmn.Element) {
	u := e.UserTask
	if u == nil {
		u = &bpmn.UserTask{}
	}
	n.user = &userTaskSpec{
		assignee: c.optional(e, "assignee", u.Assignee), groups: c.optional(e, "candidate groups", u.CandidateGroups),
		users: c.optional(e, "candidate users", u.CandidateUsers), due: c.optional(e, "due date", u.DueDate),
		followUp: c.optional(e, "follow-up date", u.FollowUpDate), formKey: u.FormKey, priority: c.optional(e, "priority", u.Priority),
	}
	if u.Native {
		n.native = true
		return
	}
	n.job = &jobSpec{staticString(jobUserTaskType), staticExpr("1")}
}
