package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/outbox"
)

func newWebhook(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "webhook", Short: "What partners were told, and what could not be delivered", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newWebhookList(s), newWebhookEndpoints(s), newWebhookResend(s))
	return cmd
}

// withHooks opens the deliveries of the record store; acts are audited in their transaction.
func (f *deskFlags) withHooks(cmd *cobra.Command, fn func(ctx context.Context, w *webhook.Webhooks) error) error {
	return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
		w, err := webhook.New(webhook.Config{
			Pool: d.Pool(), Schema: f.db.recordSchema, Directory: webhook.NewEndpoints(),
			Audit: func(ctx context.Context, tx *outbox.Tx, a webhook.Act) error {
				_, err := d.Record(ctx, tx, operator.AuditRow{Actor: a.Actor, Action: a.Action, Target: "webhook:" + a.Target, Reason: a.Reason}, map[string]string{"state": a.Before}, nil)
				return err
			},
		})
		if err != nil {
			return exit(ExitUsage, err)
		}
		return fn(ctx, w)
	}, "dsn")
}

func newWebhookList(s Streams) *cobra.Command {
	var f deskFlags
	var filter webhook.Filter
	cmd := &cobra.Command{
		Use: "list", Short: "List deliveries, newest first; the dead ones are the dead letters", Args: cobra.NoArgs,
		Long: `With --json it prints {"deliveries": [{"id", "endpoint", "type", "operation_id", "state", "reason", "attempts", "next_at", "created_at",
"finished_at", "bytes"}]}; state is pending, delivered or dead.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withHooks(cmd, func(ctx context.Context, w *webhook.Webhooks) error {
				list, err := w.List(ctx, filter)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"deliveries": append([]webhook.Delivery{}, list...)})
				}
				var rows [][]string
				for _, d := range list {
					rows = append(rows, []string{d.ID, d.Endpoint, d.Type, d.OperationID, d.State, strconv.Itoa(d.Attempts), moment(d.CreatedAt), momentOf(d.FinishedAt), d.Reason})
				}
				return table(s.Out, []string{"ID", "ENDPOINT", "TYPE", "OPERATION", "STATE", "ATTEMPTS", "SINCE", "ENDED", "WHY"}, rows)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&filter.State, "state", "", "only pending, delivered or dead")
	cmd.Flags().StringVar(&filter.Endpoint, "endpoint", "", "only of this endpoint")
	cmd.Flags().StringVar(&filter.Tenant, "tenant", "", "only of this tenant")
	cmd.Flags().StringVar(&filter.OperationID, "operation", "", "only of this operation")
	cmd.Flags().StringVar(&filter.After, "after", "", "the page after the delivery with this id")
	cmd.Flags().IntVar(&filter.Limit, "limit", 100, "at most this many, 1 to 500")
	return cmd
}

func newWebhookEndpoints(s Streams) *cobra.Command {
	var f deskFlags
	cmd := &cobra.Command{
		Use: "endpoints", Short: "How each endpoint of partners stands", Args: cobra.NoArgs,
		Long: `With --json it prints {"endpoints": [{"id", "gone_at", "paused_until", "failing_since", "pending", "dead", "oldest_pending"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withHooks(cmd, func(ctx context.Context, w *webhook.Webhooks) error {
				list, err := w.State(ctx)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"endpoints": append([]webhook.EndpointState{}, list...)})
				}
				var rows [][]string
				for _, e := range list {
					rows = append(rows, []string{e.ID, strconv.FormatInt(e.Pending, 10), strconv.FormatInt(e.Dead, 10), momentOf(e.Oldest), momentOf(e.GoneAt), momentOf(e.PausedUntil), momentOf(e.FailingSince)})
				}
				return table(s.Out, []string{"ENDPOINT", "PENDING", "DEAD", "OLDEST", "GONE", "PAUSED UNTIL", "FAILING SINCE"}, rows)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newWebhookResend(s Streams) *cobra.Command {
	var f deskFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "resend ID...", Short: "Send deliveries again, under their old id", Args: cobra.MinimumNArgs(1),
		Long: `Resend gives a delivery that is dead or delivered a whole schedule anew; a process that sends webhooks does it. Each act
is audited. With --json it prints {"results": [{"id", "ok", "error"}]}. Exit code 1 when none was done, 3 when some were not.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.withHooks(cmd, func(ctx context.Context, w *webhook.Webhooks) error {
				type result struct {
					ID    string `json:"id"`
					OK    bool   `json:"ok"`
					Error string `json:"error"`
				}
				var all []result
				done := 0
				for _, id := range args {
					one := result{ID: id, OK: true}
					if err := w.Resend(ctx, id, who, act.reason); err != nil {
						one.OK, one.Error = false, err.Error()
						_, _ = fmt.Fprintln(s.Err, "journeyman:", plain(one.Error))
					} else {
						done++
						if !f.asJSON {
							_, _ = fmt.Fprintln(s.Out, plain(id), "will be sent again")
						}
					}
					all = append(all, one)
				}
				if f.asJSON {
					if err := printJSON(s.Out, map[string]any{"results": all}); err != nil {
						return err
					}
				}
				switch {
				case done == len(args):
					return nil
				case done > 0:
					return exit(ExitPartly, errSilent)
				}
				return exit(ExitWrong, errSilent)
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
