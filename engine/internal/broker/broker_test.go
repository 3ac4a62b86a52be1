package broker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/engine/internal/broker"
	"github.com/vitrip/journeyman/engine/internal/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const work = `<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0" id="d" targetNamespace="x">
<bpmn:process id="p" isExecutable="true"><bpmn:startEvent id="s"/><bpmn:sequenceFlow id="f1" sourceRef="s" targetRef="a"/>
<bpmn:serviceTask id="a"><bpmn:extensionElements><zeebe:taskDefinition type="work"/></bpmn:extensionElements></bpmn:serviceTask>
<bpmn:sequenceFlow id="f2" sourceRef="a" targetRef="e"/><bpmn:endEvent id="e"/></bpmn:process></bpmn:definitions>`

func stop(t *testing.T, b *broker.Broker) {
	t.Helper()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func begin(t *testing.T) *broker.Broker {
	t.Helper()
	b := broker.New(0, [32]byte{})
	if err := b.Do(func(c *core.Core) error {
		_, err := c.Deploy([]core.Resource{{Name: "p.bpmn", Content: []byte(work)}}, false)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return b
}

func create(t *testing.T, b *broker.Broker) {
	t.Helper()
	if err := b.Do(func(c *core.Core) error {
		_, err := c.CreateInstance(core.Creation{ProcessID: "p", Version: -1})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func request(n int) core.Activation {
	return core.Activation{Type: "work", Timeout: time.Minute, Max: n}
}

func TestActivate_CancelledPollEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		start := time.Now()
		go func() {
			_, err := b.Activate(ctx, request(1), time.Hour)
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want canceled", err)
		}
		if d := time.Since(start); d > 0 {
			t.Errorf("the poll ended after %v", d)
		}
		create(t, b)
		jobs, err := b.Activate(t.Context(), request(1), 0)
		if err != nil || len(jobs) != 1 {
			t.Errorf("got %v, %v: the dead poll took the job", jobs, err)
		}
	})
}

func TestActivate_FirstPollFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		order := make(chan int, 3)
		for i := range 3 {
			go func() {
				if jobs, err := b.Activate(t.Context(), request(1), time.Hour); err != nil || len(jobs) != 1 {
					t.Errorf("poll %d: %v, %v", i, jobs, err)
				}
				order <- i
			}()
			synctest.Wait() // the next poll queues behind this one
		}
		for want := range 3 {
			create(t, b)
			if got := <-order; got != want {
				t.Errorf("poll %d was served, want %d", got, want)
			}
		}
	})
}

func TestActivate_EmptyAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		start := time.Now()
		jobs, err := b.Activate(t.Context(), request(1), 50*time.Second)
		if err != nil || len(jobs) != 0 || time.Since(start) != 50*time.Second {
			t.Errorf("got %v, %v after %v, want nothing after 50s", jobs, err, time.Since(start))
		}
	})
}

func TestStream_CloseYieldsWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		s := b.OpenStream(request(1))
		for range 20 {
			create(t, b)
		}
		if n := len(s.Jobs()); n != 16 {
			t.Errorf("%d jobs wait for the stream, want its buffer of 16", n)
		}
		jobs, err := b.Activate(t.Context(), request(100), 0)
		if err != nil || len(jobs) != 4 {
			t.Errorf("polls got %d jobs, %v, want the other 4", len(jobs), err)
		}
		b.CloseStream(s)
		if jobs, err = b.Activate(t.Context(), request(100), 0); err != nil || len(jobs) != 16 {
			t.Errorf("after the stream closed polls got %d jobs, %v, want 16", len(jobs), err)
		}
	})
}

func TestStream_RoundRobin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		one, two := b.OpenStream(request(1)), b.OpenStream(request(1))
		for range 8 {
			create(t, b)
		}
		if len(one.Jobs()) != 4 || len(two.Jobs()) != 4 {
			t.Errorf("got %d and %d jobs, want 4 each", len(one.Jobs()), len(two.Jobs()))
		}
		b.CloseStream(one)
		b.CloseStream(two)
	})
}

// The clock's goroutine fires timers without any call from outside.
func TestClock_FiresByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		create(t, b)
		if jobs, err := b.Activate(t.Context(), request(1), 0); err != nil || len(jobs) != 1 {
			t.Fatalf("got %v, %v", jobs, err)
		}
		start := time.Now()
		jobs, err := b.Activate(t.Context(), request(1), time.Hour)
		if err != nil || len(jobs) != 1 || time.Since(start) != time.Minute {
			t.Errorf("got %v, %v after %v, want the job back after its minute", jobs, err, time.Since(start))
		}
	})
}

func TestAwait_ForgottenAndAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t)
		defer stop(t, b)
		_, a, err := b.CreateAndAwait(core.Creation{ProcessID: "p", Version: -1, Vars: core.Doc{"x": []byte("1")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := b.Activate(t.Context(), request(1), 0)
		if err != nil || len(jobs) != 1 {
			t.Fatalf("got %v, %v", jobs, err)
		}
		if err := b.Do(func(c *core.Core) error { return c.CompleteJob(jobs[0].Key, nil) }); err != nil {
			t.Fatal(err)
		}
		if got := <-a.Result(); got != `{"x":1}` {
			t.Errorf("result: %s", got)
		}
		b.Forget(a) // after the answer: nothing to forget
	})
}
