package core_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// rich has what busy has not: message start with a lock, receive task, event
// based gateway, multi-instance, call activity, user task, signals, an inclusive join, a cycle, random numbers.
const rich = head + `<bpmn:message id="go" name="go"/><bpmn:message id="m" name="m"><bpmn:extensionElements><zeebe:subscription correlationKey="=k"/></bpmn:extensionElements></bpmn:message><bpmn:signal id="sig" name="sig"/>
<bpmn:process id="rich" isExecutable="true">
<bpmn:startEvent id="s"><bpmn:messageEventDefinition messageRef="go"/></bpmn:startEvent><bpmn:sequenceFlow id="f0" sourceRef="s" targetRef="inc"/>
<bpmn:inclusiveGateway id="inc"/>
<bpmn:sequenceFlow id="f1" sourceRef="inc" targetRef="mi"><bpmn:conditionExpression>=k = "a"</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:sequenceFlow id="f2" sourceRef="inc" targetRef="rec"><bpmn:conditionExpression>=true</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:serviceTask id="mi"><bpmn:extensionElements><zeebe:taskDefinition type="a"/><zeebe:ioMapping><zeebe:input source="=uuid()" target="u"/></zeebe:ioMapping></bpmn:extensionElements>
<bpmn:multiInstanceLoopCharacteristics><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="=[1,2,3]" inputElement="i" outputCollection="out" outputElement="=v"/></bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics></bpmn:serviceTask>
<bpmn:receiveTask id="rec" messageRef="m"/>
<bpmn:boundaryEvent id="tick" attachedToRef="rec" cancelActivity="false"><bpmn:timerEventDefinition><bpmn:timeCycle>R5/PT3M</bpmn:timeCycle></bpmn:timerEventDefinition></bpmn:boundaryEvent>
<bpmn:sequenceFlow id="f3" sourceRef="tick" targetRef="call"/>
<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="busy"/></bpmn:extensionElements></bpmn:callActivity>
<bpmn:boundaryEvent id="cs" attachedToRef="call"><bpmn:signalEventDefinition signalRef="sig"/></bpmn:boundaryEvent><bpmn:sequenceFlow id="f4" sourceRef="cs" targetRef="ce"/><bpmn:endEvent id="ce"/>
<bpmn:sequenceFlow id="f5" sourceRef="mi" targetRef="join"/><bpmn:sequenceFlow id="f6" sourceRef="rec" targetRef="join"/>
<bpmn:inclusiveGateway id="join"/><bpmn:sequenceFlow id="f7" sourceRef="join" targetRef="user"/>
<bpmn:userTask id="user"><bpmn:extensionElements><zeebe:userTask/><zeebe:assignmentDefinition assignee="=k"/></bpmn:extensionElements></bpmn:userTask>
<bpmn:sequenceFlow id="f8" sourceRef="user" targetRef="eb"/><bpmn:eventBasedGateway id="eb"/>
<bpmn:sequenceFlow id="f9" sourceRef="eb" targetRef="w1"/><bpmn:sequenceFlow id="fa" sourceRef="eb" targetRef="w2"/>
<bpmn:intermediateCatchEvent id="w1"><bpmn:messageEventDefinition messageRef="m"/></bpmn:intermediateCatchEvent>
<bpmn:intermediateCatchEvent id="w2"><bpmn:timerEventDefinition><bpmn:timeDuration>PT20M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>
</bpmn:process>
<bpmn:process id="clock" isExecutable="true"><bpmn:startEvent id="cr"><bpmn:timerEventDefinition><bpmn:timeCycle>0 0 * * * *</bpmn:timeCycle></bpmn:timerEventDefinition></bpmn:startEvent>
<bpmn:sequenceFlow id="c1" sourceRef="cr" targetRef="x"/><bpmn:exclusiveGateway id="x"/><bpmn:sequenceFlow id="c2" sourceRef="x" targetRef="xe"><bpmn:conditionExpression>=nothing</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:sequenceFlow id="c3" sourceRef="x" targetRef="xe"><bpmn:conditionExpression>=random number() &lt; 0.5</bpmn:conditionExpression></bpmn:sequenceFlow><bpmn:endEvent id="xe"/></bpmn:process>
<bpmn:process id="sigstart" isExecutable="true"><bpmn:startEvent id="ss"><bpmn:signalEventDefinition signalRef="sig"/></bpmn:startEvent><bpmn:sequenceFlow id="s1" sourceRef="ss" targetRef="st"/>
<bpmn:serviceTask id="st"><bpmn:extensionElements><zeebe:taskDefinition type="b"/></bpmn:extensionElements></bpmn:serviceTask></bpmn:process></bpmn:definitions>`

