//go:build clients

package clients

import "strings"

// parityCase is a model with our verdict; differs says why theirs is another.
type parityCase struct {
	name    string
	ok      bool
	xml     string
	differs string
}

const (
	work    = `ext: <zeebe:taskDefinition type="work"/>`
	message = `<message id="m" name="m"><extensionElements><zeebe:subscription correlationKey="=key"/></extensionElements></message>`
	errorE  = `<error id="e" errorCode="E"/>`
	signal  = `<signal id="s" name="s"/>`
	escal   = `<escalation id="x" escalationCode="X"/>`

	onMessage  = `<messageEventDefinition messageRef="m"/>`
	onError    = `<errorEventDefinition errorRef="e"/>`
	onSignal   = `<signalEventDefinition signalRef="s"/>`
	onEscal    = `<escalationEventDefinition escalationRef="x"/>`
	compensate = `<compensateEventDefinition/>`
)

func timer(kind, text string) string {
	return `<timerEventDefinition><` + kind + ` xsi:type="tFormalExpression">` + text + `</` + kind + `></timerEventDefinition>`
}

// around puts one element between start and end.
func around(n node, more ...node) []node {
	return all(el("startEvent", "a"), n, el("endEvent", "z"), path("a", n.id, "z"), more)
}

// task is a service task between start and end, with more around it.
func task(more ...node) []node { return around(el("serviceTask", "t", work), more...) }

func boundary(parts ...string) node {
	return el("boundaryEvent", "b", append([]string{`attr: attachedToRef="t"`}, parts...)...)
}

// handled is a task with a compensation boundary event and its handler.
func handled(handler node, more ...node) []node {
	return task(all(boundary(compensate), handler, association("b", handler.id), more)...)
}

func association(from, to string) node {
	return el("association", "as-"+from, `attr: associationDirection="One" sourceRef="`+from+`" targetRef="`+to+`"`)
}

func undo(parts ...string) node {
	return el("serviceTask", "u", append([]string{work, `attr: isForCompensation="true"`}, parts...)...)
}

func sub(kids ...node) node { return el("subProcess", "s1").with(kids...) }

func eventSub(start node) node {
	return el("subProcess", "es", `attr: triggeredByEvent="true"`).with(all(start, el("endEvent", "ez"), path(start.id, "ez"))...)
}

