package conformance

import "testing"

// Cases of the documentation pages "Exclusive", "Parallel", "Inclusive" and "Event-based gateway" (components/modeler/bpmn).

func TestExclusive_FirstTrueInDocumentOrder(t *testing.T) {
	t.Parallel()
	z := open(t, "exclusive: the first condition that is true is taken, else the default flow")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("exclusive", "g", "g-c"), task("a"), task("b"), task("c"), end("e"),
		flow("s", "g"), conditional("g", "a", "=x > 10"), conditional("g", "b", "=x > 5"), flow("g", "c"), flow("a", "e"), flow("b", "e"), flow("c", "e"))))
	for vars, want := range map[string]string{`{"x":11}`: "a", `{"x":6}`: "b", `{"x":1}`: "c"} {
		k := z.create("p", vars)
		if got := z.work(want, "").GetProcessInstanceKey(); got != k {
			t.Errorf("%s: job of instance %d, want %d", vars, got, k)
		}
		z.state(k, "COMPLETED")
	}
}

func TestExclusive_NoFlowIsConditionError(t *testing.T) {
	t.Parallel()
	z := open(t, "exclusive: no true condition and no default flow is an incident CONDITION_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("exclusive", "g"), task("a"), task("b"), end("e"),
		flow("s", "g"), conditional("g", "a", "=x = 1"), conditional("g", "b", "=x = 2"), flow("a", "e"), flow("b", "e"))))
	k := z.create("p", `{"x":3}`)
	const text = "Expected at least one condition to evaluate to true, or to have a default flow"
	inc := z.incident(k, "CONDITION_ERROR", text)
	z.resolve(inc)
	again := z.nextIncident(k, inc, "CONDITION_ERROR", text) // the cause persists
	z.setVariables(k, `{"x":2}`)
	z.resolve(again)
	z.work("b", "")
	z.state(k, "COMPLETED")
}

func TestExclusive_NullConditionIsExtractValueError(t *testing.T) {
	t.Parallel()
	z := open(t, "expressions: a condition that is null is an incident EXTRACT_VALUE_ERROR with the warnings")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("exclusive", "g", "g-b"), task("a"), task("b"), end("e"),
		flow("s", "g"), conditional("g", "a", "=amount > 5"), flow("g", "b"), flow("a", "e"), flow("b", "e"))))
	k := z.create("p", "")
	inc := z.incident(k, "EXTRACT_VALUE_ERROR", "amount")
	want := "Expected result of the expression 'amount > 5' to be 'BOOLEAN', but was 'NULL'. The evaluation reported the following warnings:\n[NO_VARIABLE_FOUND] No variable found with name 'amount'"
	if inc["errorMessage"] != want {
		t.Errorf("message:\n got %v\nwant %s", inc["errorMessage"], want)
	}
	z.setVariables(k, `{"amount":3}`)
	z.resolve(inc)
	z.work("b", "")
	z.state(k, "COMPLETED")
}

func TestParallel_JoinWaitsForEachFlow(t *testing.T) {
	t.Parallel()
	z := open(t, "parallel: a join waits for each incoming flow")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("parallel", "f"), task("a"), task("b"), gateway("parallel", "j"), task("c"), end("e"),
		flow("s", "f", "a", "j", "c", "e"), flow("f", "b", "j"))))
	k := z.create("p", "")
	z.work("a", "")
	z.none("c")
	z.absent(k, "j")
	z.work("b", "")
	z.work("c", "")
	z.state(k, "COMPLETED")
	z.found("element-instances", item{"processInstanceKey": str(k), "elementId": "j"}, 1)
}

func TestParallel_TokensCountPerFlow(t *testing.T) {
	t.Parallel()
	z := open(t, "parallel: a flow taken twice counts once for the join")
	// The exclusive merge sends two tokens over one flow: the join needs one of each flow.
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("parallel", "f"), task("a"), task("b"), task("c"), gateway("exclusive", "m"), gateway("parallel", "j"), task("d"), end("e"),
		flow("s", "f", "a", "m", "j", "d", "e"), flow("f", "b", "m"), flow("f", "c", "j"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	z.none("d")
	z.work("c", "")
	z.work("d", "")
	z.none("d")
	z.state(k, "ACTIVE") // the second token waits at the join
}

func TestInclusive_TakesAllTrueFlows(t *testing.T) {
	t.Parallel()
	z := open(t, "inclusive: all flows whose condition is true are taken, else the default flow")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("inclusive", "g", "g-c"), task("a"), task("b"), task("c"), end("e"),
		flow("s", "g"), conditional("g", "a", "=x > 1"), conditional("g", "b", "=x > 2"), flow("g", "c"), flow("a", "e"), flow("b", "e"), flow("c", "e"))))
	k := z.create("p", `{"x":3}`)
	z.work("a", "")
	z.work("b", "")
	z.none("c")
	z.state(k, "COMPLETED")
	k = z.create("p", `{"x":0}`)
	z.work("c", "")
	z.state(k, "COMPLETED")
}

