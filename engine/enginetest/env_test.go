package enginetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/engine/enginetest"
)

// A timer starts a timer: one long leap passes both, each at its own time.
func TestAdvanceClock_chain(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, errand())
	e.Mock("shop.buy").ThrowsError("CLOSED", nil).Fails(1, "queue").Answers(enginetest.Fail("still a queue", time.Hour)).Returns(map[string]any{"price": 3})
	p := e.Create("errand", map[string]any{"owner": "ada"}).WantActive("wait").WantPath("start", "closed")
	begin := e.Now()
	e.AdvanceClock(24 * time.Hour)
	p.WantActive("home").WantVariable("price", 3).WantNotReached("dinner").WantNoIncidents()
	if passed := e.Now().Sub(begin); passed < 24*time.Hour || passed > 24*time.Hour+time.Minute {
		t.Errorf("the clock moved by %s", passed)
	}
	jobs := e.Mocked("shop.buy").Jobs()
	var at []string
	for _, j := range jobs {
		at = append(at, j.ElementID)
	}
	if got := strings.Join(at, " "); got != "buy buyAgain buyAgain buyAgain" || jobs[3].Retries != 1 {
		t.Errorf("jobs at %s, the last with %d retries", got, jobs[3].Retries)
	}
}

func TestInstance_terminated(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, errand())
	e.MockOthers(nil)
	p := e.Create("errand", map[string]any{"owner": "ada"}).WantActive("home").WantElement("buy", "COMPLETED", 1)
	p.SetVariables(map[string]any{"note": "hurry"})
	p.WantVariable("note", "hurry")
	p.Cancel()
	p.WantTerminated().WantElement("home", "TERMINATED", 1)
	if e.Instance("errand").Key() != p.Key() {
		t.Error("the newest instance is another one")
	}
}

// Assertions that do not hold say what is there instead; names that no model has are mistakes of the test.
func TestInstance_fails(t *testing.T) {
	t.Parallel()
	e := func(t testing.TB) (*enginetest.Env, *enginetest.Instance) {
		e := enginetest.Start(t, errand())
		return e, e.Create("errand", map[string]any{"owner": "ada"})
	}
	tests := map[string]struct {
		f    func(e *enginetest.Env, p *enginetest.Instance)
		want string
	}{
		"completed":   {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantCompleted() }, "is ACTIVE, want COMPLETED; active: [buy]; nobody serves [shop.buy]: use Mock"},
		"path":        {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantPath("start", "buy") }, `"buy" is not there`},
		"unknown":     {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantNotReached("bye") }, `no model has an element "bye"`},
		"reached":     {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantNotReached("start") }, "was entered"},
		"active":      {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantActive("home") }, `"home" is not active`},
		"element":     {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantElement("buy", "COMPLETED", 1) }, "0 runs that are COMPLETED, want 1"},
		"variable":    {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantVariable("price", 1) }, "variable price does not exist"},
		"compensated": {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantCompensated("buy") }, "compensation handlers []"},
		"incident":    {func(_ *enginetest.Env, p *enginetest.Instance) { p.WantIncident("buy", "x") }, `no incident at "buy"`},
		"user task":   {func(_ *enginetest.Env, p *enginetest.Instance) { p.CompleteUserTask("buy", nil) }, "no open user task"},
		"published":   {func(e *enginetest.Env, _ *enginetest.Instance) { e.WantPublished("x", "") }, "was not published"},
		"start": {func(e *enginetest.Env, _ *enginetest.Instance) {
			e.Start("errand", enginetest.Message{Name: "x", CorrelationKey: "y"})
		}, "started 0 instances"},
		"instance":  {func(e *enginetest.Env, _ *enginetest.Instance) { e.Instance("other") }, "has no instance"},
		"process":   {func(e *enginetest.Env, _ *enginetest.Instance) { e.Create("other", nil) }, "404"},
		"job type":  {func(e *enginetest.Env, _ *enginetest.Instance) { e.Mock("shop.by") }, "they have [guest.tell shop.buy]"},
		"no mock":   {func(e *enginetest.Env, _ *enginetest.Instance) { e.Mocked("shop.buy") }, "has no mock"},
		"variables": {func(e *enginetest.Env, _ *enginetest.Instance) { e.Create("errand", 7) }, "want something that becomes a JSON object"},
		"backwards": {func(e *enginetest.Env, _ *enginetest.Instance) { e.AdvanceClock(-1) }, "want 0 or more"},
		"no incidents": {func(e *enginetest.Env, p *enginetest.Instance) {
			e.Mock("shop.buy").Answers(enginetest.Incident("broken"))
			p.WantNoIncidents()
		}, "incident at buy: JOB_NO_RETRIES: broken"},
	}
	for name, tt := range tests {
		said := fails(t, func(t testing.TB) { tt.f(e(t)) })
		if !strings.Contains(said, tt.want) {
			t.Errorf("%s: said %q, want %q", name, said, tt.want)
		}
	}
	for name, m := range map[string]enginetest.Model{"x.bpmn": enginetest.Text("x.bpmn", "hello"), "none.bpmn": enginetest.File("none.bpmn")} {
		if said := fails(t, func(t testing.TB) { enginetest.Start(t, m) }); !strings.Contains(said, name) {
			t.Errorf("%s: said %q", name, said)
		}
	}
}

