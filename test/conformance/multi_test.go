package conformance

import (
	"fmt"
	"os"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation pages "Multi-instance" and "Call activities" (components/modeler/bpmn).

func TestMulti_ParallelCollectsByIndex(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: results are collected at the index of their element")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false, `outputCollection="ys"`, `outputElement="=y"`), task("b"), end("e"), flow("s", "a", "b", "e"))))
	k := z.create("p", `{"xs":["p","q","r"]}`)
	jobs := z.jobs("a", 3)
	if jobs[1].GetVariables() != `{"item":"q","loopCounter":2,"xs":["p","q","r"],"ys":[null,null,null]}` {
		t.Fatalf("jobs: %v", jobs)
	}
	z.complete(jobs[2], `{"y":30}`)
	z.complete(jobs[0], `{"y":10}`)
	z.none("b")
	z.variable(k, "ys", "")
	z.complete(jobs[1], `{"y":20}`)
	z.variable(k, "ys", "[10,20,30]")
	z.work("b", "")
	z.state(k, "COMPLETED")
	z.found("element-instances", item{"processInstanceKey": str(k), "type": "MULTI_INSTANCE_BODY", "state": "COMPLETED"}, 1)
}

func TestMulti_SequentialOneAfterTheOther(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a sequential one has one active instance, in order")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", true), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":[7,8]}`)
	for _, want := range []string{`{"item":7,"loopCounter":1,"xs":[7,8]}`, `{"item":8,"loopCounter":2,"xs":[7,8]}`} {
		j := z.job("a")
		if j.GetVariables() != want {
			t.Errorf("variables: got %s, want %s", j.GetVariables(), want)
		}
		z.none("a")
		z.complete(j, "")
	}
	z.state(k, "COMPLETED")
}

func TestMulti_OutputMappingSeesTheCollectionBefore(t *testing.T) { // FC-B2
	t.Parallel()
	z := open(t, "multi-instance: output mappings run before the result is collected")
	xml, err := os.ReadFile("testdata/mi-output-order.bpmn")
	if err != nil {
		t.Fatal(err)
	}
	z.deploy("b2.bpmn", string(xml))
	k := z.create("mi_output_order", `{"xs":[1,2,3]}`)
	z.work("paint", `{"y":1}`)
	z.variable(k, "seen", "[null,null,null]")
	z.work("paint", `{"y":2}`)
	z.work("paint", `{"y":3}`)
	z.variable(k, "ys", "[1,2,3]")
	z.variable(k, "seen", "[1,2,null]")
	z.state(k, "COMPLETED")
}

func TestMulti_EmptyListCompletesAtOnce(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: an empty collection completes the body at once")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false, `outputCollection="ys"`, `outputElement="=y"`), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":[]}`)
	z.state(k, "COMPLETED")
	z.variable(k, "ys", "[]")
}

func TestMulti_NotAListIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: an input collection that is no list is an incident EXTRACT_VALUE_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":3}`)
	inc := z.incident(k, "EXTRACT_VALUE_ERROR", "xs")
	if want := "Expected result of the expression 'xs' to be 'ARRAY', but was 'NUMBER'."; inc["errorMessage"] != want {
		t.Errorf("message: %v, want %s", inc["errorMessage"], want)
	}
	z.setVariables(k, `{"xs":[1]}`)
	z.resolve(inc)
	z.work("a", "")
	z.state(k, "COMPLETED")
}

