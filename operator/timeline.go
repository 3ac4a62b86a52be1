package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

// Moment is one thing that happened to a saga.
type Moment struct {
	At          time.Time `json:"at"`
	Source      string    `json:"source"` // saga, operation, ledger, event, command, engine, operator
	What        string    `json:"what"`
	Step        string    `json:"step"`         // element id or step name, "" for the saga as a whole
	OperationID string    `json:"operation_id"` // "" when none is meant
	Detail      string    `json:"detail"`
	Level       string    `json:"level"` // "", "warn" (somebody refused, something waits) or "bad" (a person is needed)
}

// levels of a Moment.
const (
	levelWarn = "warn"
	levelBad  = "bad"
)

// timeline puts what saga row, operations, ledger, event log, command queue, engine and audit know on one axis, oldest first.
func (d *Desk) timeline(ctx context.Context, s *Saga) ([]Moment, error) {
	all := sagaMoments(s.SagaRow)
	archived, err := d.archivedMoments(ctx, s)
	if err != nil {
		return nil, err
	}
	all = append(all, archived...)
	for _, part := range []func(context.Context, Saga) ([]Moment, error){d.operationMoments, d.eventMoments, d.commandMoments, d.auditMoments} {
		some, err := part(ctx, *s)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	for _, step := range s.Steps {
		all = append(all, ledgerMoments(step)...)
	}
	for _, e := range s.Elements {
		all = append(all, elementMoments(e)...)
	}
	slices.SortStableFunc(all, func(a, b Moment) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return cmp.Compare(a.Source, b.Source)
	})
	return all, nil
}

func sagaMoments(s SagaRow) []Moment {
	all := []Moment{{At: s.StartedAt, Source: "saga", What: "accepted", Detail: "deadline " + s.Deadline.UTC().Format(time.RFC3339)}}
	if s.BegunAt != nil {
		all = append(all, Moment{At: *s.BegunAt, Source: "saga", What: "begun", Detail: "process instance " + s.ProcessInstanceKey.String()})
	}
	if s.DecidedAt != nil {
		m := Moment{At: *s.DecidedAt, Source: "saga", What: "decided " + s.Decision, Detail: s.Reason}
		if s.Decision != "completed" {
			m.Level = levelWarn
		}
		all = append(all, m)
	}
	if s.ClosedAt != nil {
		all = append(all, Moment{At: *s.ClosedAt, Source: "saga", What: "closed " + s.State, Detail: s.Reason})
	}
	return all
}

func ledgerMoments(s Step) []Moment {
	if s.UndoAt == nil {
		return nil
	}
	m := Moment{At: *s.UndoAt, Source: "ledger", What: "undo " + s.UndoState, Step: s.Name, OperationID: s.OperationID, Detail: s.UndoError}
	switch s.UndoState {
	case "stuck", "parked":
		m.Level = levelBad
	case "running":
		m.Level = levelWarn
	}
	return []Moment{m}
}

// operationMoments tells when each operation of the saga was claimed, called, settled and answered.
func (d *Desk) operationMoments(ctx context.Context, s Saga) ([]Moment, error) {
	ops, err := listOperations(ctx, d.cfg.Pool, d.sql.sagaOperations, s.ID)
	if err != nil {
		return nil, err
	}
	var all []Moment
	for _, o := range ops {
		step := strings.TrimPrefix(strings.TrimPrefix(o.OperationID, s.ID), ":")
		add := func(at *time.Time, what, detail, level string) {
			if at != nil {
				all = append(all, Moment{At: *at, Source: "operation", What: what, Step: step, OperationID: o.OperationID, Detail: detail, Level: level})
			}
		}
		add(&o.CreatedAt, "claimed "+o.JobType, "", "")
		add(o.CalledAt, "called the other system", "", "")
		level := ""
		switch {
		case o.Class == "FATAL_ERROR":
			level = levelBad
		case o.Class != "SUCCESS":
			level = levelWarn
		}
		if o.State == "revoked" && o.Class == "" {
			add(o.SettledAt, "revoked", "its undo came first", levelWarn)
		} else {
			add(o.SettledAt, strings.TrimSpace(o.Class+" "+o.Code), joined(o.Reason, o.Message, attempts(o.Attempts)), level)
		}
		add(o.AnsweredAt, "answer acknowledged", "", "")
		add(o.RetriedAt, "run again after an operator's retry", "", "")
		add(o.UndoneAt, "effect undone", "", "")
		add(o.AsksOverAt, "asked no more", fmt.Sprintf("the other system said %d times more that it had not seen the call; that it lands cannot be ruled out", o.Asked), levelWarn)
		if o.Orphan != "" {
			level := levelBad
			if o.Orphan == "undone" {
				level = levelWarn
			}
			add(o.OrphanedAt, "orphan "+o.Orphan, "its element was terminated before the answer came", level)
		}
	}
	return all, nil
}

func attempts(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("%d attempts", n)
}

func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// eventMoments tells which events the saga's operations published or have staged; never their bodies.
func (d *Desk) eventMoments(ctx context.Context, s Saga) ([]Moment, error) {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.sagaEvents, s.BusinessKey, events.Shard(s.BusinessKey), s.ID, s.StartedAt, s.ClosedAt)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Moment, error) {
		m := Moment{Source: "event"}
		var typ, where, id string
		var version int
		var seq int64
		err := row.Scan(&m.At, &typ, &version, &seq, &m.OperationID, &id, &where)
		m.What = fmt.Sprintf("%s.v%d", typ, version)
		m.Step = strings.TrimPrefix(strings.TrimPrefix(m.OperationID, s.ID), ":")
		m.Detail = fmt.Sprintf("%s, sequence %d, event %s", where, seq, id)
		if where == "parked" {
			m.Level = levelBad
		}
		return m, err
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	return out, nil
}

// commandMoments tells what the engine has not acknowledged yet.
func (d *Desk) commandMoments(ctx context.Context, s Saga) ([]Moment, error) {
	cmds, err := listCommands(ctx, d.cfg.Pool, d.sql.sagaCommands, d.cfg.Cluster, s.ID)
	if err != nil {
		return nil, err
	}
	var all []Moment
	for _, c := range cmds {
		m := Moment{
			At: c.CreatedAt, Source: "command", What: c.Kind + " " + c.State, OperationID: c.OperationID,
			Step:   strings.TrimPrefix(strings.TrimPrefix(c.OperationID, s.ID), ":"),
			Detail: joined(c.Reason, c.LastCode, c.LastError, attempts(c.Attempts)), Level: levelWarn,
		}
		if c.State != "pending" {
			m.Level = levelBad
		}
		all = append(all, m)
	}
	return all, nil
}

// auditMoments tells what people did to the saga, to its operations and to incidents of its process instance.
func (d *Desk) auditMoments(ctx context.Context, s Saga) ([]Moment, error) {
	rows, err := d.cfg.Pool.Query(ctx, d.sql.sagaAudit, s.Cluster, s.ProcessInstanceKey.String(), s.ID)
	if err != nil {
		return nil, fmt.Errorf("list audit of saga: %w", err)
	}
	out, err := pgx.CollectRows(rows, scanAudit)
	if err != nil {
		return nil, fmt.Errorf("list audit of saga: %w", err)
	}
	var all []Moment
	for _, r := range out {
		all = append(all, Moment{At: r.At, Source: "operator", What: r.Action + " by " + r.Actor, Detail: joined(r.Reason, r.Target), Level: levelWarn})
	}
	return all, nil
}
