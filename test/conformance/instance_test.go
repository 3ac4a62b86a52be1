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
	z := open(t, "grpc: Topology tells brokers, partitions, roles and health")
	r, err := z.Topology(z.ctx, &pb.TopologyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	leaders := map[int32]int{}
	for _, b := range r.GetBrokers() {
		for _, p := range b.GetPartitions() {
			if p.GetRole() == pb.Partition_LEADER && p.GetHealth() == pb.Partition_HEALTHY {
				leaders[p.GetPartitionId()]++
			}
		}
	}
	if int(r.GetClusterSize()) != len(r.GetBrokers()) || int(r.GetPartitionsCount()) != len(leaders) || leaders[1] != 1 || r.GetReplicationFactor() < 1 || !strings.HasPrefix(r.GetGatewayVersion(), "8.") {
		t.Errorf("topology: %v, want one healthy leader for each partition", r)
	}
	z.alive()
}

func TestDeploy_SameBytesKeepTheVersion(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: DeployResource of the same bytes under the same name keeps version and key")
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
	z.found("process-definitions", item{"processDefinitionId": "one"}, 3)
	k := z.create("one", "")
	if j := z.work("work", ""); j.GetProcessDefinitionVersion() != 3 {
		t.Errorf("the job has version %d, want the latest, 3", j.GetProcessDefinitionVersion())
	}
	z.state(k, "COMPLETED")
}

func TestDeploy_Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pins string
		xml  string
		says []string
	}{
		"not XML":                       {"grpc: DeployResource refuses what is no BPMN file", "nope", nil},
		"unsupported element":           {"bpmn-coverage: complex gateways are not supported", model(process("p", start("s"), `<bpmn:complexGateway id="cg"/>`, end("e"), flow("s", "cg", "e"))), []string{"cg", "complexGateway"}},
		"transaction":                   {"bpmn-coverage: transactions are not supported", model(process("p", start("s"), `<bpmn:transaction id="tx"/>`, end("e"), flow("s", "tx", "e"))), []string{"tx"}},
		"task without type":             {"service-tasks: a service task must have a task definition", model(process("p", start("s"), `<bpmn:serviceTask id="a"/>`, end("e"), flow("s", "a", "e"))), []string{"a"}},
		"broken FEEL":                   {"expressions: an expression that cannot be parsed is refused at deployment", model(process("p", start("s"), taskOf("a", "=1 +"), end("e"), flow("s", "a", "e"))), []string{"a"}},
		"exponent in FEEL":              {"feel-scala: a number has no exponent, so the rest is refused", model(process("p", start("s"), taskOf("a", `="a"`, mappings("input", "=1e3", "x")), end("e"), flow("s", "a", "e"))), []string{"a"}},
		"missing condition":             {"exclusive: each outgoing flow but the default must have a condition", model(process("p", start("s"), gateway("exclusive", "g"), end("e"), end("e2"), flow("s", "g", "e"), flow("g", "e2"))), []string{"g"}},
		"bad cycle":                     {"timer: a cycle is an interval of ISO 8601 or a cron expression", model(process("p", startWith("s", timer("timeCycle", "every day"), true), end("e"), flow("s", "e"))), []string{"s"}},
		"message without key":           {"message-events: a message catch event must have a correlation key", model(messageDef("m", "x", ""), process("p", start("s"), catchEvent("c", messageEvent("m")), end("e"), flow("s", "c", "e"))), []string{"c"}},
		"no executable process":         {"bpmn: only executable processes can be deployed", model(`<bpmn:process id="p" isExecutable="false"/>`), nil},
		"flow to nowhere":               {"bpmn: a sequence flow has a source and a target", model(process("p", start("s"), `<bpmn:sequenceFlow id="f" sourceRef="s" targetRef="x"/>`)), []string{"f"}},
		"straight-through loop":         {"tasks: a loop without any wait is refused at deployment", model(process("p", start("s"), `<bpmn:manualTask id="a"/>`, `<bpmn:manualTask id="b"/>`, flow("s", "a", "b", "a"))), nil},
		"two activities of one id":      {"bpmn: ids are unique in a file", model(process("p", start("s"), task("a"), task("a"), end("e"), flow("s", "a", "e"))), []string{"a"}},
		"handler with flows":            {"compensate: a handler has no incoming or outgoing flows", model(process("p", start("s"), task("a"), undo("a", "h"), task("b"), end("e"), flow("s", "a", "e"), flow("h", "b"))), []string{"h"}},
		"event gateway with one branch": {"event-based: an event-based gateway has two outgoing flows at least", model(process("p", start("s"), gateway("eventBased", "g"), catchEvent("c", duration("PT1S")), end("e"), flow("s", "g", "c", "e"))), []string{"g"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := open(t, c.pins)
			z.refuseDeploy(c.xml, c.says...)
			z.found("process-definitions", item{"processDefinitionId": "p"}, 0)
			_, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1})
			z.refused(err, codes.NotFound, "process ID 'p', but none found")
		})
	}
}

