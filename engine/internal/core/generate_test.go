package core_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// A generator builds valid block-structured models: every block has one way in
// and one way out, which gets a token for each that went in, so every run of one can end. What it uses is counted in kinds.
type generator struct {
	t     *rapid.T
	n     int
	kinds map[string]int

	messages []string // ids and names: one for each place that waits for one
}

// scope is the body of a process or a subprocess while it is built.
type scope struct {
	xml    strings.Builder
	inside string // "process", "sub" or "event"
	undone []string
}

const everything = `<bpmn:signal id="sig" name="sig"/><bpmn:error id="er" errorCode="E"/><bpmn:escalation id="es" escalationCode="U"/>`

const (
	onSignal   = `<bpmn:signalEventDefinition signalRef="sig"/>`
	onError    = `<bpmn:errorEventDefinition/>`
	onCode     = `<bpmn:errorEventDefinition errorRef="er"/>`
	onEscalate = `<bpmn:escalationEventDefinition escalationRef="es"/>`
	undoAll    = `<bpmn:compensateEventDefinition/>`
)

func onTimer(kind, text string) string {
	return fmt.Sprintf(`<bpmn:timerEventDefinition><bpmn:%[1]s>%[2]s</bpmn:%[1]s></bpmn:timerEventDefinition>`, kind, text)
}

// message is the id of a message of its own: a message goes to one subscription of
// a process only, so a name that several places share could keep a run waiting for ever.
func (g *generator) message() string {
	id := g.id("m")
	g.messages = append(g.messages, id)
	return id
}

func (g *generator) onMessage() string {
	return fmt.Sprintf(`<bpmn:messageEventDefinition messageRef="%s"/>`, g.message())
}

// model draws one file: a process "main" and the process "child" that it may call.
func (g *generator) model() string {
	processes := g.process("main", 3) + g.process("child", 1)
	var messages strings.Builder
	for _, id := range g.messages {
		fmt.Fprintf(&messages, `<bpmn:message id="%[1]s" name="%[1]s"><bpmn:extensionElements><zeebe:subscription correlationKey="=key"/></bpmn:extensionElements></bpmn:message>`, id)
	}
	return head + everything + messages.String() + processes + `</bpmn:definitions>`
}

func (g *generator) process(id string, depth int) string {
	s := &scope{inside: "process"}
	g.body(s, depth, id == "child")
	return fmt.Sprintf(`<bpmn:process id="%s" isExecutable="true">%s</bpmn:process>`, id, s.xml.String())
}

// body is start, a block, end, and event subprocesses beside them.
func (g *generator) body(s *scope, depth int, leaf bool) {
	start, end := g.id("s"), g.id("e")
	s.put(`<bpmn:startEvent id="%s"/><bpmn:endEvent id="%s"/>`, start, end)
	in, out := g.block(s, depth, leaf)
	g.flow(s, start, in)
	g.flow(s, out, end)
	for range g.pick(0, 0, 1, 2) {
		g.eventSubprocess(s)
	}
}

func (s *scope) put(format string, args ...any) { fmt.Fprintf(&s.xml, format+"\n", args...) }

func (g *generator) id(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

func (g *generator) pick(of ...int) int { return rapid.SampledFrom(of).Draw(g.t, "n") }

func (g *generator) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(g.t, "chance") < percent
}

func (g *generator) use(kind string) { g.kinds[kind]++ }

func (g *generator) flow(s *scope, from, to string) {
	s.put(`<bpmn:sequenceFlow id="%s" sourceRef="%s" targetRef="%s"/>`, g.id("f"), from, to)
}

func (g *generator) when(s *scope, from, to, condition string) {
	s.put(`<bpmn:sequenceFlow id="%s" sourceRef="%s" targetRef="%s"><bpmn:conditionExpression>%s</bpmn:conditionExpression></bpmn:sequenceFlow>`, g.id("f"), from, to, condition)
}

// block puts one block into the scope and returns its way in and its way out.
func (g *generator) block(s *scope, depth int, leaf bool) (in, out string) {
	blocks := []string{"task", "task", "task", "wait", "step"}
	if depth > 0 {
		blocks = append(blocks, "sequence", "sequence", "exclusive", "parallel", "inclusive", "event-based", "subprocess", "subprocess")
	}
	if !leaf {
		blocks = append(blocks, "call")
	}
	switch kind := rapid.SampledFrom(blocks).Draw(g.t, "block"); kind {
	case "sequence":
		in, out = g.block(s, depth-1, leaf)
		for range g.pick(1, 2) {
			next, end := g.block(s, depth-1, leaf)
			g.flow(s, out, next)
			out = end
		}
		return in, out
	case "exclusive", "parallel", "inclusive":
		return g.gateways(s, kind, depth, leaf)
	case "event-based":
		return g.eventBased(s, depth, leaf)
	case "subprocess":
		return g.subprocess(s, depth, leaf)
	case "call":
		return g.call(s)
	case "wait":
		return g.wait(s)
	case "step":
		return g.step(s)
	default:
		return g.task(s)
	}
}

