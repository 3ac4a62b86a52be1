package conformance

import (
	"fmt"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// Cases of the documentation pages "Compensation events" and "Compensation handler" (components/modeler/bpmn).

// booked is a process whose tasks a and b can be undone; rest goes after them.
func booked(rest ...string) string {
	parts := append([]string{start("s"), task("a"), undo("a", "undoA"), task("b"), undo("b", "undoB"), flow("s", "a", "b")}, rest...)
	return model(process("p", parts...))
}

func TestCompensation_AllHandlersAtOnceAndTheThrowWaits(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: all handlers run at once and the throw event waits until they completed")
	z.deploy("p.bpmn", booked(throwEvent("th", compensationThrow("")), task("after"), end("e"), flow("b", "th", "after", "e")))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	ja, jb := z.job("undoA"), z.job("undoB")
	z.complete(jb, "")
	z.none("after")
	z.element(k, "th", "ACTIVE")
	z.complete(ja, "")
	z.work("after", "")
	z.state(k, "COMPLETED")
	z.element(k, "undoA", "COMPLETED")
}

func TestCompensation_EndEventOnlyCompletedActivities(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: only completed activities are compensated")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("parallel", "f"), task("a"), undo("a", "undoA"), task("b"), undo("b", "undoB"), task("c"),
		endWith("ce", compensationThrow("")), end("e"), flow("s", "f", "a", "e"), flow("f", "b", "e"), flow("f", "c", "ce"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("c", "")
	z.work("undoA", "")
	z.none("undoB") // b is active, not completed
	z.work("b", "")
	z.none("undoB")
	z.state(k, "COMPLETED")
}

func TestCompensation_NothingToDoPasses(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: a throw event without anything to compensate completes at once")
	z.deploy("p.bpmn", model(process("p", start("s"), throwEvent("th", compensationThrow("")), end("e"), flow("s", "th", "e"))))
	z.state(z.create("p", ""), "COMPLETED")
}

func TestCompensation_ActivityRefPicksOneAndEachOnce(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: activityRef compensates that activity only, each completion once")
	z.deploy("p.bpmn", booked(throwEvent("t1", compensationThrow("b")), throwEvent("t2", compensationThrow("a")), throwEvent("t3", compensationThrow("a")), end("e"), flow("b", "t1", "t2", "t3", "e")))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	jb := z.job("undoB")
	z.none("undoA")
	z.complete(jb, "")
	z.work("undoA", "")
	z.none("undoA")
	z.state(k, "COMPLETED")
}

func TestCompensation_OncePerCompletion(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: a handler is called as often as its activity completed")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("exclusive", "m"), task("a"), undo("a", "undoA"), gateway("exclusive", "g", "g-th"), throwEvent("th", compensationThrow("")), end("e"),
		flow("s", "m", "a", "g"), conditional("g", "m", "=n < 3"), flow("g", "th", "e"))))
	k := z.create("p", `{"n":0}`)
	for i := 1; i <= 3; i++ {
		z.work("a", fmt.Sprintf(`{"n":%d}`, i))
	}
	for range 3 {
		z.work("undoA", "")
	}
	z.none("undoA")
	z.state(k, "COMPLETED")
}

