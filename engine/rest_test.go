package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"

	"github.com/vitrip/journeyman/engine"
)

// Z6: tags are kept, shown with the instance and its jobs, and searched: all given ones must be there.
func TestREST_Tags(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	create := func(tags ...string) int64 {
		t.Helper()
		out := s.ok("POST", "/process-instances", object{"processDefinitionId": "p", "tags": tags})
		var k int64
		if _, err := fmt.Sscan(fmt.Sprint(out["processInstanceKey"]), &k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	one, two := create("red", "order:1", "red"), create("red")
	if got := s.instance(one)["tags"]; fmt.Sprint(got) != "[red order:1]" {
		t.Errorf("tags %v, want [red order:1]", got)
	}
	s.instances(object{"tags": []string{"red"}}, one, two)
	s.instances(object{"tags": []string{"red", "order:1"}}, one)
	s.instances(object{"tags": []string{"blue"}})
	s.instances(object{"tags": []string{}}, one, two)
	s.instances(object{"$or": []object{{"tags": []string{"order:1"}}, {"processInstanceKey": fmt.Sprint(two)}}}, one, two)
	jobs, _ := s.ok("POST", "/jobs/activation", object{"type": "a", "timeout": 1000, "maxJobsToActivate": 1})["jobs"].([]any)
	if len(jobs) != 1 || fmt.Sprint(jobs[0].(object)["tags"]) != "[red order:1]" {
		t.Errorf("jobs %v, want one with the tags", jobs)
	}
	for _, bad := range []string{"1st", "", "a b", "ä", "a" + strings.Repeat("x", 100)} {
		s.refused("POST", "/process-instances", object{"processDefinitionId": "p", "tags": []string{bad}}, 400, "is not valid")
	}
	s.refused("POST", "/process-instances", object{"processDefinitionId": "p", "tags": strings.Split("a b c d e f g h i j k", " ")}, 400, "at most 10")
	s.instances(object{}, one, two)
}

// Z6: filters of process instances by what is inside them.
func TestREST_InstanceFilters(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"), service("b", "b"))))
	failed, waits, done, retried := s.start("p"), s.start("p"), s.start("p"), s.start("p")
	keys := map[int64]func(*pb.ActivatedJob){}
	act := func(j *pb.ActivatedJob) { keys[j.GetProcessInstanceKey()](j) }
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	keys[failed] = func(j *pb.ActivatedJob) {
		must(s.FailJob(t.Context(), &pb.FailJobRequest{JobKey: j.GetKey(), ErrorMessage: "card refused"}))
	}
	keys[waits] = func(*pb.ActivatedJob) {}
	keys[done] = func(j *pb.ActivatedJob) { must(s.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: j.GetKey()})) }
	keys[retried] = func(j *pb.ActivatedJob) {
		must(s.FailJob(t.Context(), &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 2, RetryBackOff: 3_600_000}))
	}
	jobs, err := activate(t, s.GatewayClient, "a", 10_000)
	if err != nil || len(jobs) != 4 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	for _, j := range jobs {
		act(j)
	}
	s.instances(object{"errorMessage": "card refused"}, failed)
	s.instances(object{"errorMessage": object{"$like": "*ref?sed"}}, failed)
	s.instances(object{"errorMessage": object{"$neq": "card refused"}})
	s.instances(object{"incidentErrorHashCode": 1420044736}, failed)
	s.instances(object{"incidentErrorHashCode": object{"$neq": 1420044736}})
	s.instances(object{"elementId": "b"}, done)
	s.instances(object{"elementId": object{"$in": []string{"b", "x"}}}, done)
	s.instances(object{"elementId": "a", "elementInstanceState": "ACTIVE"}, failed, waits, retried)
	s.instances(object{"elementId": "a", "elementInstanceState": object{"$neq": "ACTIVE"}}, done)
	s.instances(object{"hasElementInstanceIncident": true}, failed)
	s.instances(object{"elementId": "s", "hasElementInstanceIncident": true})
	s.instances(object{"hasRetriesLeft": true}, retried)
	s.instances(object{"hasRetriesLeft": false}, failed, waits, done)
	s.instances(object{"hasIncident": true}, failed)
	s.instances(object{"batchOperationKey": "5"})
	s.instances(object{"batchOperationId": object{"$exists": true}})
	s.instances(object{"batchOperationKey": object{"$exists": false}}, failed, waits, done, retried)
	s.instances(object{"$or": []object{{"elementId": "b"}, {"hasRetriesLeft": true}}}, done, retried)
	for name, bad := range map[string]any{
		"hasRetriesLeft": "yes", "hasIncident": object{"$eq": true}, "errorMessage": 1, "elementId": object{"$gt": "a"}, "tags": "x",
		"incidentErrorHashCode": "x", "hasElementInstanceIncident": 1, "processInstanceKey": object{"$like": "2*"}, "meow": 1,
	} {
		s.refused("POST", "/process-instances/search", object{"filter": object{name: bad}}, 400, "filter."+name)
	}
}

