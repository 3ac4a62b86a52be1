package conformance

import (
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation page "Zeebe API (gRPC)": DeployResource, CreateProcessInstance, CancelProcessInstance, DeleteResource, Topology.

func TestTopology(t *testing.T) {
	t.Parallel()
	z := open(t)
	r, err := z.Topology(z.ctx, &pb.TopologyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	p := r.GetBrokers()[0].GetPartitions()[0]
	if r.GetClusterSize() != 1 || r.GetPartitionsCount() != 1 || p.GetPartitionId() != 1 || p.GetRole() != pb.Partition_LEADER || p.GetHealth() != pb.Partition_HEALTHY {
		t.Errorf("topology: %v", r)
	}
}

func TestDeploy_SameBytesKeepTheVersion(t *testing.T) {
	t.Parallel()
	z := open(t)
	first := z.deploy("one.bpmn", oneTask("one"))
	again := z.deploy("one.bpmn", oneTask("one"))
	a, b := first.GetDeployments()[0].GetProcess(), again.GetDeployments()[0].GetProcess()
	if a.GetVersion() != 1 || b.GetVersion() != 1 || a.GetProcessDefinitionKey() != b.GetProcessDefinitionKey() {
		t.Errorf("got %v then %v, want the same version and key", a, b)
	}
	renamed := z.deploy("renamed.bpmn", oneTask("one")).GetDeployments()[0].GetProcess()
	if renamed.GetVersion() != 2 || renamed.GetResourceName() != "renamed.bpmn" || renamed.GetTenantId() != "<default>" {
		t.Errorf("renamed: %v, want version 2", renamed)
	}
	changed := z.deploy("renamed.bpmn", oneTask("one", mappings("input", "=1", "x"))).GetDeployments()[0].GetProcess()
	if changed.GetVersion() != 3 {
		t.Errorf("changed: %v, want version 3", changed)
	}
}

func TestDeploy_Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		xml  string
		says []string
	}{
		"not XML":                       {"nope", nil},
		"unsupported element":           {model(process("p", start("s"), `<bpmn:complexGateway id="cg"/>`, end("e"), flow("s", "cg", "e"))), []string{"cg", "complexGateway"}},
		"transaction":                   {model(process("p", start("s"), `<bpmn:transaction id="tx"/>`, end("e"), flow("s", "tx", "e"))), []string{"tx"}},
		"task without type":             {model(process("p", start("s"), `<bpmn:serviceTask id="a"/>`, end("e"), flow("s", "a", "e"))), []string{"a"}},
		"broken FEEL":                   {model(process("p", start("s"), taskOf("a", "=1 +"), end("e"), flow("s", "a", "e"))), []string{"a"}},
		"missing condition":             {model(process("p", start("s"), gateway("exclusive", "g"), end("e"), end("e2"), flow("s", "g", "e"), flow("g", "e2"))), []string{"g"}},
		"bad cycle":                     {model(process("p", startWith("s", timer("timeCycle", "every day"), true), end("e"), flow("s", "e"))), []string{"s"}},
		"message without key":           {model(messageDef("m", "x", ""), process("p", start("s"), catchEvent("c", messageEvent("m")), end("e"), flow("s", "c", "e"))), []string{"c"}},
		"no executable process":         {model(`<bpmn:process id="p" isExecutable="false"/>`), nil},
		"flow to nowhere":               {model(process("p", start("s"), `<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="x"/>`)), []string{"f"}},
		"straight-through loop":         {model(process("p", start("s"), `<bpmn:manualTask id="a"/>`, `<bpmn:manualTask id="b"/>`, flow("s", "a", "b", "a"))), nil},
		"two activities of one id":      {model(process("p", start("s"), task("a"), task("a"), end("e"), flow("s", "a", "e"))), []string{"a"}},
		"handler with flows":            {model(process("p", start("s"), task("a"), undo("a", "h"), task("b"), end("e"), flow("s", "a", "e"), flow("h", "b"))), []string{"h"}},
		"event gateway with one branch": {model(process("p", start("s"), gateway("eventBased", "g"), catchEvent("c", duration("PT1S")), end("e"), flow("s", "g", "c", "e"))), []string{"g"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := open(t)
			z.refuseDeploy(c.xml, c.says...)
			if d := z.search("process-definitions", nil); len(d) != 0 && z.engine != nil {
				t.Errorf("definitions: %v, want none", d)
			}
		})
	}
}