func TestDeploy_AllOrNothing(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: DeployResource deploys all resources or none")
	_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{
		{Name: "good.bpmn", Content: []byte(oneTask("good"))}, {Name: "bad.bpmn", Content: []byte("<x/>")},
	}})
	z.refused(err, codes.InvalidArgument, "bad.bpmn")
	_, err = z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "good", Version: -1})
	z.refused(err, codes.NotFound, "Expected to find process definition with process ID 'good', but none found")
	z.found("process-definitions", item{"processDefinitionId": "good"}, 0)
}

func TestDeploy_NothingOrOtherFiles(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: DeployResource refuses no resource, an unknown kind and a foreign tenant")
	_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{})
	z.refused(err, codes.InvalidArgument, "Expected to deploy at least one resource, but none given")
	_, err = z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "x.txt", Content: []byte("x")}}})
	z.refused(err, codes.InvalidArgument, "x.txt")
	_, err = z.DeployResource(z.ctx, &pb.DeployResourceRequest{TenantId: "other", Resources: []*pb.Resource{{Name: "x.bpmn"}}})
	z.refused(err, codes.InvalidArgument, "multi-tenancy is disabled")
	z.alive()
}

func TestCreate_ByIDVersionAndKey(t *testing.T) {
	t.Parallel()
	z := open(t, "creation: by process id and version, -1 for the latest, or by key")
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
		if j := z.work("work", ""); j.GetProcessInstanceKey() != r.GetProcessInstanceKey() || j.GetProcessDefinitionVersion() != c.want {
			t.Errorf("job %v, want one of %v", j, r)
		}
		z.state(r.GetProcessInstanceKey(), "COMPLETED")
	}
}

func TestCreate_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: CreateProcessInstance names what it cannot find or start")
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
		z.run(t, c.name, "grpc: CreateProcessInstance refuses: "+c.text, func(_ *testing.T, z *cluster) {
			_, err := z.CreateProcessInstance(z.ctx, c.req)
			z.refused(err, c.code, c.text)
		})
	}
	for _, id := range []string{"p", "g"} { // no refused call left an instance
		z.found("process-instances", item{"processDefinitionId": id}, 0)
	}
}

func TestCreate_StartInstructions(t *testing.T) {
	t.Parallel()
	z := open(t, "creation: start instructions activate elements instead of the start event")
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
	z := open(t, "creation: create and await results answers with the fetched variables of the completed instance")
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
	z := open(t, "creation: when awaiting times out the instance goes on")
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
	z := open(t, "grpc: CancelProcessInstance terminates the instance, its elements and jobs")
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
	z := open(t, "grpc-errors: a call that is not there is UNIMPLEMENTED")
	z.engineOnly("a limit of the embedded engine")
	_, err := z.EvaluateDecision(z.ctx, &pb.EvaluateDecisionRequest{})
	z.refused(err, codes.Unimplemented, "EvaluateDecision")
	z.alive()
}

