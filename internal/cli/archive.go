package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/outbox"
)

func newArchive(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "archive", Short: "The event log in object storage", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newArchiveRun(s), newArchiveDays(s), newArchiveAudit(s), newArchiveOff(s))
	return cmd
}

// bucketFlags name the archive.
type bucketFlags struct{ url string }

func (f *bucketFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "archive", "", "URL of the archive: file:///var/lib/archive, s3://name?region=eu-central-1&prefix=events/")
	env(cmd, "archive", "JOURNEYMAN_ARCHIVE")
}

func (f *bucketFlags) open(ctx context.Context) (*bucket.Bucket, error) {
	b, err := bucket.Open(ctx, f.url)
	if err != nil {
		return nil, exit(ExitUsage, fmt.Errorf("--archive: %w", err))
	}
	return b, nil
}

func newArchiveRun(s Streams) *cobra.Command {
	var f deliveryFlags
	var b bucketFlags
	var cfg archive.Config
	var once bool
	var level string
	cmd := &cobra.Command{
		Use: "run", Short: "Archive days of the event log that are over, until stopped", Args: cobra.NoArgs,
		Long: `Run copies each day of the event log that is over to the archive, reads it back, and marks it. From then on relays drop days
past their retention only when their archive was verified. Any number may run; one at a time works. Ctrl-C ends it.
With --once it ends when nothing is left to do and, with --json, prints {"rows", "parts", "bytes", "days"}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", "archive"); err != nil {
				return err
			}
			log, err := newLog(s, "journeyman-archive", level)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				store, err := b.open(ctx)
				if err != nil {
					return err
				}
				defer store.Close() //nolint:errcheck // what was written is written
				cfg.Schema, cfg.Log = f.db.schema, log
				a, err := archive.New(d.pool, store, cfg)
				if err != nil {
					return exit(ExitUsage, err)
				}
				if !once {
					return a.Run(ctx)
				}
				if err := outbox.NewLog(f.db.schema).SetArchived(ctx, d.pool, true, "archiver", "an archiver runs"); err != nil {
					return err
				}
				done, err := a.Pass(ctx)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, done)
				}
				return facts(s.Out, "days", strconv.Itoa(done.Days), "rows", strconv.FormatInt(done.Rows, 10), "objects", strconv.Itoa(done.Parts), "bytes", strconv.FormatInt(done.Bytes, 10))
			})
		},
	}
	f.add(cmd)
	b.add(cmd)
	cmd.Flags().BoolVar(&once, "once", false, "end when nothing is left to do")
	cmd.Flags().IntVar(&cfg.PartRows, "part-rows", 50_000, "rows of one object")
	cmd.Flags().IntVar(&cfg.RowsPerSec, "rate", 0, "rows a second, 0 means no limit")
	cmd.Flags().StringVar(&level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	return cmd
}

func newArchiveDays(s Streams) *cobra.Command {
	var f deliveryFlags
	cmd := &cobra.Command{
		Use: "days", Short: "How each day of the event log stands", Args: cobra.NoArgs,
		Long: `With --json it prints {"archived": whether days are kept until archived, "days": [{"day", "kept", "state", "rows"}]}; state is "" (not
archived), "writing", "verified" or "dropped".`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				log := outbox.NewLog(f.db.schema)
				on, err := log.Archived(ctx, d.pool)
				if err != nil {
					return err
				}
				list, err := log.Days(ctx, d.pool)
				if err != nil {
					return err
				}
				type day struct {
					Day   string `json:"day"`
					Kept  bool   `json:"kept"`
					State string `json:"state"`
					Rows  int64  `json:"rows"`
				}
				days := []day{}
				var rows [][]string
				for _, l := range list {
					days = append(days, day{l.Day.Format("2006-01-02"), l.Kept, l.State, l.Rows})
					rows = append(rows, []string{l.Day.Format("2006-01-02"), strconv.FormatBool(l.Kept), l.State, strconv.FormatInt(l.Rows, 10), momentOf(l.VerifiedAt), momentOf(l.DroppedAt)})
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"archived": on, "days": days})
				}
				return table(s.Out, []string{"DAY", "IN DATABASE", "ARCHIVE", "ROWS", "VERIFIED", "DROPPED"}, rows)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newArchiveAudit(s Streams) *cobra.Command {
	var f deliveryFlags
	var b bucketFlags
	cmd := &cobra.Command{
		Use: "audit", Short: "Read the whole archive back and compare it with what was recorded", Args: cobra.NoArgs,
		Long: `Audit checks every manifest, their chain, and every object. It ends with 1 when something is missing or changed.
With --json it prints {"days", "rows", "parts", "faults"}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", "archive"); err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				store, err := b.open(ctx)
				if err != nil {
					return err
				}
				defer store.Close() //nolint:errcheck // only read
				a, err := archive.New(d.pool, store, archive.Config{Schema: f.db.schema})
				if err != nil {
					return exit(ExitUsage, err)
				}
				found, err := a.Audit(ctx, func(day string, rows int64) { _, _ = fmt.Fprintf(s.Err, "%s: %d rows\n", day, rows) })
				if err != nil {
					return err
				}
				if f.asJSON {
					err = printJSON(s.Out, found)
				} else {
					_, err = fmt.Fprintf(s.Out, "%d days, %d rows in %d objects, %d faults\n", found.Days, found.Rows, found.Parts, len(found.Faults))
					for _, fault := range found.Faults {
						_, _ = fmt.Fprintln(s.Out, plain(fault))
					}
				}
				if err == nil && len(found.Faults) > 0 {
					err = exit(ExitWrong, errSilent)
				}
				return err
			})
		},
	}
	f.add(cmd)
	b.add(cmd)
	return cmd
}

func newArchiveOff(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "off", Short: "Let relays drop days that are not archived", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					if err := outbox.NewLog(f.db.schema).SetArchived(ctx, tx, false, who, act.reason); err != nil {
						return err
					}
					return d.record(ctx, tx, who, "archive.off", "event_log", act.reason, nil)
				})
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
