package conformance

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// Cases of the documentation "Orchestration Cluster API (REST)", version 8.8.

func TestREST_TopologyAndStatus(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: GET /topology and /status")
	var top item
	if got := z.call("GET", "/topology", nil, &top); got != 200 || top["clusterSize"] != float64(len(top["brokers"].([]any))) || !strings.HasPrefix(fmt.Sprint(top["gatewayVersion"]), "8.") {
		t.Errorf("topology: %d %v", got, top)
	}
	if got := z.call("GET", "/status", nil, nil); got != 204 {
		t.Errorf("status: %d, want 204", got)
	}
	z.alive()
}

// upload deploys over REST.
func (z *cluster) upload(name, xml string) (int, item) {
	z.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("resources", name)
	if err != nil {
		z.t.Fatal(err)
	}
	if _, err := io.WriteString(part, xml); err != nil {
		z.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		z.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(z.ctx, http.MethodPost, z.rest+"/v2/deployments", &b)
	if err != nil {
		z.t.Fatal(err)
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	return z.send(req)
}

func TestREST_DeployStartWorkAndSee(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /deployments, /process-instances, /jobs/activation, /jobs/{key}/completion")
	got, d := z.upload("one.bpmn", oneTask("one"))
	if got != 200 {
		t.Fatalf("deploy: %d %v", got, d)
	}
	def := d["deployments"].([]any)[0].(item)["processDefinition"].(item)
	if def["processDefinitionId"] != "one" || def["processDefinitionVersion"] != 1.0 || def["resourceName"] != "one.bpmn" {
		t.Errorf("definition: %v", def)
	}
	var inst item
	if got := z.call("POST", "/process-instances", item{"processDefinitionId": "one", "variables": item{"x": 1}}, &inst); got != 200 {
		t.Fatalf("create: %d %v", got, inst)
	}
	k := keyOf(inst, "processInstanceKey")
	if _, isText := inst["processInstanceKey"].(string); !isText {
		t.Errorf("key %v is not a string", inst["processInstanceKey"])
	}
	var act struct{ Jobs []item }
	if got := z.call("POST", "/jobs/activation", item{"type": "work", "timeout": 60000, "maxJobsToActivate": 5}, &act); got != 200 || len(act.Jobs) != 1 {
		t.Fatalf("activation: %d %v", got, act)
	}
	j := act.Jobs[0]
	if j["elementId"] != "work" || j["variables"].(item)["x"] != 1.0 || j["kind"] != "BPMN_ELEMENT" || j["retries"] != 3.0 {
		t.Errorf("job: %v", j)
	}
	if got := z.call("POST", "/jobs/"+j["jobKey"].(string)+"/completion", item{"variables": item{"y": 2}}, nil); got != 204 {
		t.Fatalf("completion: %d", got)
	}
	z.state(k, "COMPLETED")
	z.variable(k, "y", "2")
	z.problem("POST", "/jobs/"+j["jobKey"].(string)+"/completion", nil, 404, "Command 'COMPLETE' rejected with code 'NOT_FOUND': Expected to complete job with key")
}

func TestREST_DeployRefusal(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /deployments refuses an invalid resource with 400")
	got, p := z.upload("bad.bpmn", "<x/>")
	if got != 400 || p["title"] != "INVALID_ARGUMENT" {
		t.Errorf("got %d %v, want 400 INVALID_ARGUMENT", got, p)
	}
	z.problem("POST", "/deployments", "{}", 400, "multipart/form-data")
	z.alive()
}

func TestREST_AwaitCompletion(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /process-instances with awaitCompletion answers variables or 504")
	z.deploy("p.bpmn", model(process("p", start("s"), end("e"), flow("s", "e"))))
	z.deploy("one.bpmn", oneTask("one"))
	var out item
	if got := z.call("POST", "/process-instances", item{"processDefinitionId": "p", "awaitCompletion": true, "variables": item{"a": 1, "b": 2}, "fetchVariables": []string{"b"}}, &out); got != 200 {
		t.Fatalf("got %d %v", got, out)
	}
	if v := out["variables"].(item); len(v) != 1 || v["b"] != 2.0 {
		t.Errorf("variables: %v, want b alone", v)
	}
	z.problem("POST", "/process-instances", item{"processDefinitionId": "one", "awaitCompletion": true, "requestTimeout": 30}, 504, "did not complete")
	z.state(keyOf(out, "processInstanceKey"), "COMPLETED")
	j := z.work("work", "") // the instance that was not waited for goes on
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}

func TestREST_CreateRefusals(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /process-instances needs exactly one way to name the process")
	z.problem("POST", "/process-instances", item{"processDefinitionId": "x"}, 404, "Expected to find process definition with process ID 'x', but none found")
	z.problem("POST", "/process-instances", item{}, 400, "At least one of [processDefinitionId, processDefinitionKey] is required")
	z.problem("POST", "/process-instances", item{"processDefinitionId": "x", "processDefinitionKey": "1"}, 400, "Only one of")
	z.problem("POST", "/process-instances", item{"processDefinitionId": "x", "meow": 1}, 400, "Request property [meow] cannot be parsed")
	z.problem("POST", "/process-instances", `{"processDefinitionId":"x","variables":[1]}`, 400, "variables")
	z.problem("POST", "/process-instances", "{", 400, "cannot be parsed")
	z.problem("POST", "/process-instances", nil, 400, "Required request body is missing")
	z.found("process-instances", item{"processDefinitionId": "x"}, 0)
}

func TestREST_FailureDefaultsToZeroRetries(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /jobs/{key}/failure without a body leaves no retries and raises an incident")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	if got := z.call("POST", "/jobs/"+str(j.GetKey())+"/failure", nil, nil); got != 204 {
		t.Fatalf("failure: %d", got)
	}
	inc := z.incident(k, "JOB_NO_RETRIES", "No more retries left.")
	path := "/incidents/" + inc["incidentKey"].(string)
	z.problem("POST", path+"/resolution", nil, 409, "has no retries left")
	if got := z.call("PATCH", "/jobs/"+str(j.GetKey()), item{"changeset": item{"retries": 2}}, nil); got != 204 {
		t.Fatalf("patch: %d", got)
	}
	if job := z.found("jobs", item{"jobKey": str(j.GetKey()), "state": "RETRIES_UPDATED"}, 1)[0]; job["retries"] != 2.0 {
		t.Errorf("job: %v", job)
	}
	if got := z.call("POST", path+"/resolution", nil, nil); got != 204 {
		t.Fatalf("resolution: %d", got)
	}
	var again item
	z.eventually(func() bool {
		got := z.call("GET", path, nil, &again)
		return got == 200 && again["state"] == "RESOLVED"
	}, func() string { return fmt.Sprintf("resolved incident: %v, want it to stay readable", again) })
	z.problem("POST", path+"/resolution", nil, 404, "no such incident was found")
	z.work("work", "")
	z.state(k, "COMPLETED")
}

func TestREST_JobError(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /jobs/{key}/error needs a code")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	z.problem("POST", "/jobs/"+str(j.GetKey())+"/error", item{}, 400, "errorCode")
	if got := z.call("POST", "/jobs/"+str(j.GetKey())+"/error", item{"errorCode": "E"}, nil); got != 204 {
		t.Fatalf("error: %d", got)
	}
	z.incident(k, "UNHANDLED_ERROR_EVENT", "the code 'E'")
	if job := z.found("jobs", item{"processInstanceKey": str(k), "state": "ERROR_THROWN"}, 1)[0]; job["errorCode"] != "E" {
		t.Errorf("job: %v", job)
	}
	z.problem("POST", "/jobs/"+str(j.GetKey())+"/completion", nil, 409, "but it is in state 'ERROR_THROWN'")
	z.problem("POST", "/jobs/meow/completion", nil, 400, "Failed to convert 'jobKey' with value: 'meow'")
	z.problem("PATCH", "/jobs/"+str(j.GetKey()), item{}, 400, "required")
	z.state(k, "ACTIVE")
}

func TestREST_CancelAndGetInstance(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: GET /process-instances/{key} and POST cancellation")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	z.state(k, "ACTIVE")
	var inst item
	z.call("GET", "/process-instances/"+str(k), nil, &inst)
	if inst["hasIncident"] != false || inst["endDate"] != nil || inst["startDate"] == nil {
		t.Errorf("instance: %v", inst)
	}
	if got := z.call("POST", "/process-instances/"+str(k)+"/cancellation", nil, nil); got != 204 {
		t.Fatalf("cancellation: %d", got)
	}
	z.state(k, "TERMINATED")
	z.problem("POST", "/process-instances/"+str(k)+"/cancellation", nil, 404, "Expected to cancel a process instance with key")
	z.problem("GET", "/process-instances/5", nil, 404, "not found")
	z.problem("GET", "/nothing", nil, 404, "No endpoint")
}

func TestREST_SearchPagesAndSorts(t *testing.T) {
	t.Parallel()
	z := open(t, "rest-data: filters with operators, sort, offset and cursor pages")
	z.deploy("one.bpmn", oneTask("one"))
	var keys []string
	for range 5 {
		keys = append(keys, str(z.create("one", "")))
	}
	type answer struct {
		Items []item
		Page  struct {
			TotalItems             int
			StartCursor, EndCursor string
		}
	}
	// find searches until it finds these, in this order.
	find := func(what string, body item, want ...string) (a answer) {
		t.Helper()
		filter := item{"processDefinitionId": "one"} // others use the cluster too
		if given, isObject := body["filter"].(item); isObject {
			maps.Copy(filter, given)
		}
		body["filter"] = filter
		var got []string
		z.eventually(func() bool {
			a, got = answer{}, nil
			if status := z.call("POST", "/process-instances/search", body, &a); status != 200 {
				t.Fatalf("search %v: %d", body, status)
			}
			for _, i := range a.Items {
				got = append(got, i["processInstanceKey"].(string))
			}
			return slices.Equal(got, want)
		}, func() string { return fmt.Sprintf("%s: got %v, want %v", what, got, want) })
		return a
	}
	up, down := []item{{"field": "processInstanceKey", "order": "ASC"}}, []item{{"field": "processInstanceKey", "order": "DESC"}}
	find("all", item{"sort": up}, keys...)
	a := find("first page", item{"sort": down, "page": item{"limit": 2}}, keys[4], keys[3])
	if a.Page.TotalItems != 5 {
		t.Errorf("total: %d, want 5", a.Page.TotalItems)
	}
	a = find("after", item{"sort": down, "page": item{"limit": 2, "after": a.Page.EndCursor}}, keys[2], keys[1])
	find("before", item{"sort": down, "page": item{"limit": 2, "before": a.Page.StartCursor}}, keys[4], keys[3])
	find("the page just before", item{"sort": down, "page": item{"limit": 1, "before": a.Page.EndCursor}}, keys[2])
	find("from", item{"sort": up, "page": item{"from": 3, "limit": 10}}, keys[3:]...)
	find("$in", item{"sort": up, "filter": item{"processInstanceKey": item{"$in": []string{keys[0], keys[2]}}}}, keys[0], keys[2])
	find("$neq", item{"sort": []item{{"field": "startDate"}}, "filter": item{"processInstanceKey": item{"$neq": keys[0]}}}, keys[1:]...)
	find("$like", item{"sort": up, "filter": item{"processDefinitionId": item{"$like": z.ns.name("o?*e")}, "state": "ACTIVE"}, "page": item{"limit": 1}}, keys[0])
	find("$exists", item{"filter": item{"endDate": item{"$exists": true}}})
	find("$gt and $lt", item{"sort": up, "filter": item{"startDate": item{"$gt": "2001-01-01T00:00:00Z", "$lt": "2900-01-01T00:00:00Z"}}, "page": item{"limit": 1}}, keys[0])
	z.cancel(keyOf(item{"key": keys[4]}, "key"))
	z.state(keyOf(item{"key": keys[4]}, "key"), "TERMINATED")
	find("state", item{"sort": up, "filter": item{"state": "ACTIVE"}}, keys[:4]...)
}

func TestREST_SearchRefusals(t *testing.T) {
	t.Parallel()
	z := open(t, "rest-data: unknown filters, sort fields and cursors are 400")
	for _, what := range []string{"process-instances", "jobs", "incidents", "element-instances", "variables", "process-definitions", "user-tasks"} {
		z.problem("POST", "/"+what+"/search", item{"filter": item{"meow": 1}}, 400, "Request property [filter.meow] cannot be parsed")
		z.problem("POST", "/"+what+"/search", item{"sort": []item{{"field": "meow"}}}, 400, "Unexpected value 'meow' for enum field 'field'")
		z.problem("POST", "/"+what+"/search", item{"page": item{"from": -1}}, 400, "page.from")
		z.problem("POST", "/"+what+"/search", item{"page": item{"after": "garbage!"}}, 400, "cursor")
		nothing := item{"processInstanceKey": "1"}
		if what == "process-definitions" {
			nothing = item{"processDefinitionKey": "1"}
		}
		if items := z.search(what, nothing); len(items) != 0 {
			t.Errorf("%s: got %v, want none", what, items)
		}
	}
	z.problem("GET", "/incidents/meow", nil, 400, "Failed to convert 'incidentKey' with value: 'meow'")
	z.problem("GET", "/incidents/1", nil, 404, "not found")
	z.problem("POST", "/jobs/search", item{"filter": item{"jobKey": "meow"}}, 400, "is not a valid key")
	z.alive()
}

func TestREST_InstancesByVariable(t *testing.T) {
	t.Parallel()
	z := open(t, "rest-data: process instances by the value of a variable")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"order":"B-1"}`)
	z.create("one", `{"order":"B-2"}`)
	got := z.found("process-instances", item{"processDefinitionId": "one", "variables": []item{{"name": "order", "value": `"B-1"`}}}, 1)
	if got[0]["processInstanceKey"] != str(k) {
		t.Errorf("got %v, want instance %d alone", got, k)
	}
}

func TestREST_HistoryOfElements(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /element-instances/search keeps ended elements")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	el := z.element(k, "work", "ACTIVE")
	if el["type"] != "SERVICE_TASK" || el["elementInstanceKey"] != str(j.GetElementInstanceKey()) || el["endDate"] != nil {
		t.Errorf("element: %v", el)
	}
	z.complete(j, "")
	var same item
	z.eventually(func() bool {
		z.call("GET", "/element-instances/"+str(j.GetElementInstanceKey()), nil, &same)
		return same["state"] == "COMPLETED"
	}, func() string { return fmt.Sprintf("element: %v", same) })
	if same["endDate"] == nil {
		t.Errorf("element: %v, want an end date", same)
	}
	z.state(k, "COMPLETED")
	for _, kind := range []string{"START_EVENT", "SERVICE_TASK", "END_EVENT"} {
		z.found("element-instances", item{"processInstanceKey": str(k), "type": kind, "state": "COMPLETED"}, 1)
	}
	z.problem("GET", "/element-instances/7", nil, 404, "not found")
}

func TestREST_ElementWithIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: an element with an incident names it; cancelling resolves it")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	z.fail(z.job("work"), 0, "x")
	inc := z.incident(k, "JOB_NO_RETRIES", "x")
	el := z.element(k, "work", "ACTIVE")
	if el["hasIncident"] != true || el["incidentKey"] != inc["incidentKey"] {
		t.Errorf("element: %v, want incident %v", el, inc["incidentKey"])
	}
	var list struct{ Items []item }
	z.eventually(func() bool {
		z.call("POST", "/process-instances/"+str(k)+"/incidents/search", nil, &list)
		return len(list.Items) == 1 && list.Items[0]["incidentKey"] == inc["incidentKey"]
	}, func() string { return fmt.Sprintf("incidents of the instance: %v", list) })
	z.cancel(k)
	var after item
	z.eventually(func() bool {
		z.call("GET", "/incidents/"+inc["incidentKey"].(string), nil, &after)
		return after["state"] == "RESOLVED"
	}, func() string { return fmt.Sprintf("incident of a cancelled instance: %v", after) })
}

func TestREST_ElementVariables(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: PUT /element-instances/{key}/variables, GET /variables/{key}")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"x":1}`)
	if got := z.call("PUT", "/element-instances/"+str(k)+"/variables", item{"variables": item{"x": 2}}, nil); got != 204 {
		t.Fatalf("got %d", got)
	}
	z.variable(k, "x", "2")
	vars := z.found("variables", item{"processInstanceKey": str(k)}, 1)
	if vars[0]["isTruncated"] != false {
		t.Fatalf("variables: %v", vars)
	}
	var one item
	z.eventually(func() bool {
		return z.call("GET", "/variables/"+vars[0]["variableKey"].(string), nil, &one) == 200 && one["value"] == "2"
	}, func() string { return fmt.Sprintf("variable: %v", one) })
	z.problem("PUT", "/element-instances/3/variables", item{"variables": item{}}, 404, "no such element was found")
	z.problem("PUT", "/element-instances/"+str(k)+"/variables", item{}, 400, "No variables provided")
}

