package rest

import (
	"context"
	"time"
)

// waitingPage bounds one look at waiting jobs.
const waitingPage = 200

// WaitingJobs lists jobs that can be activated and are not, by type: of the open ones with retries left that nobody holds, the
// 200 with the lowest keys. A job in back-off counts as one. What is exported late shows late.
func (c *Client) WaitingJobs(ctx context.Context) (map[string][]int64, error) {
	p, err := c.SearchJobs(ctx, Query{
		Filter: Filter{"state": map[string]any{"$in": []string{"CREATED", "TIMED_OUT", "RETRIES_UPDATED"}}},
		Sort:   []Sort{{Field: "jobKey"}}, Limit: waitingPage,
	})
	if err != nil {
		return nil, err
	}
	out := map[string][]int64{}
	for _, j := range p.Items {
		until, err := time.Parse(time.RFC3339, j.Deadline)
		if j.Deadline != "" && (err != nil || until.After(time.Now())) && j.State != "TIMED_OUT" {
			continue // somebody holds it
		}
		out[j.Type] = append(out[j.Type], int64(j.JobKey))
	}
	return out, nil
}
