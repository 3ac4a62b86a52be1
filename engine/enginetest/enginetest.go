// Package enginetest runs whole models in the embedded engine inside go test:
// job types are mocked, the clock is moved, and what the process did is
// asserted.
//
//	e := enginetest.Start(t, enginetest.File("order.bpmn"))
//	e.Mock("stock.reserve").ThrowsError("SOLD_OUT", nil)
//	e.Mock("mail.send").Fails(2, "mail server down").Returns(nil)
//	p := e.Create("order", map[string]any{"item": "A-1"})
//	p.WantCompleted()
//	p.WantPath("stockReserve", "soldOut", "mailSend")
//
// # How it runs
//
// Nothing happens behind the test's back: mocks work inside the calls of the
// test, each of which returns when no mocked job is left. [Env.AdvanceClock]
// goes from timer to timer and lets mocks work at each, so thirty minutes of
// retries and time-outs take milliseconds and always come out the same.
//
// Real workers may serve job types too: point them at [Env.Addr] and set
// [Env.Wait], and assertions wait.
//
// A test that people write who do not program is a file: see [RunFile].
package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/engine"
)

// Model reads one BPMN file.
type Model func() (name string, text []byte, err error)

// File is a model in a file.
func File(path string) Model {
	return func() (string, []byte, error) {
		text, err := os.ReadFile(path) //nolint:gosec // the test names it
		return filepath.Base(path), text, err
	}
}

// FS is a model in a file system, such as an embedded one.
func FS(files fs.FS, name string) Model {
	return func() (string, []byte, error) {
		text, err := fs.ReadFile(files, name)
		return name, text, err
	}
}

// Text is a model given as text.
func Text(name, text string) Model {
	return func() (string, []byte, error) { return name, []byte(text), nil }
}

// Env is an engine of one test with the models deployed. It is not safe for concurrent use.
type Env struct {
	// Wait is how long an assertion waits for real workers; 0 = it must hold at
	// once, which it does with mocks alone.
	Wait time.Duration

	t        testing.TB
	engine   *engine.Engine
	http     *http.Client
	ctx      context.Context //nolint:containedctx // of the test
	models   []parsed
	mocks    map[string]*Mock
	rest     *Mock // of job types without a mock of their own
	coverage []*Coverage

	mu        sync.Mutex // guards published, which interceptors write
	published []Message
}

type parsed struct {
	name string
	text []byte
	defs *bpmn.Definitions
}

// Start starts an engine for this test, deploys the models and closes the
// engine when the test ends. A model that the engine refuses ends the test.
func Start(t testing.TB, models ...Model) *Env {
	t.Helper()
	eng, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatalf("enginetest: %v", err)
	}
	e := &Env{t: t, engine: eng, ctx: context.WithoutCancel(t.Context()), mocks: map[string]*Mock{}, http: &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}}
	t.Cleanup(func() {
		for _, c := range e.coverage {
			c.Add(e.Coverage())
		}
		e.http.CloseIdleConnections()
		if err := eng.Close(); err != nil {
			t.Errorf("enginetest: close: %v", err)
		}
	})
	e.record()
	for _, m := range models {
		name, text, err := m()
		if err != nil {
			t.Fatalf("enginetest: read model: %v", err)
		}
		e.deploy(name, text)
	}
	return e
}

// Engine is the engine itself, for fault injection with Intercept.
func (e *Env) Engine() *engine.Engine { return e.engine }

// Addr is the gRPC address for real workers, without TLS.
func (e *Env) Addr() string { return e.engine.Addr() }

// RESTAddr is the REST address, host:port.
func (e *Env) RESTAddr() string { return e.engine.RESTAddr() }

// Now is the engine's time.
func (e *Env) Now() time.Time { return e.engine.Now() }

// Create starts an instance of the latest version of a process. vars becomes a JSON object; nil = none.
func (e *Env) Create(processID string, vars any) *Instance {
	e.t.Helper()
	var out struct {
		Key key `json:"processInstanceKey"`
	}
	e.must("POST", "/process-instances", map[string]any{"processDefinitionId": processID, "variables": e.object(vars)}, &out)
	e.Settle()
	return &Instance{env: e, key: out.Key}
}

// Message is a message for the engine.
type Message struct {
	Name, CorrelationKey, ID string
	TTL                      time.Duration // 0 = not buffered
	Variables                any           // becomes a JSON object; nil = none
}

// Publish publishes a message.
func (e *Env) Publish(m Message) {
	e.t.Helper()
	e.send("/messages/publication", m)
}

// Correlate publishes a message that must find a receiver; none ends the test.
func (e *Env) Correlate(m Message) {
	e.t.Helper()
	e.send("/messages/correlation", m)
}

