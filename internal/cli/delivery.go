package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/zeebe"
)

// deliveryCommands are the commands under `events` about messages that were published: one file each, listed here.
func deliveryCommands(s Streams) []*cobra.Command {
	return []*cobra.Command{newReplay(s), newDLQ(s), newArchive(s), newConsumers(s)}
}

// deliveryFlags say which database, broker and keys such a command works with.
type deliveryFlags struct {
	db       databaseFlags
	bus      busFlags
	messages messageFlags
	asJSON   bool
}

func (f *deliveryFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db.dsn, "dsn", "", "PostgreSQL connection string")
	cmd.Flags().StringVar(&f.db.schema, "schema", postgres.DefaultSchema, "PostgreSQL schema of our tables")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	env(cmd, "dsn", "JOURNEYMAN_DSN")
	env(cmd, "schema", "JOURNEYMAN_SCHEMA")
	f.messages.addQuiet(cmd)
}

// delivery is what the flags opened.
type delivery struct {
	pool *pgxpool.Pool
	keys seal.Keys // nil without --keys
	bus  app.Bus   // nil when no flag names a broker
	desk *operator.Desk
}

// with opens what the flags name, runs fn and closes it.
func (f *deliveryFlags) with(cmd *cobra.Command, s Streams, fn func(ctx context.Context, d delivery) error) error {
	if err := required(cmd, "dsn"); err != nil {
		return err
	}
	var d delivery
	messages, err := f.messages.open(s.Getenv)
	if err != nil {
		return exit(ExitUsage, err)
	}
	d.keys = messages.Keys
	if f.bus.given() {
		if d.bus, err = f.bus.open(s); err != nil {
			return exit(ExitUsage, err)
		}
		defer d.bus.Close() //nolint:errcheck // nothing is under way
	}
	if d.pool, err = f.db.open(cmd.Context(), 8); err != nil {
		return err
	}
	defer d.pool.Close()
	office, err := app.NewOffice(app.OfficeConfig{Pool: d.pool, Schema: f.db.schema, Cluster: zeebe.DefaultCluster, Messages: messages})
	if err != nil {
		return exit(ExitUsage, err)
	}
	if d.desk, err = operator.New(operator.Config{Pool: d.pool, Schema: f.db.schema, Stager: office.Stager}); err != nil {
		return exit(ExitUsage, err)
	}
	return deliveryExit(cmd, fn(cmd.Context(), d))
}

// deliveryExit gives an error its exit code. Stopped by a signal in the middle of its work is not a failure of it.
func deliveryExit(cmd *cobra.Command, err error) error {
	var coded *exitError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case cmd.Context().Err() != nil:
		return errStopped
	default:
		return exit(ExitWrong, err)
	}
}

// actFlags say who acts and why.
type actFlags struct{ actor, reason string }

func (f *actFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.actor, "actor", "", "who acts; the login name when empty")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, for the audit")
	env(cmd, "actor", "JOURNEYMAN_ACTOR")
	_ = cmd.MarkFlagRequired("reason") // the flag exists
}

// record writes the audit row of an act inside its transaction.
func (d delivery) record(ctx context.Context, tx pgx.Tx, actor, action, target, reason string, after any) error {
	_, err := d.desk.Record(ctx, tx, operator.AuditRow{Actor: actor, Action: action, Target: target, Reason: reason}, nil, after)
	return err
}

// instant reads a time of a flag, zero for "".
func instant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, exit(ExitUsage, fmt.Errorf("--%s %q: want a time such as 2026-11-30T12:00:00Z", flag, text))
	}
	return at, nil
}

// onceASecond says yes at most once a second, so that progress is shown no more often.
func onceASecond() func() bool {
	var last time.Time
	return func() bool {
		now := time.Now()
		if now.Sub(last) < time.Second {
			return false
		}
		last = now
		return true
	}
}