// Z6: 8.8 filters incidents and most of element instances by plain equality alone, in whichever way it is written.
func TestREST_PlainFilters(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	s.start("p")
	s.fail("a", 0, "no")
	for _, c := range []struct {
		what, name string
		value      any
		advanced   bool
	}{
		{"incidents", "errorType", "JOB_NO_RETRIES", false}, {"incidents", "elementId", "a", false}, {"incidents", "processDefinitionId", "p", false},
		{"incidents", "creationTime", "2020-01-01T00:00:00Z", true}, {"element-instances", "elementId", "a", false}, {"element-instances", "type", "SERVICE_TASK", false},
		{"element-instances", "state", "ACTIVE", true}, {"element-instances", "startDate", "2020-01-01T00:00:00Z", true},
	} {
		op := "$eq"
		if strings.HasSuffix(c.name, "Date") || strings.HasSuffix(c.name, "Time") {
			op = "$gt"
		} else if got := s.find(c.what, object{c.name: c.value}, "elementId"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s by %s: found %v, want a", c.what, c.name, got)
		}
		if !c.advanced {
			s.refused("POST", "/"+c.what+"/search", object{"filter": object{c.name: object{"$neq": c.value}}}, 400, "[filter."+c.name+"] cannot be parsed")
			s.refused("POST", "/"+c.what+"/search", object{"filter": object{c.name: object{op: c.value, "$in": []any{c.value}}}}, 400, "[filter."+c.name+"] cannot be parsed")
			// What clients of 8.9 send for the same.
			if got := s.find(c.what, object{c.name: object{op: c.value, "$in": []any{}, "$notIn": []any{}}}, "elementId"); !slices.Equal(got, []string{"a"}) {
				t.Errorf("%s by %s with $eq: found %v, want a", c.what, c.name, got)
			}
		} else if got := s.find(c.what, object{c.name: object{op: c.value}, "elementId": "a"}, "elementId"); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s by %s: found %v, want a", c.what, c.name, got)
		}
	}
}

// Z6: an incident shows at the element, at everything around it and in the calling instances, and so does its end.
func TestREST_IncidentRises(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("top", subOf("sub", callOf("call", "mid")))), bpmnModel(chain("mid", callOf("next", "leaf"))), bpmnModel(chain("leaf", service("a", "a"))))
	top, other := s.start("top"), s.start("top")
	s.fail("a", 0, "no")
	mid := s.ok("POST", "/process-instances/search", object{"filter": object{"parentProcessInstanceKey": fmt.Sprint(top)}})["items"].([]any)[0].(object)
	check := func(want bool) {
		t.Helper()
		for what, got := range map[string]any{
			"top": s.instance(top)["hasIncident"], "sub": s.element(top, "sub")["hasIncident"], "call": s.element(top, "call")["hasIncident"],
			"mid": s.ok("GET", "/process-instances/"+fmt.Sprint(mid["processInstanceKey"]), "")["hasIncident"],
		} {
			if got != want {
				t.Errorf("%s: hasIncident %v, want %t", what, got, want)
			}
		}
		if got := s.element(top, "call")["incidentKey"]; got != nil {
			t.Errorf("the call activity has incident %v: it is the called element's", got)
		}
		if s.instance(other)["hasIncident"] != false || s.element(top, "sub_s")["hasIncident"] != false {
			t.Error("an incident shows where it is not")
		}
	}
	check(true)
	s.instances(object{"hasIncident": true, "processDefinitionId": "top"}, top)
	inc := s.ok("POST", "/incidents/search", object{})["items"].([]any)[0].(object)
	s.ok("PATCH", "/jobs/"+fmt.Sprint(inc["jobKey"]), object{"changeset": object{"retries": 1}})
	s.ok("POST", "/incidents/"+fmt.Sprint(inc["incidentKey"])+"/resolution", object{})
	check(false)
}

