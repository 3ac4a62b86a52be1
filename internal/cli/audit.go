package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

func newAudit(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "What people did", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newAuditList(s), newAuditVerify(s))
	return cmd
}

func newAuditList(s Streams) *cobra.Command {
	var f deskFlags
	var target string
	var before int64
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List audit rows, newest first", Args: cobra.NoArgs,
		Long: `With --json it prints {"rows": [{"seq", "at", "actor", "action", "target", "reason", "before", "after", "prev_hash", "hash"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				if limit < 1 || limit > 10000 {
					return &operator.FieldError{Field: "--limit", Value: strconv.Itoa(limit), Want: "1 to 10000"}
				}
				list, err := d.Audit(ctx, target, before, limit)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"rows": list})
				}
				var rows [][]string
				for _, r := range list {
					rows = append(rows, []string{strconv.FormatInt(r.Seq, 10), moment(r.At), r.Actor, r.Action, r.Target, r.Reason})
				}
				return table(s.Out, []string{"ROW", "AT", "WHO", "WHAT", "TARGET", "WHY"}, rows)
			}, "dsn")
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&target, "target", "", "only this target, for example incident:default:2251799813685300")
	cmd.Flags().Int64Var(&before, "before", 0, "rows before this one")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

func newAuditVerify(s Streams) *cobra.Command {
	var f deskFlags
	var heads []string
	cmd := &cobra.Command{
		Use: "verify", Short: "Walk the hash chain of the audit", Args: cobra.NoArgs,
		Long: `Verify reads every audit row and recomputes its hash. It ends with 1 when a row was changed, removed or cut off.
It prints the head of the chain as seq:hash: keep it elsewhere and give it back by --head, which shows a chain that was
written anew. With --json it prints {"rows", "head": {"seq", "hash"}, "fault"}; fault is "" when the chain is whole.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				var known []operator.Head
				for _, text := range heads {
					h, err := operator.ParseHead(text)
					if err != nil {
						return err
					}
					known = append(known, h)
				}
				v, err := d.VerifyAudit(ctx, known...)
				if err != nil {
					return err
				}
				if f.asJSON {
					err = printJSON(s.Out, v)
				} else {
					_, err = fmt.Fprintf(s.Out, "%d rows, head %s\n", v.Rows, v.Head)
				}
				if err == nil && !v.OK() {
					err = fmt.Errorf("audit is broken: %s", v.Fault)
				}
				return err
			}, "dsn")
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&heads, "head", nil, "a known head, seq:hash")
	return cmd
}