func TestCompensation_GoesDownIntoCompletedSubprocesses(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: compensating a subprocess compensates what completed inside, at any depth")
	z.deploy("p.bpmn", model(process("p", start("s"), sub("outer", start("os"), sub("inner", start("is"), task("a"), undo("a", "undoA"), end("ie"), flow("is", "a", "ie")), end("oe"), flow("os", "inner", "oe")),
		throwEvent("th", compensationThrow("outer")), end("e"), flow("s", "outer", "th", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("undoA", "")
	z.state(k, "COMPLETED")
}

func TestCompensation_DoesNotGoUp(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: activities outside the scope of the throw event are not compensated")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), undo("a", "undoA"), sub("sp", start("is"), task("b"), undo("b", "undoB"), throwEvent("th", compensationThrow("")), end("ie"), flow("is", "b", "th", "ie")),
		end("e"), flow("s", "a", "sp", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	z.work("undoB", "")
	z.none("undoA")
	z.state(k, "COMPLETED")
}

func TestCompensation_FromEventSubprocessReachesTheEnclosingScope(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: a throw event in an event subprocess compensates activities of the scope around")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), undo("a", "undoA"), task("b"), end("e"), flow("s", "a", "b", "e"),
		eventSub("esp", startWith("es", errorEvent(""), true), throwEvent("th", compensationThrow("a")), task("rest"), end("ee"), flow("es", "th", "rest", "ee")))))
	k := z.create("p", "")
	z.work("a", "")
	z.throw(z.job("b"), "X", "")
	z.work("undoA", "")
	z.work("rest", "")
	z.state(k, "COMPLETED")
}

func TestCompensation_TerminatedSubprocessHasNothing(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: a terminated subprocess leaves nothing to compensate")
	z.deploy("p.bpmn", model(process("p", start("s"), sub("sp", start("is"), task("a"), undo("a", "undoA"), task("b"), end("ie"), flow("is", "a", "b", "ie")),
		boundary("be", "sp", true, errorEvent("")), throwEvent("th", compensationThrow("")), end("e"), end("e2"), flow("s", "sp", "e"), flow("be", "th", "e2"))))
	k := z.create("p", "")
	z.work("a", "")
	z.throw(z.job("b"), "X", "")
	z.none("undoA")
	z.state(k, "COMPLETED")
	z.absent(k, "undoA")
}

func TestCompensation_HandlerSeesCurrentVariablesAndPropagates(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: the handler sees the current variables and its results propagate")
	z.deploy("p.bpmn", booked(throwEvent("th", compensationThrow("")), end("e"), flow("b", "th", "e")))
	k := z.create("p", `{"x":1}`)
	z.work("a", `{"x":2}`)
	z.work("b", `{"x":3}`)
	j := z.job("undoA")
	if got, want := j.GetVariables(), `{"x":3}`; got != want {
		t.Errorf("variables: got %s, want %s (no snapshot)", got, want)
	}
	z.complete(j, `{"undone":true}`)
	z.work("undoB", "")
	z.variable(k, "undone", "true")
	z.state(k, "COMPLETED")
}

func TestCompensation_FailingHandlerIsAnIncidentAndGoesOn(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: a failing handler raises an incident; resolving it goes on with the compensation")
	z.deploy("p.bpmn", booked(throwEvent("th", compensationThrow("")), end("e"), flow("b", "th", "e")))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	z.work("undoB", "")
	j := z.job("undoA")
	z.fail(j, 0, "stuck")
	inc := z.incident(k, "JOB_NO_RETRIES", "stuck")
	if inc["elementId"] != "undoA" {
		t.Errorf("incident at %v, want undoA", inc["elementId"])
	}
	z.state(k, "ACTIVE")
	if _, err := z.UpdateJobRetries(z.ctx, &pb.UpdateJobRetriesRequest{JobKey: j.GetKey(), Retries: 1}); err != nil {
		t.Fatal(err)
	}
	z.resolve(inc)
	z.work("undoA", "")
	z.state(k, "COMPLETED")
}

func TestCompensation_CancelledInstanceTakesHandlersAlong(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: terminating the throw event terminates its handlers")
	z.deploy("p.bpmn", booked(throwEvent("th", compensationThrow("")), end("e"), flow("b", "th", "e")))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	z.cancel(k)
	z.none("undoA")
	z.element(k, "undoA", "TERMINATED")
	z.element(k, "th", "TERMINATED")
}

func TestCompensation_MultiInstanceOnceAndOnlyWhenAllAreDone(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: a multi-instance activity is compensated once, when all its instances completed")
	z.deploy("p.bpmn", model(process("p", start("s"), loop(task("a"), "=xs", false), undo("a", "undoA"), task("b"), end("e"), flow("s", "a", "b", "e"),
		eventSub("esp", startWith("es", errorEvent(""), true), throwEvent("th", compensationThrow("")), task("rest"), end("ee"), flow("es", "th", "rest", "ee")))))
	k := z.create("p", `{"xs":[1,2]}`)
	z.work("a", "")
	z.throw(z.job("a"), "X", "") // the second iteration ends the body
	z.none("undoA")
	z.work("rest", "")
	z.state(k, "COMPLETED")
	k = z.create("p", `{"xs":[1,2]}`)
	z.work("a", "")
	z.work("a", "")
	z.throw(z.job("b"), "X", "")
	z.work("undoA", "")
	z.none("undoA")
	z.work("rest", "")
	z.state(k, "COMPLETED")
}

func TestCompensation_WithoutWaitingIsRefused(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: waitForCompletion=false is not supported")
	xml := booked(throwEvent("th", `<bpmn:compensateEventDefinition waitForCompletion="false"/>`), end("e"), flow("b", "th", "e"))
	z.refuseDeploy(xml, "th")
	z.found("process-definitions", item{"processDefinitionId": "p"}, 0)
}

func TestCompensation_SecondThrowFindsNothing(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: what was compensated is not compensated again")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), undo("a", "undoA"), throwEvent("t1", compensationThrow("a")), throwEvent("t2", compensationThrow("a")), end("e"), flow("s", "a", "t1", "t2", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("undoA", "")
	z.none("undoA")
	z.state(k, "COMPLETED")
}

func TestCompensation_NestedEventSubprocessReachesAllScopesAround(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: without activityRef, an event subprocess compensates its own scope and the one around")
	z.deploy("p.bpmn", model(process("p", start("s"), sub("sp", start("is"), task("a"), undo("a", "undoA"), task("b"), end("ie"), flow("is", "a", "b", "ie"),
		eventSub("esp", startWith("es", errorEvent(""), true), task("c"), undo("c", "undoC"), throwEvent("th", compensationThrow("")), end("ee"), flow("es", "c", "th", "ee"))),
		end("e"), flow("s", "sp", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.throw(z.job("b"), "X", "")
	z.work("c", "")
	z.work("undoA", "")
	z.work("undoC", "")
	z.state(k, "COMPLETED")
}

func TestCompensation_SubprocessAsHandler(t *testing.T) {
	t.Parallel()
	z := open(t, "compensate: a subprocess may be a handler; the throw event waits for it")
	handler := `<bpmn:boundaryEvent id="ac" attachedToRef="a"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>
<bpmn:subProcess id="undo" isForCompensation="true">` + start("us") + task("first") + task("second") + end("ue") + flow("us", "first", "second", "ue") + `</bpmn:subProcess>
<bpmn:association id="as" associationDirection="One" sourceRef="ac" targetRef="undo"/>`
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), handler, throwEvent("th", compensationThrow("")), task("after"), end("e"), flow("s", "a", "th", "after", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("first", "")
	z.none("after")
	z.work("second", "")
	z.work("after", "")
	z.state(k, "COMPLETED")
	z.element(k, "undo", "COMPLETED")
}
