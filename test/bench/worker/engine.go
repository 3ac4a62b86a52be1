package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vitrip/journeyman/engine"
)

// order is one line that the parent sends to the engine's process, and answer the line that comes back when it is done.
type order struct {
	Op     string  `json:"op"` // deploy, load, wait, offer
	Type   string  `json:"type"`
	Prefix string  `json:"prefix"` // of the operation ids
	N      int     `json:"n"`
	Rate   float64 `json:"rate"` // instances per second
}

type answer struct {
	Addr  string  `json:"addr,omitempty"`
	Error string  `json:"error,omitempty"`
	P50   float64 `json:"p50,omitempty"` // ms, created to completed
	P99   float64 `json:"p99,omitempty"`
}

const model = `<?xml version="1.0"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<bpmn:process id="%[1]s" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="reserve"/>
<bpmn:serviceTask id="reserve"><bpmn:extensionElements><zeebe:taskDefinition type="%[1]s"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:sequenceFlow id="f2" sourceRef="reserve" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`

// variables is what each instance starts with: what the worker is given.
func variables(id string) string {
	return fmt.Sprintf(`{"operationId":%q,"businessKey":%q,"correlationId":%q,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",`+
		`"offer":"LH-%s","seats":2,"class":"economy","passenger":{"name":"Ada Lovelace","birth":"1815-12-10"},"amount":{"minor":125000,"currency":"EUR"}}`, id, "B-"+id, "C-"+id, id)
}

// serveEngine is the engine's process: it obeys orders on stdin until that ends.
func serveEngine(in io.Reader, out io.Writer) error {
	e, err := engine.Start(engine.Config{Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // the process ends
	cc, err := grpc.NewClient(e.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s := &engineSide{client: pb.NewGatewayClient(cc), cond: make(chan struct{}, 1)}
	defer e.Intercept("CompleteJob", s.completed)()
	enc, lines := json.NewEncoder(out), bufio.NewScanner(in)
	if err := enc.Encode(answer{Addr: e.Addr()}); err != nil {
		return err
	}
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		a, err := s.obey(o)
		if err != nil {
			a.Error = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
	}
	return lines.Err()
}

type engineSide struct {
	client pb.GatewayClient
	cond   chan struct{}

	mu   sync.Mutex
	done int
	want int
}

func (s *engineSide) completed(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
	res, err := next(ctx)
	if err != nil {
		return res, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done++
	if s.done == s.want {
		s.cond <- struct{}{}
	}
	return res, nil
}

func (s *engineSide) obey(o order) (a answer, err error) {
	ctx := context.Background()
	switch o.Op {
	case "deploy":
		_, err = s.client.DeployResource(ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: o.Type + ".bpmn", Content: fmt.Appendf(nil, model, o.Type)}}})
		return a, err
	case "load":
		s.expect(o.N)
		var g errgroup.Group
		g.SetLimit(16)
		for i := range o.N {
			g.Go(func() error { return s.create(ctx, o.Type, fmt.Sprint(o.Prefix, "-", i)) })
		}
		return a, g.Wait()
	case "wait":
		select {
		case <-s.cond:
			return a, nil
		case <-time.After(2 * time.Minute):
			s.mu.Lock()
			defer s.mu.Unlock()
			return a, fmt.Errorf("%d of %d jobs completed in 2 minutes", s.done, s.want)
		}
	case "offer":
		return s.offer(ctx, o)
	default:
		return a, fmt.Errorf("order %q: unknown", o.Op)
	}
}

func (s *engineSide) expect(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.want = 0, n
}

func (s *engineSide) create(ctx context.Context, jobType, id string) error {
	_, err := s.client.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{BpmnProcessId: jobType, Version: -1, Variables: variables(id)})
	return err
}

// offer starts instances at a fixed rate, whatever becomes of them (open loop), and tells how long each took from the call that
// creates it to its end, which the call with result waits for.
func (s *engineSide) offer(ctx context.Context, o order) (a answer, err error) {
	var mu sync.Mutex
	var took []time.Duration
	var g errgroup.Group
	tick := time.NewTicker(time.Duration(float64(time.Second) / o.Rate))
	defer tick.Stop()
	for i := range o.N {
		<-tick.C
		began := time.Now()
		g.Go(func() error {
			_, err := s.client.CreateProcessInstanceWithResult(ctx, &pb.CreateProcessInstanceWithResultRequest{
				Request:        &pb.CreateProcessInstanceRequest{BpmnProcessId: o.Type, Version: -1, Variables: variables(fmt.Sprint(o.Prefix, "-", i))},
				RequestTimeout: 30_000,
			})
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(began))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return a, err
	}
	slices.Sort(took)
	ms := func(p int) float64 { return took[(len(took)-1)*p/100].Seconds() * 1000 }
	return answer{P50: ms(50), P99: ms(99)}, nil
}

// engineProcess is the parent's end of it.
type engineProcess struct {
	addr string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
}

// startEngine starts this program again as the engine's process.
func startEngine() (*engineProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &engineProcess{cmd: exec.Command(self, "-serve-engine")} //nolint:noctx // ends with its input
	p.cmd.Stderr, p.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var hello answer
	if err := p.out.Decode(&hello); err != nil {
		return nil, fmt.Errorf("engine process: %w", err)
	}
	p.addr = hello.Addr
	return p, nil
}

func (p *engineProcess) do(o order) (answer, error) {
	var a answer
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return a, err
	}
	if err := p.out.Decode(&a); err != nil {
		return a, fmt.Errorf("engine process: %w", err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("engine process: %s %s: %s", o.Op, o.Type, a.Error)
	}
	return a, nil
}

func (p *engineProcess) stop() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}
