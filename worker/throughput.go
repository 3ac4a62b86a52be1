package worker

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The measured throughput is that of the last minute, in steps of five seconds.
const (
	rateStep  = 5 * time.Second
	rateSteps = 12
)

// rates counts the jobs that ended, and the time of handlers' slots that they took, per job type. The zero value works. Safe
// for concurrent use.
type rates struct {
	mu    sync.Mutex
	began time.Time // the first job
	by    map[string]*rate
}

type rate [rateSteps]struct {
	step  int64 // number of the step since began
	jobs  int64
	spent time.Duration
}

// add counts a job of a type that ended now, after holding a slot for a while. Jobs that shared the slot of another have spent
// nothing themselves, so that sums are right.
func (r *rates) add(jobType string, spent time.Duration, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.began, r.by = now, map[string]*rate{}
	}
	if r.by[jobType] == nil {
		r.by[jobType] = &rate{}
	}
	n := int64(now.Sub(r.began) / rateStep)
	at := &r.by[jobType][n%rateSteps]
	if at.step != n {
		at.step, at.jobs, at.spent = n, 0, 0
	}
	at.jobs++
	at.spent += spent
}

// of gives the jobs per second of the last minute, or of the time since the first job when that is shorter, and the time of a
// slot that one job took; 0 when there was none.
func (r *rates) of(jobType string, now time.Time) (perSecond float64, cost time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.by[jobType]
	if t == nil {
		return 0, 0
	}
	n := int64(now.Sub(r.began) / rateStep)
	var jobs int64
	var spent time.Duration
	for _, at := range t {
		if at.step > n-rateSteps {
			jobs, spent = jobs+at.jobs, spent+at.spent
		}
	}
	if jobs == 0 {
		return 0, 0
	}
	// The newest step is not over: the window is the whole steps before it and what has passed of this one.
	window := min(now.Sub(r.began), (rateSteps-1)*rateStep+now.Sub(r.began)%rateStep)
	return float64(jobs) / max(window, time.Second).Seconds(), spent / time.Duration(jobs)
}

// Expected is what a job type's handler declares with [Expect]; compensations declare nothing, and are 0.
func (m *Mux) Expected(jobType string) (perSecond float64, cost time.Duration) {
	if s := m.forward[jobType]; s != nil {
		return s.opt.rate, s.opt.cost
	}
	return 0, 0
}

// WriteMetrics writes the declared throughput of every job type beside the measured one (spec W10), in the Prometheus text
// format, version 0.0.4. A type that declares nothing has no expected value.
func (h Health) WriteMetrics(w io.Writer) error {
	var b strings.Builder
	gauge := func(name, help string, expected, measured func(TypeHealth) float64) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
		for _, t := range h.Types {
			if t.ExpectedPerSecond > 0 {
				fmt.Fprintf(&b, "%s{job_type=%s,value=\"expected\"} %s\n", name, strconv.Quote(t.Type), strconv.FormatFloat(expected(t), 'g', -1, 64))
			}
			fmt.Fprintf(&b, "%s{job_type=%s,value=\"measured\"} %s\n", name, strconv.Quote(t.Type), strconv.FormatFloat(measured(t), 'g', -1, 64))
		}
	}
	gauge("journeyman_worker_jobs_per_second", "Jobs that ended per second: declared by the handler, and of the last minute.",
		func(t TypeHealth) float64 { return t.ExpectedPerSecond }, func(t TypeHealth) float64 { return t.JobsPerSecond })
	gauge("journeyman_worker_job_cost_seconds", "Time of a handler's slot per job: declared by the handler, and of the last minute.",
		func(t TypeHealth) float64 { return t.ExpectedCost.Seconds() }, func(t TypeHealth) float64 { return t.JobCost.Seconds() })
	_, err := io.WriteString(w, b.String())
	return err
}