// gateways split into two or three blocks and join them again.
func (g *generator) gateways(s *scope, kind string, depth int, leaf bool) (in, out string) {
	g.use(kind)
	in, out = g.id("g"), g.id("j")
	ways, def := g.pick(2, 3), ""
	for i := range ways {
		first, last := g.block(s, depth-1, leaf)
		switch {
		case kind == "parallel":
			g.flow(s, in, first)
		case i == ways-1:
			def = g.id("f")
			s.put(`<bpmn:sequenceFlow id="%s" sourceRef="%s" targetRef="%s"/>`, def, in, first)
		default:
			g.when(s, in, first, fmt.Sprintf("=pick &gt; %d", i))
		}
		g.flow(s, last, out)
	}
	attr := ""
	if def != "" {
		attr = fmt.Sprintf(` default="%s"`, def)
	}
	s.put(`<bpmn:%[1]sGateway id="%[2]s"%[3]s/><bpmn:%[1]sGateway id="%[4]s"/>`, kind, in, attr, out)
	return in, out
}

func (g *generator) eventBased(s *scope, depth int, leaf bool) (in, out string) {
	g.use("event-based")
	in, out = g.id("g"), g.id("j")
	s.put(`<bpmn:eventBasedGateway id="%s"/><bpmn:exclusiveGateway id="%s"/>`, in, out)
	for _, def := range []string{g.onMessage(), onTimer("timeDuration", "PT7M"), onSignal}[:g.pick(2, 3)] {
		c := g.id("c")
		s.put(`<bpmn:intermediateCatchEvent id="%s">%s</bpmn:intermediateCatchEvent>`, c, def)
		g.flow(s, in, c)
		first, last := g.block(s, depth-1, leaf)
		g.flow(s, c, first)
		g.flow(s, last, out)
	}
	return in, out
}

// loop is multi-instance over a short list, or nothing.
func (g *generator) loop() string {
	if !g.chance(20) {
		return ""
	}
	sequential := g.chance(50)
	g.use(fmt.Sprintf("multi-instance, sequential %t", sequential))
	stop := ""
	if g.chance(30) {
		g.use("completion condition")
		stop = `<bpmn:completionCondition>=numberOfCompletedInstances &gt; 0 and pick = 2</bpmn:completionCondition>`
	}
	return fmt.Sprintf(`<bpmn:multiInstanceLoopCharacteristics isSequential="%t"><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="%s" inputElement="i" outputCollection="got" outputElement="=i"/></bpmn:extensionElements>%s</bpmn:multiInstanceLoopCharacteristics>`,
		sequential, rapid.SampledFrom([]string{"=[1,2]", "=[1,2,3]", "=[]"}).Draw(g.t, "list"), stop)
}

// task is a service or user task, perhaps in a loop, with boundary events, perhaps with compensation.
func (g *generator) task(s *scope) (in, out string) {
	id := g.id("t")
	if g.chance(15) {
		g.use("user task")
		s.put(`<bpmn:userTask id="%s"><bpmn:extensionElements><zeebe:userTask/></bpmn:extensionElements>%s</bpmn:userTask>`, id, g.loop())
	} else {
		g.use("service task")
		mapping := ""
		if g.chance(30) {
			mapping = `<zeebe:ioMapping><zeebe:input source="=pick + 1" target="given"/><zeebe:output source="=v" target="taken"/></zeebe:ioMapping>`
		}
		s.put(`<bpmn:serviceTask id="%s"><bpmn:extensionElements><zeebe:taskDefinition type="job"/>%s</bpmn:extensionElements>%s</bpmn:serviceTask>`, id, mapping, g.loop())
	}
	g.undo(s, id)
	return id, g.boundaries(s, id, []string{"timer", "cycle", "message", "signal", "error"})
}

// undo gives the activity a compensation handler, perhaps.
func (g *generator) undo(s *scope, id string) {
	if !g.chance(40) {
		return
	}
	g.use("compensation handler")
	b, h := g.id("b"), g.id("undo")
	s.put(`<bpmn:boundaryEvent id="%[1]s" attachedToRef="%[2]s">%[4]s</bpmn:boundaryEvent>
<bpmn:serviceTask id="%[3]s" isForCompensation="true"><bpmn:extensionElements><zeebe:taskDefinition type="job"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:association id="%[1]sa" sourceRef="%[1]s" targetRef="%[3]s"/>`, b, id, h, undoAll)
	s.undone = append(s.undone, id)
}

