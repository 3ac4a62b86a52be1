package conformance

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// alive asserts that the cluster still works.
func (z *cluster) alive() {
	z.t.Helper()
	z.deploy("alive.bpmn", model(process("alive", start("s"), end("e"), flow("s", "e"))))
	z.state(z.create("alive", ""), "COMPLETED")
}

func TestBadInput_Models(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`<bpmn:subProcess id="x"><bpmn:extensionElements>`, 20_000)
	bomb := `<?xml version="1.0"?><!DOCTYPE z [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"><bpmn:process id="p" name="&b;"/></bpmn:definitions>`
	for name, xml := range map[string]string{
		"empty": "", "zero bytes": "\x00\x00\x00", "cut off": model(process("p", start("s")))[:150], "entity bomb": bomb, "deep nesting": model(deep),
		"wrong encoding": `<?xml version="1.0" encoding="UTF-16"?><a/>`, "invalid UTF-8": model("\xff\xfe"), "JSON": `{"a":1}`, "other XML": `<html><body/></html>`,
		"endless FEEL":  model(process("p", start("s"), taskOf("a", "="+strings.Repeat("(", 50_000)+"1"), end("e"), flow("s", "a", "e"))),
		"huge duration": model(process("p", start("s"), catchEvent("c", duration("PT99999999999999999999H")), end("e"), flow("s", "c", "e"))),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := open(t, "grpc: DeployResource refuses a file that is hostile: "+name)
			_, err := z.DeployResource(z.ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(xml)}}})
			if status.Code(err) != codes.InvalidArgument {
				t.Errorf("got %v, want INVALID_ARGUMENT", status.Code(err))
			}
			if n := len(status.Convert(err).Message()); n > 100_000 {
				t.Errorf("the refusal has %d bytes", n)
			}
			z.alive()
		})
	}
}

func TestBadInput_FEELThatNeverEnds(t *testing.T) {
	t.Parallel()
	z := open(t, "feel-errors: an expression that cannot be evaluated is an incident, the cluster goes on")
	z.deploy("p.bpmn", oneTask("one", mappings("input", "=count(for a in xs, b in xs, c in xs, d in xs return a+b+c+d)", "n")))
	k := z.create("one", `{"xs":[`+strings.TrimSuffix(strings.Repeat("1,", 500), ",")+`]}`)
	z.incident(k, "IO_MAPPING_ERROR", "")
	z.cancel(k)
	z.alive()
}

func TestBadInput_Keys(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: a key that names nothing is NOT_FOUND, whatever the number")
	for _, k := range []int64{0, -1, math.MaxInt64, math.MinInt64} {
		_, err := z.CompleteJob(z.ctx, &pb.CompleteJobRequest{JobKey: k})
		z.refused(err, codes.NotFound, fmt.Sprintf("'%d'", k))
		_, err = z.CancelProcessInstance(z.ctx, &pb.CancelProcessInstanceRequest{ProcessInstanceKey: k})
		z.refused(err, codes.NotFound, fmt.Sprintf("'%d'", k))
		_, err = z.ResolveIncident(z.ctx, &pb.ResolveIncidentRequest{IncidentKey: k})
		z.refused(err, codes.NotFound, fmt.Sprintf("'%d'", k))
	}
	z.problem("POST", "/jobs/9223372036854775808/completion", nil, 400, "Failed to convert 'jobKey' with value: '9223372036854775808'")
	z.problem("GET", "/process-instances/-5", nil, 404, "not found")
	z.alive()
}

