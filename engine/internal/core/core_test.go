package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vitrip/journeyman/engine/internal/core"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const head = `<?xml version="1.0"?><bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">`

// busy has what makes order matter: a fork, a join, an event subprocess, timers and compensation.
const busy = head + `<bpmn:process id="busy" isExecutable="true">
<bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="sp"/>
<bpmn:subProcess id="sp">
  <bpmn:startEvent id="is"/><bpmn:sequenceFlow id="f1" sourceRef="is" targetRef="fork"/><bpmn:parallelGateway id="fork"/>
  <bpmn:sequenceFlow id="f2" sourceRef="fork" targetRef="a"/><bpmn:sequenceFlow id="f3" sourceRef="fork" targetRef="b"/>
  <bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="a"/></bpmn:extensionElements></bpmn:serviceTask>
  <bpmn:serviceTask id="b"><bpmn:extensionElements><zeebe:taskDefinition type="b"/></bpmn:extensionElements></bpmn:serviceTask>
  <bpmn:boundaryEvent id="ac" attachedToRef="a"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>
  <bpmn:serviceTask id="undo" isForCompensation="true"><bpmn:extensionElements><zeebe:taskDefinition type="undo"/></bpmn:extensionElements></bpmn:serviceTask>
  <bpmn:association id="as" sourceRef="ac" targetRef="undo"/>
  <bpmn:boundaryEvent id="bt" attachedToRef="b"><bpmn:timerEventDefinition><bpmn:timeDuration>PT10M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
  <bpmn:sequenceFlow id="f4" sourceRef="a" targetRef="join"/><bpmn:sequenceFlow id="f5" sourceRef="b" targetRef="join"/>
  <bpmn:sequenceFlow id="f9" sourceRef="bt" targetRef="be"/><bpmn:endEvent id="be"><bpmn:errorEventDefinition errorRef="er"/></bpmn:endEvent>
  <bpmn:parallelGateway id="join"/><bpmn:sequenceFlow id="f6" sourceRef="join" targetRef="ie"/><bpmn:endEvent id="ie"/>
  <bpmn:subProcess id="esp" triggeredByEvent="true"><bpmn:startEvent id="es"><bpmn:errorEventDefinition/></bpmn:startEvent>
    <bpmn:sequenceFlow id="f7" sourceRef="es" targetRef="th"/><bpmn:intermediateThrowEvent id="th"><bpmn:compensateEventDefinition/></bpmn:intermediateThrowEvent>
    <bpmn:sequenceFlow id="f8" sourceRef="th" targetRef="ee"/><bpmn:endEvent id="ee"/></bpmn:subProcess>
