package bpmn_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn"
)

// clean is a model without findings; the cases of TestLint change one thing.
const clean = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
<bpmn:process id="p" isExecutable="true">
<bpmn:startEvent id="start"/>
<bpmn:serviceTask id="book"><bpmn:extensionElements>
<zeebe:taskDefinition type="flight.book" retries="3"/>
<zeebe:ioMapping>
<zeebe:input source="=businessKey" target="businessKey"/>
<zeebe:input source="=sagaId + &quot;:book&quot;" target="operationId"/>
<zeebe:input source="=correlationId" target="correlationId"/>
<zeebe:input source="=traceparent" target="traceparent"/>
<zeebe:output source="=reservationId" target="reservation"/>
</zeebe:ioMapping>
<zeebe:taskHeaders><zeebe:header key="step" value="flight"/></zeebe:taskHeaders>
<zeebe:properties><zeebe:property name="journeyman:errors" value="SOLD_OUT"/></zeebe:properties>
</bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="book_comp" attachedToRef="book"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>
<bpmn:boundaryEvent id="book_sold" attachedToRef="book"><bpmn:errorEventDefinition errorRef="e"/></bpmn:boundaryEvent>
<bpmn:boundaryEvent id="book_late" attachedToRef="book"><bpmn:timerEventDefinition><bpmn:timeDuration>PT5M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>
<bpmn:serviceTask id="unbook" isForCompensation="true"><bpmn:extensionElements>
<zeebe:taskDefinition type="flight.cancel" retries="5"/>
<zeebe:ioMapping>
<zeebe:input source="=businessKey" target="businessKey"/>
<zeebe:input source="=sagaId + &quot;:book:undo&quot;" target="operationId"/>
<zeebe:input source="=sagaId + &quot;:book&quot;" target="forwardOperationId"/>
<zeebe:input source="=correlationId" target="correlationId"/>
<zeebe:input source="=traceparent" target="traceparent"/>
</zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:association id="as" sourceRef="book_comp" targetRef="unbook"/>
<bpmn:exclusiveGateway id="gate" default="no"/>
<bpmn:endEvent id="end"/>
<bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="book"/>
<bpmn:sequenceFlow id="f2" sourceRef="book" targetRef="gate"/>
<bpmn:sequenceFlow id="yes" sourceRef="gate" targetRef="end"><bpmn:conditionExpression>=status = "booked" and open > 0</bpmn:conditionExpression></bpmn:sequenceFlow>
<bpmn:sequenceFlow id="no" sourceRef="gate" targetRef="end"/>
<bpmn:sequenceFlow id="f3" sourceRef="book_sold" targetRef="end"/>
<bpmn:sequenceFlow id="f4" sourceRef="book_late" targetRef="end"/>
</bpmn:process>
<bpmn:error id="e" errorCode="SOLD_OUT"/>
</bpmn:definitions>`

func TestLint(t *testing.T) {
	t.Parallel()
	if found := bpmn.Lint(parse(t, clean)); len(found) != 0 {
		t.Fatalf("the clean model has findings: %+v", found)
	}
	property := func(name, value string) string {
		return `<zeebe:property name="` + name + `" value="` + value + `"/></zeebe:properties>`
	}
	for _, c := range []struct{ name, old, new, rule, element string }{
		{"deploy", `retries="3"/>`, `retries="=("/>`, "deploy", "book"},
		{"no business key", `<zeebe:input source="=businessKey" target="businessKey"/>`, ``, "correlation", "book"},
		{"no operation id", `<zeebe:input source="=sagaId + &quot;:book&quot;" target="operationId"/>`, ``, "correlation", "book"},
		{"no trace", `<zeebe:input source="=traceparent" target="traceparent"/>`, ``, "correlation", "book"},
		{"no forward operation", `<zeebe:input source="=sagaId + &quot;:book&quot;" target="forwardOperationId"/>`, ``, "correlation", "unbook"},
		{"static operation id", `source="=sagaId + &quot;:book&quot;" target="operationId"`, `source="book" target="operationId"`, "operation-id", "book"},
		{"constant operation id", `source="=sagaId + &quot;:book&quot;" target="operationId"`, `source="=&quot;book&quot;" target="operationId"`, "operation-id", "book"},
		{"fresh operation id", `source="=sagaId + &quot;:book&quot;" target="operationId"`, `source="=sagaId + uuid()" target="operationId"`, "operation-id", "book"},
		{"shared operation id", `source="=sagaId + &quot;:book:undo&quot;"`, `source="=sagaId + &quot;:book&quot;"`, "operation-id", "unbook"},
		{"operation id in a loop", `</bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="book_comp"`, `</bpmn:extensionElements><bpmn:multiInstanceLoopCharacteristics><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="=xs"/></bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics></bpmn:serviceTask>