func TestDeploy_AllOrNothing(t *testing.T) {
	t.Parallel()
	z := open(t)
	_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{
		{Name: "good.bpmn", Content: []byte(oneTask("good"))}, {Name: "bad.bpmn", Content: []byte("<x/>")},
	}})
	z.refused(err, codes.InvalidArgument, "bad.bpmn")
	_, err = z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "good", Version: -1})
	z.refused(err, codes.NotFound, "Expected to find process definition with process ID 'good', but none found")
}

func TestDeploy_NothingOrOtherFiles(t *testing.T) {
	t.Parallel()
	z := open(t)
	_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{})
	z.refused(err, codes.InvalidArgument, "Expected to deploy at least one resource, but none given")
	_, err = z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "x.txt", Content: []byte("x")}}})
	z.refused(err, codes.InvalidArgument, "x.txt")
	_, err = z.DeployResource(z.ctx, &pb.DeployResourceRequest{TenantId: "other", Resources: []*pb.Resource{{Name: "x.bpmn"}}})
	z.refused(err, codes.InvalidArgument, "multi-tenancy is disabled")
}

func TestCreate_ByIDVersionAndKey(t *testing.T) {
	t.Parallel()
	z := open(t)
	v1 := z.deploy("one.bpmn", oneTask("one")).GetDeployments()[0].GetProcess()
	z.deploy("one.bpmn", oneTask("one", mappings("input", "=2", "v")))
	for _, c := range []struct {
		req  *pb.CreateProcessInstanceRequest
		want int32
	}{
		{&pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1}, 2},
		{&pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: 1}, 1},
		{&pb.CreateProcessInstanceRequest{ProcessDefinitionKey: v1.GetProcessDefinitionKey()}, 1},
	} {
		r, err := z.CreateProcessInstance(z.ctx, c.req)
		if err != nil {
			t.Fatal(err)
		}
		if r.GetVersion() != c.want || r.GetBpmnProcessId() != "one" || r.GetTenantId() != "<default>" || r.GetProcessInstanceKey() < 1<<51 {
			t.Errorf("%v: got %v, want version %d", c.req, r, c.want)
		}
	}
}

func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("m.bpmn", startedBy("go"))
	z.deploy("g.bpmn", model(messageDef("m", "x", "=k"), process("g", start("s"), gateway("eventBased", "eg"), catchEvent("c1", messageEvent("m")), catchEvent("c2", duration("PT1H")),
		loop(sub("mi", start("is"), task("in"), end("ie"), flow("is", "in", "ie")), "=[1]", false), end("e"), flow("s", "eg", "c1", "mi", "e"), flow("eg", "c2", "mi"))))
	start := func(id string) *pb.CreateProcessInstanceRequest {
		return &pb.CreateProcessInstanceRequest{BpmnProcessId: "g", Version: -1, StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: id}}}
	}
	for _, c := range []struct {
		name string
		req  *pb.CreateProcessInstanceRequest
		code codes.Code
		text string
	}{
		{"unknown id", &pb.CreateProcessInstanceRequest{BpmnProcessId: "x", Version: -1}, codes.NotFound, "with process ID 'x', but none found"},
		{"unknown version", &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: 9}, codes.NotFound, "with process ID 'p' and version '9', but none found"},
		{"unknown key", &pb.CreateProcessInstanceRequest{ProcessDefinitionKey: 9}, codes.NotFound, "with key '9', but none found"},
		{"neither", &pb.CreateProcessInstanceRequest{}, codes.InvalidArgument, "Expected at least a bpmnProcessId or a key greater than -1, but none given"},
		{"no none start", &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1}, codes.FailedPrecondition, "none start event"},
		{"bad variables", &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Variables: "x"}, codes.InvalidArgument, "Invalid JSON value: x"},
		{"tenant", &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", TenantId: "t"}, codes.InvalidArgument, "multi-tenancy is disabled"},
		{"start: unknown", start("zz"), codes.InvalidArgument, "no element found with id 'zz'"},
		{"start: start event", start("s"), codes.InvalidArgument, "unsupported element type 'START_EVENT'"},
		{"start: behind an event gateway", start("c1"), codes.InvalidArgument, "event-based gateway"},
		{"start: in a multi-instance", start("in"), codes.InvalidArgument, "multi-instance"},
	} {
		_, err := z.CreateProcessInstance(z.ctx, c.req)
		t.Run(c.name, func(t *testing.T) { z.with(t).refused(err, c.code, c.text) })
	}
}