// more are commands that act has not.
func (a act) more(c *core.Core) {
	now := c.Now().Add(time.Duration(a.minutes) * time.Minute)
	for c.FireNext(now) {
		c.Run(1000)
	}
	key := []string{"a", "b", ""}[a.pick%3]
	vars := core.Doc{"k": fmt.Appendf(nil, "%q", key), "t": []byte(`"<&>\u2028"`)}
	switch a.kind {
	case 0, 1:
		_, _ = c.Publish(core.Publication{Name: "go", CorrelationKey: key, ID: fmt.Sprint(a.pick), TTL: time.Hour, Vars: vars}) //nolint:errcheck // refusals are part of the run
	case 2, 3:
		_, _ = c.Publish(core.Publication{Name: "m", CorrelationKey: key, TTL: time.Duration(a.minutes) * time.Minute}) //nolint:errcheck // as above
	case 4:
		c.Broadcast("sig", vars)
	case 5, 6:
		for t := range c.UserTasks() {
			if t.State == core.TaskCreated {
				_ = c.AssignUserTask(t.Key, "someone", true) //nolint:errcheck // as above
				_ = c.CompleteUserTask(t.Key, core.Doc{})    //nolint:errcheck // as above
				break
			}
		}
	case 7:
		for i := range c.Instances() {
			if !i.Root.Ended() {
				_, _ = c.SetVariables(i.Key, vars, a.pick%2 == 0) //nolint:errcheck // as above
			}
		}
	case 9:
		c.KeepHistory(a.pick%4, time.Duration(a.minutes)*time.Minute)
	case 8:
		for i := range c.Instances() {
			if !i.Root.Ended() && i.Process.ID == "busy" {
				_ = c.Modify(core.Modification{Instance: i.Key, Activate: []core.ActivateInstruction{{ElementID: "b"}}}) //nolint:errcheck // as above
				break
			}
		}
	}
	c.Run(1000)
}

func canonical(t interface{ Fatal(...any) }, c *core.Core) string {
	b, err := c.Dump()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func restored(t interface{ Fatal(...any) }, c *core.Core) *core.Core {
	b, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := core.Restore(b)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// The state comes back the same from a snapshot taken after any step, and from
// the records of all calls since any snapshot; and it behaves the same afterwards, keys and random numbers included.
func TestRestore_SameState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		start := core.NewSeeded(epoch, 0, [32]byte{7})
		var records [][]byte
		live := start
		base := restored(t, start)
		live.RecordTo(func(r core.Record) {
			var b bytes.Buffer
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(r); err != nil {
				t.Fatal(err)
			}
			records = append(records, b.Bytes())
		})
		for _, m := range []string{busy, rich} {
			if _, err := live.Deploy([]core.Resource{{Name: "m.bpmn", Content: []byte(m)}}, false); err != nil {
				t.Fatal(err)
			}
		}
		hop := restored(t, live)
		for i := range rapid.IntRange(1, 40).Draw(t, "steps") {
			a := act{rapid.IntRange(0, 9).Draw(t, "kind"), rapid.IntRange(0, 9).Draw(t, "pick"), rapid.SampledFrom([]int{0, 0, 1, 4, 11, 70}).Draw(t, "minutes")}
			if rapid.Bool().Draw(t, "more") {
				a.more(live)
				a.more(hop)
			} else {
				a.apply(live)
				a.apply(hop)
			}
			want := canonical(t, live)
			if got := canonical(t, hop); got != want {
				t.Fatalf("step %d: the restored state behaves differently:\n%s\nwant\n%s", i, got, want)
			}
			hop = restored(t, hop)
			if got := canonical(t, hop); got != want {
				t.Fatalf("step %d: the snapshot came back as\n%s\nwant\n%s", i, got, want)
			}
		}
		for _, b := range records {
			var r core.Record
			if err := json.Unmarshal(b, &r); err != nil {
				t.Fatal(err)
			}
			if err := base.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := canonical(t, base), canonical(t, live); got != want {
			t.Fatalf("the records gave\n%s\nwant\n%s", got, want)
		}
	})
}

func TestRestore_RefusesWhatIsBroken(t *testing.T) {
	t.Parallel()
	c := newCore(t, busy)
	if _, err := c.CreateInstance(core.Creation{ProcessID: "busy", Version: -1}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Snapshot(); err == nil {
		t.Error("a snapshot between two steps: want an error")
	}
	c.Run(1000)
	good, err := c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"no JSON":         []byte("{"),
		"unknown element": bytes.Replace(good, []byte(`"Node":"fork"`), []byte(`"Node":"frok"`), 1),
		"unknown process": bytes.Replace(good, []byte(`"Process":`), []byte(`"Process":1`), 1),
	} {
		if _, err := core.Restore(bad); err == nil {
			t.Errorf("%s: restored, want an error", name)
		}
	}
}
