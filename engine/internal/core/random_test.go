package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// path is one random step of a run.
type path struct{ kind, pick, minutes int }

func drawPath(t *rapid.T) path {
	return path{rapid.IntRange(0, 15).Draw(t, "kind"), rapid.IntRange(0, 9).Draw(t, "pick"), rapid.SampledFrom([]int{0, 0, 0, 1, 4, 11, 16}).Draw(t, "minutes")}
}

func vars(pick int) core.Doc {
	return core.Doc{"pick": fmt.Append(nil, pick%4), "v": fmt.Append(nil, pick)}
}

// take makes the step: complete, fail, time out or throw a job, let a timer pass, send events, repair.
func (p path) take(c *core.Core, messages []string) {
	p.tick(c, time.Duration(p.minutes)*time.Minute)
	var jobs []*core.Job
	for j := range c.Jobs(0) {
		if j.State < core.JobCompleted {
			jobs = append(jobs, j)
		}
	}
	var err error
	switch {
	case p.kind <= 8 && len(jobs) > 0:
		j := jobs[p.pick%len(jobs)]
		switch p.kind {
		case 0, 1, 2:
			c.Activate(core.Activation{Type: "job", Worker: "w", Timeout: 2 * time.Minute, Max: 1 + p.pick})
		case 3, 4, 5:
			err = c.CompleteJob(j.Key, vars(p.pick))
		case 6:
			err = c.FailJob(j.Key, int32(p.pick%3), "failed", time.Duration(p.pick%2)*time.Minute, vars(p.pick))
		case 7:
			err = c.ThrowError(j.Key, []string{"E", "OTHER"}[p.pick%2], "thrown", vars(p.pick))
		case 8:
			p.tick(c, 5*time.Minute) // what was activated times out
		}
	case p.kind == 9 && len(messages) > 0:
		_, err = c.Publish(core.Publication{Name: messages[p.pick%len(messages)], CorrelationKey: []string{"a", "b"}[p.pick%2], TTL: time.Duration(p.minutes) * time.Minute, Vars: vars(p.pick)})
	case p.kind == 10:
		c.Broadcast("sig", vars(p.pick))
	case p.kind == 11:
		for task := range c.UserTasks() {
			if task.State == core.TaskCreated {
				err = c.CompleteUserTask(task.Key, vars(p.pick))
				break
			}
		}
	case p.kind == 12:
		for i := range c.Incidents(0) {
			if i.Active {
				if i.Job != nil && i.Job.Retries <= 0 {
					err = c.UpdateRetries(i.Job.Key, 1)
				}
				if err == nil {
					err = c.ResolveIncident(i.Key)
				}
				break
			}
		}
	case p.kind == 13 && p.pick == 0:
		for i := range c.Instances() {
			if !i.Root.Ended() && i.Caller == nil {
				err = c.CancelInstance(i.Key)
				break
			}
		}
	default:
		_, err = c.CreateInstance(core.Creation{ProcessID: "main", Version: -1, Vars: core.Doc{"key": []byte(`"` + []string{"a", "b"}[p.pick%2] + `"`), "pick": fmt.Append(nil, p.pick%4), "v": []byte("0")}})
	}
	_ = err // refusals are part of the run
	c.Run(10_000)
}

// tick lets time pass, each timer at its own time.
func (path) tick(c *core.Core, d time.Duration) {
	for till := c.Now().Add(d); c.FireNext(till); {
		c.Run(10_000)
	}
}

// finish brings every instance to its end and reports how many rounds it took.
func finish(t *rapid.T, c *core.Core, messages []string, step func(func(*core.Core))) {
	const most = 400
	for range most {
		active := 0
		for i := range c.Instances() {
			if !i.Root.Ended() {
				active++
			}
		}
		if active == 0 {
			return
		}
		step(func(c *core.Core) {
			done := 0
			for _, j := range slices.Collect(c.Jobs(0)) {
				switch {
				case j.State >= core.JobCompleted:
				case j.State == core.JobActivatable || j.State == core.JobActivated:
					if c.CompleteJob(j.Key, vars(done)) == nil {
						done++
					}
				case j.Retries <= 0:
					_ = c.UpdateRetries(j.Key, 1) //nolint:errcheck // its incident is resolved below
				}
				c.Run(10_000)
			}
			for _, i := range slices.Collect(c.Incidents(0)) {
				if i.Active && c.ResolveIncident(i.Key) == nil {
					done++
				}
				c.Run(10_000)
			}
			for _, task := range slices.Collect(c.UserTasks()) {
				if task.State == core.TaskCreated && c.CompleteUserTask(task.Key, vars(done)) == nil {
					done++
				}
				c.Run(10_000)
			}
			if done > 0 {
				return
			}
			// Nothing to work on: the runs wait for events or for time.
			path{}.tick(c, 20*time.Minute)
			for _, name := range messages {
				for _, key := range []string{"a", "b"} {
					_, _ = c.Publish(core.Publication{Name: name, CorrelationKey: key}) //nolint:errcheck // a blank id is never refused
					c.Run(10_000)
				}
			}
			c.Broadcast("sig", nil)
			c.Run(10_000)
		})
	}
	for i := range c.Instances() {
		if !i.Root.Ended() {
			for e := range i.Elements() {
				if !e.Ended() {
					t.Logf("instance %d waits at %s", i.Key, e.Node.ID)
				}
			}
		}
	}
	t.Fatalf("a run does not end in %d rounds", most)
}