func TestPassThroughTasks(t *testing.T) {
	t.Parallel()
	z := open(t, "tasks: manual and undefined tasks are passed through")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:manualTask id="m"/>`, `<bpmn:task id="u"/>`, end("e"), flow("s", "m", "u", "e"))))
	k := z.create("p", "")
	z.state(k, "COMPLETED")
	if e := z.element(k, "m", "COMPLETED"); e["type"] != "MANUAL_TASK" {
		t.Errorf("type: %v", e["type"])
	}
}

func TestJobTasks_SendScriptAndBusinessRule(t *testing.T) {
	t.Parallel()
	z := open(t, "tasks: send, script and business rule tasks with a task definition are jobs")
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
	z := open(t, "user-tasks: a job-based user task has the job type io.camunda.zeebe:userTask and its assignment in headers")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:userTask id="u"><bpmn:extensionElements><zeebe:assignmentDefinition assignee="=who" candidateGroups="=[&quot;ops&quot;]"/></bpmn:extensionElements></bpmn:userTask>`, end("e"), flow("s", "u", "e"))))
	k := z.create("p", `{"who":"ann"}`)
	// Every process has this job type, so the job is looked up by its instance.
	j := z.found("jobs", item{"processInstanceKey": str(k)}, 1)[0]
	h, isObject := j["customHeaders"].(item)
	if !isObject || j["type"] != "io.camunda.zeebe:userTask" || h["io.camunda.zeebe:assignee"] != "ann" || h["io.camunda.zeebe:candidateGroups"] != `["ops"]` {
		t.Errorf("job: %v", j)
	}
	if _, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: keyOf(j, "jobKey")}); err != nil {
		t.Fatal(err)
	}
	z.state(k, "COMPLETED")
}

func TestDelete_Resource(t *testing.T) {
	t.Parallel()
	z := open(t, "deletion: a process version with running instances is not deleted; the version before becomes the latest")
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
	z.state(z.work("work", "").GetProcessInstanceKey(), "COMPLETED")
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
	z := open(t, "creation: start instructions of one subprocess share one instance of it")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:subProcess id="sp"><bpmn:extensionElements>`+mappings("input", `=assert(x, x > 0, "no x")`, "y")+`</bpmn:extensionElements>`+
		start("is")+task("b")+task("c")+task("d")+end("ie")+flow("is", "b", "c", "d", "ie")+`</bpmn:subProcess>`, end("e"), flow("s", "sp", "e"))))
	r, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "c"}, {ElementId: "d"}}})
	if err != nil {
		t.Fatal(err)
	}
	k := r.GetProcessInstanceKey()
	inc := z.incident(k, "IO_MAPPING_ERROR", "no x")
	z.none("c")
	z.setVariables(k, `{"x":1}`)
	z.resolve(inc)
	z.none("b")
	z.work("c", "")
	z.work("d", "")
	z.work("d", "")
	z.state(k, "COMPLETED")
	z.found("element-instances", item{"processInstanceKey": str(k), "elementId": "sp"}, 1)
}

func TestDeployProcess_Deprecated(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: DeployProcess, deprecated, deploys like DeployResource")
	r, err := z.DeployProcess(z.ctx, &pb.DeployProcessRequest{Processes: []*pb.ProcessRequestObject{{Name: "one.bpmn", Definition: []byte(oneTask("one"))}}}) //nolint:staticcheck // part of the service
	if err != nil {
		t.Fatal(err)
	}
	if p := r.GetProcesses(); len(p) != 1 || p[0].GetBpmnProcessId() != "one" || p[0].GetVersion() != 1 || p[0].GetResourceName() != "one.bpmn" {
		t.Errorf("answer: %v", r)
	}
	k := z.create("one", "")
	z.work("work", "")
	z.state(k, "COMPLETED")
}

func TestCreateWithResult_CancelledIsNoResult(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: CreateProcessInstanceWithResult answers for completed instances only")
	z.deploy("one.bpmn", oneTask("one"))
	failed := make(chan error, 1)
	go func() {
		_, err := z.CreateProcessInstanceWithResult(z.ctx, &pb.CreateProcessInstanceWithResultRequest{
			Request: &pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1}, RequestTimeout: 1500,
		})
		failed <- err
	}()
	j := z.job("work")
	z.cancel(j.GetProcessInstanceKey())
	z.refused(<-failed, codes.DeadlineExceeded, "Time out between gateway and broker")
	z.state(j.GetProcessInstanceKey(), "TERMINATED")
}
