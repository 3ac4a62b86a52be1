package conformance

import (
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// Cases of the documentation page "Messages" (components/concepts): correlation, uniqueness, time to live, start locks.

func waiting(id string) string {
	return model(messageDef("m", "Test", "=key"), process(id, start("s"), catchEvent("wait", messageEvent("m")), end("e"), flow("s", "wait", "e")))
}

func startedBy(message string) string {
	return model(messageDef("m", message, ""), process("p", startWith("s", messageEvent("m"), true), task("work"), end("e"), flow("s", "work", "e")))
}

func TestMessage_BufferedReachesOneInstancePerProcess(t *testing.T) { // FC-B3
	t.Parallel()
	z := open(t)
	z.deploy("once.bpmn", waiting("once"))
	z.deploy("other.bpmn", waiting("other"))
	z.publish("Test", "1234", "", time.Minute, `{"got":1}`)
	a := z.create("once", `{"key":"1234"}`)
	z.state(a, "COMPLETED")
	z.variable(a, "got", "1")
	b := z.create("once", `{"key":"1234"}`)
	z.state(b, "ACTIVE")
	c := z.create("other", `{"key":"1234"}`)
	z.state(c, "COMPLETED") // another process id gets it too
	z.publish("Test", "1234", "", 0, "")
	z.state(b, "COMPLETED")
}

func TestMessage_SubscribedFirstOnlyOneOfAProcess(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("once.bpmn", waiting("once"))
	a, b := z.create("once", `{"key":"k"}`), z.create("once", `{"key":"k"}`)
	z.publish("Test", "k", "", 0, "")
	z.state(a, "COMPLETED")
	z.state(b, "ACTIVE")
}

func TestMessage_TTLZeroIsNotKept(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("once.bpmn", waiting("once"))
	z.publish("Test", "k", "id", 0, "")
	z.publish("Test", "k", "id", 0, "") // nothing kept, so the id is free
	z.state(z.create("once", `{"key":"k"}`), "ACTIVE")
}

func TestMessage_ExpiredIsNotCorrelated(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.needClock()
	z.deploy("once.bpmn", waiting("once"))
	z.publish("Test", "k", "", time.Second, "")
	z.advance(2 * time.Second)
	z.state(z.create("once", `{"key":"k"}`), "ACTIVE")
}

func TestMessage_SameIDIsRefusedWhileStored(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.publish("m", "k", "id-1", hour, "")
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "id-1", TimeToLive: 1000})
	z.refused(err, codes.AlreadyExists, "Expected to publish a new message with id 'id-1', but a message with that id was already published")
	z.publish("m", "other", "id-1", hour, "") // the key is part of the identity
	z.publish("other", "k", "id-1", hour, "")
	if z.engine == nil {
		return
	}
	z.advance(hour + 2*time.Minute)
	z.publish("m", "k", "id-1", hour, "")
}

func TestMessageStart_StartsOncePerID(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("saga.start"))
	z.publish("saga.start", "op", "op", hour, `{"x":1}`)
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "saga.start", CorrelationKey: "op", MessageId: "op", TimeToLive: hour.Milliseconds()})
	z.refused(err, codes.AlreadyExists, "already published")
	j := z.work("work", "")
	if j.GetVariables() != `{"x":1}` {
		t.Errorf("variables: %s", j.GetVariables())
	}
	z.none("work")
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
}

func TestMessageStart_LockPerCorrelationKey(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", hour, `{"n":1}`)
	z.publish("go", "k", "", hour, `{"n":2}`)
	z.publish("go", "k2", "", hour, `{"n":3}`)
	jobs := z.activate("work", 10, patience)
	if len(jobs) != 2 {
		t.Fatalf("got %d instances, want 2: one per key", len(jobs))
	}
	z.complete(jobs[0], "")
	if got := z.job("work").GetVariables(); got != `{"n":2}` {
		t.Errorf("next instance has %s, want the buffered message", got)
	}
}

func TestMessageStart_LockedAndUnbufferedIsLost(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", 0, "")
	z.publish("go", "k", "", 0, "")
	z.work("work", "")
	z.none("work")
}

func TestMessageStart_CancelReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", hour, "")
	z.publish("go", "k", "", hour, "")
	j := z.job("work")
	z.cancel(j.GetProcessInstanceKey())
	if next := z.job("work"); next.GetProcessInstanceKey() == j.GetProcessInstanceKey() {
		t.Error("want another instance")
	}
}

func TestMessageStart_EmptyKeyLocksNothing(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "", "", 0, "")
	z.publish("go", "", "", 0, "")
	if jobs := z.activate("work", 10, patience); len(jobs) != 2 {
		t.Errorf("got %d instances, want 2", len(jobs))
	}
}

func TestMessageStart_NewVersionTakesOver(t *testing.T) {
	t.Parallel()
	z := open(t)
	z.deploy("p.bpmn", startedBy("go"))
	z.deploy("p.bpmn", model(messageDef("m", "go", ""), process("p", startWith("s", messageEvent("m"), true), task("work2"), end("e"), flow("s", "work2", "e"))))
	z.publish("go", "", "", 0, "")
	if j := z.work("work2", ""); j.GetProcessDefinitionVersion() != 2 {
		t.Errorf("version %d, want 2", j.GetProcessDefinitionVersion())
	}
	z.none("work")
}

func TestMessage_BlankNameAndBadVariables(t *testing.T) {
	t.Parallel()
	z := open(t)
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Variables: "{}"})
	z.refused(err, codes.InvalidArgument, "name")
	for _, vars := range []string{"[1]", "nope", "null", `{"a":1} x`, "3"} {
		_, err = z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", Variables: vars})
		z.refused(err, codes.InvalidArgument, "Invalid JSON value: "+vars)
	}
}
