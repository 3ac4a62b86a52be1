package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/zeebe"
)

// ActionRetry is the audit action of [Desk.RetryIncident].
const ActionRetry = "incident.retry"

// RetryRequest asks for a retry. Key, Actor and Reason must be set.
type RetryRequest struct {
	Key     Key
	Actor   string // who asks, at most 200 characters
	Reason  string // why, 1 to 500 characters
	Retries int32  // how often the job may fail before the next incident, 1 to 100; 0 = 1
}

func (r RetryRequest) check() (RetryRequest, error) {
	if r.Retries == 0 {
		r.Retries = 1
	}
	var errs []error
	if r.Key <= 0 {
		errs = append(errs, &FieldError{Field: "incident", Value: r.Key.String(), Want: "a key of the engine, digits only"})
	}
	if r.Retries < 1 || r.Retries > 100 {
		errs = append(errs, &FieldError{Field: "retries", Value: fmt.Sprint(r.Retries), Want: "1 to 100"})
	}
	return r, errors.Join(append(errs, checkText("actor", r.Actor, maxActor, "who acts"), checkText("reason", r.Reason, maxReason, "why"))...)
}

// RetryResult says what happened. Its JSON field names are stable.
type RetryResult struct {
	Key       Key       `json:"key"`
	AuditSeq  int64     `json:"audit_seq"`
	CommandID int64     `json:"command_id"`
	Retries   int32     `json:"retries"` // set on the job first; 0 = no job is behind the incident
	JobKey    Key       `json:"job_key"`
	At        time.Time `json:"at"`
	Happened  string    `json:"happened"`
}

// retryBefore and retryAfter are the audit's before and after.
type retryBefore struct {
	Cluster            string `json:"cluster"`
	ProcessInstanceKey Key    `json:"process_instance_key"`
	ElementID          string `json:"element_id"`
	JobKey             Key    `json:"job_key"`
	State              string `json:"state"`
	ErrorType          string `json:"error_type"`
	OperationID        string `json:"operation_id"`
}

type retryAfter struct {
	Command   string `json:"command"`
	CommandID int64  `json:"command_id"`
	Retries   int32  `json:"retries"`
	Replaces  int64  `json:"replaces,omitempty"` // a parked command that was dropped
}

// RetryIncident resolves an incident and, when a job is behind it, gives the job new retries first. The audit row, the
// mark that this incident was retried and the command to the engine commit together; a sender delivers the command,
// normally within seconds. It is refused when the incident is not active ([ErrNotActive]) and when it was retried before
// ([ErrRetried]), unless that command was parked: then the new one takes its place. A refusal is audited, unless the request is malformed; nothing else is written then.
// A cause that persists makes a new incident, with a new key.
func (d *Desk) RetryIncident(ctx context.Context, r RetryRequest) (RetryResult, error) {
	r, err := r.check()
	if err != nil {
		return RetryResult{}, fmt.Errorf("retry incident: %w", err)
	}
	row := AuditRow{Actor: r.Actor, Action: ActionRetry, Target: incidentTarget(d.cfg.Cluster, r.Key), Reason: r.Reason}
	i, err := d.Incident(ctx, r.Key)
	if err != nil {
		err = fmt.Errorf("retry: %w", err)
		if errors.Is(err, ErrNotFound) {
			err = d.RecordRefusal(ctx, row, err)
		}
		return RetryResult{}, err
	}
	if i.State != "ACTIVE" {
		return RetryResult{}, d.RecordRefusal(ctx, row, fmt.Errorf("retry incident %s: it is %s, want ACTIVE: %w", r.Key, i.State, ErrNotActive))
	}
	out, err := d.retry(ctx, r, i)
	if err != nil {
		err = fmt.Errorf("retry incident %s: %w", r.Key, err)
		if errors.Is(err, ErrRetried) {
			err = d.RecordRefusal(ctx, row, err)
		}
		return RetryResult{}, err
	}
	d.cfg.Log.Info().Str("action", ActionRetry).Str("actor", r.Actor).Int64("audit_seq", out.AuditSeq).Int64("process_instance_id", int64(i.ProcessInstanceKey)).
		Str("operation_id", i.OperationID).Str("business_key", i.BusinessKey).Msg("incident retry queued")
	return out, nil
}

