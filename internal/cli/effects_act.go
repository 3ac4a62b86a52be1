package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/operator"
)

// acted is one line of the answer of effects dismiss and effects ask-again.
type acted struct {
	OperationID string               `json:"operation_id"`
	OK          bool                 `json:"ok"`
	Error       string               `json:"error"` // "" = done
	Result      *operator.CallResult `json:"result"`
}

const actedJSON = `With --json it prints {"results": [{"operation_id", "ok", "error", "result": {"operation_id", "audit_seq", "saga_id", "job_type",
"dismissed_at", "ask_until", "happened"}}]}. Exit code 1 when none was done, 3 when some were not, 2 when the command line is wrong;
then nothing was done and nothing is audited.`

func newEffectsDismiss(s Streams) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use: "dismiss OPERATION...", Short: "Settle calls that were never seen", Args: cobra.MinimumNArgs(1),
		Long: `Dismiss says that you have settled with the supplier what became of calls that it never showed ("never seen" in the list
of effects). They leave list, count and alert; the row stays until its retention is over, and the saga's timeline tells of it. A
call that lands after all and is seen is undone as before. A call that is asked about still, was seen or was dismissed before is
refused; what is refused is audited too.

` + actedJSON,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd, s, args, func(ctx context.Context, d *operator.Desk, r operator.CallRequest) (operator.CallResult, error) {
				return d.DismissCall(ctx, r)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newEffectsAskAgain(s Streams) *cobra.Command {
	var f callFlags
	var further time.Duration
	cmd := &cobra.Command{
		Use: "ask-again OPERATION...", Short: "Have suppliers asked for longer about calls that were never seen", Args: cobra.MinimumNArgs(1),
		Long: `Ask-again has the supplier asked again about calls that it never showed ("never seen" in the list of effects), dismissed
ones too: at once, after 1, 10 and 60 minutes, and at doubling distances until --for is over. A worker that serves the job type asks.
What landed is undone; what is not seen by then is on the list again. A call that is asked about still, was seen, or whose input went
with its retention is refused; what is refused is audited too.

` + actedJSON,
		RunE: func(cmd *cobra.Command, args []string) error {
			if further < operator.MinAskFor || further > operator.MaxAskFor {
				return exit(ExitUsage, fmt.Errorf("--for %s: want %s to %s", further, operator.MinAskFor, operator.MaxAskFor))
			}
			return f.run(cmd, s, args, func(ctx context.Context, d *operator.Desk, r operator.CallRequest) (operator.CallResult, error) {
				return d.AskAgain(ctx, operator.AskAgainRequest{CallRequest: r, For: further})
			})
		},
	}
	f.add(cmd)
	cmd.Flags().DurationVar(&further, "for", 0, "how long from now, 1h to 2160h (90 days); must be given")
	return cmd
}

// callFlags are what the acts on calls share.
type callFlags struct {
	desk        deskFlags
	reason, who string
}

func (f *callFlags) add(cmd *cobra.Command) {
	f.desk.add(cmd)
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit; must be given")
	cmd.Flags().StringVar(&f.who, "actor", "", "who acts; default: user@host")
	env(cmd, "actor", "JOURNEYMAN_ACTOR")
}

// run does act for each operation, in turn, and tells what came of each.
func (f *callFlags) run(cmd *cobra.Command, s Streams, ids []string, act func(context.Context, *operator.Desk, operator.CallRequest) (operator.CallResult, error)) error {
	if err := required(cmd, "dsn"); err != nil {
		return err
	}
	name, err := actor(f.who, s)
	if err != nil {
		return err
	}
	if strings.TrimSpace(f.reason) == "" {
		return exit(ExitUsage, fmt.Errorf("--reason %q: want why, for the audit", f.reason))
	}
	return f.desk.with(cmd, func(ctx context.Context, d *operator.Desk) error {
		var all []acted
		var ends []actEnd
		for _, id := range ids {
			one := acted{OperationID: id}
			res, err := act(ctx, d, operator.CallRequest{OperationID: id, Actor: name, Reason: f.reason})
			if err != nil {
				one.Error = err.Error()
			} else {
				one.OK, one.Result = true, &res
			}
			all = append(all, one)
			ends = append(ends, actEnd{err, res.Happened, res.AuditSeq})
		}
		return tellActs(s, f.desk.asJSON, all, ends)
	})
}