func TestInclusive_JoinWaitsForWhatCanStillCome(t *testing.T) {
	t.Parallel()
	z := open(t, "inclusive: a join waits for what can still reach it")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("inclusive", "g"), task("a"), task("b"), task("c"), gateway("inclusive", "j"), task("d"), end("e"),
		flow("s", "g"), conditional("g", "a", "=x > 1"), conditional("g", "b", "=x > 2"), conditional("g", "c", "=x > 3"),
		flow("a", "j", "d", "e"), flow("b", "j"), flow("c", "j"))))
	k := z.create("p", `{"x":3}`)
	z.work("a", "")
	z.none("d")
	z.work("b", "")
	z.work("d", "")
	z.state(k, "COMPLETED")
}

func TestSeveralOutgoingFlowsFork(t *testing.T) {
	t.Parallel()
	z := open(t, "tasks: an activity with several outgoing flows takes them all")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), task("b"), task("c"), end("e"), flow("s", "a", "b", "e"), flow("a", "c", "e"))))
	k := z.create("p", "")
	z.work("a", "")
	z.work("b", "")
	z.state(k, "ACTIVE")
	z.work("c", "")
	z.state(k, "COMPLETED")
}

func TestEventBased_FirstTriggerWins(t *testing.T) {
	t.Parallel()
	z := open(t, "event-based: the first event is taken, the others are closed")
	z.needClock()
	z.deploy("p.bpmn", model(messageDef("m", "paid", "=order"), process("p", start("s"), gateway("eventBased", "g"),
		catchEvent("msg", messageEvent("m")), catchEvent("tim", duration("PT1H")), task("a"), task("b"), end("e"),
		flow("s", "g", "msg", "a", "e"), flow("g", "tim", "b", "e"))))
	k := z.create("p", `{"order":"o1"}`)
	z.publish("paid", "o1", "", 0, `{"by":"card"}`)
	z.variable(k, "by", `"card"`)
	z.work("a", "")
	z.advance(2 * hour)
	z.none("b")
	z.state(k, "COMPLETED")
	k = z.create("p", `{"order":"o2"}`)
	z.advance(hour)
	z.work("b", "")
	z.state(k, "COMPLETED")
	z.element(k, "g", "COMPLETED")
	z.absent(k, "msg")
}

func TestScope_NoOutgoingFlowIsAnImplicitEnd(t *testing.T) {
	t.Parallel()
	z := open(t, "subprocess: a scope completes when nothing is active in it, with an end event or without")
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), flow("s", "a"))))
	k := z.create("p", "")
	z.work("a", "")
	z.state(k, "COMPLETED")
}

func TestExclusive_OneFlowWithAFalseCondition(t *testing.T) {
	t.Parallel()
	z := open(t, "exclusive: one outgoing flow with a condition is not taken unless it is true")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("exclusive", "g"), end("e"), flow("s", "g"), conditional("g", "e", "=x"))))
	k := z.create("p", `{"x":false}`)
	inc := z.incident(k, "CONDITION_ERROR", "at least one condition")
	z.cancel(k)
	var after item
	z.eventually(func() bool {
		z.call("GET", "/incidents/"+inc["incidentKey"].(string), nil, &after)
		return after["state"] == "RESOLVED"
	}, func() string { return "the incident of a cancelled gateway stays active" })
	z.state(z.create("p", `{"x":true}`), "COMPLETED")
}

func TestInclusive_NoFlowIsConditionError(t *testing.T) {
	t.Parallel()
	z := open(t, "inclusive: no true condition and no default flow is an incident CONDITION_ERROR")
	z.deploy("p.bpmn", model(process("p", start("s"), gateway("inclusive", "g"), task("a"), task("b"), end("e"),
		flow("s", "g"), conditional("g", "a", "=x = 1"), conditional("g", "b", "=x = 2"), flow("a", "e"), flow("b", "e"))))
	k := z.create("p", `{"x":3}`)
	inc := z.incident(k, "CONDITION_ERROR", "Expected at least one condition to evaluate to true, or to have a default flow")
	z.setVariables(k, `{"x":1}`)
	z.resolve(inc)
	z.work("a", "")
	z.none("b")
	z.state(k, "COMPLETED")
}
