package core_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// looped goes through its task as often as it is told to; every round calls a process that leaves history of its own.
const looped = head + `<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="a"/>
<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="a"/></bpmn:extensionElements></bpmn:serviceTask><bpmn:sequenceFlow id="f1" sourceRef="a" targetRef="c"/>
<bpmn:callActivity id="c"><bpmn:extensionElements><zeebe:calledElement processId="child" propagateAllChildVariables="false"/></bpmn:extensionElements></bpmn:callActivity>
<bpmn:sequenceFlow id="f2" sourceRef="c" targetRef="x"/><bpmn:exclusiveGateway id="x" default="f3"/><bpmn:sequenceFlow id="f3" sourceRef="x" targetRef="e"/>
<bpmn:sequenceFlow id="f4" sourceRef="x" targetRef="a"><bpmn:conditionExpression>=again = true</bpmn:conditionExpression></bpmn:sequenceFlow><bpmn:endEvent id="e"/></bpmn:process>
<bpmn:process id="child" isExecutable="true"><bpmn:startEvent id="cs"/><bpmn:sequenceFlow id="g0" sourceRef="cs" targetRef="u"/>
<bpmn:userTask id="u"><bpmn:extensionElements><zeebe:userTask/></bpmn:extensionElements></bpmn:userTask><bpmn:sequenceFlow id="g1" sourceRef="u" targetRef="ce"/><bpmn:endEvent id="ce"/></bpmn:process></bpmn:definitions>`

// round runs one instance to its end: a job that failed first, a called instance, a user task, variables of some size.
func round(t testing.TB, c *core.Core, value string) int64 {
	t.Helper()
	i, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1, Vars: core.Doc{"v": []byte(`"` + value + `"`)}})
	if err != nil {
		t.Fatal(err)
	}
	pass(t, c, i, false)
	return i.Key
}

// pass brings an instance that waits at its task behind its call activity.
func pass(t testing.TB, c *core.Core, i *core.Instance, again bool) {
	t.Helper()
	c.Run(1000)
	j := slices.Collect(c.Jobs(i.Key))
	last := j[len(j)-1]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		c.Run(1000)
	}
	must(c.FailJob(last.Key, 0, "no", 0, nil))
	must(c.UpdateRetries(last.Key, 1))
	inc := slices.Collect(c.Incidents(i.Key))
	must(c.ResolveIncident(inc[len(inc)-1].Key))
	must(c.CompleteJob(last.Key, core.Doc{"again": fmt.Append(nil, again)}))
	var task *core.UserTask
	for u := range c.UserTasks() {
		if u.State == core.TaskCreated {
			task = u
		}
	}
	must(c.CompleteUserTask(task.Key, nil))
	c.TakeFresh()
	c.TakeFinished()
}

// records counts everything that searches show, by kind.
func records(c *core.Core) map[string]int {
	n := map[string]int{}
	for range c.Instances() {
		n["instances"]++
	}
	for range c.Elements(0) {
		n["elements"]++
	}
	for range c.Jobs(0) {
		n["jobs"]++
	}
	for range c.Incidents(0) {
		n["incidents"]++
	}
	for range c.Variables(0) {
		n["variables"]++
	}
	for range c.UserTasks() {
		n["tasks"]++
	}
	return n
}

