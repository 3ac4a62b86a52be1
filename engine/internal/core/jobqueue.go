package core

import "container/heap"

// jobQueue holds the activatable jobs of one type, lowest key first.
type jobQueue struct{ jobs []*Job }

func (q *jobQueue) Len() int           { return len(q.jobs) }
func (q *jobQueue) Less(i, j int) bool { return q.jobs[i].Key < q.jobs[j].Key }
func (q *jobQueue) Swap(i, j int) {
	q.jobs[i], q.jobs[j] = q.jobs[j], q.jobs[i]
	q.jobs[i].index, q.jobs[j].index = i, j
}
func (q *jobQueue) Push(x any) {
	j := x.(*Job)
	j.index = len(q.jobs)
	q.jobs = append(q.jobs, j)
}
func (q *jobQueue) Pop() any {
	last := len(q.jobs) - 1
	j := q.jobs[last]
	q.jobs[last] = nil
	q.jobs = q.jobs[:last]
	j.index = -1
	return j
}

func (c *Core) enqueue(j *Job) {
	q := c.ready[j.Type]
	if q == nil {
		q = &jobQueue{}
		c.ready[j.Type] = q
	}
	heap.Push(q, j)
}

func (c *Core) dequeue(j *Job) {
	if j.index < 0 {
		return
	}
	q := c.ready[j.Type]
	heap.Remove(q, j.index)
	if q.Len() == 0 {
		delete(c.ready, j.Type)
	}
}

// HasReady reports whether a job of the type can be activated.
func (c *Core) HasReady(jobType string) bool { return c.ready[jobType] != nil }