// boundaries attach up to two events whose branch is a task. It ends by itself, or,
// after an event that interrupts, joins what follows the host; out is where that begins.
func (g *generator) boundaries(s *scope, host string, kinds []string) (out string) {
	used, out := map[string]bool{}, host
	for range g.pick(0, 0, 1, 2) {
		kind := rapid.SampledFrom(kinds).Draw(g.t, "boundary")
		if used[kind] {
			continue
		}
		used[kind] = true
		g.use("boundary " + kind)
		interrupts := g.chance(60)
		def := onTimer("timeDuration", "PT5M")
		switch kind {
		case "cycle":
			def, interrupts = onTimer("timeCycle", "R2/PT3M"), false
		case "message":
			def = g.onMessage()
		case "signal":
			def = onSignal
		case "escalation":
			def = onEscalate
		case "error":
			def, interrupts = onError, true
		}
		b, t := g.id("b"), g.id("t")
		s.put(`<bpmn:boundaryEvent id="%s" attachedToRef="%s" cancelActivity="%t">%s</bpmn:boundaryEvent>
<bpmn:serviceTask id="%s"><bpmn:extensionElements><zeebe:taskDefinition type="job"/></bpmn:extensionElements></bpmn:serviceTask>`, b, host, interrupts, def, t)
		g.flow(s, b, t)
		switch {
		case !interrupts:
			e := g.id("e")
			s.put(`<bpmn:endEvent id="%s"/>`, e)
			g.flow(s, t, e)
			continue
		case out == host:
			out = g.id("j")
			s.put(`<bpmn:exclusiveGateway id="%s"/>`, out)
			g.flow(s, host, out)
		}
		g.flow(s, t, out)
	}
	return out
}

// wait is an event in the flow.
func (g *generator) wait(s *scope) (in, out string) {
	id := g.id("c")
	switch kind := rapid.SampledFrom([]string{"timer", "message", "signal", "receive task"}).Draw(g.t, "wait"); kind {
	case "receive task":
		g.use(kind)
		s.put(`<bpmn:receiveTask id="%s" messageRef="%s"/>`, id, g.message())
		return id, g.boundaries(s, id, []string{"timer", "cycle", "signal"})
	default:
		g.use(kind + " catch")
		def := map[string]string{"timer": onTimer("timeDuration", "PT10M"), "signal": onSignal}[kind]
		if kind == "message" {
			def = g.onMessage()
		}
		s.put(`<bpmn:intermediateCatchEvent id="%s">%s</bpmn:intermediateCatchEvent>`, id, def)
	}
	return id, id
}

// step is an element that does not wait, or waits for compensation only.
func (g *generator) step(s *scope) (in, out string) {
	id := g.id("x")
	switch kind := rapid.SampledFrom([]string{"script", "manual", "escalation throw", "compensation throw", "link", "signal throw"}).Draw(g.t, "step"); kind {
	case "script":
		g.use(kind)
		s.put(`<bpmn:scriptTask id="%s"><bpmn:extensionElements><zeebe:script expression="=pick + 1" resultVariable="sum"/></bpmn:extensionElements></bpmn:scriptTask>`, id)
	case "escalation throw":
		g.use(kind)
		s.put(`<bpmn:intermediateThrowEvent id="%s">%s</bpmn:intermediateThrowEvent>`, id, onEscalate)
	case "compensation throw":
		g.use(kind)
		def := undoAll
		if len(s.undone) > 0 && g.chance(50) {
			def = fmt.Sprintf(`<bpmn:compensateEventDefinition activityRef="%s"/>`, rapid.SampledFrom(s.undone).Draw(g.t, "activity"))
		}
		s.put(`<bpmn:intermediateThrowEvent id="%s">%s</bpmn:intermediateThrowEvent>`, id, def)
	case "signal throw":
		g.use(kind)
		s.put(`<bpmn:intermediateThrowEvent id="%s">%s</bpmn:intermediateThrowEvent>`, id, onSignal)
	case "link":
		g.use(kind)
		to := g.id("x")
		s.put(`<bpmn:intermediateThrowEvent id="%[1]s"><bpmn:linkEventDefinition name="%[1]s"/></bpmn:intermediateThrowEvent><bpmn:intermediateCatchEvent id="%[2]s"><bpmn:linkEventDefinition name="%[1]s"/></bpmn:intermediateCatchEvent>`, id, to)
		return id, to
	default:
		g.use(kind)
		s.put(`<bpmn:manualTask id="%s"/>`, id)
	}
	return id, id
}