// Random models and random paths: every run ends, and after every step the state
// comes back the same from the log, which begins at a snapshot of some steps before or at the start.
//
// A failure prints its seed: -rapid.seed=N plays the same again, and
// -rapid.failfile the smallest case that fails.
func TestRandomProcesses(t *testing.T) {
	t.Parallel()
	models := 0
	rapid.Check(t, func(t *rapid.T) {
		if models++; models > mostModels {
			return
		}
		g := &generator{t: t, kinds: map[string]int{}}
		xml := g.model()
		live := core.NewSeeded(epoch, 0, [32]byte{7})
		fromLog, fromStart := restored(t, live), restored(t, live)
		var log, fresh [][]byte
		live.RecordTo(func(r core.Record) {
			var b bytes.Buffer
			if err := json.NewEncoder(&b).Encode(r); err != nil {
				t.Fatal(err)
			}
			log, fresh = append(log, b.Bytes()), append(fresh, b.Bytes())
		})
		replay := func(c *core.Core, records [][]byte) {
			for _, b := range records {
				var r core.Record
				if err := json.Unmarshal(b, &r); err != nil {
					t.Fatal(err)
				}
				if err := c.Apply(r); err != nil {
					t.Fatalf("%s: %v", b, err)
				}
			}
		}
		n := 0
		step := func(do func(*core.Core)) {
			n++
			do(live)
			check(t, live)
			want := canonical(t, live)
			replay(fromLog, fresh)
			fresh = nil
			if got := canonical(t, fromLog); got != want {
				t.Fatalf("step %d: the log gives\n%s\nwant\n%s\nof\n%s", n, got, want, xml)
			}
			if n%4 != 0 { // a snapshot is dear: it compiles the models again
				return
			}
			if fromLog = restored(t, live); canonical(t, fromLog) != want { // the log goes on from it
				t.Fatalf("step %d: the snapshot gives\n%s\nwant\n%s\nof\n%s", n, canonical(t, fromLog), want, xml)
			}
		}
		step(func(c *core.Core) {
			if _, err := c.Deploy([]core.Resource{{Name: "m.bpmn", Content: []byte(xml)}}, false); err != nil {
				t.Fatalf("the generator made a model that is refused: %v\n%s", err, xml)
			}
		})
		step(func(c *core.Core) { path{kind: 15}.take(c, g.messages) })
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			p := drawPath(t)
			step(func(c *core.Core) { p.take(c, g.messages) })
		}
		finish(t, live, g.messages, step)
		replay(fromStart, log)
		if got, want := canonical(t, fromStart), canonical(t, live); got != want {
			t.Fatalf("the whole log gives\n%s\nwant\n%s\nof\n%s", got, want, xml)
		}
	})
}

// The generator's models are accepted and have everything that is to be played.
func TestGeneratedModels(t *testing.T) {
	t.Parallel()
	used := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for range 3 {
			g := &generator{t: t, kinds: map[string]int{}}
			xml := g.model()
			if _, err := core.New(epoch, 0).Deploy([]core.Resource{{Name: "m.bpmn", Content: []byte(xml)}}, false); err != nil {
				t.Fatalf("%v\n%s", err, xml)
			}
			for kind, n := range g.kinds {
				used[kind] += n
			}
		}
	})
	for _, kind := range []string{
		"exclusive", "parallel", "inclusive", "event-based", "subprocess", "call activity", "compensation handler", "compensation throw", "compensation from an event subprocess",
		"multi-instance, sequential true", "multi-instance, sequential false", "timer catch", "message catch", "signal catch", "receive task", "user task", "escalation throw",
		"boundary timer", "boundary message", "boundary signal", "boundary error", "boundary escalation", "event subprocess error", "event subprocess timer", "event subprocess message", "event subprocess escalation",
	} {
		if used[kind] == 0 && len(used) > 0 && !t.Failed() {
			t.Errorf("no model had %q, only %v", kind, slices.Sorted(maps.Keys(used)))
		}
	}
}