</bpmn:subProcess>
<bpmn:sequenceFlow id="fe" sourceRef="sp" targetRef="e"/><bpmn:endEvent id="e"/>
</bpmn:process><bpmn:error id="er" errorCode="LATE"/></bpmn:definitions>`

func newCore(t interface{ Fatal(...any) }, xml string) *core.Core {
	c := core.New(epoch, 0)
	if _, err := c.Deploy([]core.Resource{{Name: "m.bpmn", Content: []byte(xml)}}, false); err != nil {
		t.Fatal(err)
	}
	return c
}

// dump renders the whole visible state.
func dump(c *core.Core) string {
	var b strings.Builder
	for i := range c.Instances() {
		fmt.Fprintf(&b, "instance %d %d %v %v\n", i.Key, i.Root.State, i.Root.Start, i.Root.End)
	}
	for e := range c.Elements(0) {
		fmt.Fprintf(&b, "element %d %s %d in %d %v %v\n", e.Key, e.Node.ID, e.State, e.Parent.Key, e.Start, e.End)
	}
	for j := range c.Jobs(0) {
		fmt.Fprintf(&b, "job %d %s %d %d %v\n", j.Key, j.Type, j.State, j.Retries, j.Deadline)
	}
	for i := range c.Incidents(0) {
		fmt.Fprintf(&b, "incident %d %s %t\n", i.Key, i.Type, i.Active)
	}
	for v := range c.Variables(0) {
		fmt.Fprintf(&b, "variable %d %s=%s in %d\n", v.Key, v.Name, v.Value, v.Scope.Key)
	}
	return b.String()
}

// act is one random command; it is applied to a core by its own means only, so that two cores see the same.
type act struct{ kind, pick, minutes int }

func (a act) apply(c *core.Core) {
	var live []*core.Job
	for j := range c.Jobs(0) {
		if j.State < core.JobCompleted {
			live = append(live, j)
		}
	}
	now := c.Now().Add(time.Duration(a.minutes) * time.Minute)
	for c.FireNext(now) {
		c.Run(1000)
	}
	if a.kind == 0 || len(live) == 0 {
		_, _ = c.CreateInstance(core.Creation{ProcessID: "busy", Version: -1}) //nolint:errcheck // a refusal is part of the run
	} else {
		j := live[a.pick%len(live)]
		var err error
		switch a.kind {
		case 1, 2:
			err = c.CompleteJob(j.Key, core.Doc{"v": []byte(fmt.Sprint(a.pick))})
		case 3:
			err = c.FailJob(j.Key, int32(a.pick%2), "x", time.Duration(a.minutes)*time.Minute, nil)
		case 4:
			err = c.ThrowError(j.Key, "E", "", nil)
		case 5:
			c.Activate(core.Activation{Type: j.Type, Timeout: time.Minute, Max: 1})
		case 6:
			err = c.UpdateRetries(j.Key, 2)
		case 7:
			for i := range c.Incidents(0) {
				if i.Active {
					err = c.ResolveIncident(i.Key)
					break
				}
			}
		case 8:
			err = c.CancelInstance(j.El.Inst.Key)
		}
		_ = err // refusals are part of the run
	}
	c.Run(1000)
}

// The same commands at the same times give the same state, keys included, and
// the state keeps its invariants.
func TestDeterminismAndInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, two := newCore(t, busy), newCore(t, busy)
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
			return act{rapid.IntRange(0, 8).Draw(t, "kind"), rapid.IntRange(0, 9).Draw(t, "pick"), rapid.SampledFrom([]int{0, 0, 1, 11}).Draw(t, "minutes")}
		}), 1, 60).Draw(t, "steps")
		for _, s := range steps {
			s.apply(one)
			s.apply(two)
			if a, b := dump(one), dump(two); a != b {
				t.Fatalf("states differ:\n%s\n---\n%s", a, b)
			}
			check(t, one)
		}
	})
}

func check(t *rapid.T, c *core.Core) {
	if !c.Idle() {
		t.Fatal("steps are left although nothing loops")
	}
	for e := range c.Elements(0) {
		if !e.Ended() && e.Parent.Ended() {
			t.Fatalf("element %s lives in an ended scope %s", e.Node.ID, e.Parent.Node.ID)
		}
	}
	for j := range c.Jobs(0) {
		if j.State < core.JobCompleted && j.El.Ended() {
			t.Fatalf("job %d of ended element %s is alive", j.Key, j.El.Node.ID)
		}
		if j.State == core.JobActivated && j.Deadline.IsZero() {
			t.Fatalf("activated job %d has no deadline", j.Key)
		}
	}
	for i := range c.Incidents(0) {
		if i.Active && i.El.Ended() {
			t.Fatalf("incident %d of ended element %s is active", i.Key, i.El.Node.ID)
		}
	}
	for i := range c.Instances() {
		if !i.Root.Ended() {
			waits := false
			for e := range c.Elements(i.Key) {
				waits = waits || !e.Ended()
			}
			if !waits {
				t.Fatalf("instance %d is active with nothing inside:\n%s", i.Key, dump(c))
			}
		}
	}
}

// A model that never rests does not keep the caller.
func TestEndlessLoopIsCutIntoPieces(t *testing.T) {
	t.Parallel()
	c := newCore(t, head+`<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="m"/>
<bpmn:exclusiveGateway id="m"/><bpmn:sequenceFlow id="f1" sourceRef="m" targetRef="x"/><bpmn:exclusiveGateway id="x" default="f2"/>
<bpmn:sequenceFlow id="f2" sourceRef="x" targetRef="m"/><bpmn:sequenceFlow id="f3" sourceRef="x" targetRef="w"><bpmn:conditionExpression>=false</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:serviceTask id="w"><bpmn:extensionElements><zeebe:taskDefinition type="w"/></bpmn:extensionElements></bpmn:serviceTask></bpmn:process></bpmn:definitions>`)
	i, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if c.Run(10_000) {
			t.Fatal("the loop ended")
		}
	}
	if err := c.CancelInstance(i.Key); err != nil {
		t.Fatal(err)
	}
	if !c.Run(10_000) {
		t.Error("steps are left after the cancel")
	}
}

func TestParseDoc(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "{}", " ": "{}", "{}": "{}", `{"b":1,"a":{"x":[1, 2]}}`: `{"a":{"x":[1,2]},"b":1}`, `{"a":1,"a":2}`: `{"a":2}`, `{"<":"&"}`: `{"<":"&"}`,
	} {
		d, err := core.ParseDoc(text)
		if err != nil || d.JSON() != want {
			t.Errorf("%q: got %s, %v, want %s", text, d.JSON(), err, want)
		}
	}
	for _, text := range []string{"null", "[]", "1", "{", `{"a":}`, "{} {}", `{"a":1} x`, "x"} {
		if _, err := core.ParseDoc(text); err == nil || !strings.HasPrefix(err.Error(), "Invalid JSON value: ") {
			t.Errorf("%q: got %v, want a refusal", text, err)
		}
	}
}

func FuzzParseDoc(f *testing.F) {
	for _, s := range []string{"{}", `{"a":1}`, `{"a":{"b":[1,"x",null]}}`, "[", "null"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := core.ParseDoc(s)
		if err != nil {
			return
		}
		again, err := core.ParseDoc(d.JSON())
		if err != nil || again.JSON() != d.JSON() {
			t.Errorf("%q: %s reads back as %s, %v", s, d.JSON(), again.JSON(), err)
		}
	})
}
