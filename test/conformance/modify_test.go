package conformance

import (
	"fmt"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation page "Process instance modification" (components/concepts).

type (
	modification = pb.ModifyProcessInstanceRequest
	activation   = pb.ModifyProcessInstanceRequest_ActivateInstruction
	termination  = pb.ModifyProcessInstanceRequest_TerminateInstruction
	setting      = pb.ModifyProcessInstanceRequest_VariableInstruction
)

func nested() string {
	return model(process("p", start("s"), task("a"), sub("sp", start("is"), task("b"), task("c"), end("ie"), flow("is", "b", "c", "ie")), end("e"), flow("s", "a", "sp", "e")))
}

func TestModify_MovesAToken(t *testing.T) {
	t.Parallel()
	z := open(t, "modification: activate and terminate instructions with variables of scopes")
	z.deploy("p.bpmn", nested())
	k := z.create("p", "")
	j := z.job("a")
	if _, err := z.ModifyProcessInstance(z.ctx, &modification{
		ProcessInstanceKey:    k,
		ActivateInstructions:  []*activation{{ElementId: "c", VariableInstructions: []*setting{{Variables: `{"g":1}`}, {Variables: `{"l":2}`, ScopeId: "sp"}, {Variables: `{"t":3}`, ScopeId: "c"}}}},
		TerminateInstructions: []*termination{{ElementInstanceKey: j.GetElementInstanceKey()}},
	}); err != nil {
		t.Fatal(err)
	}
	_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()})
	z.refused(err, codes.NotFound, "no such job")
	z.variable(k, "g", "1")
	z.variable(k, "l", "")
	z.variable(k, "t", "")
	z.variable(keyOf(z.element(k, "sp", "ACTIVE"), "elementInstanceKey"), "l", "2")
	z.variable(keyOf(z.element(k, "c", "ACTIVE"), "elementInstanceKey"), "t", "3")
	z.none("b")
	if got, want := z.work("c", "").GetVariables(), `{"g":1,"l":2,"t":3}`; got != want {
		t.Errorf("variables: got %s, want %s", got, want)
	}
	z.state(k, "COMPLETED")
}

func TestModify_TerminatingTheLastElementEndsTheInstance(t *testing.T) {
	t.Parallel()
	z := open(t, "modification: an instance without active elements is terminated")
	z.deploy("p.bpmn", nested())
	k := z.create("p", "")
	z.work("a", "")
	j := z.job("b")
	if _, err := z.ModifyProcessInstance(z.ctx, &modification{ProcessInstanceKey: k, TerminateInstructions: []*termination{{ElementInstanceKey: j.GetElementInstanceKey()}}}); err != nil {
		t.Fatal(err)
	}
	z.element(k, "sp", "TERMINATED")
	z.state(k, "TERMINATED")
}

func TestModify_ExistingScopeIsUsed(t *testing.T) {
	t.Parallel()
	z := open(t, "modification: an active scope is used, not created again")
	z.deploy("p.bpmn", nested())
	k := z.create("p", "")
	z.work("a", "")
	if _, err := z.ModifyProcessInstance(z.ctx, &modification{ProcessInstanceKey: k, ActivateInstructions: []*activation{{ElementId: "c"}}}); err != nil {
		t.Fatal(err)
	}
	z.element(k, "c", "ACTIVE")
	z.found("element-instances", item{"processInstanceKey": str(k), "elementId": "sp"}, 1)
	z.work("c", "")
	z.work("b", "")
	z.work("c", "")
	z.state(k, "COMPLETED")
}

func TestModify_SeveralScopesNeedAnAncestor(t *testing.T) {
	t.Parallel()
	z := open(t, "modification: with several active scopes the ancestor has to be chosen")
	z.deploy("p.bpmn", nested())
	k := z.create("p", "")
	z.work("a", "")
	activate := func(a *activation) error {
		_, err := z.ModifyProcessInstance(z.ctx, &modification{ProcessInstanceKey: k, ActivateInstructions: []*activation{a}})
		return err
	}
	if err := activate(&activation{ElementId: "sp"}); err != nil {
		t.Fatal(err)
	}
	z.refused(activate(&activation{ElementId: "c"}), codes.InvalidArgument, "more than one active instance")
	scopes := z.found("element-instances", item{"processInstanceKey": str(k), "elementId": "sp", "state": "ACTIVE"}, 2)
	if err := activate(&activation{ElementId: "c", AncestorElementInstanceKey: keyOf(scopes[1], "elementInstanceKey")}); err != nil {
		t.Fatal(err)
	}
	c := z.element(k, "c", "ACTIVE")
	inside := z.found("element-instances", item{"elementInstanceScopeKey": scopes[1]["elementInstanceKey"], "elementId": "c"}, 1)
	if inside[0]["elementInstanceKey"] != c["elementInstanceKey"] {
		t.Errorf("in the chosen scope: %v, want %v", inside, c)
	}
}

func TestModify_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t, "modification: instructions that name nothing are refused and change nothing")
	z.deploy("p.bpmn", nested())
	k := z.create("p", "")
	_, err := z.ModifyProcessInstance(z.ctx, &modification{ProcessInstanceKey: 7})
	z.refused(err, codes.NotFound, "Expected to modify process instance but no process instance found with key '7'")
	for text, m := range map[string]*modification{
		"could not be found: 'zz'":                 {ActivateInstructions: []*activation{{ElementId: "zz"}}},
		"type 'START_EVENT' is not supported":      {ActivateInstructions: []*activation{{ElementId: "s"}}},
		"could not be found: '9'":                  {TerminateInstructions: []*termination{{ElementInstanceKey: 9}}},
		"is not in an active state: '9'":           {ActivateInstructions: []*activation{{ElementId: "c", AncestorElementInstanceKey: 9}}},
		"does not belong to the activating":        {ActivateInstructions: []*activation{{ElementId: "c", VariableInstructions: []*setting{{ScopeId: "a"}}}}},
		fmt.Sprintf("Invalid JSON value: %s", "x"): {ActivateInstructions: []*activation{{ElementId: "c", VariableInstructions: []*setting{{Variables: "x"}}}}},
	} {
		m.ProcessInstanceKey = k
		_, err := z.ModifyProcessInstance(z.ctx, m)
		z.refused(err, codes.InvalidArgument, text)
	}
	z.absent(k, "c")
	z.work("a", "")
	z.work("b", "")
	z.work("c", "")
	z.state(k, "COMPLETED")
}