func TestMulti_CompletionConditionTerminatesTheRest(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a completion condition that is true terminates the rest")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false, "<bpmn:completionCondition>=stop</bpmn:completionCondition>"), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":[1,2,3],"stop":false}`)
	jobs := z.jobs("a", 3)
	z.complete(jobs[0], "")
	z.complete(jobs[1], `{"stop":true}`)
	z.state(k, "COMPLETED")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: jobs[2].GetKey()})
	z.refused(err, codes.NotFound, "no such job")
}

func TestMulti_BoundaryIsOnTheBody(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a boundary event belongs to the body and terminates all instances")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false), boundary("b", "a", true, errorEvent("")), task("h"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "h", "e2"))))
	k := z.create("p", `{"xs":[1,2]}`)
	jobs := z.jobs("a", 2)
	z.throw(jobs[0], "X", "")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: jobs[1].GetKey()})
	z.refused(err, codes.NotFound, "no such job")
	z.work("h", "")
	z.none("h")
	z.state(k, "COMPLETED")
}

func TestMulti_Subprocess(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a subprocess may be multi-instance, each with its own scope")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(sub("sp", start("is"), task("a"), task("b"), end("ie"), flow("is", "a", "b", "ie")), "=xs", false), end("e"), flow("s", "sp", "e"))))
	k := z.create("p", `{"xs":[1,2]}`)
	z.work("a", "")
	z.work("b", "")
	z.state(k, "ACTIVE")
	z.work("a", "")
	z.work("b", "")
	z.state(k, "COMPLETED")
}

func TestCall_PassesVariablesBothWays(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: all variables go to the child and come back")
	z.deploy("c.bpmn", model(process("child", start("s"), task("inner"), end("e"), flow("s", "inner", "e"))))
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="=which"/></bpmn:extensionElements></bpmn:callActivity>`, end("e"), flow("s", "call", "e"))))
	k := z.create("p", fmt.Sprintf(`{"which":%q,"x":1}`, z.ns.name("child")))
	j := z.job("inner")
	if got, want := j.GetVariables(), `{"which":"child","x":1}`; got != want || j.GetBpmnProcessId() != "child" {
		t.Errorf("variables %s of %s, want %s of child", got, j.GetBpmnProcessId(), want)
	}
	child := z.found("process-instances", item{"processInstanceKey": str(j.GetProcessInstanceKey())}, 1)[0]
	if child["parentProcessInstanceKey"] != str(k) {
		t.Errorf("child: %v, want parent %d", child, k)
	}
	_, err := z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: j.GetProcessInstanceKey()})
	z.refused(err, codes.FailedPrecondition, "Cancel the root process instance '"+str(k)+"' instead.")
	z.complete(j, `{"y":2}`)
	z.state(k, "COMPLETED")
	z.variable(k, "y", "2")
}

func TestCall_ChildErrorReachesTheBoundary(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: an error of the child is caught at the call activity")
	z.deploy("c.bpmn", model(process("child", start("s"), task("inner"), end("e"), flow("s", "inner", "e"))))
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="child"/></bpmn:extensionElements></bpmn:callActivity>`,
		boundary("b", "call", true, errorEvent("")), task("h"), end("e"), end("e2"), flow("s", "call", "e"), flow("b", "h", "e2"))))
	k := z.create("p", "")
	j := z.job("inner")
	z.throw(j, "X", "")
	z.work("h", "")
	z.state(k, "COMPLETED")
	z.state(j.GetProcessInstanceKey(), "TERMINATED")
}

func TestCall_UnknownProcessIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: an unknown process is an incident CALLED_ELEMENT_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="child"/></bpmn:extensionElements></bpmn:callActivity>`, end("e"), flow("s", "call", "e"))))
	k := z.create("p", "")
	inc := z.incident(k, "CALLED_ELEMENT_ERROR", "child")
	z.deploy("c.bpmn", model(process("child", start("s"), end("e"), flow("s", "e"))))
	z.resolve(inc)
	z.state(k, "COMPLETED")
}

func TestCall_CancelTakesTheChildAlong(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: terminating the call activity terminates the child")
	z.deploy("c.bpmn", model(process("child", start("s"), task("inner"), end("e"), flow("s", "inner", "e"))))
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="child"/></bpmn:extensionElements></bpmn:callActivity>`, end("e"), flow("s", "call", "e"))))
	k := z.create("p", "")
	j := z.job("inner")
	z.cancel(k)
	z.state(k, "TERMINATED")
	z.state(j.GetProcessInstanceKey(), "TERMINATED")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job")
}

func TestCall_RecursionEndsInAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: a chain of calls has a greatest depth of 1,000")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="p"/></bpmn:extensionElements></bpmn:callActivity>`, end("e"), flow("s", "call", "e"))))
	k := z.create("p", "")
	inc := z.found("incidents", item{"errorType": "CALLED_ELEMENT_ERROR", "processDefinitionId": "p"}, 1)[0]
	if inc["elementId"] != "call" || inc["state"] != "ACTIVE" {
		t.Errorf("incident: %v", inc)
	}
	var all struct{ Page struct{ TotalItems int } }
	z.eventually(func() bool {
		z.call("POST", "/process-instances/search", item{"filter": item{"processDefinitionId": "p"}, "page": item{"limit": 1}}, &all)
		return all.Page.TotalItems == 1000
	}, func() string {
		return fmt.Sprintf("%d instances, want a chain of 1000", all.Page.TotalItems)
	})
	z.cancel(k)
	z.state(k, "TERMINATED")
}

