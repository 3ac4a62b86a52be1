package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/vitrip/journeyman/engine"
)

// address is what the other process prints first. It ends when its standard input does.
type address struct{ Addr string }

func serveEngine(data string) error {
	e, err := engine.Start(engine.Config{DataDir: data})
	if err != nil {
		return err
	}
	return errors.Join(untilEOF(e.Addr()), e.Close())
}

// bare answers CompleteJob and does nothing: what gRPC itself costs.
type bare struct{ pb.UnimplementedGatewayServer }

func (*bare) CompleteJob(context.Context, *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return &pb.CompleteJobResponse{}, nil
}

func serveBare() error {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	pb.RegisterGatewayServer(s, &bare{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(lis) }()
	err = untilEOF(lis.Addr().String())
	s.Stop()
	return errors.Join(err, <-served)
}

func untilEOF(addr string) error {
	if err := json.NewEncoder(os.Stdout).Encode(address{addr}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// server is the other process and a connection to it.
type server struct {
	pb.GatewayClient
	cmd  *exec.Cmd
	in   io.WriteCloser
	conn *grpc.ClientConn
}

func start(ctx context.Context, args ...string) (*server, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, exe, args...)}
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	var a address
	if err := json.NewDecoder(bufio.NewReader(out)).Decode(&a); err != nil {
		return nil, errors.Join(fmt.Errorf("%v printed no address: %w", args, err), s.stop())
	}
	if s.conn, err = grpc.NewClient(a.Addr, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.GatewayClient = pb.NewGatewayClient(s.conn)
	return s, nil
}

func (s *server) stop() error {
	var err error
	if s.conn != nil {
		err = s.conn.Close()
	}
	return errors.Join(err, s.in.Close(), s.cmd.Wait())
}

// cpu is the processor time the process has used.
func (s *server) cpu() (time.Duration, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	if !found || len(fields) < 13 {
		return 0, fmt.Errorf("/proc stat is %q", raw)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// memory is the resident size of the process in bytes: now and at its highest.
func (s *server) memory() (now, peak float64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(raw)) {
		for name, into := range map[string]*float64{"VmRSS:": &now, "VmHWM:": &peak} {
			if text, found := strings.CutPrefix(line, name); found {
				n, err := strconv.ParseFloat(strings.Fields(text)[0], 64)
				if err != nil {
					return 0, 0, err
				}
				*into = n * 1024
			}
		}
	}
	return now, peak, nil
}
