package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

const (
	callers = 64
	jobs    = 20_000 // completed in each round
	rounds  = 5
	result  = `{"done":true,"booking":"B-1042"}`
)

const process = `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="bench">
<bpmn:process id="p" isExecutable="true">
<bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="t"/>
<bpmn:serviceTask id="t"><bpmn:extensionElements><zeebe:taskDefinition type="work"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:sequenceFlow id="f2" sourceRef="t" targetRef="e"/><bpmn:endEvent id="e"/>
</bpmn:process></bpmn:definitions>`

// completeJobs measures calls a second of CompleteJob by 64 callers: a server that
// only answers, the engine in memory, the engine with its state on disk; in turn, several times.
func completeJobs(ctx context.Context, out map[string]figure) (err error) {
	dir, err := os.MkdirTemp("", "enginebench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kinds := []struct {
		name string
		args []string
	}{{"bare", []string{"-serve", "bare"}}, {"memory", []string{"-serve", "engine"}}, {"data", []string{"-serve", "engine", "-data", dir}}}
	servers := map[string]*server{}
	for _, k := range kinds {
		s, err := start(ctx, k.args...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		servers[k.name] = s
		if k.name != "bare" {
			if err := s.deploy(ctx); err != nil {
				return err
			}
		}
	}
	rates := map[string][]float64{}
	var memory, data []float64 // ratios of one round
	for round := range rounds {
		for _, k := range kinds {
			s := servers[k.name]
			keys := make([]int64, jobs)
			for i := range keys {
				keys[i] = int64(i) + 1<<51
			}
			if k.name != "bare" {
				if keys, err = s.activated(ctx, jobs); err != nil {
					return err
				}
			}
			began := time.Now()
			if err := each(ctx, len(keys), func(i int) error {
				_, err := s.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: keys[i], Variables: result})
				return err
			}); err != nil {
				return err
			}
			rate := float64(len(keys)) / time.Since(began).Seconds()
			rates[k.name] = append(rates[k.name], rate)
			fmt.Fprintf(os.Stderr, "  round %d of %d: %-6s %7.0f/s\n", round+1, rounds, k.name, rate)
		}
		memory = append(memory, rates["memory"][round]/rates["bare"][round])
		data = append(data, rates["data"][round]/rates["bare"][round])
	}
	for _, k := range kinds {
		out["complete_"+k.name] = figure{Value: median(rates[k.name]), Unit: "calls/s"}
	}
	out["complete_memory_to_bare"] = least(median(memory), 0.5, "ratio", "CompleteJob of the engine in memory to a bare gRPC call of the same size, median of the rounds")
	out["complete_data_to_bare"] = figure{Value: median(data), Unit: "ratio", Note: "the same with --data: each answer after its fsync"}
	return nil
}

func (s *server) deploy(ctx context.Context) error {
	_, err := s.DeployResource(ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "p.bpmn", Content: []byte(process)}}})
	return err
}

func (s *server) create(ctx context.Context, n int) error {
	return each(ctx, n, func(i int) error {
		_, err := s.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: fmt.Sprintf(`{"order":{"id":"B-%d","amount":125000}}`, i)})
		return err
	})
}

// activated creates n instances and activates their jobs.
func (s *server) activated(ctx context.Context, n int) ([]int64, error) {
	if err := s.create(ctx, n); err != nil {
		return nil, err
	}
	var keys []int64
	for len(keys) < n {
		stream, err := s.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: "work", Worker: "bench", Timeout: 3_600_000, MaxJobsToActivate: 2000, RequestTimeout: 10_000})
		if err != nil {
			return nil, err
		}
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, j := range m.GetJobs() {
				keys = append(keys, j.GetKey())
			}
		}
	}
	return keys, nil
}

// each calls fn for 0 to n-1 from all callers and returns the first error.
func each(ctx context.Context, n int, fn func(int) error) error {
	var (
		next  atomic.Int64
		wg    sync.WaitGroup
		first atomic.Pointer[error]
	)
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil && first.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := fn(i); err != nil {
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := first.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
