package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation pages "Events", "Timer events", "Message events", "Error events", "Event subprocess" (components/modeler/bpmn).

func TestTimer_IntermediateCatch(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: an intermediate catch event waits for its duration")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), catchEvent("w", duration("=wait")), task("a"), end("e"), flow("s", "w", "a", "e"))))
	k := z.create("p", `{"wait":"PT30M"}`)
	z.advance(29 * time.Minute)
	z.none("a")
	z.advance(time.Minute)
	z.work("a", "")
	z.state(k, "COMPLETED")
}

func TestTimer_FEELDurationAndPastDate(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: durations and dates may be expressions; a date in the past fires at once")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), catchEvent("w", duration(`=duration("PT"+string(n)+"H")`)), catchEvent("d", timer("timeDate", `=date and time("2020-01-01T00:00:00Z")`)), end("e"), flow("s", "w", "d", "e"))))
	k := z.create("p", `{"n":2}`)
	z.advance(119 * time.Minute)
	z.state(k, "ACTIVE")
	z.advance(time.Minute)
	z.state(k, "COMPLETED")
}

func TestTimer_BadDurationIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: an expression of the wrong type is an incident EXTRACT_VALUE_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), catchEvent("w", duration("=wait")), end("e"), flow("s", "w", "e"))))
	k := z.create("p", `{"wait":5}`)
	inc := z.incident(k, "EXTRACT_VALUE_ERROR", "'wait'")
	z.element(k, "w", "ACTIVE")
	z.setVariables(k, `{"wait":"PT0S"}`)
	z.resolve(inc)
	z.state(k, "COMPLETED")
}

func TestTimer_OrderOfAJump(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: each timer fires at its own due date")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), catchEvent("w1", duration("PT10M")), catchEvent("w2", duration("PT10M")), end("e"), flow("s", "w1", "w2", "e"))))
	k := z.create("p", "")
	z.advance(hour)
	z.state(k, "COMPLETED")
	first, second := z.element(k, "w1", "COMPLETED"), z.element(k, "w2", "COMPLETED")
	a, err := time.Parse(time.RFC3339, first["endDate"].(string))
	if err != nil {
		t.Fatal(err)
	}
	b, err := time.Parse(time.RFC3339, second["endDate"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Sub(a).Round(time.Second); d != 10*time.Minute {
		t.Errorf("the second timer ended %v after the first, want 10m: each fires at its own time", d)
	}
}

func TestBoundaryTimer_InterruptsAndCancelsTheJob(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: an interrupting boundary event terminates the activity and its job")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), boundary("b", "a", true, duration("PT1H")), task("late"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "late", "e2"))))
	k := z.create("p", "")
	j := z.job("a")
	z.advance(hour)
	z.work("late", "")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job was found")
	z.state(k, "COMPLETED")
	z.element(k, "a", "TERMINATED")
	z.element(k, "b", "COMPLETED")
}

func TestBoundaryTimer_NonInterruptingCycle(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: a cycle with repetitions fires that often while the activity is active")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), boundary("b", "a", false, timer("timeCycle", "R3/PT10M")), task("remind"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "remind", "e2"))))
	k := z.create("p", "")
	z.advance(2 * hour)
	for range 3 {
		z.work("remind", "")
	}
	z.none("remind")
	z.work("a", "")
	z.state(k, "COMPLETED")
}

func TestBoundaryMessage_NonInterruptingStaysOpen(t *testing.T) {
	t.Parallel()
	z := open(t, "message-events: a non-interrupting boundary event takes every message until the activity ends")
	z.deploy("p.bpmn", model(messageDef("m", "note", "=id"), process("p", start("s"), task("a"), boundary("b", "a", false, messageEvent("m")), task("read"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "read", "e2"))))
	k := z.create("p", `{"id":"x"}`)
	z.publish("note", "x", "", 0, `{"n":1}`)
	z.publish("note", "x", "", 0, `{"n":2}`)
	z.work("read", "")
	z.work("read", "")
	z.variable(k, "n", "2")
	z.work("a", "")
	z.publish("note", "x", "", 0, "")
	z.none("read")
	z.state(k, "COMPLETED")
}

func TestBoundaryError_ExactBeatsCatchAll(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: in one scope the exact code wins over a catch event without one")
	z.deploy("p.bpmn", model(errorDef("er", "FULL"), process("p", start("s"), task("a"),
		boundary("all", "a", true, errorEvent("")), boundary("exact", "a", true, errorEvent("er")), task("any"), task("full"), end("e"),
		flow("s", "a", "e"), flow("all", "any", "e"), flow("exact", "full", "e"))))
	k := z.create("p", "")
	z.throw(z.job("a"), "FULL", "")
	z.work("full", "")
	z.state(k, "COMPLETED")
	k = z.create("p", "")
	z.throw(z.job("a"), "OTHER", "")
	z.work("any", "")
	z.state(k, "COMPLETED")
}

func TestBoundaryError_VariablesStayLocal(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: variables of the error stay local to the catch event without output mappings")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), boundary("b", "a", true, errorEvent("")), task("next"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "next", "e2"))))
	k := z.create("p", `{"x":1}`)
	z.throw(z.job("a"), "E", `{"x":2,"y":3}`)
	z.variable(k, "x", "1")
	z.variable(k, "y", "")
	b := z.element(k, "b", "COMPLETED")
	z.variable(keyOf(b, "elementInstanceKey"), "y", "3")
	z.work("next", "")
	z.state(k, "COMPLETED")
}

func TestBoundaryError_OutputMappingPropagates(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: output mappings of the catch event propagate the error's variables")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"),
		boundary("b", "a", true, errorEvent(""), "<bpmn:extensionElements>"+mappings("output", "=why", "reason")+"</bpmn:extensionElements>"),
		end("e"), end("e2"), flow("s", "a", "e"), flow("b", "e2"))))
	k := z.create("p", "")
	z.throw(z.job("a"), "E", `{"why":"full","y":3}`)
	z.variable(k, "reason", `"full"`)
	z.variable(k, "y", "")
	z.state(k, "COMPLETED")
}

