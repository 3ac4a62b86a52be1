//go:build crowd || soak

package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/internal/suppliers"
	"github.com/vitrip/journeyman/sagas"
)

// envRole holds a member as JSON: the test binary is a process of the application then.
const envRole = "FAULTS_MEMBER"

// asMember is the whole life of a process of a fleet, and reports whether this is one.
func asMember() (bool, error) {
	text := os.Getenv(envRole)
	if text == "" {
		return false, nil
	}
	var as member
	if err := json.Unmarshal([]byte(text), &as); err != nil {
		return true, err
	}
	return true, as.serve()
}

// member is what a process of the fleet needs to know. It ends when its standard input does.
type member struct {
	API       bool // else a worker
	DSN       string
	Gateway   string
	REST      string
	Brokers   []string
	Suppliers app.Suppliers
	Callback  string
	Patience  time.Duration
	CrashAt   string // see crash.Arm
	KillLog   string
}

func (m member) config(pool *pgxpool.Pool, log zerolog.Logger) app.Config {
	return app.Config{
		Pool: pool, Gateway: m.Gateway, Plaintext: true, REST: m.REST, Brokers: m.Brokers, Cluster: "faults", Env: "test", Suppliers: m.Suppliers,
		Callback: m.Callback, CallbackSecret: []byte("0123456789abcdef0123"), CallTimeout: m.Patience, Concurrency: 16, MaxJobsActive: 96,
		JobTimeout: 15 * time.Second, RelayLease: 2 * time.Second, Log: log,
	}
}

// serve is the life of a process. An API process is given its listener as file 3.
func (m member) serve() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := crash.Arm(m.CrashAt, m.KillLog); err != nil {
		return err
	}
	cfg, err := pgxpool.ParseConfig(m.DSN)
	if err != nil {
		return err
	}
	cfg.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	a, err := app.New(m.config(pool, zerolog.New(os.Stderr).Level(zerolog.ErrorLevel)))
	if err != nil {
		return err
	}
	defer a.Close() //nolint:errcheck // the process ends
	if !m.API {
		return a.Work(ctx)
	}
	handler, err := a.API(map[string]sagas.Principal{"token-" + tenant: {Tenant: tenant}})
	if err != nil {
		return err
	}
	lis, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		return err
	}
	server := sagas.Server(handler)
	var all sync.WaitGroup
	errs := make([]error, 3)
	all.Go(func() { errs[0] = a.Record(ctx) })
	all.Go(func() { errs[1] = a.FlushCommands(ctx) })
	all.Go(func() {
		if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
			errs[2] = err
		}
	})
	<-ctx.Done()
	errs = append(errs, server.Close())
	all.Wait()
	return errors.Join(errs...)
}

// fleet is the application in processes of its own.
type fleet struct {
	*stage
	as    member
	kills int

	mu      sync.Mutex
	workers []*process
}

type process struct {
	cmd   *exec.Cmd
	hold  io.Closer
	ended chan struct{}
}

// launch starts a process of the fleet. extra, which may be nil, becomes its file 3.
func (f *fleet) launch(m member, extra *os.File) (*process, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // this binary; killed at the end
	cmd.Env = append(os.Environ(), envRole+"="+string(text))
	cmd.Stderr = os.Stderr
	if extra != nil {
		cmd.ExtraFiles = []*os.File{extra}
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	if p.hold, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
	_ = p.hold.Close()
}

// setupFleet starts a stage whose application runs in processes: APIs that live, and workers that [fleet.hunt] kills.
func setupFleet(t testing.TB, apis, workers int) *fleet {
	t.Helper()
	s := surround(t, false)
	f := &fleet{stage: s}
	var lists []*os.File
	for range apis {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		s.must(err)
		file, err := lis.(*net.TCPListener).File()
		s.must(err)
		s.must(lis.Close())
		s.apis = append(s.apis, "http://"+lis.Addr().String())
		lists = append(lists, file)
	}
	f.as = member{
		DSN: s.dsn, Gateway: s.eng.Addr(), REST: "http://" + s.eng.RESTAddr(), Brokers: s.brokers, Callback: s.apis[0], Patience: callTimeout,
		Suppliers: app.Suppliers{Flight: s.world.URL(suppliers.Flight), Hotel: s.world.URL(suppliers.Hotel), Transfer: s.world.URL(suppliers.Transfer), Payment: s.world.URL(suppliers.Payment)},
	}
	a, err := app.New(f.as.config(s.pool, zerolog.Nop()))
	s.must(err)
	s.must(a.Deploy(s.ctx))
	s.must(a.Close())
	for _, file := range lists {
		m := f.as
		m.API = true
		p, err := f.launch(m, file)
		s.must(err)
		s.Cleanup(p.kill)
		s.must(file.Close())
	}
	s.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.workers {
			p.kill()
		}
	})
	for range workers {
		p, err := f.launch(f.as, nil)
		s.must(err)
		f.workers = append(f.workers, p)
	}
	s.connect()
	return f
}

// points are where workers kill themselves.
func points() []string {
	return append(moments(), "worker.late.found", "worker.late.stored", "worker.late.undone", "saga.record.claimed")
}

// hunt kills a worker now and then, until ctx ends: between two instructions from outside, or at a crash point. It leaves workers
// behind that nobody kills.
func (f *fleet) hunt(ctx context.Context, random *rand.Rand, every time.Duration) {
	for {
		wait := time.NewTimer(every/2 + time.Duration(random.Int64N(int64(every))))
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
		f.mu.Lock()
		i, m := random.IntN(len(f.workers)), f.as
		if p := points()[random.IntN(len(points()))]; random.IntN(2) == 0 && p != during {
			m.CrashAt = fmt.Sprintf("%s:%d", p, 1+random.IntN(40))
		}
		if ctx.Err() != nil {
			m.CrashAt = ""
		}
		for j, p := range f.workers {
			if ctx.Err() == nil && j != i && !over(p) {
				continue
			}
			p.kill()
			f.kills++
			if j != i {
				m.CrashAt = ""
			}
			next, err := f.launch(m, nil)
			if err != nil {
				f.Errorf("start a worker again: %v", err)
				continue
			}
			f.workers[j] = next
		}
		f.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
	}
}

func over(p *process) bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
