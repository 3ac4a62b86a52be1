package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

const (
	waiters   = 1000             // long polls, and as many streams
	watch     = 20 * time.Second // how long the idle engine is watched
	instances = 100_000
	perSecond = 500
	samples   = 10 * perSecond
)

// idle opens long polls and streams for jobs that never come and measures the engine's processor time.
func idle(ctx context.Context, out map[string]figure) (err error) {
	s, err := start(ctx, "-serve", "engine")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var polls []pb.Gateway_ActivateJobsClient
	var streams []pb.Gateway_StreamActivatedJobsClient
	for i := range waiters {
		job := fmt.Sprintf("nothing-%d", i%100)
		poll, err := s.ActivateJobs(ctx, &pb.ActivateJobsRequest{Type: job, Worker: "bench", Timeout: 60_000, MaxJobsToActivate: 32, RequestTimeout: 600_000})
		if err != nil {
			return err
		}
		stream, err := s.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{Type: job + "-pushed", Worker: "bench", Timeout: 60_000})
		if err != nil {
			return err
		}
		polls, streams = append(polls, poll), append(streams, stream)
	}
	settle := time.NewTimer(2 * time.Second)
	defer settle.Stop()
	if err := wait(ctx, settle.C); err != nil {
		return err
	}
	before, err := s.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	over := time.NewTimer(watch)
	defer over.Stop()
	if err := wait(ctx, over.C); err != nil {
		return err
	}
	after, err := s.cpu()
	if err != nil {
		return err
	}
	if err := s.awake(ctx, polls, streams); err != nil {
		return err
	}
	out["idle_cpu"] = below(100*(after-before).Seconds()/time.Since(began).Seconds(), 3, "% of a core",
		fmt.Sprintf("%d long polls and %d streams open for %v", waiters, waiters, watch))
	return nil
}

// awake makes sure that what was watched is open: a job goes to a poll, another to a stream.
func (s *server) awake(ctx context.Context, polls []pb.Gateway_ActivateJobsClient, streams []pb.Gateway_StreamActivatedJobsClient) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	got := make(chan error, len(polls)+len(streams))
	for _, p := range polls {
		go func() { _, err := p.Recv(); got <- err }()
	}
	for _, x := range streams {
		go func() { _, err := x.Recv(); got <- err }()
	}
	for _, job := range []string{"nothing-0", "nothing-0-pushed"} {
		xml := strings.NewReplacer(`type="work"`, `type="`+job+`"`, `id="p"`, `id="`+job+`"`).Replace(process)
		if _, err := s.DeployResource(ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: job + ".bpmn", Content: []byte(xml)}}}); err != nil {
			return err
		}
		if _, err := s.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: job, Version: -1}); err != nil {
			return err
		}
		select {
		case err := <-got:
			if err != nil {
				return fmt.Errorf("an idle call of %s: %w", job, err)
			}
		case <-ctx.Done():
			return fmt.Errorf("no idle call got the job %s", job)
		}
	}
	return nil
}

func wait(ctx context.Context, c <-chan time.Time) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// waiting creates instances that wait for a job and reads the size of the process.
func waiting(ctx context.Context, out map[string]figure) (err error) {
	s, err := start(ctx, "-serve", "engine")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.deploy(ctx); err != nil {
		return err
	}
	began := time.Now()
	if err := s.create(ctx, instances); err != nil {
		return err
	}
	out["create_instance"] = figure{Value: instances / time.Since(began).Seconds(), Unit: "calls/s"}
	now, peak, err := s.memory()
	if err != nil {
		return err
	}
	out["waiting_instances_memory"] = below(now, 1.5e9, "bytes", fmt.Sprintf("resident, with %d instances that wait for a job; peak %.0f", instances, peak))
	return nil
}

// streaming creates jobs at a fixed rate and measures from the call that creates
// one until the client has it.
func streaming(ctx context.Context, out map[string]figure) (err error) {
	s, err := start(ctx, "-serve", "engine")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.deploy(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.StreamActivatedJobs(ctx, &pb.StreamActivatedJobsRequest{Type: "work", Worker: "bench", Timeout: 600_000})
	if err != nil {
		return err
	}
	settle := time.NewTimer(time.Second) // the stream has reached the engine
	defer settle.Stop()
	if err := wait(ctx, settle.C); err != nil {
		return err
	}
	got := make(chan time.Duration, samples)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		defer close(got)
		for range samples {
			j, err := stream.Recv()
			if err != nil {
				return
			}
			var v struct{ At int64 }
			if err := json.Unmarshal([]byte(j.GetVariables()), &v); err != nil {
				return
			}
			got <- time.Duration(time.Now().UnixNano() - v.At)
			wg.Go(func() {
				if _, err := s.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.GetKey()}); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "enginebench: complete:", err)
				}
			})
		}
	})
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	for range samples {
		if err := wait(ctx, tick.C); err != nil {
			return err
		}
		wg.Go(func() {
			if _, err := s.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: "p", Version: -1, Variables: fmt.Sprintf(`{"at":%d}`, time.Now().UnixNano())}); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "enginebench: create:", err)
			}
		})
	}
	var all []float64
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	for len(all) < samples {
		select {
		case d, open := <-got:
			if !open {
				return fmt.Errorf("the stream ended after %d of %d jobs", len(all), samples)
			}
			all = append(all, float64(d.Microseconds())/1000)
		case <-end.C:
			return fmt.Errorf("%d of %d jobs came", len(all), samples)
		}
	}
	slices.Sort(all)
	at := func(p float64) float64 { return all[min(len(all)-1, int(math.Ceil(p*float64(len(all))))-1)] }
	out["stream_p50"] = figure{Value: at(0.5), Unit: "ms"}
	out["stream_p99"] = below(at(0.99), 5, "ms", fmt.Sprintf("from the call that creates the job until a streaming client has it, %d jobs/s, %d jobs; most %.1f ms", perSecond, samples, all[len(all)-1]))
	return nil
}