func TestBadInput_TimesAndAmounts(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: FailJob, UpdateJobTimeout and PublishMessage take the ends of their ranges")
	z.deploy("one.bpmn", oneTask("one"))
	z.create("one", "")
	j := z.job("work")
	// A negative back-off is none.
	if _, err := z.FailJob(z.ctx, &pb.FailJobRequest{JobKey: j.GetKey(), Retries: 1, RetryBackOff: -5}); err != nil {
		t.Fatal(err)
	}
	j = z.job("work")
	// The longest time-out is as good as for ever.
	if _, err := z.UpdateJobTimeout(z.ctx, &pb.UpdateJobTimeoutRequest{JobKey: j.GetKey(), Timeout: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	z.none("work")
	z.fail(j, math.MaxInt32, "")
	if j = z.job("work"); j.GetRetries() != math.MaxInt32 {
		t.Errorf("retries: %d", j.GetRetries())
	}
	z.fail(j, -3, "")
	if inc := z.incident(j.GetProcessInstanceKey(), "JOB_NO_RETRIES", ""); inc["errorMessage"] != "No more retries left." {
		t.Errorf("incident: %v", inc)
	}
	// The longest message lives; a negative life is none.
	z.publish("m", "k", "a", math.MaxInt64, "")
	if _, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "b", TimeToLive: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	if _, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "b", TimeToLive: 1}); status.Code(err) != codes.AlreadyExists {
		t.Errorf("got %v, want ALREADY_EXISTS: a life of 2^63-1 ms is long, not over", err)
	}
	if _, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", TimeToLive: -1}); err != nil {
		t.Fatal(err)
	}
	z.alive()
}

func TestBadInput_LargeVariables(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: a message of more than 4 MB is RESOURCE_EXHAUSTED; a job that fits no message is an incident MESSAGE_SIZE_EXCEEDED")
	z.deploy("one.bpmn", oneTask("one"))
	_, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1, Variables: `{"x":"` + strings.Repeat("x", 5<<20) + `"}`})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v, want RESOURCE_EXHAUSTED", status.Code(err))
	}
	if got := z.call("POST", "/process-instances", `{"processDefinitionId":"one","variables":{"x":"`+strings.Repeat("x", 5<<20)+`"}}`, nil); got != 413 {
		t.Errorf("REST: got %d, want 413", got)
	}
	// Two documents that fit alone and not together: the job cannot be given out.
	half := `"` + strings.Repeat("x", 3<<20) + `"`
	k := z.create("one", `{"a":`+half+`}`)
	z.setVariables(k, `{"b":`+half+`}`)
	z.none("work")
	inc := z.incident(k, "MESSAGE_SIZE_EXCEEDED", "")
	z.setVariables(k, `{"b":1}`)
	z.resolve(inc)
	if j := z.work("work", ""); j.GetProcessInstanceKey() != k {
		t.Errorf("job of %d, want %d", j.GetProcessInstanceKey(), k)
	}
	z.state(k, "COMPLETED")
}

func TestBadInput_BatchIsCutToTheMessageSize(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: ActivateJobs answers no more jobs than fit one message")
	z.deploy("one.bpmn", oneTask("one"))
	for range 5 {
		z.create("one", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`)
	}
	first := z.activate("work", 5, patience)
	if len(first) == 0 || len(first) >= 5 {
		t.Fatalf("got %d jobs of a megabyte in one answer, want some", len(first))
	}
	if rest := z.activate("work", 5, patience); len(first)+len(rest) != 5 {
		t.Errorf("got %d and %d jobs, want 5 in all", len(first), len(rest))
	}
	z.none("work")
	z.complete(first[0], "")
	z.state(first[0].GetProcessInstanceKey(), "COMPLETED")
}

func TestBadInput_DeepVariables(t *testing.T) {
	t.Parallel()
	z := open(t, "variables: a variable is any JSON value; what cannot be read is INVALID_ARGUMENT")
	z.deploy("one.bpmn", oneTask("one", mappings("input", "=x", "y")))
	nested := func(n int) string { return `{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}` }
	z.create("one", nested(200))
	z.work("work", "")
	_, err := z.CreateProcessInstance(z.ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "one", Version: -1, Variables: nested(100_000)})
	z.refused(err, codes.InvalidArgument, "Invalid JSON value")
	z.alive()
}
