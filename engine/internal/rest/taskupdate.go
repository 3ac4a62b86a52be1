package rest

import (
	"net/http"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// maxPriority is the highest priority of a user task.
const maxPriority = 100

func (s *server) updateUserTask(r *http.Request) (any, error) {
	k, err := pathKey(r, "userTaskKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		Changeset *struct {
			DueDate         *string   `json:"dueDate"`
			FollowUpDate    *string   `json:"followUpDate"`
			CandidateUsers  *[]string `json:"candidateUsers"`
			CandidateGroups *[]string `json:"candidateGroups"`
			Priority        *int32    `json:"priority"`
		} `json:"changeset"`
		Action string `json:"action"`
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	var change core.TaskChange
	if c := in.Changeset; c != nil {
		change = core.TaskChange{Due: c.DueDate, FollowUp: c.FollowUpDate, Users: c.CandidateUsers, Groups: c.CandidateGroups, Priority: c.Priority}
	}
	if change == (core.TaskChange{}) && in.Action == "" {
		return nil, problemf(http.StatusBadRequest, "No update data provided: at least one of [action, candidateGroups, candidateUsers, dueDate, followUpDate, priority] is required.")
	}
	for name, date := range map[string]*string{"dueDate": change.Due, "followUpDate": change.FollowUp} {
		if date == nil || *date == "" { // empty takes it away
			continue
		}
		if _, err := time.Parse(time.RFC3339Nano, *date); err != nil {
			return nil, problemf(http.StatusBadRequest, "The provided %s '%s' cannot be parsed as a date according to RFC 3339, section 5.6.", name, shorten(*date))
		}
	}
	if p := change.Priority; p != nil && (*p < 0 || *p > maxPriority) {
		return nil, problemf(http.StatusBadRequest, "The value for priority is '%d' but must be within the [0,%d] range.", *p, maxPriority)
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.UpdateUserTask(k, change) })
}