<bpmn:boundaryEvent id="book_comp"`, "operation-id", "book"},
		{"connector", `type="flight.book"`, `type="io.camunda:http-json:1"`, "rest-connector", "book"},
		{"retries not declared", ` retries="3"`, ``, "retries", "book"},
		{"retries high", `retries="3"`, `retries="99"`, "retries", "book"},
		{"retries text", `retries="3"`, `retries="many"`, "retries", "book"},
		{"retries expression", `retries="3"`, `retries="=n"`, "retries", "book"},
		{"no time-out", `<bpmn:boundaryEvent id="book_late" attachedToRef="book"><bpmn:timerEventDefinition><bpmn:timeDuration>PT5M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>`, `<bpmn:intermediateThrowEvent id="book_late"/>`, "timeout", "book"},
		{"time-out text", `</zeebe:properties>`, property(bpmn.PropertyTimeout, "soon"), "timeout", "book"},
		{"no way back", `<bpmn:boundaryEvent id="book_comp" attachedToRef="book"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>`, ``, "compensation", "book"},
		{"uncaught code", `value="SOLD_OUT"`, `value="SOLD_OUT, REFUSED"`, "errors", "book"},
		{"payload", `target="reservation"`, `target="reservationDocument"`, "payload", "book"},
		{"domain rule", `open > 0`, `amount > 1000`, "domain-rule", "gate"},
		{"domain arithmetic", `open > 0`, `total - discount > 0`, "domain-rule", "gate"},
		{"boundary timer leads nowhere", `<bpmn:sequenceFlow id="f4" sourceRef="book_late" targetRef="end"/>`, ``, "connected", "book_late"},
		{"unreached", `<bpmn:sequenceFlow id="f1" sourceRef="start" targetRef="book"/>`, ``, "connected", "book"},
		{"implicit end", `<bpmn:endEvent id="end"/>`, `<bpmn:manualTask id="end"/>`, "connected", "end"},
		{"header twice", `<zeebe:header key="step" value="flight"/>`, `<zeebe:header key="step" value="flight"/><zeebe:header key="step" value="x"/>`, "headers", "book"},
		{"uncaught end", `<bpmn:endEvent id="end"/>`, `<bpmn:endEvent id="end"><bpmn:errorEventDefinition errorRef="e"/></bpmn:endEvent>`, "errors", "end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(clean, c.old) {
				t.Fatalf("the model has no %q", c.old)
			}
			found := bpmn.Lint(parse(t, strings.Replace(clean, c.old, c.new, 1)))
			for _, f := range found {
				if f.Rule == c.rule && f.ElementID == c.element && f.Line > 0 {
					return
				}
			}
			t.Errorf("got %+v, want rule %s at %s", found, c.rule, c.element)
		})
	}
}

func TestLint_marks(t *testing.T) {
	t.Parallel()
	noWayBack := strings.NewReplacer(
		`<bpmn:boundaryEvent id="book_comp" attachedToRef="book"><bpmn:compensateEventDefinition/></bpmn:boundaryEvent>`, "",
		`<bpmn:association id="as" sourceRef="book_comp" targetRef="unbook"/>`, "",
	).Replace(clean)
	i := strings.Index(noWayBack, `<bpmn:serviceTask id="unbook"`)
	j := strings.Index(noWayBack, `<bpmn:exclusiveGateway`)
	noWayBack = noWayBack[:i] + noWayBack[j:]
	for _, c := range []struct {
		name, value string
		clean       bool
	}{
		{bpmn.PropertyPivot, "true", true}, {bpmn.PropertyUndo, "flight.cancel", true}, {bpmn.PropertyEffect, "none", true}, {bpmn.PropertyEffect, "some", false},
		{bpmn.PropertyNoUndo, "e-mail cannot be called back", true}, {bpmn.PropertyNoUndo, "", false}, {bpmn.PropertyManual, "call the hotel", true},
		{bpmn.PropertyAllow, "compensation: read only", true}, {bpmn.PropertyAllow, "compensation", false}, {bpmn.PropertyAllow, "retries: x", false},
	} {
		found := bpmn.Lint(parse(t, strings.Replace(noWayBack, `</zeebe:properties>`, `<zeebe:property name="`+c.name+`" value="`+c.value+`"/></zeebe:properties>`, 1)))
		if (len(found) == 0) != c.clean {
			t.Errorf("%s=%q: findings %+v, want clean=%v", c.name, c.value, found, c.clean)
		}
	}
	// A branch to a person is a way back too.
	manual := strings.Replace(noWayBack, `sourceRef="book_sold" targetRef="end"`, `sourceRef="book_sold" targetRef="person"/><bpmn:userTask id="person"/><bpmn:sequenceFlow id="f5" sourceRef="person" targetRef="end"`, 1)
	if found := bpmn.Lint(parse(t, manual)); len(found) != 0 {
		t.Errorf("manual branch: %+v", found)
	}
}

// FC-F4: compensation handlers and their boundary events stand outside the flow.
func TestLint_compensationIsNotADeadEnd(t *testing.T) {
	t.Parallel()
	model := read(t, "field-cases/f4-compensation-handlers.bpmn")
	for _, f := range bpmn.Lint(parse(t, model)) {
		switch {
		case f.Rule == "connected" || f.Rule == "deploy":
			t.Errorf("false alarm: %+v", f)
		case f.Rule == "compensation" && (f.ElementID == "book" || f.ElementID == "pay"):
			t.Errorf("book and pay have handlers: %+v", f)
		}
	}
	for _, c := range []struct{ name, old, new, element string }{
		{"drop the association", `<bpmn:association id="as1" associationDirection="One" sourceRef="book_comp" targetRef="cancel"/>`, ``, "book_comp"},
		{"outgoing flow", `<bpmn:sequenceFlow id="f1_f4_comp"`, `<bpmn:sequenceFlow id="bad" sourceRef="book_comp" targetRef="pay"/><bpmn:sequenceFlow id="f1_f4_comp"`, "book_comp"},
		{"drop isForCompensation", `id="cancel" name="cancel" isForCompensation="true"`, `id="cancel" name="cancel"`, "book_comp"},
		{"second handler", `<bpmn:boundaryEvent id="pay_comp"`, `<bpmn:boundaryEvent id="book_comp2" attachedToRef="book"><bpmn:compensateEventDefinition id="x"/></bpmn:boundaryEvent><bpmn:boundaryEvent id="pay_comp"`, "book"},
		{"boundary on the handler", `<bpmn:boundaryEvent id="pay_comp"`, `<bpmn:boundaryEvent id="late" attachedToRef="cancel"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent><bpmn:boundaryEvent id="pay_comp"`, "cancel"},
		{"handler without job type", `<zeebe:taskDefinition type="f4.cancel" retries="3"/>`, ``, "cancel"},
		{"timer leads nowhere", `<bpmn:boundaryEvent id="pay_comp"`, `<bpmn:boundaryEvent id="late" attachedToRef="book"><bpmn:timerEventDefinition><bpmn:timeDuration>PT1M</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent><bpmn:boundaryEvent id="pay_comp"`, "late"},
	} {
		mutated := strings.Replace(model, c.old, c.new, 1)
		if mutated == model {
			t.Fatalf("%s: nothing changed", c.name)
		}
		hit := false
		for _, f := range bpmn.Lint(parse(t, mutated)) {
			hit = hit || f.ElementID == c.element && (f.Rule == "deploy" || f.Rule == "connected")
		}
		if !hit {
			t.Errorf("%s: nothing found at %s", c.name, c.element)
		}
	}
	var deploy []string
	for _, f := range bpmn.Lint(parse(t, read(t, "field-cases/f4-bpmnlint-no-implicit-end-valid-compensation.bpmn"))) {
		deploy = append(deploy, f.ElementID+" "+f.Rule)
	}
	want := []string{"PROCESS deploy", "PROCESS deploy", "TASK deploy", "COMPENSATION_SUB_PROCESS deploy"}
	if diff := cmp.Diff(want, deploy); diff != "" {
		t.Errorf("not executable, no start event, two handlers, empty handler subprocess: %s", diff)
	}
}

func TestLint_terminatedHandlers(t *testing.T) {
	t.Parallel()
	inside := strings.Replace(clean, `<bpmn:startEvent id="start"/>`, `<bpmn:startEvent id="p_start"/><bpmn:sequenceFlow id="p1" sourceRef="p_start" targetRef="sub"/><bpmn:endEvent id="p_end"/><bpmn:sequenceFlow id="p2" sourceRef="sub" targetRef="p_end"/>