// Z6: a runtime instruction terminates the instance when its element has ended, however it ended.
func TestREST_RuntimeInstructions(t *testing.T) {
	boundary := `<bpmn:boundaryEvent id="b" attachedToRef="a"><bpmn:errorEventDefinition/></bpmn:boundaryEvent><bpmn:sequenceFlow id="fb" sourceRef="b" targetRef="c"/>`
	p := chain("p", service("a", "a"), service("c", "c"))
	s := open(t, engine.Config{}, bpmnModel(strings.Replace(p, "</bpmn:process>", boundary+"</bpmn:process>", 1)))
	create := func(after string) int64 {
		t.Helper()
		out := s.ok("POST", "/process-instances", object{"processDefinitionId": "p", "runtimeInstructions": []object{{"type": "TERMINATE_PROCESS_INSTANCE", "afterElementId": after}}})
		var k int64
		if _, err := fmt.Sscan(fmt.Sprint(out["processInstanceKey"]), &k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	k := create("a")
	s.work("a")
	s.state(k, "TERMINATED")
	if s.element(k, "a")["state"] != "COMPLETED" {
		t.Error("the element itself completes")
	}
	s.instances(object{"elementId": "c"})
	k = create("a")
	if _, err := s.ThrowError(t.Context(), &pb.ThrowErrorRequest{JobKey: s.job("a").GetKey(), ErrorCode: "X"}); err != nil {
		t.Fatal(err)
	}
	s.state(k, "TERMINATED")
	k = create("c")
	s.work("a")
	s.state(k, "ACTIVE")
	s.work("c")
	s.state(k, "TERMINATED")
	for text, i := range map[string]object{
		"no element found with id 'x'": {"afterElementId": "x"}, "No afterElementId": {"type": "TERMINATE_PROCESS_INSTANCE"}, "Unexpected value 'JUMP'": {"type": "JUMP", "afterElementId": "a"},
	} {
		s.refused("POST", "/process-instances", object{"processDefinitionId": "p", "runtimeInstructions": []object{i}}, 400, text)
	}
}

// Z6: modification over REST.
func TestREST_Modification(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"), subOf("sub", service("c", "c")))))
	k := s.start("p")
	a := s.element(k, "a")["elementInstanceKey"]
	path := fmt.Sprintf("/process-instances/%d/modification", k)
	s.ok("POST", path, object{
		"activateInstructions": []object{{"elementId": "c", "ancestorElementInstanceKey": "-1", "variableInstructions": []object{
			{"variables": object{"g": 1}}, {"variables": object{"l": 2}, "scopeId": "sub"}}}},
		"terminateInstructions": []object{{"elementInstanceKey": a}},
	})
	if got := s.element(k, "a")["state"]; got != "TERMINATED" {
		t.Errorf("a is %v, want TERMINATED", got)
	}
	sub := fmt.Sprint(s.element(k, "sub")["elementInstanceKey"])
	if got := s.find("variables", object{"scopeKey": sub}, "name"); !slices.Equal(got, []string{"l"}) {
		t.Errorf("variables of the subprocess: %v, want l", got)
	}
	if got := s.find("variables", object{"scopeKey": fmt.Sprint(k)}, "name"); !slices.Equal(got, []string{"g"}) {
		t.Errorf("variables of the instance: %v, want g", got)
	}
	s.ok("POST", path, object{"activateInstructions": []object{{"elementId": "c", "ancestorElementInstanceKey": sub}}})
	s.work("c")
	s.state(k, "ACTIVE")
	s.work("c")
	s.state(k, "COMPLETED")
	s.refused("POST", path, object{}, 404, "no process instance found with key")
	k = s.start("p")
	path = fmt.Sprintf("/process-instances/%d/modification", k)
	s.refused("POST", path, object{"activateInstructions": []object{{"elementId": "x"}}}, 400, "could not be found: 'x'")
	s.refused("POST", path, object{"activateInstructions": []object{{}}}, 400, "No elementId")
	s.refused("POST", path, object{"activateInstructions": []object{{"elementId": "c", "variableInstructions": []object{{}}}}}, 400, "No variables")
	s.refused("POST", path, object{"terminateInstructions": []object{{}}}, 400, "No elementInstanceKey")
	s.refused("POST", path, object{"terminateInstructions": []object{{"elementInstanceKey": "meow"}}}, 400, "meow")
	s.refused("POST", path, object{"moveInstructions": []object{}}, 400, "[moveInstructions] cannot be parsed")
	s.refused("POST", path, "", 400, "body is missing")
	s.refused("POST", "/process-instances/meow/modification", object{}, 400, "'processInstanceKey'")
	s.state(k, "ACTIVE")
}

// Z6: migration over REST, with the statuses of a failed one.
func TestREST_Migration(t *testing.T) {
	s := open(t, engine.Config{}, bpmnModel(chain("p", service("a", "a"))))
	k := s.start("p")
	target := s.deploy("q.bpmn", bpmnModel(chain("q", service("b", "b"), service("c", "c"))))
	path := fmt.Sprintf("/process-instances/%d/migration", k)
	plan := func(to int64, pairs ...string) object {
		list := []object{}
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, object{"sourceElementId": pairs[i], "targetElementId": pairs[i+1]})
		}
		return object{"targetProcessDefinitionKey": fmt.Sprint(to), "mappingInstructions": list}
	}
	s.refused("POST", path, object{}, 400, "No targetProcessDefinitionKey")
	s.refused("POST", path, object{"targetProcessDefinitionKey": fmt.Sprint(target)}, 400, "No mappingInstructions")
	s.refused("POST", path, plan(target, "a", ""), 400, "targetElementId")
	s.refused("POST", path, plan(target, "x", "b"), 400, "non-existing source element id 'x'")
	s.refused("POST", path, plan(target), 409, "no mapping instruction defined for active element with id 'a'")
	s.refused("POST", path, plan(1, "a", "b"), 404, "no process definition found with key '1'")
	s.refused("POST", "/process-instances/7/migration", plan(target, "a", "b"), 404, "no process instance found with key '7'")
	s.ok("POST", path, plan(target, "a", "b"))
	if i := s.instance(k); i["processDefinitionId"] != "q" {
		t.Errorf("instance %v, want process q", i)
	}
	if e := s.element(k, "b"); e["state"] != "ACTIVE" {
		t.Errorf("element %v, want ACTIVE", e)
	}
	s.work("a") // the job keeps its type
	s.work("c")
	s.state(k, "COMPLETED")
}