func gateway(t *testing.T, e *enginetest.Env) pb.GatewayClient {
	t.Helper()
	conn, err := grpc.NewClient(e.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pb.NewGatewayClient(conn)
}

func work(ctx context.Context, c pb.GatewayClient, jobType string) (int64, error) {
	s, err := c.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: jobType, Timeout: 60_000, MaxJobsToActivate: 1, RequestTimeout: 10_000})
	if err != nil {
		return 0, err
	}
	m, err := s.Recv()
	if errors.Is(err, io.EOF) {
		return 0, errors.New("no job")
	}
	if err != nil {
		return 0, err
	}
	return m.GetJobs()[0].GetKey(), nil
}

// A real worker serves one job type, a mock the other; the worker's answer is lost once.
func TestLoseAnswers(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, errand())
	e.Wait = 10 * time.Second
	e.Mock("guest.tell")
	e.LoseAnswers("CompleteJob", 1)
	c := gateway(t, e)
	p := e.Create("errand", map[string]any{"owner": "ada"})
	failed := make(chan error, 1)
	go func() {
		k, err := work(t.Context(), c, "shop.buy")
		if err == nil {
			_, err = c.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: k, Variables: `{"price": 2}`})
		}
		failed <- err
		_, err = c.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: k})
		failed <- err
	}()
	p.WantActive("home").WantVariable("price", 2)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "the answer is lost") {
		t.Errorf("first answer: %v", err)
	}
	if err := <-failed; status.Code(err) != codes.NotFound {
		t.Errorf("second answer: %v, want NOT_FOUND", err)
	}
}

func TestDuplicate(t *testing.T) {
	t.Parallel()
	e := enginetest.Start(t, errand())
	e.MockOthers(nil)
	e.Create("errand", map[string]any{"owner": "ada"}).WantActive("home")
	e.Duplicate("PublishMessage", 1)
	c := gateway(t, e)
	for range 2 {
		if _, err := c.PublishMessage(t.Context(), &pb.PublishMessageRequest{Name: "errand.home", CorrelationKey: "ada", Variables: `{"bag": 1}`}); err != nil {
			t.Fatal(err)
		}
	}
	e.WantPublished("errand.home", "ada")
	if m := e.Published(); len(m) != 3 || string(m[0].Variables.(json.RawMessage)) != `{"bag": 1}` {
		t.Errorf("published %v, want three: the first one twice", m)
	}
	e.Broadcast("dinner", nil)
	e.Instance("errand").WantCompleted()
}
