package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/vitrip/journeyman/zeebe"
)

// fakeGateway is an engine's job state machine in memory, for tests that stop the worker at named points.
type fakeGateway struct {
	mu     sync.Mutex
	jobs   map[int64]*fakeJob
	next   int64
	change chan struct{} // closed and replaced at every change
	calls  []string      // "complete 1", "fail 1 retries=2", ...

	// before is asked before a call is carried out, after afterwards; an error is given to the caller instead of the answer.
	before, after func(call string, key int64) error
	failed        func(backoff time.Duration)   // is told of each Fail
	asked         func(r zeebe.ActivateRequest) // and of each Activate
	cluster       string
}

type fakeJob struct {
	zeebe.Job
	state    string // activatable, activated, failed, error-thrown, completed, thrown, gone
	until    time.Time
	answer   string
	code     string
	message  string
	elements string // COMPLETED, TERMINATED, ACTIVE
	times    int    // activations
}

func newFake() *fakeGateway {
	return &fakeGateway{jobs: map[int64]*fakeJob{}, next: 2251799813685249, change: make(chan struct{}), cluster: "test"}
}

func (g *fakeGateway) changed() {
	close(g.change)
	g.change = make(chan struct{})
}

// add makes a job activatable and gives its key.
func (g *fakeGateway) add(jobType, variables string) int64 { return g.addIn(77, jobType, variables) }

func (g *fakeGateway) addIn(instance int64, jobType, variables string) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	k := g.next
	g.jobs[k] = &fakeJob{state: "activatable", elements: ElementActive, Job: zeebe.Job{
		Key: k, Type: jobType, ProcessID: "p", ProcessInstanceKey: instance, ElementID: "task", ElementInstanceKey: k + 1_000_000, Retries: 3, Variables: variables, Headers: "{}",
	}}
	g.changed()
	return k
}

// edit changes a job under the lock.
func (g *fakeGateway) edit(key int64, f func(j *fakeJob)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g.jobs[key])
	g.changed()
}

func (g *fakeGateway) job(key int64) fakeJob {
	g.mu.Lock()
	defer g.mu.Unlock()
	return *g.jobs[key]
}

// wait waits until ok says yes about the job, or ctx ends.
func (g *fakeGateway) wait(ctx context.Context, key int64, ok func(j fakeJob) bool) (fakeJob, error) {
	for {
		g.mu.Lock()
		j, c := *g.jobs[key], g.change
		g.mu.Unlock()
		if ok(j) {
			return j, nil
		}
		select {
		case <-c:
		case <-ctx.Done():
			return j, fmt.Errorf("job %d is %s (%s %s) after %v", key, j.state, j.answer, j.message, g.log())
		}
	}
}

func (g *fakeGateway) log() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.calls...)
}

func (g *fakeGateway) Cluster() string { return g.cluster }

func (g *fakeGateway) Activate(ctx context.Context, req zeebe.ActivateRequest) ([]zeebe.Job, error) {
	if g.asked != nil {
		g.asked(req)
	}
	ctx, cancel := context.WithTimeout(ctx, req.Wait)
	defer cancel()
	for {
		g.mu.Lock()
		if g.before != nil {
			if err := g.before("activate", 0); err != nil {
				g.mu.Unlock()
				return nil, err
			}
		}
		var out []zeebe.Job
		now := time.Now()
		for _, j := range g.jobs {
			timedOut := j.state == "activated" && now.After(j.until)
			if j.Type == req.Type && (j.state == "activatable" || timedOut) && len(out) < int(req.MaxJobs) {
				j.state, j.until, j.times = "activated", now.Add(req.Timeout), j.times+1
				out = append(out, j.Job)
			}
		}
		c := g.change
		g.mu.Unlock()
		if len(out) > 0 {
			return out, nil
		}
		select {
		case <-c:
		case <-time.After(50 * time.Millisecond): // time-outs
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (g *fakeGateway) answer(call string, key int64, note string, f func(j *fakeJob)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.before != nil {
		if err := g.before(call, key); err != nil {
			return err
		}
	}
	g.calls = append(g.calls, call+" "+note)
	j := g.jobs[key]
	switch {
	case j == nil || j.state == "completed" || j.state == "thrown" || j.state == "gone":
		return &zeebe.Error{Call: call, Code: zeebe.NotFound, Detail: "no such job"}
	case j.state == "failed" || j.state == "error-thrown":
		return &zeebe.Error{Call: call, Code: zeebe.FailedPrecondition, Detail: "it is in state " + j.state}
	}
	f(j)
	g.changed()
	if g.after != nil {
		return g.after(call, key)
	}
	return nil
}

func (g *fakeGateway) Complete(_ context.Context, key int64, variables string) error {
	return g.answer("complete", key, variables, func(j *fakeJob) {
		j.state, j.answer, j.elements = "completed", variables, ElementCompleted
	})
}

func (g *fakeGateway) Fail(_ context.Context, r zeebe.FailRequest) error {
	if g.failed != nil {
		g.failed(r.Backoff)
	}
	return g.answer("fail", r.JobKey, fmt.Sprintf("retries=%d %s", r.Retries, r.Message), func(j *fakeJob) {
		j.Retries, j.message = r.Retries, r.Message
		j.state = "activatable"
		if r.Retries <= 0 {
			j.state = "failed"
		}
	})
}

func (g *fakeGateway) Throw(_ context.Context, key int64, code, message, variables string) error {
	return g.answer("throw", key, code, func(j *fakeJob) {
		j.state, j.code, j.message, j.answer = "error-thrown", code, message, variables // uncaught here, so that it can be resolved
	})
}

func (g *fakeGateway) UpdateJobTimeout(_ context.Context, key int64, d time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	j := g.jobs[key]
	switch {
	case j == nil || j.state == "completed" || j.state == "gone":
		return &zeebe.Error{Call: "UpdateJobTimeout", Code: zeebe.NotFound}
	case j.state != "activated":
		return &zeebe.Error{Call: "UpdateJobTimeout", Code: zeebe.FailedPrecondition}
	}
	j.until = time.Now().Add(d)
	return nil
}

func (g *fakeGateway) UpdateJobRetries(_ context.Context, key int64, n int32) error { return nil }
func (g *fakeGateway) ResolveIncident(context.Context, int64) error                 { return nil }
func (g *fakeGateway) CancelInstance(context.Context, int64) error                  { return nil }
func (g *fakeGateway) SetVariables(context.Context, int64, string, bool) error      { return nil }
func (g *fakeGateway) PublishMessage(context.Context, zeebe.Message) (int64, error) {
	return 1, nil
}

// ElementState is the element's state as REST would give it.
func (g *fakeGateway) ElementState(_ context.Context, key int64) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if j := g.jobs[key-1_000_000]; j != nil {
		return j.elements, nil
	}
	return "", nil
}

// resolve is what an operator does to a job behind an incident.
func (g *fakeGateway) resolve(key int64) {
	g.edit(key, func(j *fakeJob) { j.state, j.Retries = "activatable", max(j.Retries, 1) })
}

// terminate ends the element of a job, as a timer would.
func (g *fakeGateway) terminate(key int64) {
	g.edit(key, func(j *fakeJob) { j.state, j.elements = "gone", ElementTerminated })
}
