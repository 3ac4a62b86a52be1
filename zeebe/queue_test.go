package zeebe_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/zeebe"
)

// engine answers every call with a code and remembers it.
type engine struct {
	mu    sync.Mutex
	code  zeebe.ErrorCode
	text  string
	calls []string
}

func (e *engine) did(format string, args ...any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
	if e.code == zeebe.OK || e.code == "" {
		return nil
	}
	return &zeebe.Error{Call: "test", Code: e.code, Detail: "says the test " + e.text}
}

func (e *engine) answer(c zeebe.ErrorCode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.code = c
}

func (e *engine) say(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text = text
}

func (e *engine) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.calls, "\n")
}

func (e *engine) Complete(_ context.Context, k int64, v string) error {
	return e.did("complete %d %s", k, v)
}
func (e *engine) Fail(_ context.Context, r zeebe.FailRequest) error {
	return e.did("fail %d %d %s", r.JobKey, r.Retries, r.Message)
}
func (e *engine) Throw(_ context.Context, k int64, code, _, _ string) error {
	return e.did("throw %d %s", k, code)
}
func (e *engine) PublishMessage(_ context.Context, m zeebe.Message) (int64, error) {
	return 0, e.did("publish %s %s %s %s", m.Name, m.CorrelationKey, m.ID, m.TTL)
}
func (e *engine) CancelInstance(_ context.Context, k int64) error { return e.did("cancel %d", k) }
func (e *engine) UpdateJobRetries(_ context.Context, k int64, n int32) error {
	return e.did("retries %d %d", k, n)
}
func (e *engine) ResolveIncident(_ context.Context, k int64) error { return e.did("resolve %d", k) }
func (e *engine) SetVariables(_ context.Context, k int64, v string, l bool) error {
	return e.did("set %d %s %v", k, v, l)
}

type desk struct {
	t    *testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	q    *zeebe.Queue
	s    *zeebe.Sender
	e    *engine
	done []zeebe.Queued
}

func newDesk(t *testing.T, cluster string) *desk {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	d := &desk{t: t, ctx: ctx, pool: pgtest.Pool(t), e: &engine{}}
	if err := zeebe.Migrate(ctx, d.pool, ""); err != nil {
		t.Fatal(err)
	}
	d.with(cluster)
	return d
}

func (d *desk) with(cluster string) {
	d.t.Helper()
	var err error
	if d.q, err = zeebe.NewQueue("", cluster); err != nil {
		d.t.Fatal(err)
	}
	d.s, err = zeebe.NewSender(zeebe.SenderConfig{Pool: d.pool, Gateway: d.e, Queue: d.q, Acked: func(_ *pgx.Batch, a []zeebe.Queued) { d.done = append(d.done, a...) }})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) put(c zeebe.Command) *zeebe.Queued {
	d.t.Helper()
	b := &pgx.Batch{}
	q := d.q.Queue(b, c)
	if err := d.pool.SendBatch(d.ctx, b).Close(); err != nil {
		d.t.Fatal(err)
	}
	return q
}

