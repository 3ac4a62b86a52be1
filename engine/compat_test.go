package engine_test

import (
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine"
)

// Each newer feature is refused for 8.5 with the id of its element, and deploys for 8.8.
func TestCompat85_NamesTheElement(t *testing.T) {
	t.Parallel()
	wrap := func(element string) string {
		return `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x"><bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="odd"/>` + element + `</bpmn:process></bpmn:definitions>`
	}
	input := func(source string) string {
		return wrap(`<bpmn:serviceTask id="odd"><bpmn:extensionElements><zeebe:taskDefinition type="t"/><zeebe:ioMapping><zeebe:input source="` + source + `" target="x"/></zeebe:ioMapping></bpmn:extensionElements></bpmn:serviceTask>`)
	}
	cases := map[string]struct{ xml, says string }{
		"priority": {wrap(`<bpmn:userTask id="odd"><bpmn:extensionElements><zeebe:userTask/><zeebe:priorityDefinition priority="70"/></bpmn:extensionElements></bpmn:userTask>`), "priorityDefinition"},
		"uuid":     {input(`=uuid()`), "uuid()"},
		"trim":     {input(`=trim(a)`), "trim()"},
		"is empty": {input(`=if is empty(a) then 1 else 2`), "is empty()"},
		"in text":  {input(`=&quot;uuid()&quot;`), ""},
	}
	for compat, refuses := range map[engine.Compat]bool{engine.Compat85: true, engine.Compat88: false} {
		e, err := engine.Start(engine.Config{Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		c := dial(t, e.Addr())
		for name, m := range cases {
			_, err := c.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(m.xml)}}})
			want := codes.OK
			if refuses && m.says != "" {
				want = codes.InvalidArgument
			}
			if status.Code(err) != want || (want != codes.OK && (!strings.Contains(err.Error(), m.says) || !strings.Contains(err.Error(), "odd"))) {
				t.Errorf("%s, %s: got %v, want %v naming odd and %s", compat, name, err, want, m.says)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}
