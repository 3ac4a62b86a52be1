package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

func newSagaRemediate(s Streams) *cobra.Command {
	var f deskFlags
	var r operator.RemediateRequest
	var report string
	var dry bool
	cmd := &cobra.Command{
		Use: "remediate ID", Short: "Close a saga that was left to a person", Args: cobra.ExactArgs(1),
		Long: `Remediate closes a saga in state manual whose process instance has ended: you have settled with the suppliers what its
effects need. The saga gets its final state, its partner the final answer, and the act an audit row, in one transaction.
A saga whose instance still runs is refused: complete its user task. What is refused is audited too.

--outcome is failed, or completed for a saga past its pivot whose goods were delivered by hand. --report is a file with a
JSON object that the partner will read in the final answer. --dry-run says what would happen and changes nothing.

With --json it prints {"saga_id", "state", "decision", "ends", "settled": [steps], "happens", "audit_seq"}; no audit_seq with --dry-run.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			r.SagaID = args[0]
			if r.Actor, err = actor(r.Actor, s); err != nil {
				return err
			}
			if report != "" {
				if r.Report, err = os.ReadFile(report); err != nil { //nolint:gosec // the user names the file
					return exit(ExitUsage, fmt.Errorf("--report: %w", err))
				}
			}
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				if dry {
					p, err := d.PreviewRemediation(ctx, r)
					if err != nil {
						return err
					}
					return printRemediation(s, f.asJSON, p, p, 0)
				}
				out, err := d.RemediateSaga(ctx, r)
				if err != nil {
					return err
				}
				return printRemediation(s, f.asJSON, out, out.RemediatePreview, out.AuditSeq)
			}, "dsn", "rest")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for the audit; must be given")
	cmd.Flags().StringVar(&r.Outcome, "outcome", "", "failed or completed; must be given")
	cmd.Flags().StringVar(&report, "report", "", "file with a JSON object for the partner's final answer")
	cmd.Flags().StringVar(&r.Actor, "actor", "", "who acts; default: user@host")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would happen, change nothing")
	env(cmd, "actor", "JOURNEYMAN_ACTOR")
	return cmd
}

func printRemediation(s Streams, asJSON bool, doc any, p operator.RemediatePreview, seq int64) error {
	if asJSON {
		return printJSON(s.Out, doc)
	}
	for _, step := range p.Settled {
		amount := ""
		if step.Amount != nil {
			amount = " " + step.Amount.String()
		}
		if _, err := fmt.Fprintf(s.Out, "settled by you: %s %s%s\n", plain(step.OperationID), plain(step.UndoState), amount); err != nil {
			return err
		}
	}
	if seq == 0 {
		_, err := fmt.Fprintln(s.Out, "would happen:", plain(p.Happens))
		return err
	}
	_, err := fmt.Fprintf(s.Out, "%s; audit row %d\n", plain(p.Happens), seq)
	return err
}