func TestErrorEnd_GoesOutwardToTheSubprocessBoundary(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: an error goes outward scope by scope and terminates what it leaves")
	z.deploy("p.bpmn", model(errorDef("er", "BAD"), process("p", start("s"),
		sub("outer", start("os"), sub("inner", start("is"), endWith("ie", errorEvent("er")), flow("is", "ie")), task("after"), end("oe"), flow("os", "inner", "after", "oe")),
		boundary("b", "outer", true, errorEvent("er")), task("caught"), end("e"), end("e2"), flow("s", "outer", "e"), flow("b", "caught", "e2"))))
	k := z.create("p", "")
	z.work("caught", "")
	z.none("after")
	z.state(k, "COMPLETED")
	z.element(k, "outer", "TERMINATED")
	z.element(k, "inner", "TERMINATED")
}

func TestErrorEnd_UncaughtIsAnIncidentWithANewKeyEachTime(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: an uncaught error is an incident UNHANDLED_ERROR_EVENT, a new one after each resolve")
	z.deploy("p.bpmn", model(errorDef("er", "BAD"), process("p", start("s"), endWith("e", errorEvent("er")), flow("s", "e"))))
	k := z.create("p", "")
	const text = "Expected to throw an error event with the code 'BAD', but it was not caught. No error events are available in the scope."
	inc := z.incident(k, "UNHANDLED_ERROR_EVENT", text)
	z.resolve(inc)
	z.nextIncident(k, inc, "UNHANDLED_ERROR_EVENT", text)
	z.state(k, "ACTIVE")
}

