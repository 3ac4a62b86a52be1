package conformance

import (
	"testing"
	"time"
)

func TestOneServiceTask(t *testing.T) {
	t.Parallel()
	z := open(t, "service-tasks: the instance waits until the job is completed, whose variables it takes over")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"a":1}`)
	j := z.job("work")
	if got, want := j.GetVariables(), `{"a":1}`; got != want {
		t.Errorf("variables: got %s, want %s", got, want)
	}
	z.complete(j, `{"b":2}`)
	z.state(k, "COMPLETED")
	z.variable(k, "b", "2")
}

func TestTourShapedSaga(t *testing.T) {
	t.Parallel()
	z := open(t, "compensation: a saga undoes its steps from an event subprocess, in the order of its throw events")
	z.deploy("saga.bpmn", model(
		messageDef("m", "saga.cancel", "=sagaId"), messageDef("ms", "saga.start.tour", ""),
		process("tour", startWith("s", messageEvent("ms"), true), sub("book",
			start("bs"), gateway("parallel", "fork"), task("flight"), undo("flight", "flightCancel"), task("hotel"), undo("hotel", "hotelCancel"),
			gateway("parallel", "join"), task("pay"), end("be"),
			flow("bs", "fork", "flight", "join"), flow("fork", "hotel", "join"), flow("join", "pay", "be"),
			eventSub("fail", startWith("fs", errorEvent(""), true), task("giveup"), throwEvent("c1", compensationThrow("hotel")), throwEvent("c2", compensationThrow("flight")),
				task("rest"), end("fe"), flow("fs", "giveup", "c1", "c2", "rest", "fe")),
			eventSub("expire", startWith("es", duration("=timeout"), true), task("expired"), end("ee"), flow("es", "expired", "ee")),
			eventSub("cancel", startWith("cs", messageEvent("m"), true), task("cancelled"), end("ce"), flow("cs", "cancelled", "ce")),
		), task("close"), end("e"), flow("s", "book", "close", "e"))))
	vars := `{"sagaId":"op_1","timeout":"PT30M"}`
	run := func() { z.publish("saga.start.tour", "op_1", "op_1", time.Hour, vars) }
	run()
	z.work("flight", "")
	z.work("hotel", "")
	z.throw(z.job("pay"), "DECLINED", "")
	z.work("giveup", "")
	z.none("flightCancel")
	z.work("hotelCancel", "")
	z.work("flightCancel", "")
	z.work("rest", "")
	j := z.work("close", "")
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}
