package engine_test

import (
	"runtime"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vitrip/journeyman/engine"
)

// BenchmarkServiceTask starts an instance, activates its job and completes it,
// over gRPC; with the state in memory, and with the state on disk (one fsync for all who wait).
func BenchmarkServiceTask(b *testing.B) {
	b.Run("memory", func(b *testing.B) { serviceTask(b, engine.Config{}) })
	b.Run("data", func(b *testing.B) { serviceTask(b, engine.Config{DataDir: b.TempDir()}) })
}

func serviceTask(b *testing.B, cfg engine.Config) {
	e, err := engine.Start(cfg)
	if err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient(e.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := conn.Close(); err != nil {
			b.Error(err)
		}
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	c := pb.NewGatewayClient(conn)
	if _, err := c.DeployResource(b.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(timed)}}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if _, err := c.CreateProcessInstance(b.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: `{"order":{"id":"B-1","amount":125000}}`}); err != nil {
				b.Error(err)
				return
			}
			s, err := c.ActivateJobs(b.Context(), &pb.ActivateJobsRequest{Type: "work", Timeout: 60_000, MaxJobsToActivate: 1, RequestTimeout: 10_000})
			if err != nil {
				b.Error(err)
				return
			}
			m, err := s.Recv()
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := c.CompleteJob(b.Context(), &pb.CompleteJobRequest{JobKey: m.GetJobs()[0].GetKey(), Variables: `{"done":true}`}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.ReportMetric(float64(mem.HeapAlloc)/float64(b.N), "heapB/instance")
}
