package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/inbox"
)

func newEventsAcceptGap(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "accept-gap GROUP KEY", Short: "Let a group go on with a business key although a message is missing", Args: cobra.ExactArgs(2),
		Long: `Messages of a strict order (class saga, and entries with order_scope) wait for the one before them and are parked with the
reason "gap" when it does not come in time. First look for the missing message: redrive it when it is a dead letter, replay it
when it was published and lost. Only when it will never come accept the gap: what waits is applied in order, and the missing
message, should it come after all, is parked as "late". The act is audited. With --json it prints {"group", "key"}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			group, key := args[0], args[1]
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					if err := inbox.NewDesk(f.db.schema).AcceptGap(ctx, tx, group, key); err != nil {
						return err
					}
					return d.record(ctx, tx, who, "order.accept_gap", "order:"+group+":"+key, act.reason, map[string]any{"group": group, "business_key": key})
				})
				switch {
				case errors.Is(err, inbox.ErrNoGap):
					return fmt.Errorf("group %s, key %s: %w", group, key, err)
				case err != nil:
					return err
				case f.asJSON:
					return printJSON(s.Out, map[string]any{"group": group, "key": key})
				}
				_, err = fmt.Fprintf(s.Out, "group %s goes on with key %s\n", group, key)
				return err
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
