package conformance

import (
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation page "Process instance migration" (components/concepts) and of the RPC's comments.

func (z *cluster) migrate(instance, target int64, pairs ...string) error {
	plan := &pb.MigrateProcessInstanceRequest_MigrationPlan{TargetProcessDefinitionKey: target}
	for i := 0; i < len(pairs); i += 2 {
		plan.MappingInstructions = append(plan.MappingInstructions, &pb.MigrateProcessInstanceRequest_MappingInstruction{SourceElementId: pairs[i], TargetElementId: pairs[i+1]})
	}
	_, err := z.MigrateProcessInstance(z.ctx, &pb.MigrateProcessInstanceRequest{ProcessInstanceKey: instance, MigrationPlan: plan})
	return err
}

func (z *cluster) definition(name, xml string) int64 {
	z.t.Helper()
	return z.deploy(name, xml).GetDeployments()[0].GetProcess().GetProcessDefinitionKey()
}

func TestMigrate_JobKeepsItsKeyAndGoesOnInTheTarget(t *testing.T) {
	t.Parallel()
	z := open(t, "migration: active elements keep keys, jobs and variables and go on in the target")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"a":1}`)
	j := z.job("work")
	target := z.definition("two.bpmn", model(process("two", start("s"), taskOf("w2", "work"), task("after"), end("e"), flow("s", "w2", "after", "e"))))
	if err := z.migrate(k, target, "work", "w2"); err != nil {
		t.Fatal(err)
	}
	if e := z.element(k, "w2", "ACTIVE"); keyOf(e, "elementInstanceKey") != j.GetElementInstanceKey() {
		t.Errorf("element instance %v, want the same key %d", e["elementInstanceKey"], j.GetElementInstanceKey())
	}
	z.complete(j, `{"b":2}`)
	z.work("after", "")
	z.state(k, "COMPLETED")
	z.variable(k, "a", "1")
	z.variable(k, "b", "2")
}

func TestMigrate_BoundaryTimerOfTheTargetIsOpened(t *testing.T) {
	t.Parallel()
	z := open(t, "migration: boundary events that the target adds are opened")
	z.needClock()
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	target := z.definition("two.bpmn", model(process("two", start("s"), task("work"), boundary("b", "work", true, duration("PT1M")), task("late"), end("e"), flow("s", "work", "e"), flow("b", "late"))))
	if err := z.migrate(k, target, "work", "work"); err != nil {
		t.Fatal(err)
	}
	z.advance(2 * time.Minute)
	z.work("late", "")
	z.element(k, "work", "TERMINATED")
	z.state(k, "COMPLETED")
}

func TestMigrate_Refused(t *testing.T) {
	t.Parallel()
	z := open(t, "migration: a plan that does not fit is refused and changes nothing")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	target := z.definition("two.bpmn", model(process("two", start("s"), task("w2"), `<bpmn:receiveTask id="r" messageRef="m"/>`, end("e"), flow("s", "w2", "r", "e")), messageDef("m", "m", "=1")))
	for name, c := range map[string]struct {
		instance, target int64
		pairs            []string
		code             codes.Code
		text             string
	}{
		"unknown instance": {1, target, []string{"work", "w2"}, codes.NotFound, "Expected to migrate process instance but no process instance found with key '1'"},
		"unknown process":  {k, 1, []string{"work", "w2"}, codes.NotFound, "no process definition found with key '1'"},
		"unknown source":   {k, target, []string{"absent", "w2"}, codes.InvalidArgument, "non-existing source element id 'absent'"},
		"unknown target":   {k, target, []string{"work", "nope"}, codes.InvalidArgument, "non-existing target element id 'nope'"},
		"mapped twice":     {k, target, []string{"work", "w2", "work", "w2"}, codes.InvalidArgument, "duplicate source element ids '[work]'"},
		"not mapped":       {k, target, nil, codes.FailedPrecondition, "no mapping instruction defined for active element with id 'work'"},
		"other type":       {k, target, []string{"work", "r"}, codes.FailedPrecondition, "different type 'RECEIVE_TASK'"},
	} {
		z.run(t, name, "migration: refuses: "+c.text, func(_ *testing.T, z *cluster) {
			z.refused(z.migrate(c.instance, c.target, c.pairs...), c.code, c.text)
			z.element(k, "work", "ACTIVE")
		})
	}
	z.work("work", "")
	z.state(k, "COMPLETED")
}
