package worker

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/zeebe"
)

// childWorker is a worker in a process of its own: spec is "gateway database". It prints a line when a handler begins and when it
// ended, and holds a handler until its context ends or its standard input gives a line.
func childWorker(spec string) int {
	addr, dsn, _ := strings.Cut(spec, " ")
	fail := func(err error) int { fmt.Println("error", err); return 3 }
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return fail(err)
	}
	defer pool.Close()
	conn, err := zeebe.Dial(zeebe.Config{Address: addr, Plaintext: true})
	if err != nil {
		return fail(err)
	}
	defer conn.Close() //nolint:errcheck // the process ends
	lines := make(chan struct{}, 100)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- struct{}{}
		}
	}()
	mux := NewMux()
	mux.Handle("work", Transactional(func(ctx context.Context, _ *Tx, j Job[struct{}]) (struct{}, error) {
		fmt.Println("begun", j.OperationID)
		switch {
		case j.OperationID == "poison":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			<-ctx.Done()
		case strings.HasPrefix(j.OperationID, "quick"):
			return struct{}{}, nil
		}
		select {
		case <-lines:
			fmt.Println("ended", j.OperationID)
			return struct{}{}, nil
		case <-ctx.Done():
			fmt.Println("cut", j.OperationID)
			return struct{}{}, ctx.Err()
		}
	}, NoEffect()))
	w, err := New(conn, pool, mux, Config{MaxJobsActive: 12, Concurrency: 2, PollWait: time.Second, DrainTimeout: 30 * time.Second, JobTimeout: time.Minute, HandlerTimeout: 50 * time.Second})
	if err != nil {
		return fail(err)
	}
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	if err := w.Serve(ctx, signals); err != nil {
		fmt.Println("forced", err)
		return 1
	}
	fmt.Println("drained")
	return 0
}

const childModel = `<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" targetNamespace="t">
  <bpmn:process id="one" isExecutable="true">
    <bpmn:startEvent id="s"><bpmn:outgoing>f1</bpmn:outgoing></bpmn:startEvent>
    <bpmn:serviceTask id="task"><bpmn:extensionElements><zeebe:taskDefinition type="work" retries="3" /></bpmn:extensionElements>
      <bpmn:incoming>f1</bpmn:incoming><bpmn:outgoing>f2</bpmn:outgoing></bpmn:serviceTask>
    <bpmn:endEvent id="e"><bpmn:incoming>f2</bpmn:incoming></bpmn:endEvent>
    <bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="task" /><bpmn:sequenceFlow id="f2" sourceRef="task" targetRef="e" />
  </bpmn:process>
</bpmn:definitions>`

// TestSIGTERM: a process that works under load gets SIGTERM. It hands back at once what has not begun, with its retries, finishes what
// runs and exits with 0; a second SIGTERM cuts the handlers off, whose jobs keep their retries too. The process has no home that it could write to.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprintf("second signal %v", second), func(t *testing.T) {
			t.Parallel()
			const jobs = 200
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			pool, eng, conn := childWorld(t, ctx)
			cmd := childCommand(ctx, eng, pool)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := make(chan string, 1000)
			go func() {
				defer close(said)
				for out := bufio.NewScanner(stdout); out.Scan(); {
					said <- out.Text()
				}
			}()
			create := func(i int) {
				if _, err := conn.CreateInstance(ctx, "one", job(fmt.Sprint("op-", i), "")); err != nil {
					t.Fatal(err)
				}
			}
			var all []string
			hear := func(n int, word string) {
				t.Helper()
				for n > 0 {
					l, ok := <-said
					if !ok {
						t.Fatalf("the worker ended before it said %s; it said %q", word, all)
					}
					if all = append(all, l); strings.HasPrefix(l, word) {
						n--
					}
				}
			}
			create(0) // by poll
			hear(1, "begun")
			for i := range jobs - 1 { // by stream, past the limit of 12
				create(i + 1)
			}
			hear(1, "begun")
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			free := 0
			for free < jobs-2 { // while the two still run
				got, err := conn.Activate(ctx, zeebe.ActivateRequest{Type: "work", Worker: "rest", MaxJobs: 500, Timeout: time.Hour, Wait: time.Second})
				if err != nil {
					t.Fatalf("%d of %d free: %v", free, jobs-2, err)
				}
				for _, j := range got {
					if j.Retries != 3 {
						t.Errorf("job %d has %d retries left, want 3", j.Key, j.Retries)
					}
				}
				free += len(got)
			}
			want := 0
			if second {
				want = 1
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			} else if _, err := fmt.Fprint(stdin, "go\ngo\n"); err != nil {
				t.Fatal(err)
			}
			for l := range said {
				all = append(all, l)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != want {
				t.Errorf("exit code %d, want %d; it said %q", code, want, all)
			}
			count := func(word string) (n int) {
				for _, l := range all {
					if strings.HasPrefix(l, word) {
						n++
					}
				}
				return n
			}
			if second {
				if count("begun") != 2 || count("cut") != 2 || !slices.ContainsFunc(all, func(l string) bool { return strings.HasPrefix(l, "forced") }) {
					t.Errorf("it said %q, want two begun and cut off, and that the end was forced", all)
				}
				for left := 2; left > 0; {
					got, err := conn.Activate(ctx, zeebe.ActivateRequest{Type: "work", Worker: "rest", MaxJobs: 5, Timeout: time.Hour, Wait: time.Second})
					if err != nil {
						t.Fatal(err)
					}
					for _, j := range got {
						if left--; j.Retries != 3 {
							t.Errorf("job %d that was cut off has %d retries left, want 3", j.Key, j.Retries)
						}
					}
				}
			} else if count("begun") != 2 || count("ended") != 2 || count("drained") != 1 {
				t.Errorf("it said %q, want two begun and ended, and drained", all)
			}
		})
	}
}