func TestHistory_LimitForgetsWholeInstances(t *testing.T) {
	t.Parallel()
	c := newCore(t, looped)
	c.KeepHistory(4, 0) // two rounds: the called instance counts as its own
	first := round(t, c, "1")
	var keys []int64
	for e := range c.Elements(first) {
		keys = append(keys, e.Key)
	}
	jobs, incidents, variables := slices.Collect(c.Jobs(first)), slices.Collect(c.Incidents(first)), slices.Collect(c.Variables(first))
	round(t, c, "2")
	one := records(c)
	round(t, c, "3")
	last := round(t, c, "4")
	if got := records(c); fmt.Sprint(got) != fmt.Sprint(one) {
		t.Errorf("records %v, want those of two rounds %v", got, one)
	}
	if c.Instance(first) != nil || c.Instance(last) == nil {
		t.Error("the first instance is there, or the last is not")
	}
	for _, k := range keys {
		if c.Element(k) != nil {
			t.Errorf("element instance %d is there", k)
		}
	}
	for _, j := range jobs {
		if err := c.CompleteJob(j.Key, nil); err == nil || !strings.Contains(err.Error(), "no such job was found") {
			t.Errorf("job %d: %v", j.Key, err)
		}
	}
	if c.Incident(incidents[0].Key) != nil || c.VariableByKey(variables[0].Key) != nil {
		t.Error("an incident or a variable is there")
	}
	if n := len(slices.Collect(c.Elements(first))); n != 0 {
		t.Errorf("%d elements of the forgotten instance", n)
	}
	c.KeepHistory(1, 0) // a smaller bound holds at once
	if got := records(c)["instances"]; got != 1 {
		t.Errorf("%d instances, want 1", got)
	}
	// A running instance is always kept; what it calls is forgotten one by one.
	i, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		pass(t, c, i, true)
		if got := records(c)["instances"]; got != 2 {
			t.Fatalf("%d instances, want the running one and the last that ended", got)
		}
	}
	if got := canonical(t, restored(t, c)); got != canonical(t, c) {
		t.Error("the state comes back as another")
	}
	pass(t, c, i, false)
	if c.Instance(i.Key) == nil || records(c)["instances"] != 1 {
		t.Error("the last that ended is not the one that is kept")
	}
}

func TestHistory_AgeFollowsTheClock(t *testing.T) {
	t.Parallel()
	c := newCore(t, looped)
	c.KeepHistory(0, time.Hour)
	at := func(d time.Duration) {
		for c.FireNext(epoch.Add(d)) {
			c.Run(1000)
		}
	}
	a := round(t, c, "1")
	at(30 * time.Minute)
	b := round(t, c, "2")
	at(59 * time.Minute)
	if c.Instance(a) == nil {
		t.Error("forgotten too early")
	}
	at(61 * time.Minute)
	if c.Instance(a) != nil || c.Instance(b) == nil {
		t.Error("after an hour the first is forgotten and the second is not")
	}
	again := restored(t, c)
	for _, c := range []*core.Core{c, again} {
		for c.FireNext(epoch.Add(91 * time.Minute)) {
			c.Run(1000)
		}
		if n := records(c); len(n) != 0 {
			t.Errorf("records %v, want none", n)
		}
	}
	if _, due := c.NextDue(); due {
		t.Error("a timer runs although nothing is left")
	}
}

// Memory follows what is kept, not what was run: small and large instances, few and many.
func TestHistory_MemoryIsFreed(t *testing.T) {
	heap := func(limit, runs, size int) uint64 {
		c := newCore(t, looped)
		c.KeepHistory(limit, 0)
		value := strings.Repeat("x", size)
		for range runs {
			round(t, c, value)
		}
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(c)
		return m.HeapAlloc
	}
	for _, size := range []int{10, 10_000} {
		base := heap(200, 1, size)
		kept, much := heap(200, 500, size)-base, heap(200, 5000, size)-base
		all := heap(0, 5000, size) - base
		t.Logf("values of %d bytes: 200 kept of 1000: %d kB, 200 kept of 10,000: %d kB, all 10,000: %d kB", size, kept>>10, much>>10, all>>10)
		if much > 2*kept {
			t.Errorf("values of %d bytes: ten times the runs take %.1f times the memory, want at most 2", size, float64(much)/float64(kept))
		}
		if all < 10*much {
			t.Errorf("values of %d bytes: without a bound %.1f times the memory, want at least 10: the test measures nothing", size, float64(all)/float64(much))
		}
	}
}