// Ended instances beyond the limit, and those older than the age, are not found any more; running ones stay.
func TestHistory(t *testing.T) {
	s := open(t, engine.Config{HistoryLimit: 2}, bpmnModel(chain("p", service("a", "a"))))
	waits := s.start("p")
	first := s.job("a").GetKey()
	var keys []int64
	for range 3 {
		keys = append(keys, s.start("p"))
		s.work("a")
	}
	s.instances(object{}, waits, keys[1], keys[2])
	s.refused("GET", fmt.Sprintf("/process-instances/%d", keys[0]), "", 404, "not found")
	if got := s.find("jobs", object{}, "processInstanceKey"); len(got) != 3 || slices.Contains(got, fmt.Sprint(keys[0])) {
		t.Errorf("jobs of instances %v", got)
	}
	if _, err := s.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: first}); err != nil {
		t.Fatal(err)
	}
	s.instances(object{}, waits, keys[2])

	dir := t.TempDir()
	cfg := engine.Config{DataDir: dir, HistoryAge: time.Hour}
	s = open(t, cfg, bpmnModel(chain("p", service("a", "a"))))
	old := s.start("p")
	s.work("a")
	if err := s.e.AdvanceClock(40 * time.Minute); err != nil {
		t.Fatal(err)
	}
	young := s.start("p")
	s.work("a")
	if err := s.e.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, cfg)
	s.instances(object{}, old, young)
	if err := s.e.AdvanceClock(30 * time.Minute); err != nil {
		t.Fatal(err)
	}
	s.instances(object{}, young)
	if _, err := engine.Start(engine.Config{HistoryAge: -1}); err == nil || !strings.Contains(err.Error(), "HistoryAge") {
		t.Errorf("HistoryAge -1: %v, want a refusal", err)
	}
}

