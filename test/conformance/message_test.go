package conformance

import (
	"slices"
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
	z := open(t, "messages: a buffered message is correlated once per process")
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
	z := open(t, "messages: a message is correlated to one waiting instance of a process")
	z.deploy("once.bpmn", waiting("once"))
	a, b := z.create("once", `{"key":"k"}`), z.create("once", `{"key":"k"}`)
	z.publish("Test", "k", "", 0, "")
	z.state(a, "COMPLETED")
	z.state(b, "ACTIVE")
}

func TestMessage_TTLZeroIsNotKept(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: a message without time to live is discarded when nobody waits")
	z.deploy("once.bpmn", waiting("once"))
	z.publish("Test", "k", "id", 0, "")
	z.publish("Test", "k", "id", 0, "") // nothing kept, so the id is free
	k := z.create("once", `{"key":"k"}`)
	z.element(k, "wait", "ACTIVE")
	z.state(k, "ACTIVE")
}

func TestMessage_ExpiredIsNotCorrelated(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: a message is not correlated after its time to live")
	z.needClock()
	z.deploy("once.bpmn", waiting("once"))
	z.publish("Test", "k", "", time.Second, "")
	z.advance(2 * time.Second)
	k := z.create("once", `{"key":"k"}`)
	z.element(k, "wait", "ACTIVE")
	z.state(k, "ACTIVE")
}

func TestMessage_SameIDIsRefusedWhileStored(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-22195: a message id is unique per name and correlation key while the message is stored")
	z.deploy("once.bpmn", model(messageDef("m", "m", "=key"), process("once", start("s"), catchEvent("wait", messageEvent("m")), end("e"), flow("s", "wait", "e"))))
	z.publish("m", "k", "id-1", hour, `{"n":1}`)
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "id-1", TimeToLive: 1000})
	z.refused(err, codes.AlreadyExists, "Expected to publish a new message with id 'id-1', but a message with that id was already published")
	z.publish("m", "other", "id-1", hour, "") // the key is part of the identity
	z.publish("other", "k", "id-1", hour, "")
	k := z.create("once", `{"key":"k"}`)
	z.state(k, "COMPLETED")
	z.variable(k, "n", "1") // the first one was kept
}

func TestMessage_IDIsFreeAgainWhenTheMessageIsGone(t *testing.T) {
	t.Parallel()
	z := open(t, "issue-22195: a message id is free again when the checker removed the expired message")
	z.needClock()
	z.deploy("once.bpmn", model(messageDef("m", "m", "=key"), process("once", start("s"), catchEvent("wait", messageEvent("m")), end("e"), flow("s", "wait", "e"))))
	z.publish("m", "k", "id-1", hour, `{"n":1}`)
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "id-1", TimeToLive: 1000})
	z.refused(err, codes.AlreadyExists, "already published")
	z.advance(hour + 2*time.Minute)
	z.publish("m", "k", "id-1", hour, `{"n":2}`)
	_, err = z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "id-1", TimeToLive: 1000})
	z.refused(err, codes.AlreadyExists, "already published")
	k := z.create("once", `{"key":"k"}`)
	z.state(k, "COMPLETED")
	z.variable(k, "n", "2") // the first one is gone
}

func TestMessageStart_StartsOncePerID(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: a message id makes a start idempotent")
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
	z := open(t, "messages: one running instance per process and correlation key; the next message waits for its end")
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", hour, `{"n":1}`)
	z.publish("go", "k", "", hour, `{"n":2}`)
	z.publish("go", "k2", "", hour, `{"n":3}`)
	jobs := []*pb.ActivatedJob{z.job("work"), z.job("work")}
	z.none("work") // one per key
	if jobs[0].GetVariables() != `{"n":1}` {
		slices.Reverse(jobs)
	}
	z.complete(jobs[0], "")
	next := z.work("work", "")
	if got := next.GetVariables(); got != `{"n":2}` {
		t.Errorf("next instance has %s, want the buffered message", got)
	}
	z.state(next.GetProcessInstanceKey(), "COMPLETED")
	z.state(jobs[1].GetProcessInstanceKey(), "ACTIVE")
}

func TestMessageStart_LockedAndUnbufferedIsLost(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: without time to live a message for a locked key is lost")
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", 0, "")
	z.publish("go", "k", "", 0, "")
	j := z.work("work", "")
	z.none("work")
	z.state(j.GetProcessInstanceKey(), "COMPLETED")
	z.found("process-instances", item{"processDefinitionId": "p"}, 1)
}

func TestMessageStart_CancelReleasesTheLock(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: the end of an instance, a cancelled one too, starts the next buffered message")
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "k", "", hour, "")
	z.publish("go", "k", "", hour, "")
	j := z.job("work")
	z.cancel(j.GetProcessInstanceKey())
	next := z.work("work", "")
	if next.GetProcessInstanceKey() == j.GetProcessInstanceKey() {
		t.Error("want another instance")
	}
	z.state(j.GetProcessInstanceKey(), "TERMINATED")
	z.state(next.GetProcessInstanceKey(), "COMPLETED")
}

func TestMessageStart_EmptyKeyLocksNothing(t *testing.T) {
	t.Parallel()
	z := open(t, "messages: an empty correlation key starts an instance for every message")
	z.deploy("p.bpmn", startedBy("go"))
	z.publish("go", "", "", 0, "")
	z.publish("go", "", "", 0, "")
	for range 2 {
		z.state(z.work("work", "").GetProcessInstanceKey(), "COMPLETED")
	}
	z.found("process-instances", item{"processDefinitionId": "p"}, 2)
}

func TestMessageStart_NewVersionTakesOver(t *testing.T) {
	t.Parallel()
	z := open(t, "message-events: message start events of the latest version are open only")
	z.deploy("p.bpmn", startedBy("go"))
	z.deploy("p.bpmn", model(messageDef("m", "go", ""), process("p", startWith("s", messageEvent("m"), true), task("work2"), end("e"), flow("s", "work2", "e"))))
	z.publish("go", "", "", 0, "")
	if j := z.work("work2", ""); j.GetProcessDefinitionVersion() != 2 {
		t.Errorf("version %d, want 2", j.GetProcessDefinitionVersion())
	}
	z.none("work")
	z.found("process-instances", item{"processDefinitionId": "p"}, 1)
}

func TestMessage_BlankNameAndBadVariables(t *testing.T) {
	t.Parallel()
	z := open(t, "grpc: PublishMessage needs a name and a JSON object")
	_, err := z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Variables: "{}"})
	z.refused(err, codes.InvalidArgument, "name")
	for _, vars := range []string{"[1]", "nope", "null", `{"a":1} x`, "3"} {
		_, err = z.PublishMessage(z.ctx, &pb.PublishMessageRequest{Name: "m", Variables: vars})
		z.refused(err, codes.InvalidArgument, "Invalid JSON value: "+vars)
	}
	z.alive()
}
