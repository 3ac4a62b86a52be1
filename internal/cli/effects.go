package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

func newEffects(s Streams) *cobra.Command {
	var f deskFlags
	var limit int
	cmd := &cobra.Command{
		Use: "effects", Short: "What hangs in the air: answers, unknown results, orphans, undo, money at risk", Args: cobra.NoArgs,
		Long: `Effects shows answers that the engine has not taken, results that nobody knows, orphans, revoked operations,
undo that runs or is stuck, and the amount at risk: effects that stand although their saga gave up. It ends with 0
whatever it finds. "never seen" are calls that a supplier never showed and is asked about no more: ask there, then dismiss them or have
them asked about again. With --json it prints {"at", "counts": {...}, "amount_at_risk": [{"minor", "currency", "effects"}],
"answers_pending", "answers_gone", "answers_parked", "other_commands", "unknown_results", "orphans", "revoked",
"late_asked", "late_open", "undo_running", "undo_stuck", "undo_parked"}; counts are whole, lists are cut at --limit.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				e, err := d.Effects(ctx, limit)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, e)
				}
				return printEffects(s, e)
			}, "dsn")
		},
	}
	cmd.AddCommand(newEffectsDismiss(s), newEffectsAskAgain(s))
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 50, "length of each list, 1 to 1000")
	return cmd
}

func printEffects(s Streams, e operator.Effects) error {
	c := e.Counts
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	err := facts(s.Out, "answers pending", n(c.AnswersPending)+", oldest "+c.OldestAnswer.Round(time.Second).String(), "answers gone", n(c.AnswersGone), "answers parked", n(c.AnswersParked),
		"other commands", n(c.OtherCommands)+", parked "+n(c.OtherCommandsParked), "unknown results", n(c.UnknownResults),
		"orphans proved", n(c.OrphansProved), "orphans undone", n(c.OrphansUndone), "orphans parked", n(c.OrphansParked), "revoked", n(c.Revoked), "effects undone", n(c.EffectsUndone),
		"calls asked again", n(c.LateAsked), "calls never seen", n(c.LateOpen),
		"undo running", n(c.UndoRunning), "undo stuck", n(c.UndoStuck), "undo parked", n(c.UndoParked))
	if err != nil {
		return err
	}
	for _, r := range e.AtRisk {
		amount := r.Money.String()
		if amount == "" {
			amount = "amount unknown"
		}
		_, _ = fmt.Fprintf(s.Out, "at risk: %s (%d effects)\n", amount, r.Effects)
	}
	if len(e.AtRisk) == 0 {
		_, _ = fmt.Fprintln(s.Out, "at risk: nothing")
	}
	var rows [][]string
	steps := func(what string, list []operator.Step) {
		for _, st := range list {
			rows = append(rows, []string{what, st.OperationID, st.JobType, moment(st.CommittedAt), st.UndoError})
		}
	}
	operations := func(what string, list []operator.Operation) {
		for _, o := range list {
			rows = append(rows, []string{what + " " + o.Orphan, o.OperationID, o.JobType, moment(o.CreatedAt), o.Message})
		}
	}
	commands := func(what string, list []operator.Command) {
		for _, m := range list {
			rows = append(rows, []string{what + " " + m.Kind, m.OperationID, m.JobType, moment(m.CreatedAt), m.Reason + " " + m.LastError})
		}
	}
	steps("undo stuck", e.UndoStuck)
	steps("undo parked", e.UndoParked)
	steps("undo running", e.UndoRunning)
	operations("orphan", e.Orphans)
	operations("unknown", e.Unknown)
	commands("parked", e.AnswersParked)
	commands("gone", e.AnswersGone)
	commands("pending", e.AnswersPending)
	commands("command", e.OtherCommands)
	operations("asked again", e.Asked)
	operations("never seen", e.AsksOver)
	operations("revoked", e.Revoked)
	if len(rows) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(s.Out)
	return table(s.Out, []string{"WHAT", "OPERATION", "JOB TYPE", "SINCE", "WHY"}, rows)
}
