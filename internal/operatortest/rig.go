// Package operatortest sets the scene for tests of the operator's parts: a database with all tables, an embedded engine
// that runs the tour booking, and a desk over both.
package operatortest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/engine"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// Schema is where the tables are: not the default, so that a statement that forgets to name it fails.
const Schema = "jm_test"

// Rig is a database, and with [New] an engine beside it.
type Rig struct {
	t      testing.TB
	Pool   *pgxpool.Pool
	Desk   *operator.Desk
	Engine *engine.Engine // nil after [NewDatabase]
	Conn   *zeebe.Conn
	REST   string
}

// NewDatabase makes a migrated database and a desk that has no engine.
func NewDatabase(t testing.TB) *Rig {
	t.Helper()
	r := &Rig{t: t, Pool: pgtest.Pool(t)}
	ctx := context.Background()
	for name, migrate := range map[string]func() error{
		"zeebe":    func() error { return zeebe.Migrate(ctx, r.Pool, Schema) },
		"dedup":    func() error { return dedup.Migrate(ctx, r.Pool, Schema) },
		"outbox":   func() error { return outbox.Migrate(ctx, r.Pool, Schema) },
		"sagas":    func() error { return sagas.Migrate(ctx, r.Pool, Schema) },
		"operator": func() error { return operator.Migrate(ctx, r.Pool, Schema) },
	} {
		if err := migrate(); err != nil {
			t.Fatalf("migrate %s: %v", name, err)
		}
	}
	r.Run(`CREATE TABLE {{schema}}.event_log_all PARTITION OF {{schema}}.event_log DEFAULT`)
	r.Desk = r.NewDesk(operator.Config{})
	return r
}

