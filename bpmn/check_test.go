package bpmn_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn"
)

func TestCheck_acceptsValidModels(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"all.bpmn", "field-cases/f4-compensation-handlers.bpmn", "field-cases/f4-bpmnlint-no-disconnected-valid-compensation.bpmn",
		"sistema-reservas-viaje/subproceso-reserva.bpmn", "Compensation-Example-Camunda8/Hawk_Adoption__Compensation_Example_.bpmn",
	} {
		if err := parse(t, read(t, name)).Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each case changes one thing of the valid model and wants exactly one mistake
// named at that element.
func TestCheck_findsOneMistake(t *testing.T) {
	t.Parallel()
	model := read(t, "all.bpmn")
	for _, c := range []struct{ name, old, new, element, reason string }{
		{"not executable", `isExecutable="true"`, `isExecutable="false"`, "all", "none of the 1 processes is executable"},
		{"flag", `isExecutable="true"`, `isExecutable="yes"`, "all", "expected true or false"},
		{"duplicate id", `id="receive"`, `id="book"`, "", "id is already used at line 6"},
		{"id no name", `id="f13"`, `id="13 f"`, "", "id is no XML name"},
		{"end by cancel", `<bpmn:terminateEventDefinition`, `<bpmn:cancelEventDefinition`, "stop", "has a cancel definition: expected one of error"},
		{"flow target", `targetRef="receive" />`, `targetRef="nowhere" />`, "", `targetRef "nowhere" leads to no flow node`},
		{"flow into a scope", `id="f13" sourceRef="ask" targetRef="stop"`, `id="f13" sourceRef="ask" targetRef="sub_end"`, "f13", "expected both ends in the scope"},
		{"message ref", `messageRef="m_start" /></bpmn:startEvent>`, `messageRef="m_none" /></bpmn:startEvent>`, "start", `messageRef "m_none" leads to no message`},
		{"error ref", `<bpmn:errorEventDefinition errorRef="e_sold" /></bpmn:boundaryEvent>`, `<bpmn:errorEventDefinition errorRef="e_none" /></bpmn:boundaryEvent>`, "book_error", `errorRef "e_none"`},
		{"no job type", `<zeebe:taskDefinition type="flight.cancel" />`, ``, "unbook", "has no zeebe:taskDefinition"},
		{"empty job type", `type="flight.cancel"`, `type=""`, "unbook", "empty job type"},
		{"job type FEEL", `type="=jobType"`, `type="=job type +"`, "each", "job type: failed to parse"},
		{"retries FEEL", `retries="=n"`, `retries="=(n"`, "each", "retries: failed to parse"},
		{"input FEEL", `source="=order.flight"`, `source="=order..flight"`, "book", "input mapping to flight"},
		{"input target", `target="mode"`, `target="a-b"`, "book", `input mapping target "a-b" is not a variable name`},
		{"output static", `source="=pnr"`, `source="pnr"`, "book", `output mapping to trip.pnr: "pnr" is not an expression`},
		{"output Camunda 7", `source="=pnr"`, `source="${pnr}"`, "book", "Camunda 7 expression"},
		{"condition static", `>=status = "booked"<`, `>status = "booked"<`, "f_if", "is not an expression"},
		{"condition FEEL", `>=status = "booked"<`, `>=status == "booked"<`, "f_if", "line 1, column 9"},
		{"condition missing", `<bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">=status = "booked"</bpmn:conditionExpression>`, ``, "f_if", "without a condition and is not its default flow"},
		{"condition on default", `id="f_default" sourceRef="which" targetRef="wait" />`, `id="f_default" sourceRef="which" targetRef="wait"><bpmn:conditionExpression>=a</bpmn:conditionExpression></bpmn:sequenceFlow>`, "f_default", "is the default flow"},
		{"condition elsewhere", `id="f13" sourceRef="ask" targetRef="stop" />`, `id="f13" sourceRef="ask" targetRef="stop"><bpmn:conditionExpression>=a</bpmn:conditionExpression></bpmn:sequenceFlow>`, "f13", "leaves the userTask"},
		{"default flow", `default="f_some_default"`, `default="f1"`, "some", `default flow "f1" is not one of its outgoing flows`},
		{"correlation key", ` correlationKey="=sagaId"`, ``, "m_cancel", "has no zeebe:subscription with a correlationKey"},
		{"correlation key static", `correlationKey="=sagaId"`, `correlationKey="sagaId"`, "m_cancel", "is not an expression"},
		{"message name", `name="saga.start"`, `name=""`, "start", "has no message with a name"},
		{"message throw without job", `<zeebe:taskDefinition type="mail.send" />`, ``, "sent", "has no zeebe:taskDefinition"},
		{"timer duration", `=duration("PT1H")`, `1 hour`, "wait_timer", `duration "1 hour"`},
		{"timer FEEL", `=duration("PT1H")`, `=duration("PT1H"`, "wait_timer", "timeDuration: failed to parse"},
		{"timer cycle in catch", `<bpmn:timeDuration>=duration("PT1H")</bpmn:timeDuration>`, `<bpmn:timeCycle>R/PT1H</bpmn:timeCycle>`, "wait_timer", "waits for a cycle"},
		{"timer two", `<bpmn:timeDuration>=duration("PT1H")</bpmn:timeDuration>`, `<bpmn:timeDuration>PT1H</bpmn:timeDuration><bpmn:timeDate>2026-12-01T10:00:00Z</bpmn:timeDate>`, "wait_timer", "expected exactly one"},
		{"interrupting cycle", `attachedToRef="book" cancelActivity="false"`, `attachedToRef="book"`, "book_remind", "interrupts by a cycle"},
		{"cycle text", `R3/PT10S`, `3 times`, "book_remind", "neither a repeating interval"},
		{"error not interrupting", `id="book_any" attachedToRef="book"`, `id="book_any" attachedToRef="book" cancelActivity="false"`, "book_any", "an error always interrupts"},
		{"error code on catch", `errorCode="SOLD_OUT"`, `errorCode="=code"`, "book_error", "needs a static errorCode"},
		{"error code missing", `errorCode="SOLD_OUT"`, `errorCode=""`, "failed_end", "throws an error without an errorCode"},
		{"two catch-alls", `<bpmn:errorEventDefinition errorRef="e_sold" /></bpmn:boundaryEvent>`, `<bpmn:errorEventDefinition /></bpmn:boundaryEvent>`, "book_any", "catches every error like"},
		{"boundary without event", `<bpmn:boundaryEvent id="book_any" attachedToRef="book"><bpmn:errorEventDefinition /></bpmn:boundaryEvent>`, `<bpmn:boundaryEvent id="book_any" attachedToRef="book" />`, "book_any", "has no event definition"},
		{"boundary on a gateway", `id="book_any" attachedToRef="book"`, `id="book_any" attachedToRef="which"`, "book_any", "expected an activity"},
		{"boundary nowhere", `id="book_any" attachedToRef="book"`, `id="book_any" attachedToRef="x"`, "book_any", "leads to no activity"},
		{"two definitions", `<bpmn:terminateEventDefinition />`, `<bpmn:terminateEventDefinition /><bpmn:errorEventDefinition />`, "stop", "second event definition"},
		{"association missing", `<bpmn:association id="as1" associationDirection="One" sourceRef="book_comp" targetRef="unbook" />`, ``, "book_comp", "0 associations"},
		{"association to nothing", `targetRef="unbook"`, `targetRef="gone"`, "book_comp", "does not exist"},
		{"second association", `<bpmn:exclusiveGateway id="which"`, `<bpmn:association id="as2" sourceRef="book_comp" targetRef="unbook" /><bpmn:exclusiveGateway id="which"`, "book_comp", "2 associations"},
		{"boundary flow", `id="f17" sourceRef="book_message"`, `id="f17" sourceRef="book_comp"`, "book_comp", "has outgoing sequence flows"},
		{"handler not marked", ` isForCompensation="true"`, ``, "book_comp", "has no isForCompensation"},
		{"handler with flow", `id="f13" sourceRef="ask" targetRef="stop"`, `id="f13" sourceRef="unbook" targetRef="stop"`, "unbook", "is a compensation handler with sequence flows"},
		{"handler with boundary", `id="book_message" attachedToRef="book"`, `id="book_message" attachedToRef="unbook"`, "unbook", "is a compensation handler with boundary events"},
		{"two compensation boundaries", `<bpmn:boundaryEvent id="book_any" attachedToRef="book"><bpmn:errorEventDefinition /></bpmn:boundaryEvent>`, `<bpmn:boundaryEvent id="book_any" attachedToRef="book"><bpmn:compensateEventDefinition /></bpmn:boundaryEvent>`, "book", "2 compensation boundary events"},
		{"activityRef unknown", `activityRef="book"`, `activityRef="gone"`, "undo", "leads to no activity"},
		{"activityRef without boundary", `activityRef="book"`, `activityRef="call"`, "undo", "has no compensation boundary event"},
		{"activityRef in another scope", `activityRef="book"`, `activityRef="each"`, "undo", "stands in another scope"},
		{"wait for completion", `activityRef="book"`, `activityRef="book" waitForCompletion="false"`, "undo", "waitForCompletion"},
		{"called element", `processId="child"`, `processId=""`, "call", "calledElement with a processId"},
		{"script", `expression="=1 + 1"`, `expression="1 + 1"`, "script", "script expression"},
		{"decision", `<zeebe:calledDecision decisionId="d" resultVariable="r" />`, ``, "rule", "needs either"},
		{"multi-instance input", `inputCollection="=segments"`, `inputCollection="segments"`, "each", "inputCollection"},
		{"multi-instance no input", `inputCollection="=segments"`, ``, "each", "without an inputCollection"},
		{"multi-instance output", ` outputElement="=result"`, ``, "each", "expected both or none"},
		{"multi-instance condition", `=numberOfCompletedInstances > 2`, `numberOfCompletedInstances > 2`, "each", "completionCondition"},
		{"user task date", `dueDate="2026-12-01T10:00:00Z"`, `dueDate="tomorrow"`, "ask", "dueDate"},
		{"event gateway", `id="f4" sourceRef="wait" targetRef="wait_timer"`, `id="f4" sourceRef="wait" targetRef="ask"`, "wait", "expected an intermediate message, timer or signal"},
		{"subprocess start", `<bpmn:startEvent id="sub_start" />`, `<bpmn:startEvent id="sub_start" /><bpmn:startEvent id="second" />`, "sub", "2 start events"},
		{"subprocess start event", `<bpmn:startEvent id="sub_start" />`, `<bpmn:startEvent id="sub_start"><bpmn:messageEventDefinition messageRef="m_cancel" /></bpmn:startEvent>`, "sub_start", "expected none"},
		{"event subprocess start", `<bpmn:startEvent id="failed_start"><bpmn:errorEventDefinition /></bpmn:startEvent>`, `<bpmn:startEvent id="failed_start" />`, "failed_start", "starts an event subprocess"},
		{"event subprocess flow", `id="f13" sourceRef="ask" targetRef="stop"`, `id="f13" sourceRef="ask" targetRef="failed"`, "failed", "event subprocess with sequence flows"},
		{"no start", `<bpmn:startEvent id="start"><bpmn:messageEventDefinition messageRef="m_start" /></bpmn:startEvent>`, `<bpmn:manualTask id="start" />`, "all", "has no start event"},
		{"start with incoming", `id="f13" sourceRef="ask" targetRef="stop"`, `id="f13" sourceRef="ask" targetRef="start"`, "start", "a start event has none"},
		{"end with outgoing", `id="f13" sourceRef="ask" targetRef="stop"`, `id="f13" sourceRef="stop" targetRef="ask"`, "stop", "an end event has none"},
		{"link", `<bpmn:intermediateCatchEvent id="from_b"><bpmn:linkEventDefinition name="B" />`, `<bpmn:intermediateCatchEvent id="from_b"><bpmn:linkEventDefinition name="C" />`, "to_b", "which nothing catches"},
		{"catch without event", `<bpmn:linkEventDefinition name="B" /></bpmn:intermediateCatchEvent>`, `</bpmn:intermediateCatchEvent>`, "from_b", "has no event definition"},
		{"two none starts", `<bpmn:endEvent id="stop">`, `<bpmn:startEvent id="n1" /><bpmn:startEvent id="n2" /><bpmn:endEvent id="stop">`, "all", "2 start events without a trigger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if strings.Count(model, c.old) == 0 {
				t.Fatalf("the model has no %q", c.old)
			}
			err := parse(t, strings.Replace(model, c.old, c.new, 1)).Check()
			for _, e := range bpmn.Errors(err) {
				if strings.Contains(e.Reason, c.reason) && (c.element == "" || e.ElementID == c.element) && e.Line > 0 {
					return
				}
			}
			t.Errorf("got %v, want %q at %q", err, c.reason, c.element)
		})
	}
}

