package bpmn_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/bpmn"
)

func read(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func parse(tb testing.TB, xml string) *bpmn.Definitions {
	tb.Helper()
	d, err := bpmn.Parse(strings.NewReader(xml))
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestParse_fields(t *testing.T) {
	t.Parallel()
	d := parse(t, read(t, "all.bpmn"))
	if d.Platform != "Camunda Cloud" || d.ID != "defs" || len(d.Processes) != 1 || !d.Processes[0].Executable || d.Processes[0].Name != "All elements" {
		t.Errorf("definitions: %+v", d)
	}
	book := d.Element("book")
	if book.Line != 6 || book.Name != "Book" || book.Doc != "books" || book.Kind != bpmn.KindServiceTask || book.In != &d.Processes[0].Scope || book.Parent != nil {
		t.Errorf("book: %+v", book)
	}
	want := &bpmn.TaskDefinition{Type: "flight.book", Retries: "5", Declared: true}
	if diff := cmp.Diff(want, book.Task); diff != "" {
		t.Error(diff)
	}
	if got := d.Element("unbook").Task; got.Retries != "3" || got.Declared {
		t.Errorf("default retries: %+v", got)
	}
	if diff := cmp.Diff([]bpmn.Mapping{{Source: "=order.flight", Target: "flight"}, {Source: "fixed", Target: "mode"}}, book.Inputs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bpmn.Mapping{{Source: "=pnr", Target: "trip.pnr"}}, book.Outputs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bpmn.Header{{Key: "step", Value: "flight"}}, book.Headers); diff != "" {
		t.Error(diff)
	}
	if v, ok := book.Property("journeyman:effect"); v != "some" || !ok {
		t.Errorf("property: %q %v", v, ok)
	}
	if book.CompensationHandler != d.Element("unbook") || len(book.Boundary) != 5 || d.Element("book_comp").AttachedTo != book {
		t.Errorf("boundary events of book: %+v", book.Boundary)
	}
	if d.Element("book_remind").Interrupting || !d.Element("book_error").Interrupting {
		t.Error("cancelActivity is misread")
	}
	if code := d.Element("book_error").Event.Error.Code; code != "SOLD_OUT" {
		t.Errorf("error code %q", code)
	}
	if d.Element("book_any").Event.Error != nil {
		t.Error("a catch-all has an error")
	}
	if m := d.Element("wait_message").Event.Message; m.Name != "saga.cancel" || m.CorrelationKey != "=sagaId" {
		t.Errorf("message: %+v", m)
	}
	if diff := cmp.Diff(&bpmn.MultiInstance{Sequential: true, InputCollection: "=segments", InputElement: "segment", OutputCollection: "results", OutputElement: "=result", CompletionCondition: "=numberOfCompletedInstances > 2"}, d.Element("each").Loop); diff != "" {
		t.Error(diff)
	}
	if e := d.Element("each"); e.Parent != d.Element("sub") || e.In != d.Element("sub").Scope {
		t.Error("each stands in the wrong scope")
	}
	if u := d.Element("ask").UserTask; !u.Native || u.Assignee != "=owner" || u.CandidateGroups != "ops" || u.DueDate != "2026-12-01T10:00:00Z" {
		t.Errorf("user task: %+v", u)
	}
	if c := d.Element("call").Called; c.ProcessID != "child" || c.PropagateAllChildVariables || !c.PropagateAllParentVariables {
		t.Errorf("called element: %+v", c)
	}
	which := d.Element("which")
	if which.Default == nil || which.Default.ID != "f_default" || len(which.Outgoing) != 2 || which.Outgoing[0].Condition != `=status = "booked"` {
		t.Errorf("gateway: %+v", which)
	}
	if d.Element("undo").Event.ActivityRef != "book" || !d.Element("failed").TriggeredByEvent || d.Element("to_b").Event.LinkName != "B" {
		t.Error("event subprocess or events are misread")
	}
}

// FC-F2: prefixes carry no meaning, and an inner default namespace counts.
func TestParse_namespaces(t *testing.T) {
	t.Parallel()
	a := parse(t, read(t, "field-cases/f2-bizagi-nested-ns-definition.bpmn"))
	b := parse(t, read(t, "field-cases/f2-same-model-prefixed.bpmn"))
	for _, d := range []*bpmn.Definitions{a, b} {
		kinds := map[bpmn.Kind]int{}
		flows := 0
		for _, p := range d.Processes {
			if p.Executable {
				t.Error("no process of the file is executable")
			}
			for _, e := range p.Elements {
				kinds[e.Kind]++
			}
			flows += len(p.Flows)
		}
		if diff := cmp.Diff(map[bpmn.Kind]int{"startEvent": 1, "task": 1, "endEvent": 1}, kinds); diff != "" {
			t.Error(diff)
		}
		if len(d.Participants) != 2 || len(d.Processes) != 2 || flows != 2 || len(d.Diagram.Shapes) != 5 || len(d.Diagram.Edges) != 2 {
			t.Errorf("got %d participants, %d processes, %d flows, %d shapes, %d edges", len(d.Participants), len(d.Processes), flows, len(d.Diagram.Shapes), len(d.Diagram.Edges))
		}
	}
	if changes := bpmn.Diff(a, b); len(changes) != 0 {
		t.Errorf("diff of the same model: %v", changes)
	}
	var reasons []string
	for _, e := range bpmn.Errors(a.Check()) {
		reasons = append(reasons, e.Reason)
		if e.Line != 3 {
			t.Errorf("line %d, want 3: %v", e.Line, e)
		}
	}
	want := []string{`none of the 2 processes is executable: expected isExecutable="true" on one`, "has no start event"}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
}

func TestParse_refuses(t *testing.T) {
	t.Parallel()
	const head = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">`
	for _, c := range []struct{ name, xml, want string }{
		{"empty", "", "no XML element"},
		{"text", "hello", "text outside the root element"},
		{"other root", `<process xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"/>`, `root element is "process"`},
		{"other namespace", `<definitions/>`, `of namespace ""`},
		{"undeclared prefix", `<bpmn:definitions/>`, `of namespace "bpmn"`},
		{"document type", `<!DOCTYPE x [<!ENTITY a "b">]>` + head + `</definitions>`, "document type declarations"},
		{"entity", head + `<process id="&evil;"/></definitions>`, "not well-formed"},
		{"open element", head + "\n<process>", "file ends inside an element"},
		{"wrong end tag", head + `<process></task></definitions>`, `end tag "task" does not match start tag "process" of line 1`},
		{"attribute twice", head + `<process id="a" id="b"/></definitions>`, `attribute "id" twice`},
		{"second root", head + `</definitions>` + head + `</definitions>`, "second root element"},
		{"too deep", head + strings.Repeat("<subProcess>", bpmn.MaxDepth), "nested deeper"},
		{"too many", head + strings.Repeat("<task/>", bpmn.MaxElements), "more than 20000 XML elements"},
		{"too large", head + strings.Repeat(" ", bpmn.MaxBytes), "larger than 2097152 bytes"},
		{"other encoding", `<?xml version="1.0" encoding="UTF-16"?>` + head + `</definitions>`, "save the file as UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := bpmn.Parse(strings.NewReader(c.xml))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestParse_keepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	d := parse(t, `<b:definitions xmlns:b="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
<b:process id="p" isExecutable="true">
<b:complexGateway id="g"/>
<b:serviceTask id="s"><b:extensionElements><z:executionListeners/><z:taskDefinition type="t"/></b:extensionElements><b:standardLoopCharacteristics/></b:serviceTask>
</b:process></b:definitions>`)
	if g := d.Element("g"); g.Kind != "complexGateway" || g.Line != 3 {
		t.Errorf("complex gateway: %+v", g)
	}
	if diff := cmp.Diff([]string{"zeebe:executionListeners", "bpmn:standardLoopCharacteristics"}, d.Element("s").Unknown); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"all.bpmn", "field-cases/f2-bizagi-nested-ns-definition.bpmn", "field-cases/f4-compensation-handlers.bpmn", "sistema-reservas-viaje/subproceso-reserva.bpmn"} {
		f.Add(read(f, name))
	}
	f.Add(`<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL"><process isExecutable="true"><boundaryEvent attachedToRef="x"/><subProcess/></process></definitions>`)
	f.Fuzz(func(t *testing.T, xml string) {
		d, err := bpmn.Parse(strings.NewReader(xml))
		if err != nil {
			return
		}
		_ = d.Check()
		_ = bpmn.Lint(d)
		if changes := bpmn.Diff(d, d); len(changes) != 0 && d.Check() == nil {
			t.Errorf("a valid model differs from itself: %v", changes)
		}
		var b strings.Builder
		if err := bpmn.Draw(&b, d, bpmn.DrawOptions{}); err == nil {
			wellFormed(t, b.String())
		}
	})
}
