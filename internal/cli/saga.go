package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

func newSaga(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "saga", Short: "Long-running operations and what they did", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newSagaList(s), newSagaShow(s), newSagaRemediate(s))
	return cmd
}

func newSagaList(s Streams) *cobra.Command {
	var f deskFlags
	var filter operator.SagaFilter
	cmd := &cobra.Command{
		Use: "list", Short: "List sagas, newest first", Args: cobra.NoArgs,
		Long: `List shows sagas. With --json it prints
  {"sagas": [{"id", "tenant", "type", "key", "attempt", "business_key", "state", "decision", "reason", "stuck", "steps_done", "last_step",
    "effects_open", "process_instance_key", "started_at", "deadline", "begun_at", "decided_at", "closed_at", ...}]}`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				list, err := d.Sagas(ctx, filter)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"sagas": list})
				}
				return printSagas(s, list)
			}, "dsn")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&filter.State, "state", "", "only this state: "+strings.Join(operator.SagaStates(), ", "))
	cmd.Flags().StringVar(&filter.Type, "type", "", "only this type")
	cmd.Flags().StringVar(&filter.BusinessKey, "business-key", "", "only this business key")
	cmd.Flags().StringVar(&filter.Tenant, "tenant", "", "only this tenant")
	cmd.Flags().BoolVar(&filter.Stuck, "stuck", false, "only those that count as stuck")
	cmd.Flags().StringVar(&filter.After, "after", "", "the page after the saga with this id")
	cmd.Flags().IntVar(&filter.Limit, "limit", 100, "at most this many, 1 to 1000")
	return cmd
}

func printSagas(s Streams, list []operator.SagaRow) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(s.Out, "no sagas")
		return err
	}
	var rows [][]string
	for _, g := range list {
		rows = append(rows, []string{
			g.ID, g.BusinessKey, g.Type, g.State, g.Reason, strconv.Itoa(g.StepsDone), g.LastStep, strconv.Itoa(g.EffectsOpen), moment(g.StartedAt), momentOf(g.ClosedAt), g.Stuck,
		})
	}
	return table(s.Out, []string{"ID", "BUSINESS KEY", "TYPE", "STATE", "REASON", "STEPS", "LAST STEP", "EFFECTS", "STARTED", "ENDED", "STUCK"}, rows)
}

func newSagaShow(s Streams) *cobra.Command {
	var f deskFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one saga with its steps and timeline", Args: cobra.ExactArgs(1),
		Long: `Show prints a saga, its ledger and its timeline. Without --rest the engine's part is missing, and it says so.
With --json it prints the object that list has, with "steps", "elements", "timeline" and "problems".`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				saga, err := d.Saga(ctx, args[0])
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, saga)
				}
				return printSaga(s, saga)
			}, "dsn")
		},
	}
	f.add(cmd)
	return cmd
}

func printSaga(s Streams, g operator.Saga) error {
	err := facts(s.Out, "saga", g.ID, "type", g.Type, "business key", g.BusinessKey, "tenant", g.Tenant, "idempotency key", g.Key, "attempt", strconv.Itoa(g.Attempt),
		"state", g.State, "decision", strings.TrimSpace(g.Decision+" "+g.Reason), "stuck", g.Stuck, "started", moment(g.StartedAt), "deadline", moment(g.Deadline),
		"ended", momentOf(g.ClosedAt), "process instance", g.ProcessInstanceKey.String(), "correlation", g.CorrelationID, "trace", g.TraceID, "actor", g.Actor,
		"variables", strings.Join(g.VariableNames, ", "))
	if err != nil {
		return err
	}
	var steps, moments [][]string
	for _, st := range g.Steps {
		amount := ""
		if st.Amount != nil {
			amount = st.Amount.String()
		}
		steps = append(steps, []string{strconv.FormatInt(st.CommitOrder, 10), st.Name, st.JobType, strings.TrimSpace(st.Class + " " + st.Code), amount, st.UndoState, st.UndoError})
	}
	for _, m := range g.Timeline {
		moments = append(moments, []string{moment(m.At), m.Source, m.Step, m.What, m.Detail})
	}
	_, _ = fmt.Fprintln(s.Out)
	if err := table(s.Out, []string{"NO", "STEP", "JOB TYPE", "OUTCOME", "AMOUNT", "UNDO", "WHY"}, steps); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(s.Out)
	if err := table(s.Out, []string{"AT", "FROM", "STEP", "WHAT", "DETAIL"}, moments); err != nil {
		return err
	}
	for _, p := range g.Problems {
		_, _ = fmt.Fprintln(s.Err, "not shown:", plain(p))
	}
	return nil
}