// sweep passes the grace of the fast path by moving the clock, sweeps once and writes down.
func (d *desk) sweep(after time.Duration) {
	d.t.Helper()
	if err := postgres.AdvanceClock(d.ctx, d.pool, "journeyman", after); err != nil {
		d.t.Fatal(err)
	}
	if err := d.s.Sweep(d.ctx); err != nil {
		d.t.Fatal(err)
	}
	if err := d.s.Flush(d.ctx); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) rows() []zeebe.Row {
	d.t.Helper()
	r, err := d.q.List(d.ctx, d.pool, "", "", 0, 100)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func TestSender_everyKind(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	for _, c := range []zeebe.Command{
		{Kind: zeebe.KindComplete, JobKey: 1, Variables: `{"n":1}`},
		{Kind: zeebe.KindFail, JobKey: 2, Message: "incident"},
		{Kind: zeebe.KindThrow, JobKey: 3, Code: "SOLD_OUT", OperationID: "op-3"},
		{Kind: zeebe.KindPublish, Name: "saga.start.tour", CorrelationKey: "s", MessageID: "s", TTL: time.Hour},
		{Kind: zeebe.KindCancel, ProcessInstanceKey: 5},
		{Kind: zeebe.KindResolve, IncidentKey: 6, JobKey: 7, Retries: 3},
		{Kind: zeebe.KindSetVariables, ElementInstanceKey: 8, Variables: `{}`, Local: true},
	} {
		q := d.put(c)
		if err := d.s.Send(d.ctx, q); err != nil {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
	want := "complete 1 {\"n\":1}\nfail 2 0 incident\nthrow 3 SOLD_OUT\npublish saga.start.tour s s 1h0m0s\ncancel 5\nretries 7 3\nresolve 6\nset 8 {} true"
	if got := d.e.all(); got != want {
		t.Errorf("told the engine\n%s\nwant\n%s", got, want)
	}
	if n := len(d.rows()); n != 7 {
		t.Errorf("%d rows before the acknowledgements are written down, want 7", n)
	}
	if err := d.s.Flush(d.ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(d.rows()); n != 0 || len(d.done) != 7 {
		t.Errorf("%d rows left, %d acknowledged", n, len(d.done))
	}
}

// TestSender_answers is what each answer of the engine does to a row (path rules 6, 14, 15).
func TestRule06_whatAnAnswerDoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind  zeebe.Kind
		code  zeebe.ErrorCode
		state zeebe.State // "" = the row is gone
	}{
		{zeebe.KindComplete, zeebe.NotFound, zeebe.StateGone},
		{zeebe.KindThrow, zeebe.NotFound, zeebe.StateGone},
		{zeebe.KindComplete, zeebe.FailedPrecondition, zeebe.StatePending},
		{zeebe.KindComplete, zeebe.InvalidArgument, zeebe.StateParked},
		{zeebe.KindComplete, zeebe.ResourceExhausted, zeebe.StatePending},
		{zeebe.KindComplete, zeebe.Unavailable, zeebe.StatePending},
		{zeebe.KindPublish, zeebe.AlreadyExists, ""},
		{zeebe.KindCancel, zeebe.NotFound, ""},
		{zeebe.KindResolve, zeebe.NotFound, ""},
		{zeebe.KindSetVariables, zeebe.NotFound, zeebe.StateParked},
	} {
		t.Run(string(tt.kind)+" "+string(tt.code), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, "a")
			d.e.answer(tt.code)
			_ = d.s.Send(d.ctx, d.put(zeebe.Command{Kind: tt.kind, JobKey: 1, IncidentKey: 1}))
			if err := d.s.Flush(d.ctx); err != nil {
				t.Fatal(err)
			}
			rows := d.rows()
			switch {
			case tt.state == "" && len(rows) != 0:
				t.Errorf("row stayed: %+v", rows)
			case tt.state != "" && (len(rows) != 1 || rows[0].State != tt.state):
				t.Errorf("rows %+v, want one that is %s", rows, tt.state)
			case tt.state != "" && rows[0].LastCode != tt.code:
				t.Errorf("last code %s", rows[0].LastCode)
			}
			if tt.state != zeebe.StatePending {
				return
			}
			d.e.answer(zeebe.OK) // later
			d.sweep(time.Hour)
			if rows := d.rows(); len(rows) != 0 {
				t.Errorf("not sent again: %+v", rows)
			}
		})
	}
}

// TestSweep leaves fresh rows to the fast path, and takes what a dead process left within seconds.
func TestSweep_grace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	d.put(zeebe.Command{Kind: zeebe.KindComplete, JobKey: 1})
	d.sweep(0)
	if got := d.e.all(); got != "" {
		t.Errorf("swept a fresh row: %s", got)
	}
	d.sweep(3 * time.Second)
	if got := d.e.all(); got != "complete 1 " {
		t.Errorf("told the engine %q", got)
	}
	if n := len(d.rows()); n != 0 {
		t.Errorf("%d rows left", n)
	}
}

// TestRule09: after a rebuild a pending answer of the old cluster must not complete a stranger's job, whose key is the same.
func TestRule09_rowsNameTheirCluster(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "old")
	q := d.put(zeebe.Command{Kind: zeebe.KindComplete, JobKey: 2251799813685249})
	d.with("new")
	d.sweep(time.Minute)
	if err := d.s.Send(d.ctx, q); err == nil {
		t.Error("the new cluster's sender sent the old cluster's answer")
	}
	if got := d.e.all(); got != "" {
		t.Errorf("told the new cluster %q", got)
	}
}

