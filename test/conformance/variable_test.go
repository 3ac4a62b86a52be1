package conformance

import (
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation page "Variables" (components/concepts): scopes, mappings, propagation.

func TestVariables_CompletionUpdatesTheNearestScope(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: a result updates the nearest scope that has the variable, else the instance's")
	z.deploy("p.bpmn", model(process("p", start("s"),
		`<bpmn:subProcess id="sp"><bpmn:extensionElements>`+mappings("input", "=1", "inner")+`</bpmn:extensionElements>`+start("is")+task("work")+task("hold")+end("ie")+flow("is", "work", "hold", "ie")+`</bpmn:subProcess>`,
		end("e"), flow("s", "sp", "e"))))
	k := z.create("p", `{"outer":1}`)
	z.work("work", `{"outer":2,"inner":2,"fresh":2}`)
	sp := keyOf(z.element(k, "sp", "ACTIVE"), "elementInstanceKey")
	z.variable(k, "outer", "2")
	z.variable(sp, "inner", "2")
	z.variable(k, "inner", "")
	z.variable(k, "fresh", "2")
	z.variable(sp, "fresh", "")
	z.work("hold", "")
	z.state(k, "COMPLETED")
}

func TestVariables_InputMappings(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: input mappings create local variables, in order")
	z.deploy("p.bpmn", oneTask("one", mappings(
		"input", "=a", "x", "input", "=x + 1", "later", "input", "3", "static", "input", "=missing", "none",
		"input", "=a", "deep.er.x", "input", "=2", "deep.y", "input", "=5", "twice", "input", "=6", "twice")))
	k := z.create("one", `{"a":1}`)
	j := z.job("work")
	want := `{"a":1,"deep":{"er":{"x":1},"y":2},"later":2,"none":null,"static":"3","twice":6,"x":1}`
	if j.GetVariables() != want {
		t.Errorf("variables:\n got %s\nwant %s", j.GetVariables(), want)
	}
	z.variable(k, "x", "")
	z.variable(j.GetElementInstanceKey(), "x", "1")
	z.complete(j, "")
	z.state(k, "COMPLETED")
}

func TestVariables_OutputMappingOnlyMappedOnesLeave(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: with output mappings only the mapped variables propagate")
	z.deploy("p.bpmn", oneTask("one", mappings("output", "=r.id", "booking", "output", "=r.id", "all.id")))
	k := z.create("one", `{"all":{"keep":true}}`)
	j := z.work("work", `{"r":{"id":"B1"},"secret":1}`)
	z.variable(k, "booking", `"B1"`)
	z.variable(k, "all", `{"id":"B1","keep":true}`)
	z.variable(k, "secret", "")
	z.variable(k, "r", "")
	z.variable(j.GetElementInstanceKey(), "secret", "1")
	z.state(k, "COMPLETED")
}

func TestVariables_MappingFailureIsAnIncident(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: a mapping that fails is an incident IO_MAPPING_ERROR")
	z.deploy("p.bpmn", oneTask("one", mappings("output", `=assert(x, x > 3, "too small")`, "y")))
	k := z.create("one", "")
	z.work("work", `{"x":1}`)
	inc := z.incident(k, "IO_MAPPING_ERROR", "too small")
	z.none("work")
	task := z.element(k, "work", "ACTIVE")
	if _, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: keyOf(task, "elementInstanceKey"), Variables: `{"x":5}`, Local: true}); err != nil {
		t.Fatal(err)
	}
	z.resolve(inc)
	z.variable(k, "y", "5")
	z.state(k, "COMPLETED")
}

func TestSetVariables_LocalAndPropagated(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: SetVariables with local stays in the scope, else it propagates")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", `{"x":1}`)
	j := z.job("work")
	el := j.GetElementInstanceKey()
	r, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: el, Variables: `{"x":2}`, Local: true})
	if err != nil || r.GetKey() == 0 {
		t.Fatalf("got %v, %v", r, err)
	}
	z.variable(k, "x", "1")
	z.variable(el, "x", "2")
	if _, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: el, Variables: `{"x":3,"z":4}`}); err != nil {
		t.Fatal(err)
	}
	z.variable(el, "x", "3")
	z.variable(k, "x", "1")
	z.variable(k, "z", "4")
}

func TestSetVariables_Refusals(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: SetVariables of an unknown or ended scope is NOT_FOUND")
	_, err := z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: 5, Variables: "{}"})
	z.refused(err, codes.NotFound, "Expected to update variables for element with key '5', but no such element was found")
	z.deploy("one.bpmn", oneTask("one"))
	k := z.create("one", "")
	z.work("work", "")
	z.state(k, "COMPLETED")
	_, err = z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: k, Variables: "{}"})
	z.refused(err, codes.NotFound, "no such element was found")
	_, err = z.SetVariables(z.ctx, &pb.SetVariablesRequest{ElementInstanceKey: k, Variables: "[]"})
	z.refused(err, codes.InvalidArgument, "Invalid JSON value: []")
}

func TestVariables_NumbersKeepTheirDigits(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: numbers keep their digits")
	z.deploy("p.bpmn", oneTask("one", mappings("input", "=big", "copy", "input", "=0.1+0.2", "sum")))
	k := z.create("one", `{"big":9007199254740993}`)
	if got, want := z.work("work", "").GetVariables(), `{"big":9007199254740993,"copy":9007199254740993,"sum":0.3}`; got != want {
		t.Errorf("variables: got %s, want %s", got, want)
	}
	z.variable(k, "big", "9007199254740993")
	z.state(k, "COMPLETED")
}