// Z6: a user task is updated while it is open; empty values take away.
func TestREST_UserTaskUpdate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, engine.Config{DataDir: dir}, bpmnModel(chain("p", `<bpmn:userTask id="u"><bpmn:extensionElements><zeebe:userTask/><zeebe:assignmentDefinition candidateGroups="=[&quot;g&quot;]"/></bpmn:extensionElements></bpmn:userTask>`)))
	s.start("p")
	k := s.find("user-tasks", object{}, "userTaskKey")[0]
	s.ok("PATCH", "/user-tasks/"+k, object{"changeset": object{"dueDate": "2027-01-02T03:04:05Z", "candidateUsers": []string{"ann"}, "priority": 80}})
	check := func(s *site, want string) {
		t.Helper()
		u := s.ok("GET", "/user-tasks/"+k, "")
		if got := strings.TrimSpace(fmt.Sprintln(u["dueDate"], u["candidateUsers"], u["candidateGroups"], u["priority"], u["followUpDate"])); got != want {
			t.Errorf("task %s, want %s", got, want)
		}
	}
	check(s, "2027-01-02T03:04:05Z [ann] [g] 80 <nil>")
	if err := s.e.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, engine.Config{DataDir: dir})
	check(s, "2027-01-02T03:04:05Z [ann] [g] 80 <nil>")
	s.ok("PATCH", "/user-tasks/"+k, object{"changeset": object{"dueDate": "", "candidateGroups": []string{}}})
	check(s, "<nil> [ann] [] 80 <nil>")
	s.refused("PATCH", "/user-tasks/"+k, object{}, 400, "No update data")
	s.refused("PATCH", "/user-tasks/"+k, object{"changeset": object{"priority": 101}}, 400, "[0,100]")
	s.refused("PATCH", "/user-tasks/"+k, object{"changeset": object{"followUpDate": "tomorrow"}}, 400, "followUpDate 'tomorrow'")
	s.refused("PATCH", "/user-tasks/1", object{"changeset": object{"priority": 1}}, 404, "no such user task was found")
	s.ok("POST", "/user-tasks/"+k+"/completion", "")
	s.refused("PATCH", "/user-tasks/"+k, object{"changeset": object{"priority": 1}}, 404, "no such user task was found")
}

// A call activity that is bound to a version tag calls the latest version that has it.
func TestVersionTag(t *testing.T) {
	tagged := func(tag, task string) string {
		return strings.Replace(bpmnModel(chain("child", service("a", task))), `<bpmn:startEvent`, `<bpmn:extensionElements><zeebe:versionTag value="`+tag+`"/></bpmn:extensionElements><bpmn:startEvent`, 1)
	}
	bound := strings.Replace(callOf("c", "child"), `processId=`, `bindingType="versionTag" versionTag="v1" processId=`, 1)
	s := open(t, engine.Config{}, bpmnModel(chain("p", bound)))
	k := s.start("p")
	inc := s.ok("POST", "/incidents/search", object{})["items"].([]any)[0].(object)
	if inc["errorType"] != "CALLED_ELEMENT_ERROR" || !strings.Contains(fmt.Sprint(inc["errorMessage"]), "version tag 'v1'") {
		t.Errorf("incident %v", inc)
	}
	s.deploy("child.bpmn", tagged("v1", "old"))
	s.deploy("child.bpmn", tagged("v1", "one"))
	s.deploy("child.bpmn", tagged("v2", "two"))
	s.ok("POST", "/incidents/"+fmt.Sprint(inc["incidentKey"])+"/resolution", "")
	s.work("one")
	s.state(k, "COMPLETED")
	if got := s.find("process-definitions", object{"versionTag": "v1"}, "version"); fmt.Sprint(got) != "[1 2]" {
		t.Errorf("versions with the tag: %v, want 1 and 2", got)
	}
	s.instances(object{"processDefinitionVersionTag": "v2"})
	if got := s.find("process-instances", object{"processDefinitionVersionTag": "v1"}, "processDefinitionVersionTag"); fmt.Sprint(got) != "[v1]" {
		t.Errorf("instances with the tag: %v", got)
	}
	for text, model := range map[string]string{
		"no versionTag": bpmnModel(chain("q", strings.Replace(bound, `versionTag="v1"`, "", 1))),
		"bindingType deployment is not supported":   bpmnModel(chain("q", strings.Replace(bound, `bindingType="versionTag"`, `bindingType="deployment"`, 1))),
		"zeebe:executionListeners is not supported": strings.Replace(tagged("v1", "x"), "<zeebe:versionTag", "<zeebe:executionListeners/><zeebe:versionTag", 1),
	} {
		_, err := s.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "q.bpmn", Content: []byte(model)}}})
		s.code(err, codes.InvalidArgument, text)
	}
}