func (d *Desk) retry(ctx context.Context, r RetryRequest, i Incident) (RetryResult, error) {
	tx, err := d.cfg.Pool.Begin(ctx)
	if err != nil {
		return RetryResult{}, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // no effect after commit
	seq, prev, at, err := d.lockAudit(ctx, tx)    // twins come one after another from here
	if err != nil {
		return RetryResult{}, err
	}
	replaces, err := d.mayRetry(ctx, tx, r.Key)
	if err != nil {
		return RetryResult{}, err
	}
	out := RetryResult{Key: r.Key, AuditSeq: seq + 1, JobKey: i.JobKey, At: at}
	cmd := zeebe.Command{
		Kind: zeebe.KindResolve, IncidentKey: int64(r.Key), JobKey: int64(i.JobKey), ProcessInstanceKey: int64(i.ProcessInstanceKey),
		ElementInstanceKey: int64(i.ElementInstanceKey), OperationID: i.OperationID,
	}
	out.Happened = fmt.Sprintf("queued: resolve incident %s", r.Key)
	if i.JobKey != 0 {
		cmd.Retries, out.Retries = r.Retries, r.Retries
		out.Happened = fmt.Sprintf("queued: set retries of job %s to %d, then resolve incident %s", i.JobKey, r.Retries, r.Key)
	}
	b := &pgx.Batch{}
	if replaces != 0 {
		d.queue.QueueDrop(b, replaces)
	}
	queued := d.queue.Queue(b, cmd)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return RetryResult{}, err
	}
	out.CommandID = queued.ID
	tag, err := tx.Exec(ctx, d.sql.insertRetry, d.cfg.Cluster, int64(r.Key), out.AuditSeq, out.CommandID, r.Actor, at, replaces)
	if err != nil {
		return RetryResult{}, fmt.Errorf("mark as retried: %w", err)
	}
	if tag.RowsAffected() != 1 {
		return RetryResult{}, fmt.Errorf("somebody else was faster: %w", ErrRetried)
	}
	row := AuditRow{Seq: out.AuditSeq, At: at, Actor: r.Actor, Action: ActionRetry, Target: incidentTarget(d.cfg.Cluster, r.Key), Reason: r.Reason}
	before := retryBefore{
		Cluster: d.cfg.Cluster, ProcessInstanceKey: i.ProcessInstanceKey, ElementID: i.ElementID, JobKey: i.JobKey,
		State: i.State, ErrorType: i.ErrorType, OperationID: i.OperationID,
	}
	if _, err := d.appendAudit(ctx, tx, row, prev, before, retryAfter{Command: string(zeebe.KindResolve), CommandID: out.CommandID, Retries: out.Retries, Replaces: replaces}, false); err != nil {
		return RetryResult{}, err
	}
	if err := tx.Commit(ctx); err != nil {
		return RetryResult{}, fmt.Errorf("commit; it may have been queued, look at the incident before trying again: %w", err)
	}
	return out, nil
}

// mayRetry refuses a second retry. It gives the parked command that this one replaces, 0 for none.
func (d *Desk) mayRetry(ctx context.Context, tx pgx.Tx, key Key) (replaces int64, err error) {
	var r Retry
	var command int64
	err = tx.QueryRow(ctx, d.sql.readRetry, d.cfg.Cluster, int64(key)).Scan(&r.AuditSeq, &r.Actor, &r.At, &command, &r.Command, &r.LastError)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return 0, err
	case r.Command != string(zeebe.StateParked):
		return 0, fmt.Errorf("by %s at %s, audit row %d, command %s: %w", r.Actor, r.At.UTC().Format(time.RFC3339), r.AuditSeq, deliveredOr(r.Command), ErrRetried)
	default:
		return command, nil
	}
	var pending int64
	if err := tx.QueryRow(ctx, d.sql.resolvePending, d.cfg.Cluster, int64(key)).Scan(&pending); err != nil {
		return 0, err
	}
	if pending > 0 {
		return 0, fmt.Errorf("a command that resolves it is on its way: %w", ErrRetried)
	}
	return 0, nil
}

func incidentTarget(cluster string, key Key) string {
	return "incident:" + cluster + ":" + key.String()
}