func TestEventSubprocess_ErrorTerminatesTheScopeFirst(t *testing.T) {
	t.Parallel()
	z := open(t, "event-subprocess: an interrupting start event terminates the scope before it runs")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("parallel", "f"), task("a"), task("b"), end("e"), flow("s", "f", "a", "e"), flow("f", "b", "e"),
		eventSub("esp", startWith("es", errorEvent(""), true), task("handle"), end("ee"), flow("es", "handle", "ee")))))
	k := z.create("p", "")
	b := z.job("b")
	z.throw(z.job("a"), "X", `{"why":"v"}`)
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: b.GetKey()})
	z.refused(err, codes.NotFound, "no such job")
	z.variable(k, "why", `"v"`)
	z.work("handle", "")
	z.state(k, "COMPLETED")
	z.element(k, "b", "TERMINATED")
	z.element(k, "esp", "COMPLETED")
}

func TestEventSubprocess_ErrorInsideSkipsTheInterruptedScope(t *testing.T) {
	t.Parallel()
	z := open(t, "event-subprocess: an error from inside is not caught by the scope it interrupted")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), end("e"), flow("s", "a", "e"),
		eventSub("esp", startWith("es", errorEvent(""), true), task("handle"), end("ee"), flow("es", "handle", "ee")))))
	k := z.create("p", "")
	z.throw(z.job("a"), "X", "")
	z.throw(z.job("handle"), "X", "")
	if inc := z.incident(k, "UNHANDLED_ERROR_EVENT", "the code 'X'"); inc["elementId"] != "handle" {
		t.Errorf("incident at %v, want handle", inc["elementId"])
	}
	z.element(k, "esp", "ACTIVE")
}

func TestEventSubprocess_NonInterruptingTimerAndMessage(t *testing.T) {
	t.Parallel()
	z := open(t, "event-subprocess: non-interrupting ones run beside the scope, which waits for them")
	z.needClock()
	z.deploy("p.bpmn", model(messageDef("m", "ping", "=id"), process("p", start("s"), task("a"), end("e"), flow("s", "a", "e"),
		eventSub("t", startWith("ts", duration("PT5M"), false), task("tick"), end("te"), flow("ts", "tick", "te")),
		eventSub("m1", startWith("ms", messageEvent("m"), false), task("pong"), end("me"), flow("ms", "pong", "me")))))
	k := z.create("p", `{"id":"1"}`)
	z.advance(hour)
	z.work("tick", "")
	z.none("tick")
	z.publish("ping", "1", "", 0, "")
	z.publish("ping", "1", "", 0, "")
	z.work("pong", "")
	z.work("a", "")
	z.state(k, "ACTIVE") // one event subprocess still runs
	z.work("pong", "")
	z.state(k, "COMPLETED")
}

func TestEventSubprocess_InterruptingClosesTheOthers(t *testing.T) {
	t.Parallel()
	z := open(t, "event-subprocess: an interrupting one closes the other start events of the scope")
	z.needClock()
	z.deploy("p.bpmn", model(messageDef("m", "stop", "=id"), process("p", start("s"), sub("sp", start("is"), task("a"), end("ie"), flow("is", "a", "ie"),
		eventSub("t", startWith("ts", duration("PT5M"), true), task("late"), end("te"), flow("ts", "late", "te")),
		eventSub("m1", startWith("ms", messageEvent("m"), true), task("stopped"), end("me"), flow("ms", "stopped", "me"))),
		task("after"), end("e"), flow("s", "sp", "after", "e"))))
	k := z.create("p", `{"id":"1"}`)
	z.publish("stop", "1", "", 0, "")
	z.advance(hour)
	z.none("late")
	z.none("a")
	z.work("stopped", "")
	z.work("after", "")
	z.state(k, "COMPLETED")
}