func TestCheck_endlessLoop(t *testing.T) {
	t.Parallel()
	const model = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0"><process id="p" isExecutable="true">
<startEvent id="s"/><exclusiveGateway id="g" default="d"/><KIND id="t"><extensionElements><z:taskDefinition type="x"/></extensionElements></KIND><endEvent id="e"/>
<sequenceFlow id="f1" sourceRef="s" targetRef="t"/><sequenceFlow id="f2" sourceRef="t" targetRef="g"/>
<sequenceFlow id="f3" sourceRef="g" targetRef="t"><conditionExpression>=again</conditionExpression></sequenceFlow><sequenceFlow id="d" sourceRef="g" targetRef="e"/>
</process></definitions>`
	err := parse(t, strings.ReplaceAll(model, "KIND", "manualTask")).Check()
	if err == nil || !strings.Contains(err.Error(), "t > g > t") {
		t.Errorf("got %v, want the loop named", err)
	}
	if err := parse(t, strings.ReplaceAll(model, "KIND", "serviceTask")).Check(); err != nil {
		t.Errorf("a loop through a job is fine, got %v", err)
	}
}

// The largest model that Parse reads is checked, linted and drawn in reasonable time.
func TestCheck_largeModel(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process id="p" isExecutable="true"><startEvent id="t0"/>`)
	const n = 9_990
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `<manualTask id="t%d"/><sequenceFlow id="f%d" sourceRef="t%d" targetRef="t%d"/>`, i, i, i-1, i)
	}
	b.WriteString(`</process></definitions>`)
	start := time.Now()
	d := parse(t, b.String())
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	bpmn.Lint(d)
	if err := bpmn.Draw(io.Discard, d, bpmn.DrawOptions{}); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestCheck_camunda7(t *testing.T) {
	t.Parallel()
	err := parse(t, read(t, "trip-booking-saga-serverless/camunda7-trip-compensation.bpmn")).Check()
	if err == nil || !strings.Contains(err.Error(), "convert the model to Camunda 8") {
		t.Errorf("got %v, want a hint at Camunda 7", err)
	}
}

func TestError_text(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  bpmn.Error
		want string
	}{
		{bpmn.Error{File: "a.bpmn", Line: 7, ElementID: "x", Kind: "task", Reason: "is bad"}, `a.bpmn:7: task "x": is bad`},
		{bpmn.Error{Line: 7, ElementID: "x", Kind: "task", Reason: "is bad"}, `line 7: task "x": is bad`},
		{bpmn.Error{Line: 7, Reason: "is bad"}, `line 7: is bad`},
		{bpmn.Error{File: "a.bpmn", Reason: "is bad"}, `a.bpmn: is bad`},
		{bpmn.Error{Kind: "task", Line: 2, Reason: "has no id"}, `line 2: task: has no id`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
