package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// moving is a test of one migration: instance k of process "old" goes to process "new".
type moving struct {
	t   *testing.T
	c   *core.Core
	k   int64
	new int64
}

func svc(id string, more ...string) string {
	return fmt.Sprintf(`<bpmn:serviceTask id=%q><bpmn:extensionElements><zeebe:taskDefinition type=%q/></bpmn:extensionElements>%s</bpmn:serviceTask>`, id, strings.TrimRight(id, "0123456789"), strings.Join(more, ""))
}

func edge(id, from, to string) string {
	return fmt.Sprintf(`<bpmn:sequenceFlow id=%q sourceRef=%q targetRef=%q/>`, id, from, to)
}

func many(sequential bool) string {
	return fmt.Sprintf(`<bpmn:multiInstanceLoopCharacteristics isSequential="%t"><bpmn:extensionElements><zeebe:loopCharacteristics inputCollection="=[1,2,3]" inputElement="i" outputCollection="out" outputElement="=r"/></bpmn:extensionElements></bpmn:multiInstanceLoopCharacteristics>`, sequential)
}

func timer(id, host, duration string) string {
	return fmt.Sprintf(`<bpmn:boundaryEvent id=%q attachedToRef=%q><bpmn:timerEventDefinition><bpmn:timeDuration>%s</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:boundaryEvent>`, id, host, duration)
}

func undone(boundary, host, handler string) string {
	return fmt.Sprintf(`<bpmn:boundaryEvent id=%q attachedToRef=%q><bpmn:compensateEventDefinition/></bpmn:boundaryEvent><bpmn:serviceTask id=%q isForCompensation="true"><bpmn:extensionElements><zeebe:taskDefinition type=%q/></bpmn:extensionElements></bpmn:serviceTask><bpmn:association id="as_%s" sourceRef=%q targetRef=%q/>`, boundary, host, handler, handler, boundary, boundary, handler)
}

func message(id, name string) string {
	return fmt.Sprintf(`<bpmn:message id=%q name=%q><bpmn:extensionElements><zeebe:subscription correlationKey="=&quot;k&quot;"/></bpmn:extensionElements></bpmn:message>`, id, name)
}

const undoEnd = `<bpmn:endEvent id="undo_all"><bpmn:compensateEventDefinition/></bpmn:endEvent>`