func TestCreate_StartInstructions(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), task("a"), sub("sp", start("is"), task("b"), task("c"), end("ie"), flow("is", "b", "c", "ie")), end("e"), flow("s", "a", "sp", "e"))))
	r, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "c"}}})
	if err != nil {
		t.Fatal(err)
	}
	z.none("a")
	z.none("b")
	z.work("c", "")
	z.state(r.GetProcessInstanceKey(), "COMPLETED")
}

func TestCreateWithResult(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:scriptTask id="a"><bpmn:extensionElements><zeebe:script expression="=x+1" resultVariable="y"/></bpmn:extensionElements></bpmn:scriptTask>`, end("e"), flow("s", "a", "e"))))
	r, err := z.CreateProcessInstanceWithResult(z.ctx, &pb.CreateProcessInstanceWithResultRequest{
		Request: &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: `{"x":1}`}, RequestTimeout: 5000, FetchVariables: []string{"y"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.GetVariables() != `{"y":2}` {
		t.Errorf("variables: %s, want {\"y\":2}", r.GetVariables())
	}
	z.state(r.GetProcessInstanceKey(), "COMPLETED")
}

func TestCreateWithResult_TimesOutAndTheInstanceGoesOn(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("one.bpmn", oneTask("one"))
	_, err := z.CreateProcessInstanceWithResult(z.ctx, &pb.CreateProcessInstanceWithResultRequest{
		Request: &pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1}, RequestTimeout: 50,
	})
	z.refused(err, codes.DeadlineExceeded, "Time out between gateway and broker")
	j := z.work("work", "")
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}

func TestCancel_TerminatesEverything(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), sub("sp", start("is"), task("a"), end("ie"), flow("is", "a", "ie")), end("e"), flow("s", "sp", "e"))))
	k := z.create("p", "")
	j := z.job("a")
	z.cancel(k)
	z.state(k, "TERMINATED")
	for _, id := range []string{"sp", "a"} {
		if e := z.element(k, id, "TERMINATED"); e["endDate"] == nil {
			t.Errorf("%s has no end date", id)
		}
	}
	_, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 1})
	z.refused(err, codes.NotFound, "no such job")
}

func TestUnsupportedCallsSayWhich(t *testing.T) {
	t.Parallel()
	z := open(t)
	if z.engine == nil {
		t.Skip("left out: limits of the embedded engine")
	}
	_, err := z.EvaluateDecision(z.ctx, &pb.EvaluateDecisionRequest{})
	z.refused(err, codes.Unimplemented, "EvaluateDecision")
}

func TestPassThroughTasks(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:manualTask id="m"/>`, `<bpmn:task id="u"/>`, end("e"), flow("s", "m", "u", "e"))))
	k := z.create("p", "")
	z.state(k, "COMPLETED")
	if e := z.element(k, "m", "COMPLETED"); e["type"] != "MANUAL_TASK" {
		t.Errorf("type: %v", e["type"])
	}
}

