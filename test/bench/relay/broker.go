package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

// addresses of the two clusters in the broker's process: one forgets what it is given, one keeps it.
type addresses struct{ Forgets, Keeps string }

// serveBroker is the broker's process, until stdin ends.
func serveBroker(in io.Reader, out io.Writer) error {
	forgets, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.BlackholeProduce())
	if err != nil {
		return err
	}
	defer forgets.Close()
	keeps, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return err
	}
	defer keeps.Close()
	if err := json.NewEncoder(out).Encode(addresses{forgets.ListenAddrs()[0], keeps.ListenAddrs()[0]}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// process is this program in another role.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
}

func startProcess(args ...string) (*process, error) {
	p := &process{cmd: exec.Command("/proc/self/exe", args...)} //nolint:noctx // ended by stop
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines = bufio.NewReaderSize(out, 1<<20)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // Pdeathsig fires when the starting thread ends
		started <- p.cmd.Start()
		select {}
	}()
	return p, <-started
}

// read takes one line of JSON.
func (p *process) read(v any) error {
	line, err := p.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(line, v)
}

func (p *process) stop() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

type brokerProcess struct {
	*process
	addresses
}

func startBroker() (*brokerProcess, error) {
	p, err := startProcess("-serve-broker")
	if err != nil {
		return nil, err
	}
	b := &brokerProcess{process: p}
	return b, b.read(&b.addresses)
}