// migrating deploys both processes, starts one instance of the old one and runs it to its first stop.
func migrating(t *testing.T, roots, old, new string) *moving {
	t.Helper()
	c := core.New(epoch, 0)
	m := &moving{t: t, c: c}
	for _, p := range [][2]string{{"old", old}, {"new", new}} {
		id, body := p[0], p[1]
		d, err := c.Deploy([]core.Resource{{Name: id + ".bpmn", Content: []byte(head + roots + `<bpmn:process id="` + id + `" isExecutable="true">` + body + `</bpmn:process></bpmn:definitions>`)}}, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range d.Processes {
			if x.ID == "new" {
				m.new = x.Key
			}
		}
	}
	i, err := c.CreateInstance(core.Creation{ProcessID: "old", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	c.Run(1000)
	m.k = i.Key
	return m
}

// migrate maps "a:b" pairs; the state after it must come back from a snapshot.
func (m *moving) migrate(pairs string) error {
	m.t.Helper()
	p := core.Migration{Instance: m.k, Target: m.new}
	for _, x := range strings.Fields(pairs) {
		from, to, _ := strings.Cut(x, ":")
		p.Elements = append(p.Elements, core.ElementMapping{Source: from, Target: to})
	}
	err := m.c.Migrate(p)
	m.c.Run(1000)
	if got := canonical(m.t, restored(m.t, m.c)); got != canonical(m.t, m.c) {
		m.t.Error("after the migration the state comes back as another")
	}
	return err
}

func (m *moving) ok(pairs string) {
	m.t.Helper()
	if err := m.migrate(pairs); err != nil {
		m.t.Fatal(err)
	}
}

// refused asserts the reason, and that nothing changed.
func (m *moving) refused(pairs, text string) {
	m.t.Helper()
	before := canonical(m.t, m.c)
	err := m.migrate(pairs)
	if err == nil || !strings.Contains(err.Error(), text) {
		m.t.Errorf("%q: got %v, want %q", pairs, err, text)
	}
	keys := func(s string) string { return s[strings.Index(s, `"processes"`):] } // evaluated events use up keys
	if keys(canonical(m.t, m.c)) != keys(before) {
		m.t.Errorf("%q: the refusal changed the state", pairs)
	}
}

// jobs are the types of the live jobs.
func (m *moving) jobs() string {
	var types []string
	for j := range m.c.Jobs(0) {
		if j.State < core.JobCompleted {
			types = append(types, j.Type)
		}
	}
	slices.Sort(types)
	return strings.Join(types, " ")
}

// done completes the oldest job of the type.
func (m *moving) done(jobType string) {
	m.t.Helper()
	for j := range m.c.Jobs(0) {
		if j.Type == jobType && j.State < core.JobCompleted {
			if err := m.c.CompleteJob(j.Key, core.Doc{"r": fmt.Append(nil, j.Key%2)}); err != nil {
				m.t.Fatal(err)
			}
			m.c.Run(1000)
			return
		}
	}
	m.t.Fatalf("no job %q, but %q", jobType, m.jobs())
}

func (m *moving) want(jobs string) {
	m.t.Helper()
	if got := m.jobs(); got != jobs {
		m.t.Errorf("jobs %q, want %q", got, jobs)
	}
}

func (m *moving) ended() {
	m.t.Helper()
	if i := m.c.Instance(m.k); i.Root.State != core.Completed {
		m.t.Errorf("the instance is in state %d with jobs %q, want completed", i.Root.State, m.jobs())
	}
}

func (m *moving) advance(d time.Duration) {
	now := m.c.Now().Add(d)
	for m.c.FireNext(now) {
		m.c.Run(1000)
	}
}

func TestMigrate_MultiInstance(t *testing.T) {
	t.Parallel()
	old := `<bpmn:startEvent id="s"/>` + edge("f", "s", "a1") + svc("a1", many(false))
	m := migrating(t, "", old, `<bpmn:startEvent id="begin"/>`+edge("f", "begin", "z2")+svc("z2", many(false))+edge("g", "z2", "b")+svc("b"))
	m.done("a")
	m.want("a a")
	m.ok("a1:z2")
	m.want("a a")
	m.done("a")
	m.done("a")
	m.want("b")
	m.done("b")
	m.ended()
	if v, ok := m.c.Instance(m.k).Root.Variable("out"); !ok || strings.Count(string(v.Value), ",") != 2 || strings.Contains(string(v.Value), "null") {
		t.Errorf("output collection %v, want three results", v)
	}
	m = migrating(t, "", old, `<bpmn:startEvent id="s"/>`+edge("f", "s", "z1")+svc("z1", many(true))+edge("g", "z1", "plain")+svc("plain"))
	m.refused("a1:z1", "different loop characteristics")
	m.refused("a1:plain", "type 'MULTI_INSTANCE_BODY' is mapped to an element with id 'plain' and different type 'SERVICE_TASK'")
	m = migrating(t, "", strings.Replace(old, `isSequential="false"`, `isSequential="true"`, 1), `<bpmn:startEvent id="s"/>`+edge("f", "s", "z1")+svc("z1", many(true)))
	m.done("a")
	m.ok("a1:z1")
	m.done("a")
	m.done("z")
	m.ended()
}

func TestMigrate_CallActivityKeepsWhatItCalled(t *testing.T) {
	t.Parallel()
	call := func(id string) string {
		return fmt.Sprintf(`<bpmn:callActivity id=%q><bpmn:extensionElements><zeebe:calledElement processId="child"/></bpmn:extensionElements></bpmn:callActivity>`, id)
	}
	m := migrating(t, `<bpmn:process id="child" isExecutable="true"><bpmn:startEvent id="cs"/>`+edge("cf", "cs", "in")+svc("in")+`</bpmn:process>`,
		`<bpmn:startEvent id="s"/>`+edge("f", "s", "c1")+call("c1"), `<bpmn:startEvent id="s"/>`+edge("f", "s", "c2")+call("c2")+edge("g", "c2", "b")+svc("b"))
	m.want("in")
	m.refused("", "no mapping instruction defined for active element with id 'c1'")
	m.ok("c1:c2")
	m.want("in")
	m.done("in")
	m.want("b")
	m.done("b")
	m.ended()
}

func TestMigrate_JoiningGateway(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"parallelGateway", "inclusiveGateway"} {
		gate := func(id string) string { return fmt.Sprintf(`<bpmn:%s id=%q/>`, kind, id) }
		old := `<bpmn:startEvent id="s"/>` + edge("f", "s", "fork") + `<bpmn:parallelGateway id="fork"/>` + edge("f1", "fork", "a") + edge("f2", "fork", "b") + svc("a") + svc("b") +
			edge("f3", "a", "join") + edge("f4", "b", "join") + gate("join") + edge("f5", "join", "e") + `<bpmn:endEvent id="e"/>`
		now := `<bpmn:startEvent id="s"/>` + edge("g", "s", "fork") + `<bpmn:parallelGateway id="fork"/>` + edge("g1", "fork", "a") + edge("g2", "fork", "b") + svc("a") + svc("b") + svc("c") +
			edge("g3", "a", "meet") + edge("g4", "b", "c") + edge("g5", "c", "meet") + gate("meet") + edge("g6", "meet", "last") + svc("last") + `<bpmn:exclusiveGateway id="narrow"/>` + edge("g7", "last", "narrow")
		m := migrating(t, "", old, now)
		m.done("a")
		m.want("b")
		m.refused("b:b", "no mapping instruction defined for joining gateway with id 'join'")
		m.refused("b:b join:meet", "no mapping instruction defined for sequence flow with id 'f3'")
		m.refused("b:b join:narrow f3:g7", "different type 'EXCLUSIVE_GATEWAY'")
		m.refused("b:b join:meet f3:g4", "does not lead to 'meet'")
		m.refused("b:b join:meet f3:nope", "non-existing target element id 'nope'")
		m.ok("b:b join:meet f3:g3")
		m.want("b")
		m.done("b")
		m.want("c")
		m.done("c")
		m.want("last")
		m.done("last")
		m.ended()
	}
	// Fewer incoming flows would lose a place for a token.
	three := `<bpmn:startEvent id="s"/>` + edge("f", "s", "fork") + `<bpmn:parallelGateway id="fork"/>` + edge("f1", "fork", "a") + edge("f2", "fork", "b") + edge("f6", "fork", "join") + svc("a") + svc("b") +
		edge("f3", "a", "join") + edge("f4", "b", "join") + `<bpmn:parallelGateway id="join"/>`
	m := migrating(t, "", three, strings.Replace(three, edge("f6", "fork", "join"), "", 1))
	m.refused("a:a b:b join:join", "has 3 incoming sequence flows")
}

func TestMigrate_RecordedCompensation(t *testing.T) {
	t.Parallel()
	old := `<bpmn:startEvent id="s"/>` + edge("f", "s", "sub") + `<bpmn:subProcess id="sub"><bpmn:startEvent id="is"/>` + edge("i", "is", "in") + svc("in") + undone("ib", "in", "out") + `</bpmn:subProcess>` +
		edge("f0", "sub", "a") + svc("a") + undone("ab", "a", "ua") + edge("f1", "a", "b") + svc("b") + undone("bb", "b", "ub") + edge("f2", "b", "w") + svc("w") + edge("f3", "w", "undo_all") + undoEnd
	now := `<bpmn:startEvent id="s"/>` + edge("f", "s", "sub2") + `<bpmn:subProcess id="sub2"><bpmn:startEvent id="is"/>` + edge("i", "is", "in2") + svc("in2") + undone("ib2", "in2", "back") + `</bpmn:subProcess>` +
		edge("f0", "sub2", "a") + svc("a") + undone("ab2", "a", "fresh") + edge("f1", "a", "b") + svc("b") + undone("bb2", "b", "unb") + edge("f2", "b", "w") + svc("w") + edge("f3", "w", "undo_all") + undoEnd
	for pairs, jobs := range map[string]string{
		"w:w": "", "w:w ab:ab2": "fresh", "w:w ab:ab2 ib:ib2": "back fresh", "w:w ib:ib2 sub:sub2": "back", "w:w ab:ab2 bb:bb2 ib:ib2": "back fresh unb",
	} {
		m := migrating(t, "", old, now)
		m.done("in")
		m.done("a")
		m.done("b")
		m.want("w")
		m.ok(pairs)
		m.done("w")
		m.want(jobs)
		for _, j := range strings.Fields(jobs) {
			m.done(j)
		}
		m.ended()
	}
	m := migrating(t, "", old, now)
	m.done("in")
	m.done("a")
	m.done("b")
	m.refused("w:w ab:bb2 a:a", "cannot detach")
	m.done("w") // handlers run now
	m.refused("w:w ua:fresh ub:unb out:back undo_all:undo_all", "The migration of a END_EVENT is not supported")
}

// A subprocess whose own handler is dropped still hands on what was recorded inside it.
func TestMigrate_HandlerOfASubprocess(t *testing.T) {
	t.Parallel()
	body := `<bpmn:startEvent id="s"/>` + edge("f", "s", "sub") + `<bpmn:subProcess id="sub"><bpmn:startEvent id="is"/>` + edge("i", "is", "in") + svc("in") + undone("ib", "in", "out") + `</bpmn:subProcess>` +
		undone("sb", "sub", "whole") + edge("f0", "sub", "w") + svc("w") + edge("f3", "w", "undo_all") + undoEnd
	for pairs, jobs := range map[string]string{"w:w sub:sub ib:ib": "out", "w:w ib:ib": "out", "w:w sb:sb": "whole", "w:w sb:sb ib:ib": "out whole"} {
		m := migrating(t, "", body, body)
		m.done("in")
		m.ok(pairs)
		m.done("w")
		m.want(jobs)
	}
}

func TestMigrate_CatchEvents(t *testing.T) {
	t.Parallel()
	after := svc("late") + edge("fl", "t", "late")
	old := `<bpmn:startEvent id="s"/>` + edge("f", "s", "a") + svc("a") + timer("t", "a", "PT10M") + after
	m := migrating(t, "", old, old) // mapped: the time goes on
	m.advance(6 * time.Minute)
	m.ok("a:a t:t")
	m.advance(5 * time.Minute)
	m.want("late")
	m = migrating(t, "", old, old) // not mapped: it begins anew
	m.advance(6 * time.Minute)
	m.ok("a:a")
	m.advance(5 * time.Minute)
	m.want("a")
	m.advance(5 * time.Minute)
	m.want("late")
	m = migrating(t, "", old, `<bpmn:startEvent id="s"/>`+edge("f", "s", "a")+svc("a")) // gone in the target
	m.ok("a:a")
	m.advance(time.Hour)
	m.want("a")
	beside := strings.Replace(old, `attachedToRef="a"`, `attachedToRef="a" cancelActivity="false"`, 1)
	m = migrating(t, "", beside, beside) // what is mapped is not opened a second time
	m.advance(6 * time.Minute)
	m.ok("a:a t:t")
	m.advance(30 * time.Minute)
	m.want("a late")
	other := `<bpmn:startEvent id="s"/>` + edge("f", "s", "a") + svc("a") + edge("g", "a", "b") + svc("b") + timer("t", "b", "PT10M") + after
	m = migrating(t, "", old, other)
	m.refused("a:a t:t", "cannot detach a catch event")

	msg := message("m", "go") + `<bpmn:signal id="sig" name="sig"/>`
	hears := func(id string) string {
		return fmt.Sprintf(`<bpmn:boundaryEvent id=%q attachedToRef="a"><bpmn:messageEventDefinition messageRef="m"/></bpmn:boundaryEvent>`, id) + edge("to_"+id, id, "late") + svc("late")
	}
	begin := `<bpmn:startEvent id="s"/>` + edge("f", "s", "a") + svc("a")
	m = migrating(t, msg, begin+hears("h1"), begin+hears("h2"))
	m.refused("a:a", "already subscribed to with name 'go'")
	m.ok("a:a h1:h2")
	if _, err := m.c.Publish(core.Publication{Name: "go", CorrelationKey: "k"}); err != nil {
		t.Fatal(err)
	}
	m.c.Run(1000)
	m.want("late")
	m = migrating(t, msg, begin+hears("h1"), begin+strings.Replace(timer("t", "a", "PT1M"), "", "", 1)+after)
	m.refused("a:a h1:t", "different type 'BOUNDARY_EVENT (timer)'")
	twice := begin + hears("h1") + `<bpmn:boundaryEvent id="h3" attachedToRef="a"><bpmn:signalEventDefinition signalRef="sig"/></bpmn:boundaryEvent>` + edge("x", "h3", "late")
	m = migrating(t, msg, twice+timer("t1", "a", "PT1M")+edge("y", "t1", "late")+timer("t2", "a", "PT2M")+edge("z", "t2", "late"), begin+timer("t", "a", "PT1M")+after)
	m.refused("a:a t1:t t2:t", "mapped to the same element with id 't'")
}

// An event subprocess that runs goes on; the scope it interrupted opens nothing new.
func TestMigrate_EventSubprocess(t *testing.T) {
	t.Parallel()
	esp := func(id, duration, task string) string {
		return fmt.Sprintf(`<bpmn:subProcess id=%q triggeredByEvent="true"><bpmn:startEvent id="st_%s"><bpmn:timerEventDefinition><bpmn:timeDuration>%s</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:startEvent>`, id, id, duration) +
			edge("e_"+id, "st_"+id, task) + svc(task) + `</bpmn:subProcess>`
	}
	begin := `<bpmn:startEvent id="s"/>` + edge("f", "s", "a") + svc("a")
	m := migrating(t, "", begin+esp("one", "PT1M", "x"), begin+esp("two", "PT5M", "y")+esp("three", "PT7M", "z"))
	m.ok("a:a") // both are new: they begin now
	m.advance(6 * time.Minute)
	m.want("y")
	m = migrating(t, "", begin+esp("one", "PT1M", "x"), begin+esp("two", "PT5M", "y")+esp("three", "PT7M", "z"))
	m.advance(2 * time.Minute)
	m.want("x")
	m.ok("one:two x:y")
	m.advance(time.Hour)
	m.want("x")
	m.done("x")
	m.ended()
}

func TestMigrate_EventBasedGateway(t *testing.T) {
	t.Parallel()
	catch := func(id, duration string) string {
		return fmt.Sprintf(`<bpmn:intermediateCatchEvent id=%q><bpmn:timerEventDefinition><bpmn:timeDuration>%s</bpmn:timeDuration></bpmn:timerEventDefinition></bpmn:intermediateCatchEvent>`, id, duration)
	}
	body := func(first, second, task string) string {
		return `<bpmn:startEvent id="s"/>` + edge("f", "s", "g") + `<bpmn:eventBasedGateway id="g"/>` + edge("f1", "g", first) + edge("f2", "g", second) +
			catch(first, "PT10M") + catch(second, "PT20M") + edge("f3", first, task) + svc(task) + edge("f4", second, "slow") + svc("slow")
	}
	m := migrating(t, "", body("c1", "c2", "x"), body("d1", "d2", "y"))
	m.advance(8 * time.Minute)
	m.ok("g:g c1:d1")
	m.advance(3 * time.Minute)
	m.want("y")
}

// An incident's element goes on, and its step runs again as the target says.
func TestMigrate_Incidents(t *testing.T) {
	t.Parallel()
	gate := func(condition string) string {
		return `<bpmn:startEvent id="s"/>` + edge("f", "s", "x") + `<bpmn:exclusiveGateway id="x" default="df"/>` + edge("df", "x", "b") + svc("b") +
			`<bpmn:sequenceFlow id="c" sourceRef="x" targetRef="a"><bpmn:conditionExpression>` + condition + `</bpmn:conditionExpression></bpmn:sequenceFlow>` + svc("a")
	}
	m := migrating(t, "", gate("=nothing"), gate("=true"))
	m.ok("x:x")
	for i := range m.c.Incidents(m.k) {
		if err := m.c.ResolveIncident(i.Key); err != nil {
			t.Fatal(err)
		}
	}
	m.c.Run(1000)
	m.want("a")
	output := func(source string) string {
		return `<bpmn:startEvent id="s"/>` + edge("f", "s", "a") + `<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="a"/><zeebe:ioMapping><zeebe:output source="` + source + `" target="o"/></zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>`
	}
	m = migrating(t, "", output("=assert(nothing, nothing != null)"), output("=1"))
	m.done("a")
	m.ok("a:a")
	for i := range m.c.Incidents(m.k) {
		if err := m.c.ResolveIncident(i.Key); err != nil {
			t.Fatal(err)
		}
	}
	m.c.Run(1000)
	m.ended()
}
