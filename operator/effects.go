package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Effects says what hangs in the air: answers that the engine has not taken, results nobody knows, effects to be undone.
// Its JSON field names are stable. Lists are oldest first and cut at the limit; counts are whole.
type Effects struct {
	At     time.Time    `json:"at"` // of the database
	Counts EffectCounts `json:"counts"`
	AtRisk []Risk       `json:"amount_at_risk"` // by currency

	AnswersPending []Command   `json:"answers_pending"`
	AnswersGone    []Command   `json:"answers_gone"` // the engine knew no such job: unproved, not undone (path rule 14)
	AnswersParked  []Command   `json:"answers_parked"`
	OtherCommands  []Command   `json:"other_commands"` // starts, cancels, resolves that were not acknowledged
	Unknown        []Operation `json:"unknown_results"`
	Orphans        []Operation `json:"orphans"`    // proved and open, and parked
	Revoked        []Operation `json:"revoked"`    // newest first
	Asked          []Operation `json:"late_asked"` // calls that were not seen: it is asked again whether they landed late
	AsksOver       []Operation `json:"late_open"`  // the same, asked no more and not dismissed: that they land cannot be ruled out
	UndoRunning    []Step      `json:"undo_running"`
	UndoStuck      []Step      `json:"undo_stuck"`
	UndoParked     []Step      `json:"undo_parked"` // left to a person
}

// EffectCounts counts what [Effects] lists, and what has been settled.
type EffectCounts struct {
	AnswersPending      int64         `json:"answers_pending"`
	OldestAnswer        time.Duration `json:"-"`
	OldestAnswerSeconds float64       `json:"oldest_answer_seconds"`
	AnswersGone         int64         `json:"answers_gone"`
	AnswersParked       int64         `json:"answers_parked"`
	OtherCommands       int64         `json:"other_commands"`
	OtherCommandsParked int64         `json:"other_commands_parked"`
	UnknownResults      int64         `json:"unknown_results"`
	OrphansProved       int64         `json:"orphans_proved"` // open: to be undone by the runtime
	OrphansUndone       int64         `json:"orphans_undone"`
	OrphansParked       int64         `json:"orphans_parked"`
	Revoked             int64         `json:"revoked"`        // undo came before they did anything
	EffectsUndone       int64         `json:"effects_undone"` // for the time that operations are kept
	LateAsked           int64         `json:"late_asked"`
	LateOpen            int64         `json:"late_open"`
	UndoRunning         int64         `json:"undo_running"`
	UndoStuck           int64         `json:"undo_stuck"`
	UndoParked          int64         `json:"undo_parked"`
}

// NeedsPerson says that something waits for a person: parked or stuck work.
func (c EffectCounts) NeedsPerson() bool {
	return c.AnswersParked+c.OtherCommandsParked+c.OrphansParked+c.UndoStuck+c.UndoParked > 0
}

// Risk is the sum of effects that stand although their saga gave up.
type Risk struct {
	Money
	Effects int64 `json:"effects"` // how many; those without a known amount have currency ""
}

// Effects reads the whole picture in one snapshot. limit bounds each list, 1 to 1000; 0 = 50.
func (d *Desk) Effects(ctx context.Context, limit int) (Effects, error) {
	var e Effects
	if limit == 0 {
		limit = 50
	}
	if limit < 1 || limit > 1000 {
		return e, &FieldError{Field: "limit", Value: fmt.Sprint(limit), Want: "1 to 1000"}
	}
	tx, err := d.cfg.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return e, fmt.Errorf("effects: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	if err := d.readEffects(ctx, tx, limit, &e); err != nil {
		return e, fmt.Errorf("effects: %w", err)
	}
	return e, nil
}

func (d *Desk) readEffects(ctx context.Context, tx pgx.Tx, limit int, e *Effects) error {
	c := &e.Counts
	err := tx.QueryRow(ctx, d.sql.countEffects, d.cfg.Cluster).Scan(&e.At, &c.AnswersPending, &c.OldestAnswerSeconds, &c.AnswersGone, &c.AnswersParked,
		&c.OtherCommands, &c.OtherCommandsParked, &c.UnknownResults, &c.OrphansProved, &c.OrphansUndone, &c.OrphansParked, &c.Revoked, &c.EffectsUndone,
		&c.LateAsked, &c.LateOpen,
		&c.UndoRunning, &c.UndoStuck, &c.UndoParked)
	if err != nil {
		return err
	}
	c.OldestAnswer = time.Duration(c.OldestAnswerSeconds * float64(time.Second))
	var errs [12]error
	e.AnswersPending, errs[0] = listCommands(ctx, tx, d.sql.listCommands, d.cfg.Cluster, true, "pending", limit)
	e.AnswersGone, errs[1] = listCommands(ctx, tx, d.sql.listCommands, d.cfg.Cluster, true, "gone", limit)
	e.AnswersParked, errs[2] = listCommands(ctx, tx, d.sql.listCommands, d.cfg.Cluster, true, "parked", limit)
	e.OtherCommands, errs[3] = listCommands(ctx, tx, d.sql.listCommands, d.cfg.Cluster, false, "", limit)
	e.Unknown, errs[4] = listOperations(ctx, tx, d.sql.unknown, limit)
	e.Orphans, errs[5] = listOperations(ctx, tx, d.sql.orphans, limit)
	e.Revoked, errs[6] = listOperations(ctx, tx, d.sql.revoked, limit)
	e.UndoRunning, errs[7] = listSteps(ctx, tx, d.sql.listEffectSteps, "running", limit)
	e.UndoStuck, errs[8] = listSteps(ctx, tx, d.sql.listEffectSteps, "stuck", limit)
	e.UndoParked, errs[9] = listSteps(ctx, tx, d.sql.listEffectSteps, "parked", limit)
	e.Asked, errs[10] = listOperations(ctx, tx, d.sql.asked, limit)
	e.AsksOver, errs[11] = listOperations(ctx, tx, d.sql.asksOver, limit)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, d.sql.risk)
	if err != nil {
		return err
	}
	e.AtRisk, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (Risk, error) {
		var r Risk
		err := row.Scan(&r.Currency, &r.Minor, &r.Effects)
		return r, err
	})
	return err
}
