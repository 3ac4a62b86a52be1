package sagas

import (
	"context"
	_ "embed"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

//go:embed testdata/trip.bpmn
var tripModel []byte

// supplier keeps reservations by key. It honours keys, remembers cancels and can hold a call.
type supplier struct {
	mu       sync.Mutex
	held     map[string]bool
	reserved map[string]int // effects by key
	undone   map[string]int
	cancels  int              // calls, whether or not they found something
	before   func(key string) // runs before a reservation takes effect
	refuses  func() error     // what a reservation is answered, without effect; nil = it takes effect
}

func (s *supplier) reserve(key string) {
	if s.before != nil {
		s.before(key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reserved[key] == 0 {
		s.reserved[key]++
		s.held[key] = true
	}
}

func (s *supplier) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[key]
}

func (s *supplier) cancel(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels++
	if s.held[key] {
		delete(s.held, key)
		s.undone[key]++
	}
}

type bookingIn struct {
	Booking string `json:"booking"`
}

type roomHeld struct {
	Reservation string `json:"reservation"`
}

type none struct{}

// stage is the world with the embedded engine and a worker over it.
type stage struct {
	*world
	eng *engine.Engine
	sup *supplier
	rt  *worker.Runtime

	paying func(sagaID string) // runs inside the transaction of payment.do
	paid   sync.Map            // operation ids of payments that stand
}

func setupStage(t *testing.T) *stage {
	t.Helper()
	st := &stage{sup: &supplier{held: map[string]bool{}, reserved: map[string]int{}, undone: map[string]int{}}}
	var err error
	if st.eng, err = engine.Start(engine.Config{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.eng.Close() })
	conn, err := zeebe.Dial(zeebe.Config{Address: st.eng.Addr(), Plaintext: true, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var sender *zeebe.Sender
	st.world = setupWith(t, func(c *Config) {
		queue, err := zeebe.NewQueue("", cluster)
		if err != nil {
			t.Fatal(err)
		}
		if sender, err = zeebe.NewSender(zeebe.SenderConfig{Pool: c.Domain, Gateway: conn, Queue: queue}); err != nil {
			t.Fatal(err)
		}
		c.Sender = sender
		c.Undo = func(ctx context.Context, id, reason string) (worker.UndoResult, error) {
			return st.rt.Undo(ctx, id, reason)
		}
	})
	if _, err := conn.Deploy(st.ctx, zeebe.Resource{Name: "trip.bpmn", Content: tripModel}); err != nil {
		t.Fatal(err)
	}
	mux := worker.NewMux()
	st.s.Install(mux)
	st.steps(mux)
	w, err := worker.New(conn, st.domain, mux, worker.Config{MaxJobsActive: 32, Concurrency: 4, Stager: st.stager, Saga: st.s.Hook(), PurgeUnless: st.s.PurgeUnless()})
	if err != nil {
		t.Fatal(err)
	}
	st.rt = w.Runtime()
	ctx, cancel := context.WithCancel(st.ctx)
	var wg sync.WaitGroup
	for _, run := range []func(context.Context) error{w.Run, sender.Run, st.s.Run} {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); wg.Wait() })
	return st
}

func (st *stage) steps(mux *worker.Mux) {
	ask := func(_ context.Context, c worker.Call[bookingIn]) (roomHeld, error) {
		if !st.sup.has(c.Key) {
			return roomHeld{}, worker.ErrNotHappened
		}
		return roomHeld{Reservation: "R-" + c.In.Booking}, nil
	}
	mux.Handle("hotel.do", worker.External(worker.Remote[bookingIn, roomHeld, roomHeld]{
		Call: func(_ context.Context, c worker.Call[bookingIn]) (roomHeld, error) {
			if st.sup.refuses != nil {
				return roomHeld{}, st.sup.refuses()
			}
			st.sup.reserve(c.Key)
			return roomHeld{Reservation: "R-" + c.In.Booking}, nil
		},
		Resolve: ask,
	}, worker.KeyValidFor(time.Hour), worker.Orphan(worker.Undo), worker.Amount(func(bookingIn) (int64, string) { return 45000, "EUR" }),
		worker.CompensatedBy("hotel.cancel", worker.RemoteUndo[bookingIn, roomHeld]{
			Call: func(_ context.Context, _ string, u worker.UndoOf[bookingIn, roomHeld]) error {
				st.sup.cancel(u.OperationID)
				return nil
			},
		})))
	mux.Handle("payment.do", worker.Transactional(func(_ context.Context, _ *worker.Tx, job worker.Job[bookingIn]) (none, error) {
		if strings.HasPrefix(job.In.Booking, "broke") {
			return none{}, worker.BusinessError("DECLINED", "the card was declined")
		}
		if st.paying != nil {
			st.paying(job.SagaID)
		}
		st.paid.Store(job.OperationID, true)
		return none{}, nil
	}, worker.CompensatedByTx("payment.cancel", func(_ context.Context, _ *worker.Tx, u worker.UndoOf[bookingIn, none]) error {
		st.paid.Delete(u.OperationID)
		return nil
	})))
	mux.Handle("confirm.do", worker.Transactional(func(ctx context.Context, tx *worker.Tx, job worker.Job[none]) (none, error) {
		return none{}, st.s.Decide(ctx, tx, job.SagaID, Completed)
	}, worker.NotCompensable("the pivot"), worker.Pivot()))
}

// until waits for a saga to close and gives its final answer.
func (st *stage) until(id string) (Saga, map[string]any) {
	st.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for st.saga(id).ClosedAt == nil {
		select {
		case <-tick.C:
		case <-st.ctx.Done():
			d, _ := st.s.Show(context.Background(), id)
			st.Fatalf("saga is still %s, decided %q; ledger %+v", d.State, d.Decision, d.Steps)
		}
	}
	st.deliver(false)
	r, err := st.s.readOperation(st.ctx, id)
	if err != nil {
		st.Fatal(err)
	}
	return st.saga(id), reply{body: r.Final}.json(st)
}

func trips(booking string) string { return strings.Replace(goodTrip, "B-1", booking, 1) }

func TestModelCompletes(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := st.post(srv, "a", "k", trips("fine")).json(t)["operation_id"].(string)
	row, final := st.until(id)
	if row.State != "completed" || final["state"] != "completed" || !st.sup.has(id+":hotel") {
		t.Errorf("got %s, answer %v", row.State, final)
	}
}

func TestModelFailsAndIsUndone(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := st.post(srv, "a", "k", trips("broke")).json(t)["operation_id"].(string)
	row, final := st.until(id)
	if row.State != "failed" || row.Reason != "DECLINED" || st.sup.has(id+":hotel") || st.sup.undone[id+":hotel"] != 1 {
		t.Errorf("got %s because %s, supplier holds %v, undone %v", row.State, row.Reason, st.sup.held, st.sup.undone)
	}
	if diff := cmp.Diff([]any{"hotel"}, final["undone"]); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
}

// The deadline passes while a step is inside its transaction: the give-up waits for it, and both effects are
// undone, the younger first, before the operation is expired.
func TestModelExpiresDuringAStep(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := OperationID("agency", "trip", "slow", 1)
	inside, release := make(chan struct{}), make(chan struct{})
	st.paying = func(string) { close(inside); <-release }
	st.post(srv, "a", "slow", trips("slow"))
	<-inside
	st.advance(31 * time.Minute)
	st.eng.AdvanceClock(31 * time.Minute)
	<-st.waits(st.domain, "advisory")
	close(release)
	row, final := st.until(id)
	if row.State != "expired" || final["state"] != "expired" || final["reason"].(map[string]any)["code"] != "deadline" {
		t.Errorf("got %s, answer %v", row.State, final)
	}
	if diff := cmp.Diff([]any{"payment", "hotel"}, final["undone"]); diff != "" {
		t.Errorf("undone (-want +got):\n%s", diff)
	}
	if _, stands := st.paid.Load(id + ":payment"); stands || st.sup.has(id+":hotel") {
		t.Errorf("payment stands %v, rooms %v", stands, st.sup.held)
	}
}

// Rule 11: a call is on its way when the saga is cancelled. The undo revokes it, asks, and what lands after the
// revocation is undone too: in the end nothing stands at the supplier.
func TestRule11_CallLandsAfterTheCancel(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := OperationID("agency", "trip", "late", 1)
	called, land := make(chan struct{}), make(chan struct{})
	st.sup.before = func(key string) {
		if key == id+":hotel" {
			close(called)
			<-land
		}
	}
	undoing := make(chan struct{})
	defer hookOnce("undo.before", id+":hotel", func() { close(undoing) })()
	st.post(srv, "a", "late", trips("late"))
	<-called
	if r := st.do(srv, http.MethodPost, "/v1/operations/"+id+"/cancel", "a", ""); r.status != http.StatusAccepted {
		t.Fatalf("cancel: got %d %s", r.status, r.body)
	}
	select {
	case <-undoing:
	case <-st.ctx.Done():
		t.Fatal("the undo did not find the call in flight")
	}
	close(land)
	row, _ := st.until(id)
	if row.State != "failed" || row.Reason != "cancelled" {
		t.Errorf("got %s because %s, want failed because cancelled", row.State, row.Reason)
	}
	st.settled(func() bool { return !st.sup.has(id + ":hotel") }, "the room is still held")
	if n := st.sup.undone[id+":hotel"]; n != 1 {
		t.Errorf("undone %d times, want 1", n)
	}
}

// Rule 11: an undo that comes while its step is still inside its transaction waits for the truth, and undoes it.
func TestRule11_UndoWaitsForTheRunningStep(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := OperationID("agency", "trip", "slow", 1)
	inside, release := make(chan struct{}), make(chan struct{})
	st.paying = func(string) { close(inside); <-release }
	st.post(srv, "a", "slow", trips("slow"))
	<-inside
	type undone struct {
		res worker.UndoResult
		err error
	}
	done := make(chan undone, 1)
	go func() {
		res, err := st.rt.Undo(st.ctx, id+":payment", "test")
		done <- undone{res, err}
	}()
	var got undone
	select {
	case got = <-done:
		t.Errorf("the undo did not wait: %+v", got)
		close(release)
	case <-st.waits(st.domain, "advisory"):
		close(release)
		got = <-done
	}
	if got.err != nil || got.res.Nothing {
		t.Errorf("undo: got %+v, %v, want the effect undone", got.res, got.err)
	}
	st.until(id)
	if _, stands := st.paid.Load(id + ":payment"); stands {
		t.Error("the payment stands although it was undone")
	}
}

// Rule 11: an undo that comes before its step leaves it revoked: the step is answered SAGA_GIVEN_UP without effect.
func TestRule11_UndoBeforeTheStep(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := OperationID("agency", "trip", "early", 1)
	called, land := make(chan struct{}), make(chan struct{})
	st.sup.before = func(string) { close(called); <-land }
	st.post(srv, "a", "early", trips("early"))
	<-called
	if res, err := st.rt.Undo(st.ctx, id+":payment", "test"); err != nil || !res.Nothing {
		t.Errorf("undo of what did not begin: got %+v, %v, want nothing", res, err)
	}
	close(land)
	row, _ := st.until(id)
	if _, stands := st.paid.Load(id + ":payment"); stands || row.State != "failed" || st.sup.has(id+":hotel") {
		t.Errorf("got %s because %s, payment stands %v, rooms %v", row.State, row.Reason, stands, st.sup.held)
	}
}

// Rule 12: one undo per effect, however many ask for it: the model, the ledger and the runtime use one id.
func TestRule12_OneUndoPerEffect(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := st.post(srv, "a", "k", trips("fine")).json(t)["operation_id"].(string)
	st.until(id)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if res, err := st.rt.Undo(st.ctx, id+":hotel", "test"); err != nil || res.Outcome != "SUCCESS" {
				t.Errorf("undo: got %+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if st.sup.cancels != 1 || st.sup.has(id+":hotel") {
		t.Errorf("cancels called: %d, want 1; held %v", st.sup.cancels, st.sup.held)
	}
}

// Rule 15: the start message is published twice past the broker's protection; the second instance ends at its
// first task, and one room is reserved.
func TestRule15_SecondInstanceEnds(t *testing.T) {
	st := setupStage(t)
	srv := st.server(st.s)
	id := OperationID("agency", "trip", "twice", 1)
	held, release := make(chan struct{}), make(chan struct{})
	st.sup.before = func(key string) { close(held); <-release }
	st.post(srv, "a", "twice", trips("twice"))
	<-held
	first := st.saga(id).ProcessInstanceKey
	conn, err := zeebe.Dial(zeebe.Config{Address: st.eng.Addr(), Plaintext: true, Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	thrown := make(chan string, 8)
	defer st.eng.Intercept("ThrowError", func(ctx context.Context, req any, next func(context.Context) (any, error)) (any, error) {
		if r, ok := req.(interface{ GetErrorCode() string }); ok {
			thrown <- r.GetErrorCode()
		}
		return next(ctx)
	})()
	row := st.saga(id)
	// Past the protection of the correlation key: a broker that lost its state, say.
	_, err = conn.PublishMessage(st.ctx, zeebe.Message{Name: "saga.start.trip", CorrelationKey: "another", ID: "another", TTL: time.Minute, Variables: `{"sagaId":"` + id +
		`","businessKey":"` + row.BusinessKey + `","correlationId":"` + row.CorrelationID + `","traceparent":"` + row.Traceparent + `","tenant":"agency","timeout":"PT30M","booking":"twice"}`})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-thrown:
		if got != CodeNotMine {
			t.Errorf("second instance: got error %s, want %s", got, CodeNotMine)
		}
	case <-time.After(20 * time.Second):
		t.Error("the second instance does not end at its first task")
	}
	close(release)
	if row, _ := st.until(id); row.State != "completed" || row.ProcessInstanceKey != first || st.sup.reserved[id+":hotel"] != 1 {
		t.Errorf("got %s in instance %d, %v reservations; want completed in %d with one", row.State, row.ProcessInstanceKey, st.sup.reserved, first)
	}
}

// settled waits until a condition holds.
func (st *stage) settled(cond func() bool, what string) {
	st.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-st.ctx.Done():
			st.Fatal(what)
		}
	}
}
