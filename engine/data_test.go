package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine"
)

// What a client was told before a stop is true after it: instances, jobs,
// message ids, the clock and the incarnation (rule 9).
func TestDataDir_StateLasts(t *testing.T) {
	dir := t.TempDir()
	first, err := engine.Start(engine.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, first.Addr())
	if _, err := c.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(timed)}}}); err != nil {
		t.Fatal(err)
	}
	made, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: `{"x":"<1>"}`})
	if err != nil {
		t.Fatal(err)
	}
	publish := &pb.PublishMessageRequest{Name: "m", CorrelationKey: "k", MessageId: "one", TimeToLive: 7_200_000}
	if _, err := c.PublishMessage(t.Context(), publish); err != nil {
		t.Fatal(err)
	}
	if err := first.AdvanceClock(time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Start(engine.Config{DataDir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second engine: %v, want that the directory is in use", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := engine.Start(engine.Config{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close() //nolint:errcheck // read only from here on
	if first.Incarnation() != second.Incarnation() {
		t.Errorf("incarnation %s, want %s", second.Incarnation(), first.Incarnation())
	}
	if off := time.Until(second.Now()); off < 59*time.Minute {
		t.Errorf("clock offset %v, want an hour", off)
	}
	c = dial(t, second.Addr())
	_, err = c.PublishMessage(t.Context(), publish)
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("same message id: %v, want ALREADY_EXISTS", err)
	}
	// The hour also ended the task.
	jobs, err := c.ActivateJobs(t.Context(), &pb.ActivateJobsRequest{Type: "late", Timeout: 60_000, MaxJobsToActivate: 1, RequestTimeout: -1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := jobs.Recv()
	if err != nil || len(got.GetJobs()) != 1 || got.GetJobs()[0].GetProcessInstanceKey() != made.GetProcessInstanceKey() || got.GetJobs()[0].GetVariables() != `{"x":"<1>"}` {
		t.Errorf("jobs: %v, %v", got, err)
	}
}