// childWorld is what child processes work with.
func childWorld(t *testing.T, ctx context.Context) (*pgxpool.Pool, *engine.Engine, *zeebe.Conn) {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	eng, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	conn, err := zeebe.Dial(zeebe.Config{Address: eng.Addr(), Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Deploy(ctx, zeebe.Resource{Name: "one.bpmn", Content: []byte(childModel)}); err != nil {
		t.Fatal(err)
	}
	return pool, eng, conn
}

// childCommand is a worker process without a home that it could write to.
func childCommand(ctx context.Context, eng *engine.Engine, pool *pgxpool.Pool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "HOME=/proc/1/nowhere", "XDG_CACHE_HOME=/proc/1/nowhere", "JOURNEYMAN_TEST_WORKER="+eng.Addr()+" "+pool.Config().ConnString())
	return cmd
}

// TestRule07_neighboursLive: a job kills every process that runs it, with others received beside it. It alone ends as an incident, after
// it died with nothing beside it; its neighbours complete.
func TestRule07_neighboursLive(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool, eng, conn := childWorld(t, ctx)
	names := []string{"quick1", "quick2", "poison", "quick3", "quick4", "quick5"}
	for _, id := range names {
		if _, err := conn.CreateInstance(ctx, "one", job(id, "")); err != nil {
			t.Fatal(err)
		}
	}
	fatal := func() (n int) {
		t.Helper()
		// The verdict is no operation: it is an answer to the job, so that a person may resolve it. What stays is who never ended.
		if err := pool.QueryRow(ctx, `SELECT count(*) FROM journeyman.operation WHERE state = 'done'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	deaths := 0
	for deaths < 6 {
		cmd := childCommand(ctx, eng, pool)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { gone <- cmd.Wait() }()
		ended := false
		for !ended {
			select {
			case <-gone:
				ended = true
			default:
			}
			var told int
			if err := pool.QueryRow(ctx, `SELECT count(*) FROM journeyman.operation_attempt WHERE open`).Scan(&told); err != nil {
				t.Fatal(err)
			}
			if !ended && told == 0 && fatal() == len(names)-1 {
				_ = cmd.Process.Signal(syscall.SIGTERM) // all is decided: this one lives
				<-gone
				if deaths < 2 || deaths > 3 {
					t.Errorf("%d processes died, want two or three: one with neighbours, the others alone", deaths)
				}
				return
			}
		}
		deaths++
		// Its time-outs pass, and its heart has stopped.
		eng.AdvanceClock(2 * time.Minute)
		if _, err := pool.Exec(ctx, `UPDATE journeyman.worker_process SET seen_at = seen_at - interval '1 minute'`); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("%d processes died and %d of %d jobs ended", deaths, fatal(), len(names))
}
