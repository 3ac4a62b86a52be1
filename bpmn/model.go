// Package bpmn reads BPMN 2.0 models with Camunda 8 (zeebe) extensions into
// typed values, refuses what cannot run, compares two versions of a model and
// draws a model as SVG from its own layout.
//
// Elements are matched by namespace, never by prefix. Nothing here runs a
// process: that is what package engine (embedded) or a Camunda 8 cluster does.
package bpmn

// Definitions is one parsed BPMN file.
type Definitions struct {
	ID          string
	Processes   []*Process
	Messages    map[string]*Message    // by BPMN id
	Errors      map[string]*ErrorDef   // by BPMN id
	Signals     map[string]*Signal     // by BPMN id
	Escalations map[string]*Escalation // by BPMN id
	Diagram     *Diagram               // nil when the file has no layout

	Participants []*Artifact          // pools, document order
	Artifacts    map[string]*Artifact // everything drawn that does not execute, by BPMN id: pools, lanes, text annotations, groups, data
	MessageFlows []*Association       // between pools; drawn only
	Associations []*Association       // those of a collaboration; a scope has its own
	Platform     string               // modeler:executionPlatform, for example "Camunda Cloud"; may be empty

	elements map[string]*Element
	problems []*Error // references that lead nowhere, duplicate ids: Check reports them
}

// Element returns the flow node with this id, nil when there is none.
func (d *Definitions) Element(id string) *Element { return d.elements[id] }

// Artifact is something drawn that does not execute.
type Artifact struct {
	ID         string
	Kind       Kind   // participant, lane, textAnnotation, group, dataObjectReference, dataStoreReference
	Name       string // or the text of an annotation
	ProcessRef string // participant only; may be empty
	Line       int
}

// Process is one bpmn:process.
type Process struct {
	Scope
	Name       string
	Executable bool
	VersionTag string   // zeebe:versionTag; empty when it has none
	Unknown    []string // extensions of the process itself that the parser does not know, for example "zeebe:executionListeners"
	Line       int
}

// Scope holds flow elements: a process, an embedded subprocess or an event subprocess.
type Scope struct {
	ID           string
	Elements     []*Element // document order
	Flows        []*Flow    // document order
	Associations []*Association
}

// Kind is the BPMN element kind, for example "serviceTask".
type Kind string

// The element kinds the parser knows. Any other element in the BPMN namespace
// is kept with Kind equal to its local name, so that it can be refused by name.
const (
	KindStartEvent        Kind = "startEvent"
	KindEndEvent          Kind = "endEvent"
	KindCatchEvent        Kind = "intermediateCatchEvent"
	KindThrowEvent        Kind = "intermediateThrowEvent"
	KindBoundaryEvent     Kind = "boundaryEvent"
	KindServiceTask       Kind = "serviceTask"
	KindSendTask          Kind = "sendTask"
	KindReceiveTask       Kind = "receiveTask"
	KindUserTask          Kind = "userTask"
	KindManualTask        Kind = "manualTask"
	KindTask              Kind = "task"
	KindScriptTask        Kind = "scriptTask"
	KindBusinessRuleTask  Kind = "businessRuleTask"
	KindExclusiveGateway  Kind = "exclusiveGateway"
	KindParallelGateway   Kind = "parallelGateway"
	KindInclusiveGateway  Kind = "inclusiveGateway"
	KindEventBasedGateway Kind = "eventBasedGateway"
	KindSubProcess        Kind = "subProcess"
	KindCallActivity      Kind = "callActivity"
)

// Element is one flow node.
type Element struct {
	ID     string
	Name   string
	Kind   Kind
	Line   int      // 1-based line of the start tag
	Parent *Element // enclosing subprocess; nil directly under the process
	In     *Scope   // the scope it stands in; never nil
	Doc    string   // bpmn:documentation

	Incoming []*Flow // by reference of the flows' targetRef, document order
	Outgoing []*Flow

	Event *EventDefinition // nil for a none event or a non-event

	// Boundary events.
	AttachedTo   *Element
	Boundary     []*Element // boundary events attached to this activity
	Interrupting bool       // cancelActivity / isInterrupting; default true

	// Compensation wiring.
	ForCompensation     bool     // isForCompensation="true"
	CompensationHandler *Element // of an activity with a compensation boundary event

	// Tasks.
	Task       *TaskDefinition // zeebe:taskDefinition
	Headers    []Header        // zeebe:taskHeaders
	Inputs     []Mapping       // zeebe:ioMapping inputs, document order
	Outputs    []Mapping
	UserTask   *UserTask      // userTask only; Native when zeebe:userTask is present
	Message    *Message       // receiveTask
	Called     *CalledElement // callActivity
	Loop       *MultiInstance // nil when not multi-instance
	Properties []Header       // zeebe:properties (used for platform marks such as journeyman:pivot)

	Script   *Script   // zeebe:script of a scriptTask
	Decision *Decision // zeebe:calledDecision of a businessRuleTask
	Template string    // zeebe:modelerTemplate: the connector template a task was made from; may be empty

	// Unknown names what was found in the element and is not read, for example
	// "zeebe:executionListeners", "bpmn:standardLoopCharacteristics" or
	// "camunda:delegateExpression". An engine refuses what it cannot honour.
	Unknown []string

	// Gateways.
	Default *Flow

	// Subprocesses.
	Scope            *Scope
	TriggeredByEvent bool // event subprocess
}