// subprocess is a scope of its own; one that can end by an error or a terminate end catches it.
func (g *generator) subprocess(s *scope, depth int, leaf bool) (in, out string) {
	g.use("subprocess")
	id := g.id("sp")
	body := &scope{inside: "sub"}
	g.body(body, depth-1, leaf)
	kinds := []string{"timer", "message", "signal", "escalation", "error"}
	if g.chance(30) { // a branch that ends the whole scope
		g.use("end of the scope from a branch")
		start, split, way := g.id("t"), g.id("g"), g.id("f")
		end := rapid.SampledFrom([]string{onCode, `<bpmn:terminateEventDefinition/>`, onEscalate, undoAll}).Draw(g.t, "end")
		first, last := g.id("e"), g.id("e")
		body.put(`<bpmn:subProcess id="%s"><bpmn:startEvent id="%s"/><bpmn:exclusiveGateway id="%s" default="%s"/><bpmn:endEvent id="%s">%s</bpmn:endEvent><bpmn:endEvent id="%s"/>`, start, start+"s", split, way, first, end, last)
		g.flow(body, start+"s", split)
		g.when(body, split, first, "=pick = 1")
		body.put(`<bpmn:sequenceFlow id="%s" sourceRef="%s" targetRef="%s"/></bpmn:subProcess>`, way, split, last)
		// It hangs behind a task of the scope; an error goes to a boundary event of it.
		t, b, e := g.id("t"), g.id("b"), g.id("e")
		body.put(`<bpmn:serviceTask id="%s"><bpmn:extensionElements><zeebe:taskDefinition type="job"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:boundaryEvent id="%s" attachedToRef="%s">%s</bpmn:boundaryEvent><bpmn:endEvent id="%s"/>`, t, b, start, onError, e)
		g.flow(body, b, e)
		g.flow(body, start, t)
		// The scope forks into it right at its start: its start event has two flows.
		g.flow(body, body.start(), start)
		end2 := g.id("e")
		body.put(`<bpmn:endEvent id="%s"/>`, end2)
		g.flow(body, t, end2)
	}
	s.put(`<bpmn:subProcess id="%s">%s%s</bpmn:subProcess>`, id, body.xml.String(), g.loop())
	return id, g.boundaries(s, id, kinds)
}

// start is the id of the scope's start event, which is put first.
func (s *scope) start() string {
	_, rest, _ := strings.Cut(s.xml.String(), `<bpmn:startEvent id="`)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

func (g *generator) eventSubprocess(s *scope) {
	kind := rapid.SampledFrom([]string{"timer", "message", "signal", "error", "escalation"}).Draw(g.t, "event subprocess")
	mark := `<!--` + kind + `-->`
	if strings.Contains(s.xml.String(), mark) { // one of each kind in a scope
		return
	}
	g.use("event subprocess " + kind)
	def := map[string]string{"timer": onTimer("timeDuration", "PT15M"), "signal": onSignal, "error": onError, "escalation": onEscalate}[kind]
	if kind == "message" {
		def = g.onMessage()
	}
	interrupts := kind == "error" || g.chance(50)
	id, start, end := g.id("ev"), g.id("s"), g.id("e")
	body := &scope{inside: "event", undone: s.undone}
	body.put(`<bpmn:startEvent id="%s" isInterrupting="%t">%s</bpmn:startEvent><bpmn:endEvent id="%s"/>`, start, interrupts, def, end)
	at := start
	if g.chance(60) {
		g.use("compensation from an event subprocess")
		th := g.id("x")
		body.put(`<bpmn:intermediateThrowEvent id="%s">%s</bpmn:intermediateThrowEvent>`, th, undoAll)
		g.flow(body, at, th)
		at = th
	}
	in, out := g.task(body)
	g.flow(body, at, in)
	g.flow(body, out, end)
	s.put(`%s<bpmn:subProcess id="%s" triggeredByEvent="true">%s</bpmn:subProcess>`, mark, id, body.xml.String())
}

func (g *generator) call(s *scope) (in, out string) {
	g.use("call activity")
	id := g.id("call")
	s.put(`<bpmn:callActivity id="%s"><bpmn:extensionElements><zeebe:calledElement processId="child" propagateAllChildVariables="%t"/></bpmn:extensionElements>%s</bpmn:callActivity>`, id, g.chance(50), g.loop())
	g.undo(s, id)
	return id, g.boundaries(s, id, []string{"timer", "message", "signal", "error", "escalation"})
}