// New makes a database and an engine with the tour booking deployed.
func New(t testing.TB) *Rig {
	t.Helper()
	r := NewDatabase(t)
	e, err := engine.Start(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := zeebe.Dial(zeebe.Config{Address: e.Addr(), Plaintext: true})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := conn.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
		if err := e.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
	})
	r.Engine, r.Conn, r.REST = e, conn, "http://"+e.RESTAddr()
	xml, err := models.Read(models.TourBooking)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Deploy(t.Context(), zeebe.Resource{Name: models.TourBooking, Content: xml}); err != nil {
		t.Fatal(err)
	}
	client, err := rest.New(rest.Config{Base: r.REST, HTTP: &http.Client{Transport: transport, Timeout: 10 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	r.Desk = r.NewDesk(operator.Config{Engine: client})
	return r
}

// NewDesk makes another desk over the rig's database.
func (r *Rig) NewDesk(cfg operator.Config) *operator.Desk {
	r.t.Helper()
	cfg.Pool, cfg.Schema = r.Pool, Schema
	d, err := operator.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// Run executes statements with {{schema}} replaced.
func (r *Rig) Run(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.Pool.Exec(context.Background(), strings.ReplaceAll(sql, "{{schema}}", Schema), args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// Saga inserts a saga that started ago; state and decision as given ("" = undecided).
func (r *Rig) Saga(id, state, decision, ago string) {
	r.t.Helper()
	r.Run(`INSERT INTO {{schema}}.saga (id, tenant, type, key, attempt, business_key, correlation_id, traceparent, actor, variables, cluster,
			process_instance_key, decision, reason, state, started_at, deadline, begun_at, decided_at, closed_at)
		VALUES ($1, 'acme', 'tour-booking', 'K-' || $1, 1, 'acme:' || $1, 'corr', '00-0123456789abcdef0123456789abcdef-0123456789abcdef-01',
			'{"serviceClient":"acme"}', '{"booking":{},"secretToken":"s3cr3t"}', 'default', 2251799813685249,
			nullif($3, ''), CASE WHEN $3 NOT IN ('', 'completed') THEN 'SOLD_OUT' ELSE '' END, $2,
			{{schema}}.now() - $4::interval, {{schema}}.now() - $4::interval + interval '30 min',
			CASE WHEN $2 <> 'starting' THEN {{schema}}.now() - $4::interval END, CASE WHEN $3 <> '' THEN {{schema}}.now() - $4::interval END,
			CASE WHEN $2 IN ('completed', 'failed', 'expired') THEN {{schema}}.now() END)`, id, state, decision, ago)
}

// Step inserts a ledger row; name is "<element>" or "<element>:<iteration>". amount is JSON, "" = none.
func (r *Rig) Step(sagaID, name, class, undo, amount string, order int) {
	r.t.Helper()
	r.Run(`INSERT INTO {{schema}}.saga_step (operation_id, saga_id, name, job_type, element_id, class, undo_type, policy, amount, commit_order, committed_at, undo_state, undo_at)
		VALUES ($1 || ':' || $2, $1, $2, split_part($2, ':', 1) || '.do', split_part($2, ':', 1), $3, split_part($2, ':', 1) || '.undo', 'undo', nullif($5, '')::jsonb, $6, {{schema}}.now(), $4,
			CASE WHEN $4 NOT IN ('none', 'open') THEN {{schema}}.now() END)`, sagaID, name, class, undo, amount, order)
}

// Operation inserts a row of the table of operations and sets more columns ("a = 1, b = 2", "" = none).
func (r *Rig) Operation(id, sagaID, set string) {
	r.t.Helper()
	r.Run(`INSERT INTO {{schema}}.operation (operation_id, saga_id, job_type, cluster, business_key, created_at, state)
		VALUES ($1, $2, 'job.type', 'default', 'acme:' || $2, {{schema}}.now(), 'done')`, id, sagaID)
	if set != "" {
		r.Run(`UPDATE {{schema}}.operation SET `+set+` WHERE operation_id = $1`, id)
	}
}

// Booking starts the process of a saga that [Rig.Saga] inserted, answers saga.begin and binds the saga to the process instance.
func (r *Rig) Booking(sagaID string) operator.Key {
	r.t.Helper()
	variables := fmt.Sprintf(`{"sagaId":%[1]q,"operationId":%[1]q,"businessKey":"acme:%[1]s","correlationId":"corr","traceparent":"","tenant":"acme","timeout":"PT30M",
		"actor":{},"httpIdempotencyKey":"K","booking":"B-1","travellers":2,"segments":[{"id":"flight","kind":"flight","offer":"FL-100"},{"id":"hotel","kind":"hotel","offer":"HT-200","nights":3},
		{"id":"transfer","kind":"transfer","offer":"TR-300"}],"payment":{"token":"tok_1","amount":125000,"currency":"EUR"},"stepTimeout":"PT10M"}`, sagaID)
	if _, err := r.Conn.PublishMessage(r.t.Context(), zeebe.Message{
		Name: models.MessageStartTourBooking, CorrelationKey: sagaID, ID: sagaID, TTL: time.Hour, Variables: variables,
	}); err != nil {
		r.t.Fatal(err)
	}
	begin := r.Job(models.JobSagaBegin)
	r.Complete(begin, "")
	r.Run(`UPDATE {{schema}}.saga SET process_instance_key = $2 WHERE id = $1`, sagaID, begin.ProcessInstanceKey)
	return operator.Key(begin.ProcessInstanceKey)
}

// Job activates the one job of a type, waiting for it.
func (r *Rig) Job(jobType string) zeebe.Job {
	r.t.Helper()
	jobs, err := r.Conn.Activate(r.t.Context(), zeebe.ActivateRequest{Type: jobType, Worker: "rig", MaxJobs: 1, Timeout: time.Minute, Wait: 5 * time.Second})
	if err != nil || len(jobs) != 1 {
		r.t.Fatalf("activate %s: %d jobs, %v; want one", jobType, len(jobs), err)
	}
	return jobs[0]
}

// Complete completes a job.
func (r *Rig) Complete(job zeebe.Job, variables string) {
	r.t.Helper()
	if err := r.Conn.Complete(r.t.Context(), job.Key, variables); err != nil {
		r.t.Fatal(err)
	}
}

// Incident fails the one job of a type for good and gives the incident that comes of it.
func (r *Rig) Incident(jobType, message string) (zeebe.Job, operator.Incident) {
	r.t.Helper()
	job := r.Job(jobType)
	if err := r.Conn.Fail(r.t.Context(), zeebe.FailRequest{JobKey: job.Key, Message: message}); err != nil {
		r.t.Fatal(err)
	}
	list, err := r.Desk.Incidents(r.t.Context(), operator.IncidentFilter{ProcessInstanceKey: operator.Key(job.ProcessInstanceKey)})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, i := range list.Incidents {
		if i.JobKey == operator.Key(job.Key) {
			return job, i
		}
	}
	r.t.Fatalf("no incident of job %d: %+v", job.Key, list)
	return job, operator.Incident{}
}

// Deliver sends what is queued for the engine, whatever its due time.
func (r *Rig) Deliver() {
	r.t.Helper()
	r.Run(`UPDATE {{schema}}.zeebe_command SET next_at = {{schema}}.now() WHERE state = 'pending'`)
	queue, err := zeebe.NewQueue(Schema, "")
	if err != nil {
		r.t.Fatal(err)
	}
	sender, err := zeebe.NewSender(zeebe.SenderConfig{Pool: r.Pool, Gateway: r.Conn, Queue: queue})
	if err != nil {
		r.t.Fatal(err)
	}
	ctx := r.t.Context()
	if err := sender.Sweep(ctx); err != nil {
		r.t.Fatal(err)
	}
	if err := sender.Flush(ctx); err != nil {
		r.t.Fatal(err)
	}
}