// EventKind names an event definition.
type EventKind string

// Event definitions.
const (
	EventMessage      EventKind = "message"
	EventTimer        EventKind = "timer"
	EventError        EventKind = "error"
	EventEscalation   EventKind = "escalation"
	EventSignal       EventKind = "signal"
	EventCompensation EventKind = "compensate"
	EventLink         EventKind = "link"
	EventTerminate    EventKind = "terminate"
)

// EventDefinition is what makes an event more than a none event.
type EventDefinition struct {
	Kind        EventKind
	Message     *Message
	Error       *ErrorDef // nil = catch all (catch side)
	Signal      *Signal
	Escalation  *Escalation
	Timer       *Timer
	LinkName    string
	ActivityRef string // compensation throw: the activity to compensate, empty = all of the scope
	NoWait      bool   // compensation throw with waitForCompletion="false", which Zeebe refuses
}

// Timer is exactly one of date, duration or cycle; static text or a FEEL expression with a leading "=".
type Timer struct {
	Date, Duration, Cycle string
}

// Message is bpmn:message with its zeebe:subscription.
type Message struct {
	ID, Name       string
	CorrelationKey string // FEEL with leading "=", empty when absent
	Line           int
}

// ErrorDef is bpmn:error.
type ErrorDef struct {
	ID, Name string
	Code     string // static, or FEEL with leading "=" (throw side only); empty catches all
	Line     int
}

// Signal is bpmn:signal.
type Signal struct{ ID, Name string }

// Escalation is bpmn:escalation.
type Escalation struct{ ID, Name, Code string }

// TaskDefinition is zeebe:taskDefinition. Retries is "3" when the attribute is absent.
type TaskDefinition struct {
	Type, Retries string // static, or FEEL with a leading "="
	Declared      bool   // the file says how many retries
}

// Header is one key and value pair.
type Header struct{ Key, Value string }

// Mapping is one zeebe:input or zeebe:output.
type Mapping struct{ Source, Target string }

// UserTask describes how a user task is handled and who it is for.
type UserTask struct {
	Native                                                           bool // zeebe:userTask present: user task API, no job
	Assignee, CandidateGroups, CandidateUsers, DueDate, FollowUpDate string
	FormKey, FormID, ExternalReference, Priority                     string
}

// Script is zeebe:script.
type Script struct{ Expression, ResultVariable string }

// Decision is zeebe:calledDecision.
type Decision struct{ DecisionID, ResultVariable string }

// CalledElement is zeebe:calledElement.
type CalledElement struct {
	ProcessID                                               string // static or FEEL with leading "="
	PropagateAllChildVariables, PropagateAllParentVariables bool   // default true
	VersionTag                                              string // of bindingType versionTag: the version that has it; empty: the latest
}

// MultiInstance is bpmn:multiInstanceLoopCharacteristics with zeebe:loopCharacteristics.
type MultiInstance struct {
	Sequential                      bool
	InputCollection, InputElement   string
	OutputCollection, OutputElement string
	CompletionCondition             string
}

// Flow is a sequence flow.
type Flow struct {
	ID, Name       string
	Source, Target *Element
	Condition      string // FEEL with leading "="; empty = none
	Line           int
}

// Association connects a compensation boundary event with its handler, or a text annotation.
type Association struct {
	ID, SourceRef, TargetRef string
	Line                     int
}

// Diagram is the BPMN DI of a file: shapes and edges by element id.
type Diagram struct {
	Shapes map[string]Shape
	Edges  map[string]Edge
	Order  []string // element ids in drawing order
}

// Shape is where an element stands, in diagram pixels.
type Shape struct {
	X, Y, W, H float64
	Label      *Rect
	Expanded   bool
	Horizontal bool
}

// Rect is a rectangle in diagram pixels.
type Rect struct{ X, Y, W, H float64 }

// Edge is the way points of a flow or association.
type Edge struct {
	Points []Point
	Label  *Rect
}

// Point is one way point.
type Point struct{ X, Y float64 }