// TestQueue_replaces: a newer answer for the same job takes the place of one that is being sent; the acknowledgement of the old
// one does not delete it.
func TestQueue_replacesAnUndeliveredAnswer(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	old := d.put(zeebe.Command{Kind: zeebe.KindFail, JobKey: 1, Message: "old"})
	if err := d.s.Send(d.ctx, old); err != nil {
		t.Fatal(err)
	}
	fresh := d.put(zeebe.Command{Kind: zeebe.KindComplete, JobKey: 1})
	if old.ID != fresh.ID || fresh.Rev != old.Rev+1 {
		t.Errorf("ids %d %d, revisions %d %d", old.ID, fresh.ID, old.Rev, fresh.Rev)
	}
	if err := d.s.Flush(d.ctx); err != nil {
		t.Fatal(err)
	}
	if rows := d.rows(); len(rows) != 1 || rows[0].Kind != zeebe.KindComplete {
		t.Errorf("rows %+v, want the newer answer", rows)
	}
	c, err := d.q.Counts(d.ctx, d.pool)
	if err != nil || c.Pending != 1 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

// TestRule05_replyLost: the reply of a recorded refusal or failure was lost. The job stands on it already; sent again after a
// person resolved the incident, it would hit the job a second time.
func TestRule05_replyOfAFailureLost(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		c      zeebe.Command
		detail string
		rows   int
	}{
		{zeebe.Command{Kind: zeebe.KindThrow, JobKey: 1}, "but it is in state 'ERROR_THROWN'", 0},
		{zeebe.Command{Kind: zeebe.KindFail, JobKey: 1}, "but it is in state 'FAILED'", 0},
		{zeebe.Command{Kind: zeebe.KindComplete, JobKey: 1}, "but it is in state 'FAILED'", 1},
	} {
		d := newDesk(t, "a")
		d.e.answer(zeebe.Unavailable)
		_ = d.s.Send(d.ctx, d.put(tt.c))
		if err := d.s.Flush(d.ctx); err != nil {
			t.Fatal(err)
		}
		d.e.answer(zeebe.FailedPrecondition)
		d.e.say(tt.detail)
		d.sweep(time.Minute)
		if rows := d.rows(); len(rows) != tt.rows {
			t.Errorf("%s: %d rows left, want %d", tt.c.Kind, len(rows), tt.rows)
		}
	}
}

// TestSender_Run ends with its context and writes down what was acknowledged.
func TestSender_Run(t *testing.T) {
	t.Parallel()
	d := newDesk(t, "a")
	ctx, cancel := context.WithCancel(d.ctx)
	done := make(chan error, 1)
	go func() { done <- d.s.Run(ctx) }()
	for i := range 20 {
		if err := d.s.Send(d.ctx, d.put(zeebe.Command{Kind: zeebe.KindComplete, JobKey: int64(i + 1)})); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := len(d.rows()); n != 0 {
		t.Errorf("%d acknowledged rows left", n)
	}
}

// TestQueue_answers: answers queued together are the rows that answers queued alone would be, and replace what was not delivered.
func TestQueue_answers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pool := pgtest.Pool(t)
	if err := zeebe.Migrate(ctx, pool, ""); err != nil {
		t.Fatal(err)
	}
	q, err := zeebe.NewQueue("", "blue")
	if err != nil {
		t.Fatal(err)
	}
	cmds := func(base int64) []zeebe.Command {
		return []zeebe.Command{
			{Kind: zeebe.KindComplete, JobKey: base + 1, ElementInstanceKey: 5, ProcessInstanceKey: 6, OperationID: "a", Variables: `{"a":1}`},
			{Kind: zeebe.KindThrow, JobKey: base + 2, OperationID: "b", Code: "SOLD_OUT", Message: "none", Variables: `{}`},
			{Kind: zeebe.KindFail, JobKey: base + 3, OperationID: "c", Message: "boom"},
		}
	}
	b := &pgx.Batch{}
	for _, c := range cmds(100) {
		q.Queue(b, c)
	}
	first := q.QueueAnswers(b, cmds(200)[2:])
	many := q.QueueAnswers(b, cmds(200))
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	if many[2].ID != first[0].ID || many[2].Rev != first[0].Rev+1 || many[0].ID == 0 || many[0].ID == many[1].ID {
		t.Errorf("queued %+v after %+v", many, first[0])
	}
	var differ int
	const same = `SELECT count(*) FROM journeyman.zeebe_command a JOIN journeyman.zeebe_command m ON m.job_key = a.job_key + 100
		WHERE a.job_key < 200 AND to_jsonb(a) - '{id,rev,job_key,created_at,changed_at,next_at}'::text[] = to_jsonb(m) - '{id,rev,job_key,created_at,changed_at,next_at}'::text[]`
	if err := pool.QueryRow(ctx, same).Scan(&differ); err != nil || differ != 3 {
		t.Errorf("%d rows of 3 are the same, %v", differ, err)
	}
}