func TestTerminateEnd_CompletesTheScope(t *testing.T) {
	t.Parallel()
	z := open(t, "terminate: all other element instances of the scope are terminated and the scope completes")
	z.deploy("p.bpmn", model(process("p", start("s"), sub("sp", start("is"), gateway("parallel", "f"), task("a"), task("b"), endWith("te", "<bpmn:terminateEventDefinition/>"), end("ie"),
		flow("is", "f", "a", "te"), flow("f", "b", "ie")), task("after"), end("e"), flow("s", "sp", "after", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.none("b")
	z.work("after", "")
	z.state(k, "COMPLETED")
	z.element(k, "sp", "COMPLETED")
	z.element(k, "b", "TERMINATED")
	z.element(k, "te", "COMPLETED")
}

func TestReceiveTask_WaitsForItsMessage(t *testing.T) {
	t.Parallel()
	z := open(t, "receive-tasks: a receive task waits for its message; a number correlates as its text")
	z.deploy("p.bpmn", model(messageDef("m", "go", "=n"), process("p", start("s"), `<bpmn:receiveTask id="r" messageRef="m"/>`, end("e"), flow("s", "r", "e"))))
	k := z.create("p", `{"n":42}`) // a number correlates as its text
	z.publish("go", "42", "", 0, `{"v":true}`)
	z.state(k, "COMPLETED")
	z.variable(k, "v", "true")
}

func TestMessageCatch_WrongCorrelationKeyIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "message-events: a correlation key that is no string or number is an incident EXTRACT_VALUE_ERROR")
	z.deploy("p.bpmn", model(messageDef("m", "go", "=missing"), process("p", start("s"), catchEvent("c", messageEvent("m")), end("e"), flow("s", "c", "e"))))
	k := z.create("p", "")
	inc := z.incident(k, "EXTRACT_VALUE_ERROR", "correlation key")
	want := "Failed to extract the correlation key for 'missing': The value must be either a string or a number, but was 'NULL'."
	if msg, _ := inc["errorMessage"].(string); len(msg) < len(want) || msg[:len(want)] != want {
		t.Errorf("message: %v, want it to begin with %s", inc["errorMessage"], want)
	}
	z.setVariables(k, `{"missing":"now"}`)
	z.resolve(inc)
	z.publish("go", "now", "", 0, "")
	z.state(k, "COMPLETED")
}

func TestSignal_ReachesAllAndStartsInstances(t *testing.T) {
	t.Parallel()
	z := open(t, "signals: a broadcast triggers all subscriptions and start events; nobody listening is no error")
	sig := `<bpmn:signal id="sg" name="alarm"/>`
	def := `<bpmn:signalEventDefinition signalRef="sg"/>`
	z.deploy("p.bpmn", model(sig, process("p", start("s"), catchEvent("c", def), end("e"), flow("s", "c", "e"))))
	z.deploy("q.bpmn", model(sig, process("q", startWith("s", def, true), task("woken"), end("e"), flow("s", "woken", "e"))))
	a, b := z.create("p", ""), z.create("p", "")
	r, err := z.BroadcastSignal(z.ctx, &pb.BroadcastSignalRequest{SignalName: "alarm", Variables: `{"level":3}`})
	if err != nil || r.GetKey() == 0 || r.GetTenantId() != "<default>" {
		t.Fatalf("broadcast: %v %v", r, err)
	}
	z.state(a, "COMPLETED")
	z.state(b, "COMPLETED")
	z.variable(b, "level", "3")
	if got := z.work("woken", "").GetVariables(); got != `{"level":3}` {
		t.Errorf("variables of the started instance: %s", got)
	}
	if _, err := z.BroadcastSignal(z.ctx, &pb.BroadcastSignalRequest{SignalName: "nobody"}); err != nil {
		t.Errorf("nobody listens: %v, want no error", err)
	}
}

func TestEscalation_CaughtAndNot(t *testing.T) {
	t.Parallel()
	z := open(t, "escalation: a caught escalation triggers its catch event, an uncaught one goes on")
	esc := `<bpmn:escalation id="ec" name="n" escalationCode="UP"/>`
	def := `<bpmn:escalationEventDefinition escalationRef="ec"/>`
	z.deploy("p.bpmn", model(esc, process("p", start("s"), sub("sp", start("is"), throwEvent("th", def), task("on"), end("ie"), flow("is", "th", "on", "ie")),
		boundary("b", "sp", false, def), task("told"), end("e"), end("e2"), flow("s", "sp", "e"), flow("b", "told", "e2"))))
	k := z.create("p", "")
	z.work("on", "")
	z.work("told", "")
	z.state(k, "COMPLETED")
	z.deploy("q.bpmn", model(esc, process("q", start("s"), endWith("e", def), flow("s", "e"))))
	z.state(z.create("q", ""), "COMPLETED")
}

func TestLink_JumpsInsideAScope(t *testing.T) {
	t.Parallel()
	z := open(t, "link: a throw link event goes on at the catch event of the same name")
	z.deploy("p.bpmn", model(process("p", start("s"), throwEvent("th", `<bpmn:linkEventDefinition name="L"/>`), catchEvent("ca", `<bpmn:linkEventDefinition name="L"/>`), task("a"), end("e"), flow("s", "th"), flow("ca", "a", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.state(k, "COMPLETED")
}

func TestTimerStart_CycleAndNewVersion(t *testing.T) {
	t.Parallel()
	z := open(t, "timer: deploying a new version replaces the timers of the one before")
	z.needClock()
	timed := func(job string) string {
		return model(process("p", startWith("s", timer("timeCycle", "R3/PT10M"), true), task(job), end("e"), flow("s", job, "e")))
	}
	z.deploy("p.bpmn", timed("v1"))
	z.advance(9 * time.Minute)
	z.none("v1")
	z.advance(time.Minute)
	z.work("v1", "")
	z.deploy("p.bpmn", timed("v1")) // the same file arms nothing new
	z.deploy("p.bpmn", timed("v2")) // a new version takes over
	z.advance(3 * hour)
	z.none("v1")
	for range 3 {
		z.work("v2", "")
	}
	z.none("v2")
}

func TestTimerStart_PastStartDateFiresAtDeployment(t *testing.T) { // FC-B6
	t.Parallel()
	z := open(t, "timer: a cycle whose start date has passed fires at once and then each interval")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", startWith("s", timer("timeCycle", "R3/2022-04-27T17:20:00Z/PT10M"), true), task("a"), end("e"), flow("s", "a", "e"))))
	z.work("a", "")
	z.none("a")
	z.advance(10 * time.Minute)
	z.work("a", "")
	z.advance(24 * hour)
	z.work("a", "")
	z.none("a")
}

func TestBoundaryMessage_KeyComesFromTheFlowScope(t *testing.T) {
	t.Parallel()
	z := open(t, "message-events: the correlation key of a boundary event is evaluated in the scope around the activity")
	z.deploy("p.bpmn", model(messageDef("m", "note", "=id"), process("p", start("s"), task("a", mappings("input", `="inner"`, "id")), boundary("b", "a", true, messageEvent("m")), task("read"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "read", "e2"))))
	k := z.create("p", `{"id":"outer"}`)
	z.publish("note", "inner", "", 0, "")
	z.none("read")
	z.publish("note", "outer", "", 0, "")
	z.work("read", "")
	z.state(k, "COMPLETED")
}

func TestBoundaryError_EmptyCodeCatchesAll(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: an error definition without a code catches every error")
	z.deploy("p.bpmn", model(`<bpmn:error id="any" name="any"/>`, process("p", start("s"), task("a"), boundary("b", "a", true, errorEvent("any")), task("h"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "h", "e2"))))
	k := z.create("p", "")
	z.throw(z.job("a"), "WHATEVER", "")
	z.work("h", "")
	z.state(k, "COMPLETED")
}

func TestEscalation_InterruptingCatchEndsTheThrower(t *testing.T) {
	t.Parallel()
	z := open(t, "escalation: an interrupting catch event terminates the scope, and the throw event does not complete")
	esc := `<bpmn:escalation id="ec" name="n" escalationCode="UP"/>`
	def := `<bpmn:escalationEventDefinition escalationRef="ec"/>`
	z.deploy("p.bpmn", model(esc, process("p", start("s"), sub("sp", start("is"), throwEvent("th", def), task("on"), end("ie"), flow("is", "th", "on", "ie")),
		boundary("b", "sp", true, def), task("told"), end("e"), end("e2"), flow("s", "sp", "e"), flow("b", "told", "e2"))))
	k := z.create("p", "")
	z.work("told", "")
	z.none("on")
	z.state(k, "COMPLETED")
	z.element(k, "th", "TERMINATED")
	z.element(k, "sp", "TERMINATED")
	z.absent(k, "on")
}

func TestEscalation_EndEventOfAChildReachesTheCallActivity(t *testing.T) {
	t.Parallel()
	z := open(t, "escalation: an escalation of the called process is caught at the call activity")
	esc := `<bpmn:escalation id="ec" name="n" escalationCode="UP"/>`
	def := `<bpmn:escalationEventDefinition escalationRef="ec"/>`
	z.deploy("c.bpmn", model(esc, process("child", start("s"), endWith("e", def), flow("s", "e"))))
	z.deploy("p.bpmn", model(esc, process("p", start("s"), `<bpmn:callActivity id="call"><bpmn:extensionElements><zeebe:calledElement processId="child"/></bpmn:extensionElements></bpmn:callActivity>`,
		boundary("b", "call", false, def), task("told"), end("e"), end("e2"), flow("s", "call", "e"), flow("b", "told", "e2"))))
	k := z.create("p", "")
	z.element(k, "call", "COMPLETED")
	z.work("told", "")
	z.state(k, "COMPLETED")
}

func TestErrorEnd_CodeFromAnExpression(t *testing.T) {
	t.Parallel()
	z := open(t, "error-events: the code of an error end event may be an expression")
	z.deploy("p.bpmn", model(`<bpmn:error id="er" errorCode="=code"/>`, errorDef("full", "FULL"), process("p", start("s"), sub("sp", start("is"), endWith("ie", errorEvent("er")), flow("is", "ie")),
		boundary("b", "sp", true, errorEvent("full")), task("caught"), end("e"), end("e2"), flow("s", "sp", "e"), flow("b", "caught", "e2"))))
	k := z.create("p", `{"code":"FULL"}`)
	z.work("caught", "")
	z.state(k, "COMPLETED")
	z.element(k, "sp", "TERMINATED")
	k = z.create("p", `{"code":"EMPTY"}`)
	z.incident(k, "UNHANDLED_ERROR_EVENT", "the code 'EMPTY'")
	z.none("caught")
	z.state(k, "ACTIVE")
}

func TestMessageCatch_NameFromAnExpression(t *testing.T) {
	t.Parallel()
	z := open(t, "message-events: the name of a message may be an expression")
	z.deploy("p.bpmn", model(messageDef("m", "=what", "=id"), process("p", start("s"), catchEvent("c", messageEvent("m")), end("e"), flow("s", "c", "e"))))
	k := z.create("p", fmt.Sprintf(`{"what":%q,"id":"1"}`, z.ns.name("paid")))
	z.element(k, "c", "ACTIVE")
	z.publish("refunded", "1", "", 0, "")
	z.publish("paid", "1", "", 0, `{"by":"card"}`)
	z.state(k, "COMPLETED")
	z.variable(k, "by", `"card"`)
}

func TestSignal_BoundaryAndEventSubprocess(t *testing.T) {
	t.Parallel()
	z := open(t, "signal-events: a signal interrupts an activity and starts an event subprocess, both at once")
	def := `<bpmn:signalEventDefinition signalRef="sg"/>`
	z.deploy("p.bpmn", model(`<bpmn:signal id="sg" name="alarm"/>`, process("p", start("s"), task("a"), boundary("b", "a", true, def), task("handled"), end("e"), end("e2"), flow("s", "a", "e"), flow("b", "handled", "e2"),
		eventSub("esp", startWith("es", def, false), task("noted"), end("ee"), flow("es", "noted", "ee")))))
	k := z.create("p", "")
	j := z.job("a")
	if _, err := z.BroadcastSignal(z.ctx, &pb.BroadcastSignalRequest{SignalName: "alarm", Variables: `{"level":3}`}); err != nil {
		t.Fatal(err)
	}
	z.work("handled", "")
	z.work("noted", "")
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job was found")
	z.state(k, "COMPLETED")
	z.element(k, "a", "TERMINATED")
}