func TestREST_DefinitionsAndXML(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /process-definitions/search, GET its XML")
	xml := oneTask("one")
	z.deploy("one.bpmn", xml)
	p := z.deploy("one.bpmn", oneTask("one", mappings("input", "=1", "x"))).GetDeployments()[0].GetProcess()
	latest := z.found("process-definitions", item{"isLatestVersion": true, "processDefinitionId": "one"}, 1)
	if latest[0]["version"] != 2.0 || latest[0]["processDefinitionKey"] != str(p.GetProcessDefinitionKey()) {
		t.Errorf("latest: %v", latest)
	}
	first := z.found("process-definitions", item{"version": 1, "processDefinitionId": "one"}, 1)
	var one item
	path := "/process-definitions/" + first[0]["processDefinitionKey"].(string)
	z.eventually(func() bool {
		return z.call("GET", path, nil, &one) == 200 && one["processDefinitionId"] == "one"
	}, func() string { return fmt.Sprintf("definition: %v", one) })
	req, err := http.NewRequestWithContext(z.ctx, http.MethodGet, z.rest+"/v2"+path+"/xml", nil)
	if err != nil {
		t.Fatal(err)
	}
	res := z.do(req)
	defer res.Body.Close() //nolint:errcheck // read to the end below
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/xml") || string(body) != xml {
		t.Errorf("xml: %d %s, %d bytes; want text/xml, %d bytes", res.StatusCode, res.Header.Get("Content-Type"), len(body), len(xml))
	}
	z.problem("GET", "/process-definitions/4/xml", nil, 404, "not found")
}