func parity() []parityCase {
	ok := func(name, roots string, nodes []node) parityCase {
		return parityCase{name, true, model(roots, nodes), ""}
	}
	no := func(name, roots string, nodes []node) parityCase {
		return parityCase{name, false, model(roots, nodes), ""}
	}
	differs := func(c parityCase, why string) parityCase { c.differs = why; return c }
	return []parityCase{
		// tasks
		ok("task", "", task()),
		no("task-without-definition", "", around(el("serviceTask", "t"))),
		no("task-with-empty-type", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type=""/>`))),
		no("task-with-two-definitions", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:taskDefinition type="b"/>`))),
		ok("task-with-header", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:taskHeaders><zeebe:header key="k" value="v"/></zeebe:taskHeaders>`))),
		no("send-task-without-definition", "", around(el("sendTask", "t"))),
		ok("send-task", "", around(el("sendTask", "t", work))),
		ok("script-task-as-job", "", around(el("scriptTask", "t", work))),
		ok("script-task-with-expression", "", around(el("scriptTask", "t", `ext: <zeebe:script expression="=1" resultVariable="r"/>`))),
		no("script-task-with-neither", "", around(el("scriptTask", "t"))),
		no("script-task-with-both", "", around(el("scriptTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:script expression="=1" resultVariable="r"/>`))),
		no("rule-task-with-neither", "", around(el("businessRuleTask", "t"))),
		ok("rule-task-as-job", "", around(el("businessRuleTask", "t", work))),
		no("rule-task-decision-without-id", "", around(el("businessRuleTask", "t", `ext: <zeebe:calledDecision resultVariable="r"/>`))),
		ok("manual-task", "", around(el("manualTask", "t"))),
		ok("undefined-task", "", around(el("task", "t"))),
		ok("user-task-as-job", "", around(el("userTask", "t"))),
		ok("user-task", "", around(el("userTask", "t", `ext: <zeebe:userTask/>`))),
		no("call-activity-without-process", "", around(el("callActivity", "t"))),
		no("call-activity-with-empty-process", "", around(el("callActivity", "t", `ext: <zeebe:calledElement processId=""/>`))),
		ok("call-activity", "", around(el("callActivity", "t", `ext: <zeebe:calledElement processId="other"/>`))),
		no("receive-task-without-message", "", around(el("receiveTask", "t"))),
		ok("receive-task", message, around(el("receiveTask", "t", `attr: messageRef="m"`))),

		// mappings
		ok("mapping", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:ioMapping><zeebe:input source="=x" target="y"/><zeebe:output source="=y" target="z"/></zeebe:ioMapping>`))),
		differs(no("input-without-target", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:ioMapping><zeebe:input source="=x" target=""/></zeebe:ioMapping>`))), "refused by Zeebe's engine at deployment, not by its model library"),
		differs(no("output-without-source", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:ioMapping><zeebe:output source="" target="x"/></zeebe:ioMapping>`))), "refused by Zeebe's engine at deployment, not by its model library"),

		// process
		no("no-start", "", []node{el("endEvent", "z")}),
		no("two-none-starts", "", all(el("startEvent", "a"), el("startEvent", "b"), el("endEvent", "z"), path("a", "z"), path("b", "z"))),
		{"process-not-executable", false, file("", `<process id="p">`, task()), ""},
		{"process-without-id", false, file("", `<process isExecutable="true">`, task()), ""},
		ok("ends-without-end-event", "", all(el("startEvent", "a"), el("serviceTask", "t", work), path("a", "t"))),
		no("flow-out-of-an-end", "", all(el("startEvent", "a"), el("endEvent", "z"), el("task", "t"), path("a", "z", "t"))),
		{"artifact-before-elements", true, strings.Replace(model("", handled(undo())), `<startEvent`, `<textAnnotation id="note"><text>hi</text></textAnnotation><startEvent`, 1),
			"the library checks the order of elements by the schema of BPMN; ours reads any order"},
		{"element-unknown-to-BPMN", false, strings.Replace(model("", task()), `<startEvent`, `<surprise id="odd"/><startEvent`, 1), ""},
		{"attribute-unknown-to-BPMN", true, strings.Replace(model("", task()), `<startEvent`, `<startEvent surprise="1"`, 1),
			"the library checks attributes by the schema of BPMN; ours passes over what it does not know"},
		differs(no("extension-unknown-to-zeebe", "", around(el("serviceTask", "t", `ext: <zeebe:taskDefinition type="a"/><zeebe:surprise/>`))),
			"the embedded engine refuses what it would otherwise silently leave out"),
		no("id-of-the-file-again", "", around(el("task", "parity"))),
		no("id-that-is-no-name", "", around(el("task", "1 t"))),
		{"two-processes", true, strings.Replace(model("", task()), `</definitions>`, `<process id="q" isExecutable="true"><startEvent id="qa"/></process></definitions>`, 1), ""},
		{"not-xml", false, "this is no XML", ""},
		{"empty-definitions", false, `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" id="d" targetNamespace="t"/>`, ""},
		differs(no("flow-into-a-start", "", all(el("startEvent", "a"), el("task", "t"), path("a", "t", "a"))), "BPMN forbids it; the library does not look"),
		no("flow-to-nowhere", "", all(el("startEvent", "a"), flow("a", "nowhere"))),
		no("duplicate-id", "", all(el("startEvent", "a"), el("task", "t"), el("task", "t"), path("a", "t"))),

		// gateways
		ok("exclusive", "", split("exclusiveGateway", `=x > 1`, "")),
		no("exclusive-without-condition", "", split("exclusiveGateway", "", "")),
		differs(no("exclusive-condition-on-the-default", "", gatewayDefault("exclusiveGateway", "=x", "=y")), "its condition would never count; the library does not look"),
		ok("inclusive", "", split("inclusiveGateway", "=x", "")),
		no("inclusive-without-condition", "", split("inclusiveGateway", "", "")),
		ok("parallel", "", split("parallelGateway", "", "")),
		no("complex-gateway", "", split("complexGateway", "=x", "")),
		no("event-gateway-one-way", message, all(el("startEvent", "a"), el("eventBasedGateway", "g"), el("intermediateCatchEvent", "c", onMessage), path("a", "g", "c"))),
		no("event-gateway-to-a-task", message, all(el("startEvent", "a"), el("eventBasedGateway", "g"), el("intermediateCatchEvent", "c", onMessage), el("task", "t"), path("a", "g", "c"), flow("g", "t"))),
		ok("event-gateway", message, all(el("startEvent", "a"), el("eventBasedGateway", "g"), el("intermediateCatchEvent", "c", onMessage), el("intermediateCatchEvent", "d", timer("timeDuration", "PT1H")), path("a", "g", "c"), flow("g", "d"))),
		no("event-gateway-same-message-twice", message, all(el("startEvent", "a"), el("eventBasedGateway", "g"), el("intermediateCatchEvent", "c", onMessage), el("intermediateCatchEvent", "d", onMessage), path("a", "g", "c"), flow("g", "d"))),

		// events
		ok("message-catch", message, around(el("intermediateCatchEvent", "c", onMessage))),
		no("message-without-key", `<message id="m" name="m"/>`, around(el("intermediateCatchEvent", "c", onMessage))),
		no("message-without-name", `<message id="m"><extensionElements><zeebe:subscription correlationKey="=k"/></extensionElements></message>`, around(el("intermediateCatchEvent", "c", onMessage))),
		no("message-catch-without-message", "", around(el("intermediateCatchEvent", "c", `<messageEventDefinition/>`))),
		no("catch-without-event", "", around(el("intermediateCatchEvent", "c"))),
		no("catch-an-error-in-the-flow", errorE, around(el("intermediateCatchEvent", "c", onError))),
		no("catch-two-events", message, around(el("intermediateCatchEvent", "c", onMessage, timer("timeDuration", "PT1H")))),
		ok("timer-duration", "", around(el("intermediateCatchEvent", "c", timer("timeDuration", "PT1H")))),
		ok("timer-date", "", around(el("intermediateCatchEvent", "c", timer("timeDate", "2030-01-01T00:00:00Z")))),
		no("timer-cycle-in-the-flow", "", around(el("intermediateCatchEvent", "c", timer("timeCycle", "R/PT1H")))),
		no("timer-with-nothing", "", around(el("intermediateCatchEvent", "c", `<timerEventDefinition/>`))),
		ok("signal-catch", signal, around(el("intermediateCatchEvent", "c", onSignal))),
		no("signal-without-name", `<signal id="s"/>`, around(el("intermediateCatchEvent", "c", onSignal))),
		ok("link", "", all(el("startEvent", "a"), el("intermediateThrowEvent", "l", `<linkEventDefinition id="l1" name="go"/>`), path("a", "l"), el("intermediateCatchEvent", "c", `<linkEventDefinition id="l2" name="go"/>`), el("endEvent", "z"), path("c", "z"))),
		no("link-without-name", "", all(el("startEvent", "a"), el("intermediateThrowEvent", "l", `<linkEventDefinition id="l1" name=""/>`), path("a", "l"))),
		no("link-without-catch", "", all(el("startEvent", "a"), el("intermediateThrowEvent", "l", `<linkEventDefinition id="l1" name="go"/>`), path("a", "l"))),
		no("message-throw-without-definition", message, around(el("intermediateThrowEvent", "c", onMessage))),
		ok("message-throw", message, around(el("intermediateThrowEvent", "c", work, onMessage))),
		differs(no("throw-a-timer", "", around(el("intermediateThrowEvent", "c", timer("timeDuration", "PT1H")))), "BPMN has no such event; the library does not look"),
		ok("error-end", errorE, all(el("startEvent", "a"), el("endEvent", "z", onError), path("a", "z"))),
		no("error-end-without-code", `<error id="e"/>`, all(el("startEvent", "a"), el("endEvent", "z", onError), path("a", "z"))),
		no("error-end-without-error", "", all(el("startEvent", "a"), el("endEvent", "z", `<errorEventDefinition/>`), path("a", "z"))),
		ok("terminate-end", "", all(el("startEvent", "a"), el("endEvent", "z", `<terminateEventDefinition/>`), path("a", "z"))),
		no("cancel-end", "", all(el("startEvent", "a"), el("endEvent", "z", `<cancelEventDefinition/>`), path("a", "z"))),
		no("escalation-end-without-code", `<escalation id="x"/>`, all(el("startEvent", "a"), el("endEvent", "z", onEscal), path("a", "z"))),
		ok("escalation-end", escal, all(el("startEvent", "a"), el("endEvent", "z", onEscal), path("a", "z"))),
		no("end-with-two-events", errorE, all(el("startEvent", "a"), el("endEvent", "z", onError, `<terminateEventDefinition/>`), path("a", "z"))),
		differs(no("start-by-error", errorE, all(el("startEvent", "a", onError), el("endEvent", "z"), path("a", "z"))), "nothing could start it; the library does not look"),
		ok("start-by-message", `<message id="m" name="m"/>`, all(el("startEvent", "a", onMessage), el("endEvent", "z"), path("a", "z"))),
		ok("start-by-signal", signal, all(el("startEvent", "a", onSignal), el("endEvent", "z"), path("a", "z"))),
		ok("start-by-timer", "", all(el("startEvent", "a", timer("timeCycle", "R/PT1H")), el("endEvent", "z"), path("a", "z"))),
		no("start-twice-by-one-message", `<message id="m" name="m"/>`, all(el("startEvent", "a", onMessage), el("startEvent", "b", onMessage), el("endEvent", "z"), path("a", "z"), path("b", "z"))),

		// boundary events
		ok("boundary-error", errorE, task(boundary(onError), el("endEvent", "y"), flow("b", "y"))),
		ok("boundary-error-catch-all", "", task(boundary(`<errorEventDefinition/>`), el("endEvent", "y"), flow("b", "y"))),
		no("boundary-error-non-interrupting", errorE, task(boundary(`attr: cancelActivity="false"`, onError), el("endEvent", "y"), flow("b", "y"))),
		ok("boundary-timer-non-interrupting", "", task(boundary(`attr: cancelActivity="false"`, timer("timeCycle", "R/PT1H")), el("endEvent", "y"), flow("b", "y"))),
		no("boundary-timer-cycle-interrupting", "", task(boundary(timer("timeCycle", "R/PT1H")), el("endEvent", "y"), flow("b", "y"))),
		no("boundary-without-event", "", task(boundary(), el("endEvent", "y"), flow("b", "y"))),
		no("boundary-with-incoming", errorE, task(boundary(onError), flow("a", "b"))),
		no("boundary-attached-to-nothing", errorE, task(el("boundaryEvent", "b", onError))),
		no("boundary-cancel", "", task(boundary(`<cancelEventDefinition/>`), el("endEvent", "y"), flow("b", "y"))),
		no("boundary-same-error-twice", errorE, task(boundary(onError), el("boundaryEvent", "b2", `attr: attachedToRef="t"`, onError), el("endEvent", "y"), flow("b", "y"), flow("b2", "y"))),
		no("boundary-same-message-twice", message, task(boundary(onMessage), el("boundaryEvent", "b2", `attr: attachedToRef="t"`, onMessage), el("endEvent", "y"), flow("b", "y"), flow("b2", "y"))),
		no("boundary-on-a-gateway", errorE, all(split("parallelGateway", "", ""), el("boundaryEvent", "b", `attr: attachedToRef="g"`, onError))),

		// subprocesses
		ok("subprocess", "", around(sub(all(el("startEvent", "sa"), el("endEvent", "sz"), path("sa", "sz"))...))),
		no("subprocess-without-start", "", around(sub(el("task", "st")))),
		no("subprocess-with-message-start", message, around(sub(all(el("startEvent", "sa", onMessage), el("endEvent", "sz"), path("sa", "sz"))...))),
		no("subprocess-with-two-starts", "", around(sub(all(el("startEvent", "sa"), el("startEvent", "sb"), el("endEvent", "sz"), path("sa", "sz"), path("sb", "sz"))...))),
		ok("event-subprocess", errorE, task(eventSub(el("startEvent", "ea", onError)))),
		no("event-subprocess-with-none-start", "", task(eventSub(el("startEvent", "ea")))),
		no("event-subprocess-error-non-interrupting", errorE, task(eventSub(el("startEvent", "ea", `attr: isInterrupting="false"`, onError)))),
		differs(no("event-subprocess-in-the-flow", errorE, task(eventSub(el("startEvent", "ea", onError)), flow("a", "es"))), "BPMN forbids it; the library does not look"),
		ok("event-subprocess-message", message, task(eventSub(el("startEvent", "ea", `attr: isInterrupting="false"`, onMessage)))),
		no("event-subprocess-message-without-key", `<message id="m" name="m"/>`, task(eventSub(el("startEvent", "ea", onMessage)))),
		no("transaction", "", around(el("transaction", "s1").with(all(el("startEvent", "sa"), el("endEvent", "sz"), path("sa", "sz"))...))),

		// multi-instance
		ok("multi-instance", "", around(el("serviceTask", "t", work, loop(`inputCollection="=xs" inputElement="x"`)))),
		no("multi-instance-without-definition", "", around(el("serviceTask", "t", work, `<multiInstanceLoopCharacteristics/>`))),
		no("multi-instance-without-collection", "", around(el("serviceTask", "t", work, loop(`inputElement="x"`)))),
		no("multi-instance-output-without-element", "", around(el("serviceTask", "t", work, loop(`inputCollection="=xs" outputCollection="ys"`)))),
		no("multi-instance-output-without-collection", "", around(el("serviceTask", "t", work, loop(`inputCollection="=xs" outputElement="=y"`)))),
		differs(no("standard-loop", "", around(el("serviceTask", "t", work, `<standardLoopCharacteristics/>`))), "the library does not know it, and the task would run once"),

		// compensation
		ok("compensation", "", handled(undo())),
		ok("compensation-thrown", "", handled(undo(), el("intermediateThrowEvent", "c", compensate))),
		no("compensation-without-handler", "", task(boundary(compensate))),
		no("compensation-with-flow", "", task(boundary(compensate), undo(), association("b", "u"), el("endEvent", "y"), flow("b", "y"))),
		differs(no("compensation-handler-not-marked", "", task(boundary(compensate), el("serviceTask", "u", work), association("b", "u"))), "the task would be no handler; the library does not look"),
		no("compensation-handler-with-outgoing", "", handled(undo(), el("endEvent", "y"), flow("u", "y"))),
		no("compensation-handler-with-incoming", "", handled(undo(), flow("a", "u"))),
		no("compensation-handler-with-boundary", errorE, handled(undo(), el("boundaryEvent", "b2", `attr: attachedToRef="u"`, onError), el("endEvent", "y"), flow("b2", "y"))),
		differs(no("compensation-handler-alone", "", task(undo())), "nothing could call it; the library does not look"),
		differs(no("compensation-two-handlers", "", handled(undo(), el("serviceTask", "v", work, `attr: isForCompensation="true"`), el("association", "as2", `attr: associationDirection="One" sourceRef="b" targetRef="v"`))), "only one of them would be called; the library does not count"),
		no("compensation-not-waiting", "", handled(undo(), el("intermediateThrowEvent", "c", `<compensateEventDefinition waitForCompletion="false"/>`))),
		no("compensation-of-an-unknown-activity", "", handled(undo(), el("intermediateThrowEvent", "c", `<compensateEventDefinition activityRef="nothing"/>`))),
		no("compensation-of-an-activity-without-handler", "", handled(undo(), el("serviceTask", "w", work), el("intermediateThrowEvent", "c", `<compensateEventDefinition activityRef="w"/>`))),
		ok("compensation-of-an-activity", "", handled(undo(), el("intermediateThrowEvent", "c", `<compensateEventDefinition activityRef="t"/>`))),
		no("compensation-from-inside-a-subprocess", "", handled(undo(), sub(all(el("startEvent", "sa"), el("endEvent", "sz", `<compensateEventDefinition activityRef="t"/>`), path("sa", "sz"))...))),
		ok("compensation-from-an-event-subprocess", errorE, handled(undo(), el("subProcess", "es", `attr: triggeredByEvent="true"`).with(all(el("startEvent", "ea", onError), el("endEvent", "ez", `<compensateEventDefinition activityRef="t"/>`), path("ea", "ez"))...))),
		differs(no("compensation-start-of-a-process", "", all(el("startEvent", "a", compensate), el("endEvent", "z"), path("a", "z"))), "nothing could start it; the library does not look"),
	}
}

func loop(attrs string) string {
	return `<multiInstanceLoopCharacteristics><extensionElements><zeebe:loopCharacteristics ` + attrs + `/></extensionElements></multiInstanceLoopCharacteristics>`
}

// split is a gateway that splits into two ways with these conditions, "" = none; the second way is the default if only the first has one.
func split(kind, first, second string) []node {
	def := ""
	if first != "" && second == "" {
		def = `attr: default="g-y"`
	}
	return fork(kind, def, first, second)
}

func gatewayDefault(kind, first, second string) []node {
	return fork(kind, `attr: default="g-y"`, first, second)
}

func fork(kind, def, first, second string) []node {
	cond := func(c string) []string {
		if c == "" {
			return nil
		}
		return []string{c}
	}
	g := el(kind, "g")
	if def != "" {
		g = el(kind, "g", def)
	}
	return all(el("startEvent", "a"), g, el("endEvent", "x"), el("endEvent", "y"), flow("a", "g"), flow("g", "x", cond(first)...), flow("g", "y", cond(second)...))
}