func TestMulti_OneBoundarySubscriptionForTheBody(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a message boundary event subscribes once")
	z.deploy("p.bpmn", model(messageDef("m", "note", "=id"), process("p", start("s"), loop(task("a"), "=xs", false), boundary("b", "a", false, messageEvent("m")), task("read"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "read", "e2"))))
	k := z.create("p", `{"xs":[1,2,3],"id":"x"}`)
	z.publish("note", "x", "", 0, "")
	z.work("read", "")
	z.none("read")
	for range 3 {
		z.work("a", "")
	}
	z.publish("note", "x", "", 0, "")
	z.none("read")
	z.state(k, "COMPLETED")
}

func TestMulti_CompletionConditionSeesTheCounters(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: the completion condition sees the numbers of instances")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false, "<bpmn:completionCondition>=numberOfCompletedInstances = 2 and numberOfActiveInstances = 2 and numberOfInstances = 4 and numberOfTerminatedInstances = 0</bpmn:completionCondition>"), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":[1,2,3,4]}`)
	z.work("a", "")
	z.state(k, "ACTIVE")
	z.work("a", "")
	z.state(k, "COMPLETED")
	z.none("a")
}

func TestMulti_OutputMappingPrefersTheIterationsOwnVariable(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-19441: an output mapping in a loop updates the iteration's own variable")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a", mappings("input", "=0", "own", "output", "=r", "own", "output", "=r", "shared")), "=xs", true), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":[1]}`)
	z.work("a", `{"r":5}`)
	z.state(k, "COMPLETED")
	z.variable(k, "own", "")
	z.variable(k, "shared", "5")
}

func TestTask_OutputMappingLeavesTheElement(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: an output mapping creates its variable in the scope around")
	z.deploy("p.bpmn", oneTask("one", mappings("input", "=0", "own", "output", "=r", "own")))
	k := z.create("one", "")
	z.work("work", `{"r":5}`)
	z.state(k, "COMPLETED")
	z.variable(k, "own", "5")
}

func TestCall_WithoutPropagation(t *testing.T) {
	t.Parallel()
	z := open(t, "call-activity: without propagation only mapped variables pass")
	z.deploy("c.bpmn", model(process("child", start("s"), task("inner"), end("e"), flow("s", "inner", "e"))))
	call := func(extra string) string {
		return `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="child" propagateAllChildVariables="false" propagateAllParentVariables="false"/>` + extra + `</bpmn:extensionElements></bpmn:callActivity>`
	}
	z.deploy("p.bpmn", model(process("p", start("s"), call(mappings("input", "=x", "given")), end("e"), flow("s", "call", "e"))))
	k := z.create("p", `{"x":1}`)
	j := z.job("inner")
	if got, want := j.GetVariables(), `{"given":1}`; got != want {
		t.Errorf("variables: got %s, want the mapped ones alone, %s", got, want)
	}
	z.complete(j, `{"y":2}`)
	z.state(k, "COMPLETED")
	z.variable(k, "y", "")
	z.deploy("q.bpmn", model(process("q", start("s"), call(mappings("output", "=y", "z")), end("e"), flow("s", "call", "e"))))
	k = z.create("q", `{"x":1}`)
	j = z.job("inner")
	if got := j.GetVariables(); got != `{}` {
		t.Errorf("variables: got %s, want none", got)
	}
	z.complete(j, `{"y":2}`)
	z.state(k, "COMPLETED")
	z.variable(k, "z", "2") // an output mapping sees the child's variables all the same
	z.variable(k, "y", "")
}

func TestMulti_SequentialReadsTheCollectionAgain(t *testing.T) {
	t.Parallel()
	z := open(t, "multi-instance: a sequential one evaluates its collection for each instance")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", true), end("e"), flow("s", "a", "e"))))
	k := z.create("p", `{"xs":["a","b"]}`)
	z.work("a", `{"xs":["a","c"]}`)
	j := z.work("a", "")
	if got, want := j.GetVariables(), `{"item":"c","loopCounter":2,"xs":["a","c"]}`; got != want {
		t.Errorf("variables: got %s, want %s", got, want)
	}
	z.state(k, "COMPLETED")
}