func TestREST_Messages(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /messages/publication and /messages/correlation")
	z.deploy("once.bpmn", waiting("once"))
	k := z.create("once", `{"key":"a"}`)
	var out item
	if got := z.call("POST", "/messages/publication", item{"name": "Test", "correlationKey": "a", "variables": item{"v": 1}}, &out); got != 200 || keyOf(out, "messageKey") == 0 {
		t.Fatalf("publication: %d %v", got, out)
	}
	z.state(k, "COMPLETED")
	z.problem("POST", "/messages/correlation", item{"name": "Test", "correlationKey": "a"}, 404, "none was found")
	k = z.create("once", `{"key":"b"}`)
	if got := z.call("POST", "/messages/correlation", item{"name": "Test", "correlationKey": "b"}, &out); got != 200 || out["processInstanceKey"] != str(k) {
		t.Errorf("correlation: %d %v, want instance %d", got, out, k)
	}
	z.problem("POST", "/messages/publication", item{}, 400, "No messageName provided")
	z.call("POST", "/messages/publication", item{"name": "m", "messageId": "i", "timeToLive": 60000}, nil)
	z.problem("POST", "/messages/publication", item{"name": "m", "messageId": "i", "timeToLive": 60000}, 409, "was already published")
}

func TestREST_NativeUserTask(t *testing.T) {
	t.Parallel()
	z := open(t, "user-tasks: a Camunda user task is no job: assign and complete it over the API")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:userTask id="u" name="Check it"><bpmn:extensionElements><zeebe:userTask/><zeebe:assignmentDefinition candidateGroups="ops, admins"/></bpmn:extensionElements></bpmn:userTask>`, end("e"), flow("s", "u", "e"))))
	k := z.create("p", "")
	tasks := z.found("user-tasks", item{"processInstanceKey": str(k), "state": "CREATED"}, 1)
	z.found("jobs", item{"processInstanceKey": str(k)}, 0)
	if tasks[0]["name"] != "Check it" || fmt.Sprint(tasks[0]["candidateGroups"]) != "[ops admins]" {
		t.Fatalf("tasks: %v", tasks)
	}
	path := "/user-tasks/" + tasks[0]["userTaskKey"].(string)
	if got := z.call("POST", path+"/assignment", item{"assignee": "ann"}, nil); got != 204 {
		t.Fatalf("assignment: %d", got)
	}
	z.problem("POST", path+"/assignment", item{"assignee": "bob", "allowOverride": false}, 409, "already been assigned")
	if got := z.call("POST", path+"/completion", item{"variables": item{"ok": true}}, nil); got != 204 {
		t.Fatalf("completion: %d", got)
	}
	z.state(k, "COMPLETED")
	z.variable(k, "ok", "true")
	done := z.found("user-tasks", item{"processInstanceKey": str(k), "state": "COMPLETED"}, 1)[0]
	if done["assignee"] != "ann" || done["completionDate"] == nil {
		t.Errorf("task: %v", done)
	}
	z.problem("POST", path+"/completion", nil, 404, "no such user task was found")
}

func TestREST_UserTaskOfACancelledInstance(t *testing.T) {
	t.Parallel()
	z := open(t, "user-tasks: a user task of a cancelled instance is CANCELED")
	z.deploy("p.bpmn", model(process("p", start("s"), `<bpmn:userTask id="u"><bpmn:extensionElements><zeebe:userTask/></bpmn:extensionElements></bpmn:userTask>`, end("e"), flow("s", "u", "e"))))
	k := z.create("p", "")
	z.cancel(k)
	z.found("user-tasks", item{"processInstanceKey": str(k), "state": "CANCELED"}, 1)
	z.state(k, "TERMINATED")
}

func TestREST_SignalAndSearchOfSignalStart(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /signals/broadcast")
	var out item
	z.deploy("q.bpmn", model(`<bpmn:signal id="sg" name="x"/>`, process("q", startWith("s", `<bpmn:signalEventDefinition signalRef="sg"/>`, true), task("woken"), end("e"), flow("s", "woken", "e"))))
	if got := z.call("POST", "/signals/broadcast", item{"signalName": "x", "variables": item{"n": 1}}, &out); got != 200 || keyOf(out, "signalKey") == 0 {
		t.Errorf("broadcast: %d %v", got, out)
	}
	z.problem("POST", "/signals/broadcast", item{}, 400, "signalName")
	j := z.work("woken", "")
	if j.GetVariables() != `{"n":1}` {
		t.Errorf("variables: %s", j.GetVariables())
	}
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}

func TestREST_Clock(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: PUT /clock and POST /clock/reset")
	z.needClock()
	z.deploy("p.bpmn", model(process("p", start("s"), catchEvent("w", duration("PT1H")), end("e"), flow("s", "w", "e"))))
	k := z.create("p", "")
	if got := z.call("POST", "/clock/advance", item{"milliseconds": 3_600_000}, nil); got != 200 {
		t.Fatalf("advance: %d", got)
	}
	z.state(k, "COMPLETED")
	z.problem("POST", "/clock/advance", item{"milliseconds": 0}, 400, "greater than 0")
	z.problem("PUT", "/clock", item{}, 400, "timestamp")
	if got := z.call("PUT", "/clock", item{"timestamp": z.engine.Now().Add(2 * hour).UnixMilli()}, nil); got != 204 {
		t.Errorf("pin: %d", got)
	}
	if got := z.call("POST", "/clock/reset", nil, nil); got != 204 {
		t.Errorf("reset: %d", got)
	}
	k = z.create("p", "") // counts from the reset clock
	z.advance(hour)
	z.state(k, "COMPLETED")
}

func TestREST_KeysAreBeyondWhatJavaScriptCanCount(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: a key holds the partition above bit 51")
	z.deploy("one.bpmn", oneTask("one"))
	r, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1})
	if err != nil {
		t.Fatal(err)
	}
	top, err := z.Topology(z.ctx, &pb.TopologyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	k := r.GetProcessInstanceKey()
	if partition := k >> 51; partition < 1 || partition > int64(top.GetPartitionsCount()) {
		t.Errorf("key %d is of partition %d, want 1 to %d", k, partition, top.GetPartitionsCount())
	}
	z.state(k, "ACTIVE") // found over REST by the same key
}

func TestREST_JobTimeoutAndFailureWithBody(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: PATCH /jobs/{key} changes retries and time-out, POST /jobs/{key}/failure takes retries, message and variables")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	j := z.job("work")
	path := "/jobs/" + str(j.GetKey())
	if got := z.call("PATCH", path, item{"changeset": item{"timeout": 600_000}}, nil); got != 204 {
		t.Fatalf("patch: %d", got)
	}
	if got := z.call("POST", path+"/failure", item{"retries": 2, "errorMessage": "later", "variables": item{"tried": 1}}, nil); got != 204 {
		t.Fatalf("failure: %d", got)
	}
	z.noIncident(k)
	z.problem("PATCH", path, item{"changeset": item{"timeout": 1000}}, 409, "but it is not active")
	again := z.work("work", "")
	if again.GetKey() != j.GetKey() || again.GetRetries() != 2 || again.GetVariables() != `{"tried":1}` {
		t.Errorf("job %v, want the same with 2 retries and the variable", again)
	}
	z.state(k, "COMPLETED")
}

func TestREST_LongPolling(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /jobs/activation answers an empty list when no job comes, and waits as long as requestTimeout says")
	z.deploy("one.bpmn", oneTask("one"))
	var act struct{ Jobs []item }
	if got := z.call("POST", "/jobs/activation", item{"type": "work", "timeout": 60_000, "maxJobsToActivate": 1, "requestTimeout": -1}, &act); got != 200 || len(act.Jobs) != 0 {
		t.Fatalf("activation: %d %v, want an empty list", got, act)
	}
	type answer struct {
		status int
		jobs   []item
	}
	got := make(chan answer, 1)
	go func() {
		var act struct{ Jobs []item }
		status := z.call("POST", "/jobs/activation", item{"type": "work", "timeout": 60_000, "maxJobsToActivate": 1, "requestTimeout": 30_000}, &act)
		got <- answer{status, act.Jobs}
	}()
	k := z.create("one", "")
	a := <-got
	if a.status != 200 || len(a.jobs) != 1 || a.jobs[0]["processInstanceKey"] != str(k) {
		t.Fatalf("activation: %v, want the job of %d", a, k)
	}
	if status := z.call("POST", "/jobs/"+a.jobs[0]["jobKey"].(string)+"/completion", nil, nil); status != 204 {
		t.Errorf("completion without a body: %d", status)
	}
	z.state(k, "COMPLETED")
	z.problem("POST", "/jobs/activation", item{"type": "work", "maxJobsToActivate": 1}, 400, "timeout")
	z.problem("POST", "/jobs/activation", item{"timeout": 1000, "maxJobsToActivate": 1}, 400, "type")
}

func TestREST_ModificationAndTags(t *testing.T) {
	t.Parallel()
	z := open(t, "rest: POST /process-instances keeps tags, POST /process-instances/{key}/modification moves a token")
	z.deploy("p.bpmn", nested())
	var inst item
	if got := z.call("POST", "/process-instances", item{"processDefinitionId": "p", "tags": []string{"vip"}}, &inst); got != 200 {
		t.Fatalf("create: %d %v", got, inst)
	}
	k := keyOf(inst, "processInstanceKey")
	found := z.found("process-instances", item{"processInstanceKey": str(k)}, 1)[0]
	if fmt.Sprint(found["tags"]) != "[vip]" {
		t.Errorf("tags: %v, want vip", found["tags"])
	}
	j := z.job("a")
	if got := z.call("POST", "/process-instances/"+str(k)+"/modification", item{
		"activateInstructions":  []item{{"elementId": "c"}},
		"terminateInstructions": []item{{"elementInstanceKey": str(j.GetElementInstanceKey())}},
	}, nil); got != 204 {
		t.Fatalf("modification: %d", got)
	}
	z.none("b")
	z.work("c", "")
	z.state(k, "COMPLETED")
	z.problem("POST", "/process-instances/1/modification", item{"activateInstructions": []item{{"elementId": "c"}}}, 404, "no process instance found with key '1'")
}
