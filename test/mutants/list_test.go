//go:build mutants

package mutants

// mutant is one fault: in file, old (which stands there once) becomes new.
// tests selects what should notice it.
type mutant struct {
	section string // of the behaviour it breaks, see sections
	name    string
	file    string
	old     string
	new     string
	tests   string
}

// sections names the groups of documented behaviour; each has three faults at least.
var sections = map[string]string{
	"2.1": "gRPC statuses", "2.2": "gRPC calls", "2.3": "activation of jobs", "2.4": "messages", "3": "jobs and incidents",
	"4.1": "tasks and expressions", "4.2": "variables", "4.3": "gateways", "4.4": "events", "4.5": "containers", "4.6": "compensation",
	"5": "FEEL", "6": "REST v2", "9": "traps",
}

const (
	core = "engine/internal/core/"
	rest = "engine/internal/rest/"
	gate = "engine/internal/gateway/"
	feel = "bpmn/feel/"
)

var mutants = []mutant{
	{"2.1", "INVALID_STATE becomes ABORTED", gate + "gateway.go", "code = codes.FailedPrecondition", "code = codes.Aborted", "TestJob_FailWithoutRetries|TestCreate_Refusals"},
	{"2.4", "a message id is never refused", core + "messages.go", `if p.ID != "" && c.messageIDs[idKey] != nil {`, `if false && c.messageIDs[idKey] != nil {`, "TestMessage_SameID"},
	{"2.4", "a message reaches every instance of a process", core + "messages.go", "if m.taken[pid] || s.closed {\n\t\t\tcontinue", "if s.closed {\n\t\t\tcontinue", "TestMessage_Subscribed|TestMessage_Buffered"},
	{"2.4", "message start without lock", core + "messages.go", `if m.CorrKey != "" && c.locks[lockKey(pid, m.CorrKey)] != nil {`, `if false {`, "TestMessageStart_Lock"},
	{"2.3", "long poll never asked for is taken as none", gate + "jobs.go", "if wait == 0 {\n\t\twait = longPoll", "if wait == 0 {\n\t\twait = -1", "TestActivate_DefaultLongPoll"},
	{"2.3", "jobs out of order", core + "jobqueue.go", "q.jobs[i].Key < q.jobs[j].Key", "q.jobs[i].Key > q.jobs[j].Key", "TestActivate_FirstIn"},
	{"2.2", "a duplicate deployment gets a new version", core + "deploy.go", "latest.checksum == p.checksum", "false", "TestDeploy_Same"},
	{"2.2", "a called instance can be cancelled", core + "instances.go", "if inst.Caller != nil {\n\t\troot", "if false {\n\t\troot", "TestCall_Cancel"},

	{"3", "a timed-out job loses a retry", core + "jobs.go", `j.Recorded = "TIMED_OUT"`, `j.Recorded, j.Retries = "TIMED_OUT", j.Retries-1`, "TestJob_Timeout"},
	{"3", "back-off is ignored", core + "jobs.go", "case backoff <= 0:", "case backoff <= 0 || backoff > 0:", "TestJob_Backoff"},
	{"3", "update of retries makes a job activatable", core + "jobs.go", "j.Retries = retries\n", "j.Retries = retries\n\tc.makeActivatable(j)\n", "TestJob_FailWithoutRetries|TestJob_Update"},
	{"3", "no catch-all for errors", core + "errors.go", "if all.node == nil {", "if all.node == nil && false {", "TestBoundaryError|TestEventSub"},
	{"3", "catch-all beats the exact code", core + "errors.go", "return catcher{e, n}, nil\n\t\t\t\tdefault", "if all.node == nil {\n\t\t\t\t\t\treturn catcher{e, n}, nil\n\t\t\t\t\t}\n\t\t\t\tdefault", "TestBoundaryError_Exact"},
	{"3", "a cancelled job keeps its incident", core + "jobs.go", "if j.incident != nil {\n\t\tc.closeIncident(j.incident)\n\t}", "", "TestJob_Cancelled"},
	{"3", "failure variables leave the task", core + "jobs.go", "c.mergeLocal(j.El, vars)", "c.propagate(j.El, vars)", "TestJob_FailVariables"},

	{"4.2", "output variables stay at the task", core + "vars.go", "default:\n\t\tc.propagate(e, e.doc)", "default:\n\t\tc.mergeLocal(e, e.doc)", "TestVariables_Completion"},
	{"4.3", "a join fires with the first token", core + "complete.go", "(have < len(tokens) && !partial)", "false", "TestParallel"},
	{"4.4", "boundary event does not interrupt", core + "events.go", "if n.interrupting || n.event == bpmn.EventError {", "if n.event == bpmn.EventError {", "TestBoundaryTimer_Interrupts"},
	{"4.6", "compensation of uncompleted scopes", core + "element.go", "e.joins, e.comps, e.loop", "if e.Parent != nil {\n\t\te.Parent.comps = append(e.Parent.comps, e.comps...)\n\t}\n\te.joins, e.comps, e.loop", "TestCompensation_Terminated"},
	{"4.6", "compensation handlers run twice", core + "compensate.go", "s.comps = keep", "_ = keep", "TestCompensation"},
	{"4.5", "loopCounter begins at 0", core + "multi.go", `json.RawMessage(strconv.Itoa(index)))`, `json.RawMessage(strconv.Itoa(index-1)))`, "TestMulti"},
	{"4.4", "terminate end event ends nothing else", core + "complete.go", "c.clearScope(scope)\n\tscope.State", "scope.State", "TestTerminateEnd"},
	{"4.5", "an event subprocess leaves its scope running", core + "events.go", "c.clearScope(e)\n}", "}", "TestEventSubprocess"},
	{"4.3", "the default flow is never taken", core + "activate.go", "if n.def != nil {", "if false {", "TestExclusive|TestInclusive"},

	{"5", "null is an else-less if", feel + "nodes.go", "return m.eval(n.other)\n}", "return Value{}\n}", "TestFEEL"},
	{"5", "lists count from 0", feel + "builtin_list.go", "return int(i - 1), true", "return int(i), true", "TestFEEL"},
	{"5", "get or else never takes the other", feel + "builtin_logic.go", "if a[0].IsNull() {\n\t\t\treturn a[1]", "if false {\n\t\t\treturn a[1]", "TestFEEL"},
	{"5", "is defined is always true", feel + "builtin_logic.go", "BoolValue(!a[0].IsNull())", "BoolValue(true)", "TestFEEL"},

	{"6", "keys are numbers", rest + "body.go", "[]byte(strconv.Quote(strconv.FormatInt(int64(k), 10)))", "[]byte(strconv.FormatInt(int64(k), 10))", "TestREST_Keys|TestREST_Deploy"},
	{"6", "INVALID_STATE is 400", rest + "problem.go", "status = http.StatusConflict", "status = http.StatusBadRequest", "TestREST"},
	{"6", "$neq is $eq", rest + "filter.go", "!equal(v, want)", "equal(v, want)", "TestREST_Search"},
	{"6", "problem documents are plain JSON", rest + "problem.go", `"application/problem+json"`, `"application/json"`, "TestREST_Problem"},
	{"6", "an error needs no code", rest + "jobs.go", `if in.ErrorCode == "" {`, `if false {`, "TestREST_JobError"},

	{"9", "an incident without retries can be resolved", core + "incidents.go", "if j.Retries <= 0 {", "if false {", "TestJob_FailWithoutRetries"},
	{"9", "a persisting cause keeps the incident's key", core + "incidents.go", "inc.Key, inc.Created, inc.Active = c.key(), c.now, true", "inc.Key, inc.Created, inc.Active = c.lastKey, c.now, true", ""},
	{"9", "error variables leave the boundary event", core + "events.go", "vars, true, n.event == bpmn.EventError", "vars, true, false", "TestBoundaryError_Variables"},
	{"9", "retries are relative", core + "jobs.go", "j.Retries, j.Error, j.State, j.Recorded = retries,", "j.Retries, j.Error, j.State, j.Recorded = j.Retries-1,", "TestJob_Fail"},
	{"9", "a null condition counts as false", core + "expr.go", "if v.kind != \"BOOLEAN\" {", "if v.kind != \"BOOLEAN\" && v.kind != \"NULL\" {", "TestExclusive_Null"},
	{"9", "a static input is a number", core + "compile.go", "x = staticString(m.Source)", "x = staticExpr(m.Source)", "TestVariables_Input"},
	{"9", "a message without time to live is kept", core + "messages.go", "if p.TTL > 0 {", "if p.TTL <= 0 {\n\t\tp.TTL = 1 << 40\n\t}\n\tif p.TTL > 0 {", "TestMessage_TTL"},
	{"9", "a late completion is refused", core + "jobs.go", "switch j.State {\n\tcase JobFailed:", "switch j.State {\n\tcase JobActivatable, JobFailed:", "TestJob_Timeout|TestJob_CompleteWithout"},
	{"9", "a stream gets the backlog", "engine/internal/broker/stream.go", "g.list = append(g.list, s)", "g.list = append(g.list, s)\n\tfor _, a := range b.core.Activate(core.Activation{Type: req.Type, Worker: req.Worker, Timeout: req.Timeout, Max: 1}) {\n\t\ts.jobs <- a\n\t}", "TestStream_Pushes"},
	{"9", "failure over REST keeps the retries", rest + "jobs.go", "return c.FailJob(k, in.Retries,", "return c.FailJob(k, in.Retries+1,", "TestREST_Failure"},
	{"2.1", "a foreign tenant is taken", gate + "gateway.go", `if id == "" || id == DefaultTenant {`, `if true {`, "TestDeploy_Nothing|TestActivate_Refusals"},
	{"2.1", "rejections do not name their code", core + "reject.go", "rejected with code '%s'", "rejected with '%s'", "TestJob_CompleteTwice"},
	{"2.2", "a deployment with one bad file is taken", core + "deploy.go", "if len(problems) > 0 {\n\t\treturn Deployment{}, reject(intent, InvalidArgument, \"Expected to deploy new", "if len(problems) > 0 && len(compiled) == 0 {\n\t\treturn Deployment{}, reject(intent, InvalidArgument, \"Expected to deploy new", "TestDeploy_AllOrNothing"},
	{"2.3", "all variables are fetched", core + "vars.go", "if len(names) > 0 {", "if len(names) < 0 {", "TestActivate_Fetch"},
	{"4.1", "a job type need not be text", core + "expr.go", "if v.kind != \"STRING\" {\n\t\treturn \"\", x.wrongType(\"STRING\"", "if false {\n\t\treturn \"\", x.wrongType(\"STRING\"", "TestJob_TypeOfWrongKind"},
	{"4.1", "headers get lost", core + "jobs.go", "Headers: v.headers", "Headers: nil", "TestJob_Headers"},
	{"4.1", "retries are not evaluated", core + "jobs.go", "Retries: v.retries", "Retries: 3", "TestJob_Headers"},
	{"4.2", "inputs do not see earlier ones", core + "vars.go", "if v, ok := out[name]; ok {", "if v, ok := out[name]; ok && false {", "TestVariables_Input"},
	{"4.2", "everything leaves beside output mappings", core + "vars.go", "c.mergeLocal(e, e.doc)\n\t\te.doc = nil", "c.propagate(e, e.doc)\n\t\te.doc = nil", "TestVariables_Output"},
	{"4.3", "two tokens of one flow count as two flows", core + "complete.go", "have++", "have += t", "TestParallel_Tokens"},
	{"4.4", "a boundary event takes its key from the activity", core + "events.go", "if node.attached != nil {\n\t\t\tscope = e.Parent", "if false {\n\t\t\tscope = e.Parent", "TestBoundaryMessage_Key"},
	{"4.5", "a child's variables stay in the child", core + "call.go", "e.Node.called.allToParent ||", "false ||", "TestCall_Passes"},
	{"4.6", "compensation does not go down", core + "compensate.go", "list = in.handlers(list)", "_ = in", "TestCompensation_GoesDown"},
	{"4.6", "the throw event does not wait", core + "compensate.go", "throw.pending > 0 || throw.ended()", "throw.ended()", "TestCompensation_All"},
}
