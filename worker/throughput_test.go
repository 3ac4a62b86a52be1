package worker

import (
	"strings"
	"testing"
	"time"
)

func TestRates(t *testing.T) {
	t.Parallel()
	var r rates
	begin := time.Unix(1000, 0)
	if n, cost := r.of("a", begin); n != 0 || cost != 0 {
		t.Errorf("nothing ran, got %v and %v", n, cost)
	}
	want := func(at time.Duration, perSecond float64, cost time.Duration) {
		t.Helper()
		if n, c := r.of("a", begin.Add(at)); n < perSecond*0.999 || n > perSecond*1.001 || c != cost {
			t.Errorf("after %s: %v jobs/s at %v, want %v at %v", at, n, c, perSecond, cost)
		}
	}
	for i := range 100 { // ten a second, for ten seconds, two at a time
		r.add("a", time.Duration(i%2)*40*time.Millisecond, begin.Add(time.Duration(i)*100*time.Millisecond))
	}
	r.add("b", time.Second, begin)
	want(10*time.Second, 10, 20*time.Millisecond)
	want(50*time.Second, 2, 20*time.Millisecond)
	want(62*time.Second, 50.0/57, 20*time.Millisecond) // the first five seconds are out of the window
	want(70*time.Second, 0, 0)
	r.add("a", time.Millisecond, begin.Add(200*time.Second))
	want(200*time.Second, 1.0/55, time.Millisecond) // the ring has come round
}

func TestHealth_WriteMetrics(t *testing.T) {
	t.Parallel()
	h := Health{Types: []TypeHealth{
		{Type: "room.reserve", ExpectedPerSecond: 10, ExpectedCost: 20 * time.Millisecond, JobsPerSecond: 7.5, JobCost: 31 * time.Millisecond},
		{Type: `a"b`},
	}}
	var b strings.Builder
	if err := h.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`journeyman_worker_jobs_per_second{job_type="room.reserve",value="expected"} 10` + "\n",
		`journeyman_worker_jobs_per_second{job_type="room.reserve",value="measured"} 7.5` + "\n",
		`journeyman_worker_job_cost_seconds{job_type="room.reserve",value="expected"} 0.02` + "\n",
		`journeyman_worker_job_cost_seconds{job_type="room.reserve",value="measured"} 0.031` + "\n",
		`journeyman_worker_jobs_per_second{job_type="a\"b",value="measured"} 0` + "\n",
		"# TYPE journeyman_worker_jobs_per_second gauge\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), `a\"b",value="expected"`) {
		t.Error("a type that declares nothing has an expected value")
	}
}