<bpmn:boundaryEvent id="sub_error" attachedToRef="sub"><bpmn:errorEventDefinition/></bpmn:boundaryEvent><bpmn:sequenceFlow id="p3" sourceRef="sub_error" targetRef="p_end"/>
<bpmn:subProcess id="sub"><bpmn:startEvent id="start"/>`, 1)
	inside = strings.Replace(inside, "</bpmn:process>", "</bpmn:subProcess></bpmn:process>", 1)
	found := bpmn.Lint(parse(t, inside))
	if len(found) != 1 || found[0].Rule != "lost-compensation" || found[0].ElementID != "sub_error" {
		t.Errorf("got %+v, want lost-compensation at sub_error", found)
	}
}

func TestCorrelationMappings(t *testing.T) {
	t.Parallel()
	d := parse(t, clean)
	want := `<zeebe:input source="=businessKey" target="businessKey" />
<zeebe:input source="=sagaId + &#34;:book&#34;" target="operationId" />
<zeebe:input source="=correlationId" target="correlationId" />
<zeebe:input source="=traceparent" target="traceparent" />
<zeebe:input source="=tenant" target="tenant" />
<zeebe:input source="=sagaId" target="sagaId" />
`
	if diff := cmp.Diff(want, d.CorrelationMappings("book")); diff != "" {
		t.Error(diff)
	}
	handler := d.CorrelationMappings("unbook")
	for _, line := range []string{
		`<zeebe:input source="=sagaId + &#34;:book:undo&#34;" target="operationId" />`,
		`<zeebe:input source="=sagaId + &#34;:book&#34;" target="forwardOperationId" />`,
	} {
		if !strings.Contains(handler, line) {
			t.Errorf("handler lacks %s in\n%s", line, handler)
		}
	}
	each := parse(t, read(t, "all.bpmn")).CorrelationMappings("each")
	if line := `source="=sagaId + &#34;:each:&#34; + string(loopCounter)" target="operationId"`; !strings.Contains(each, line) {
		t.Errorf("multi-instance lacks %s in\n%s", line, each)
	}
	if got := d.CorrelationMappings("nobody"); got != "" {
		t.Errorf("unknown element: %q", got)
	}
	// Pasted, the lines satisfy the rules.
	bare := clean
	for _, name := range []string{"businessKey", "operationId", "correlationId", "traceparent"} {
		i := strings.Index(bare, `target="`+name+`"/>`)
		start := strings.LastIndex(bare[:i], "<zeebe:input")
		bare = bare[:start] + bare[i+len(`target="`+name+`"/>`):]
	}
	if len(bpmn.Lint(parse(t, bare))) == 0 {
		t.Fatal("the model without inputs has no findings")
	}
	pasted := strings.Replace(bare, "<zeebe:ioMapping>", "<zeebe:ioMapping>"+parse(t, bare).CorrelationMappings("book"), 1)
	if found := bpmn.Lint(parse(t, pasted)); len(found) != 0 {
		t.Errorf("after pasting: %+v", found)
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before := parse(t, clean)
	for _, c := range []struct {
		name, old, new string
		want           []string
		breaks         bool
	}{
		{"same", "", "", nil, false},
		{"name only", `id="book"`, `id="book" name="Book it"`, nil, false},
		{"job type", `type="flight.book"`, `type="flight.reserve"`, []string{"p/book: job type changed: flight.book -> flight.reserve"}, true},
		{"retries", `retries="3"`, `retries="4"`, []string{"p/book: retries changed: 3 -> 4"}, false},
		{"timer", `PT5M`, `PT6M`, []string{"p/book_late: event changed: timer PT5M -> timer PT6M"}, true},
		{"condition", `open > 0`, `open > 1`, []string{`p/yes: flow changed: gate > end if =status = "booked" and open > 0 -> gate > end if =status = "booked" and open > 1`}, false},
		{"removed", `<bpmn:sequenceFlow id="f4" sourceRef="book_late" targetRef="end"/>`, ``, []string{"p/f4: flow changed: book_late > end"}, false},
		{"element removed", `<bpmn:association id="as" sourceRef="book_comp" targetRef="unbook"/>`, `<bpmn:task id="extra"/>`, []string{"p/extra: element added: task"}, false},
		{"process", `<bpmn:process id="p"`, `<bpmn:process id="q"`, []string{"p: process removed", "q: process added"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			breaks := false
			for _, change := range bpmn.Diff(before, parse(t, strings.Replace(clean, c.old, c.new, 1))) {
				got = append(got, change.String())
				breaks = breaks || change.Breaks
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if breaks != c.breaks {
				t.Errorf("breaks = %v, want %v", breaks, c.breaks)
			}
		})
	}
	gone := parse(t, strings.Replace(clean, `<bpmn:manualTask`, ``, 1))
	with := parse(t, strings.Replace(clean, `<bpmn:endEvent id="end"/>`, `<bpmn:endEvent id="end"/><bpmn:endEvent id="end2"/>`, 1))
	changes := bpmn.Diff(with, gone)
	if len(changes) != 1 || changes[0].Kind != bpmn.ElementRemoved || !changes[0].Breaks {
		t.Errorf("removed element: %v", changes)
	}
}