func TestJobTasks_SendScriptAndBusinessRule(t *testing.T) {
	t.Parallel()
	z := open(t)
	def := `<bpmn:extensionElements><zeebe:taskDefinition type="j"/></bpmn:extensionElements>`
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:sendTask id="a">`+def+`</bpmn:sendTask>`, `<bpmn:scriptTask id="b">`+def+`</bpmn:scriptTask>`,
		`<bpmn:businessRuleTask id="c">`+def+`</bpmn:businessRuleTask>`, end("e"), flow("s", "a", "b", "c", "e"))))
	k := z.create("p", "")
	for _, id := range []string{"a", "b", "c"} {
		if j := z.work("j", ""); j.GetElementId() != id {
			t.Errorf("job of %s, want %s", j.GetElementId(), id)
		}
	}
	z.state(k, "COMPLETED")
}

func TestJobUserTask_AssignmentInHeaders(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:userTask id="u"><bpmn:extensionElements><zeebe:assignmentDefinition assignee="=who" candidateGroups="=[&quot;ops&quot;]"/></bpmn:extensionElements></bpmn:userTask>`, end("e"), flow("s", "u", "e"))))
	k := z.create("p", `{"who":"ann"}`)
	j := z.job("io.camunda.zeebe:userTask")
	if h := j.GetCustomHeaders(); !strings.Contains(h, `"io.camunda.zeebe:assignee":"ann"`) || !strings.Contains(h, `"io.camunda.zeebe:candidateGroups":"[\"ops\"]"`) {
		t.Errorf("headers: %s", h)
	}
	z.complete(j, "")
	z.state(k, "COMPLETED")
}

func TestDelete_Resource(t *testing.T) {
	t.Parallel()
	z := open(t)
	_, err := z.DeleteResource(z.ctx, &pb.DeleteResourceRequest{ResourceKey: 1})
	z.refused(err, codes.NotFound, "Expected to delete resource but no resource found with key `1`")
	v1 := z.deploy("p.bpmn", startedBy("go")).GetDeployments()[0].GetProcess().GetProcessDefinitionKey()
	v2 := z.deploy("p.bpmn", model(messageDef("m", "go2", ""), process("p", startWith("s", messageEvent("m"), true), task("work2"), end("e"), flow("s", "work2", "e")))).GetDeployments()[0].GetProcess().GetProcessDefinitionKey()
	z.publish("go2", "", "", 0, "")
	j := z.job("work2")
	_, err = z.DeleteResource(z.ctx, &pb.DeleteResourceRequest{ResourceKey: v2})
	z.refused(err, codes.FailedPrecondition, "running instances")
	z.complete(j, "")
	if _, err = z.DeleteResource(z.ctx, &pb.DeleteResourceRequest{ResourceKey: v2}); err != nil {
		t.Fatal(err)
	}
	z.publish("go2", "", "", 0, "")
	z.none("work2")
	z.publish("go", "", "", 0, "") // version 1 is the latest again
	z.work("work", "")
	if _, err = z.DeleteResource(z.ctx, &pb.DeleteResourceRequest{ResourceKey: v1}); err != nil {
		t.Fatal(err)
	}
	_, err = z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{ProcessDefinitionKey: v1})
	z.refused(err, codes.NotFound, "none found")
	if again := z.deploy("p.bpmn", startedBy("go")).GetDeployments()[0].GetProcess(); again.GetVersion() != 3 {
		t.Errorf("version %d, want 3: versions are not used again", again.GetVersion())
	}
}

func TestCreate_StartInsideASubprocessThatNeedsRepair(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:subProcess id="sp"><bpmn:extensionElements>`+mappings("input", `=assert(x, x > 0, "no x")`, "y")+`</bpmn:extensionElements>`+
		start("is")+task("b")+task("c")+task("d")+end("ie")+flow("is", "b", "c", "d", "ie")+`</bpmn:subProcess>`, end("e"), flow("s", "sp", "e"))))
	r, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "c"}, {ElementId: "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	k := r.GetProcessInstanceKey()
	inc := z.incident(k, "IO_MAPPING_ERROR")
	z.none("c")
	z.setVariables(k, `{"x":1}`)
	z.resolve(inc)
	z.none("b")
	z.work("c", "")
	z.work("d", "")
	z.work("d", "")
	z.state(k, "COMPLETED")
	if n := len(z.search("element-instances", item{"processInstanceKey": str(k), "elementId": "sp"})); n != 1 {
		t.Errorf("the subprocess was entered %d times, want once", n)
	}
}