func (e *Env) send(route string, m Message) {
	e.t.Helper()
	body := map[string]any{"name": m.Name, "correlationKey": m.CorrelationKey, "variables": e.object(m.Variables)}
	if route == "/messages/publication" {
		body["messageId"], body["timeToLive"] = m.ID, m.TTL.Milliseconds()
	}
	e.must("POST", route, body, nil)
	e.mu.Lock()
	e.published = append(e.published, m)
	e.mu.Unlock()
	e.Settle()
}

// Start publishes a message that starts a process, and gives the instance. None ends the test.
func (e *Env) Start(processID string, m Message) *Instance {
	e.t.Helper()
	before := e.instances(processID)
	e.Publish(m)
	after := e.instances(processID)
	if len(after) != len(before)+1 {
		e.t.Fatalf("enginetest: message %q started %d instances of %s, want 1", m.Name, len(after)-len(before), processID)
	}
	return &Instance{env: e, key: after[len(after)-1].Key}
}

// Broadcast broadcasts a signal.
func (e *Env) Broadcast(signal string, vars any) {
	e.t.Helper()
	e.must("POST", "/signals/broadcast", map[string]any{"signalName": signal, "variables": e.object(vars)}, nil)
	e.Settle()
}

// Instance gives the newest instance of a process. None ends the test.
func (e *Env) Instance(processID string) *Instance {
	e.t.Helper()
	all := e.instances(processID)
	if len(all) == 0 {
		e.t.Fatalf("enginetest: process %s has no instance", processID)
	}
	return &Instance{env: e, key: all[len(all)-1].Key}
}

// mostSteps bounds the stops of one AdvanceClock; after them it goes in one leap.
const mostSteps = 10_000

// AdvanceClock moves the engine's clock forward by d. It stops wherever a timer
// is due and lets mocks work there, so that what follows a timer starts its own
// timers at the right time.
func (e *Env) AdvanceClock(d time.Duration) {
	e.t.Helper()
	if d < 0 {
		e.t.Fatalf("enginetest: advance by %s: want 0 or more", d)
	}
	e.Settle()
	target := e.engine.Now().Add(d)
	for range mostSteps {
		due, ok := e.engine.NextDue()
		if !ok || due.After(target) {
			break
		}
		e.leap(due)
		e.Settle()
	}
	e.leap(target)
	e.Settle()
}

// leap moves the engine's clock to at, unless it is past it.
func (e *Env) leap(at time.Time) {
	e.t.Helper()
	if err := e.engine.AdvanceClock(max(at.Sub(e.engine.Now()), 0)); err != nil {
		e.t.Fatalf("enginetest: %v", err)
	}
}

// SetClock moves the engine's clock to t; backwards fires nothing.
func (e *Env) SetClock(at time.Time) {
	e.t.Helper()
	if d := at.Sub(e.engine.Now()); d >= 0 {
		e.AdvanceClock(d)
		return
	}
	e.must("PUT", "/clock", map[string]any{"timestamp": at.UnixMilli()}, nil)
}

// WantPublished fails the test when no message of this name and correlation key
// was published, by the test or by a worker. An empty key stands for any.
func (e *Env) WantPublished(name, correlationKey string) {
	e.t.Helper()
	e.hold(func() string {
		e.mu.Lock()
		defer e.mu.Unlock()
		if slices.ContainsFunc(e.published, func(m Message) bool {
			return m.Name == name && (correlationKey == "" || m.CorrelationKey == correlationKey)
		}) {
			return ""
		}
		return fmt.Sprintf("message %q with key %q was not published; published: %v", name, correlationKey, e.published)
	})
}

// Published lists the messages that reached the engine, in order.
func (e *Env) Published() []Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.published)
}

// String gives name and correlation key.
func (m Message) String() string { return fmt.Sprintf("%s(%s)", m.Name, m.CorrelationKey) }

// object makes variables a JSON object.
func (e *Env) object(vars any) json.RawMessage {
	e.t.Helper()
	if vars == nil {
		return json.RawMessage("{}")
	}
	doc, err := json.Marshal(vars)
	var fields map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(doc, &fields)
	}
	if err != nil {
		e.t.Fatalf("enginetest: variables %T: want something that becomes a JSON object: %v", vars, err)
	}
	if fields == nil {
		return json.RawMessage("{}")
	}
	return doc
}

// hold checks a condition: at once, or again until Wait is over.
func (e *Env) hold(check func() string) {
	e.t.Helper()
	end := time.Now().Add(e.Wait)
	for {
		e.Settle()
		said := check()
		if said == "" {
			return
		}
		if !time.Now().Before(end) {
			e.t.Fatalf("enginetest: %s", said)
		}
		tick := time.NewTimer(5 * time.Millisecond)
		<-tick.C
	}
}
