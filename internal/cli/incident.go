package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

func newIncident(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "incident", Short: "Work that waits for a person", Args: cobra.NoArgs, RunE: showHelp,
		Long: `Incidents are raised by the engine when a job fails for good, an error is not caught or a model
cannot go on. They are shown with the operation and the saga behind them; variables by name only.`,
	}
	cmd.AddCommand(newIncidentList(s), newIncidentShow(s), newIncidentRetry(s))
	return cmd
}

func newIncidentList(s Streams) *cobra.Command {
	var f deskFlags
	var filter operator.IncidentFilter
	var instance string
	cmd := &cobra.Command{
		Use: "list", Short: "List incidents, newest first", Args: cobra.NoArgs,
		Long: `List shows active incidents. With --json it prints
  {"total": n, "incidents": [{"key", "state", "error_type", "reason", "process_id", "process_instance_key", "element_id", "job_key",
    "job_type", "operation_id", "saga_id", "saga_state", "business_key", "created_at", "retry", ...}]}`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				if instance != "" {
					var err error
					if filter.ProcessInstanceKey, err = operator.ParseKey("--instance", instance); err != nil {
						return err
					}
				}
				list, err := d.Incidents(ctx, filter)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, list)
				}
				return printIncidents(s, list)
			}, "dsn", "rest")
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&filter.All, "all", false, "resolved ones too")
	cmd.Flags().StringVar(&filter.ProcessID, "process", "", "only this BPMN process id")
	cmd.Flags().StringVar(&instance, "instance", "", "only this process instance key")
	cmd.Flags().IntVar(&filter.Limit, "limit", 200, "at most this many, 1 to 1000")
	return cmd
}

func printIncidents(s Streams, list operator.IncidentList) error {
	if len(list.Incidents) == 0 {
		_, err := fmt.Fprintln(s.Out, "no incidents")
		return err
	}
	var rows [][]string
	for _, i := range list.Incidents {
		retry := ""
		if i.Retry != nil {
			retry = i.Retry.Command + " by " + i.Retry.Actor
		}
		rows = append(rows, []string{i.Key.String(), i.State, i.ErrorType, i.ElementID, i.JobType, i.BusinessKey, moment(i.CreatedAt), retry, clip(i.Reason, 80)})
	}
	if err := table(s.Out, []string{"KEY", "STATE", "TYPE", "ELEMENT", "JOB TYPE", "BUSINESS KEY", "SINCE", "RETRY", "REASON"}, rows); err != nil {
		return err
	}
	if list.Total > len(list.Incidents) {
		_, err := fmt.Fprintf(s.Out, "%d of %d are shown; see --limit\n", len(list.Incidents), list.Total)
		return err
	}
	return nil
}

// clip shortens text for a table.
func clip(text string, limit int) string {
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}

func newIncidentShow(s Streams) *cobra.Command {
	var f deskFlags
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Show one incident", Args: cobra.ExactArgs(1),
		Long: "Show prints one incident. With --json it prints the object that list has, with variable_names and problems filled.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				key, err := operator.ParseKey("incident", args[0])
				if err != nil {
					return err
				}
				i, err := d.Incident(ctx, key)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, i)
				}
				return printIncident(s, i)
			}, "dsn", "rest")
		},
	}
	f.add(cmd)
	return cmd
}

func printIncident(s Streams, i operator.Incident) error {
	operation, retry := i.OperationID, ""
	if o := i.Operation; o != nil {
		operation += fmt.Sprintf(" (%s %s %s, %d attempts)", o.State, o.Class, o.Reason, o.Attempts)
	}
	if i.Retry != nil {
		retry = fmt.Sprintf("%s by %s at %s, audit row %d", i.Retry.Command, i.Retry.Actor, moment(i.Retry.At), i.Retry.AuditSeq)
	}
	err := facts(s.Out, "incident", i.Key.String(), "state", i.State, "type", i.ErrorType, "since", moment(i.CreatedAt),
		"process", i.ProcessID, "process instance", i.ProcessInstanceKey.String(), "element", i.ElementID, "job", i.JobKey.String(), "job type", i.JobType,
		"operation", operation, "saga", strings.TrimSpace(i.SagaID+" "+i.SagaState), "business key", i.BusinessKey,
		"variables", strings.Join(i.VariableNames, ", "), "retry", retry, "reason", i.Reason)
	if err != nil {
		return err
	}
	for _, p := range i.Problems {
		if _, err := fmt.Fprintln(s.Err, "not shown:", plain(p)); err != nil {
			return err
		}
	}
	return nil
}

// retried is one line of the answer of incident retry.
type retried struct {
	Key    string                `json:"key"`
	OK     bool                  `json:"ok"`
	Error  string                `json:"error"` // "" = queued
	Result *operator.RetryResult `json:"result"`
}

func newIncidentRetry(s Streams) *cobra.Command {
	var f deskFlags
	var reason, who string
	var retries int32
	cmd := &cobra.Command{
		Use: "retry KEY...", Short: "Give the job retries and resolve the incident", Args: cobra.MinimumNArgs(1),
		Long: `Retry writes an audit row and queues the command for the engine, in one transaction. A running
worker process delivers it, normally within seconds. An incident that is not active, or was retried already, is refused; a
cause that persists makes a new incident with a new key.

With --json it prints {"results": [{"key", "ok", "error", "result": {"audit_seq", "command_id", "job_key", "retries", "at", "happened"}}]}.
Exit code 1 when none was queued, 3 when some were not.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "dsn", "rest"); err != nil {
				return err
			}
			name, err := actor(who, s)
			if err != nil {
				return err
			}
			var asks []operator.RetryRequest
			for _, arg := range args {
				key, err := operator.ParseKey("incident", arg)
				if err != nil {
					return err
				}
				asks = append(asks, operator.RetryRequest{Key: key, Actor: name, Reason: reason, Retries: retries})
			}
			if strings.TrimSpace(reason) == "" {
				return fmt.Errorf("--reason %q: want why, for the audit", reason)
			}
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error { return retryAll(ctx, s, d, asks, f.asJSON) })
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the audit; must be given")
	cmd.Flags().StringVar(&who, "actor", "", "who acts; default: user@host")
	cmd.Flags().Int32Var(&retries, "retries", 1, "how often the job may fail before the next incident, 1 to 100")
	env(cmd, "actor", "JOURNEYMAN_ACTOR")
	return cmd
}

func retryAll(ctx context.Context, s Streams, d *operator.Desk, asks []operator.RetryRequest, asJSON bool) error {
	var all []retried
	var ends []actEnd
	for _, ask := range asks {
		one := retried{Key: ask.Key.String()}
		res, err := d.RetryIncident(ctx, ask)
		if err != nil {
			one.Error = err.Error()
		} else {
			one.OK, one.Result = true, &res
		}
		all = append(all, one)
		ends = append(ends, actEnd{err, res.Happened, res.AuditSeq})
	}
	return tellActs(s, asJSON, all, ends)
}

func codeOf(err error) int {
	if e, ok := err.(*exitError); ok { //nolint:errorlint // deskExit's own
		return e.code
	}
	return ExitWrong
}
