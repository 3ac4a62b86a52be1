package core

import (
	"encoding/json"
	"time"

	"github.com/vitrip/journeyman/bpmn"
)

// Process is one deployed version of a process definition.
type Process struct {
	Key        int64
	ID         string
	Name       string
	Tag        string // version tag, empty when it has none
	Version    int32
	Resource   string // resource name it was deployed under
	XML        []byte
	Deployment int64
	At         time.Time
	Deleted    bool

	checksum [32]byte
	running  int // instances that have not ended
	root     *Node
	nodes    map[string]*Node
}

// Node is one flow node, compiled for execution. The process itself is a node too.
type Node struct {
	ID     string
	Name   string
	Kind   bpmn.Kind
	Type   string // element type of REST v2, e.g. SERVICE_TASK
	El     *bpmn.Element
	Proc   *Process
	Parent *Node // enclosing scope; nil for the process

	in, out  []*Flow
	def      *Flow
	boundary []*Node
	attached *Node

	// Scopes.
	start     *Node   // none start event
	starts    []*Node // all start events of the scope
	eventSubs []*Node // event subprocesses of the scope
	children  []*Node

	inputs, outputs []mapping
	job             *jobSpec
	headers         json.RawMessage
	headerMap       map[string]string
	native          bool // user task without job
	user            *userTaskSpec
	event           bpmn.EventKind
	isCatch         bool
	interrupting    bool
	message         *catchMessage
	signal          *expr
	timer           *timerSpec
	errorCode       *expr  // throw: expression; catch: static text, nil = any error
	escalation      *expr  // same for escalation
	activityRef     string // compensation throw
	link            string
	handler         *Node // compensation handler of an activity
	forCompensation bool
	called          *calledSpec
	loop            *loopSpec
	isESP           bool
	script          *expr
	resultVariable  string
	reach           map[*Node]bool // inclusive join: nodes from which it can be reached
}

// Flow is one sequence flow, compiled.
type Flow struct {
	ID        string
	from, to  *Node
	index     int // position among to's incoming flows
	condition *expr
}

type mapping struct {
	source *expr
	target []string // path of names
}

type jobSpec struct{ typ, retries *expr }

type catchMessage struct{ name, key *expr }

type calledSpec struct {
	process                    *expr
	tag                        string // version tag of the version to call, empty = the latest version
	allToParent, allFromParent bool
}

type loopSpec struct {
	sequential bool
	collection *expr
	element    string
	output     string
	outElement *expr
	condition  *expr
}

// isJoin reports whether tokens wait at n until a join condition holds.
func (n *Node) isJoin() bool {
	return len(n.in) > 1 && (n.Kind == bpmn.KindParallelGateway || n.Kind == bpmn.KindInclusiveGateway)
}

// elementType maps BPMN kinds to the element types of REST v2.
func elementType(e *bpmn.Element) string {
	switch e.Kind {
	case bpmn.KindStartEvent:
		return "START_EVENT"
	case bpmn.KindEndEvent:
		return "END_EVENT"
	case bpmn.KindCatchEvent:
		return "INTERMEDIATE_CATCH_EVENT"
	case bpmn.KindThrowEvent:
		return "INTERMEDIATE_THROW_EVENT"
	case bpmn.KindBoundaryEvent:
		return "BOUNDARY_EVENT"
	case bpmn.KindServiceTask:
		return "SERVICE_TASK"
	case bpmn.KindSendTask:
		return "SEND_TASK"
	case bpmn.KindReceiveTask:
		return "RECEIVE_TASK"
	case bpmn.KindUserTask:
		return "USER_TASK"
	case bpmn.KindManualTask:
		return "MANUAL_TASK"
	case bpmn.KindTask:
		return "TASK"
	case bpmn.KindScriptTask:
		return "SCRIPT_TASK"
	case bpmn.KindBusinessRuleTask:
		return "BUSINESS_RULE_TASK"
	case bpmn.KindExclusiveGateway:
		return "EXCLUSIVE_GATEWAY"
	case bpmn.KindParallelGateway:
		return "PARALLEL_GATEWAY"
	case bpmn.KindInclusiveGateway:
		return "INCLUSIVE_GATEWAY"
	case bpmn.KindEventBasedGateway:
		return "EVENT_BASED_GATEWAY"
	case bpmn.KindSubProcess:
		if e.TriggeredByEvent {
			return "EVENT_SUB_PROCESS"
		}
		return "SUB_PROCESS"
	case bpmn.KindCallActivity:
		return "CALL_ACTIVITY"
	}
	return "UNKNOWN"
}

// ElementType is the REST v2 type of an element instance.
func (e *Element) ElementType() string {
	if e.Body {
		return "MULTI_INSTANCE_BODY"
	}
	return e.Node.Type
}
