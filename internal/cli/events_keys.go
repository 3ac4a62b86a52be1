package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
)

func newEventsKeys(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Keys that bodies of messages are encrypted with", Args: cobra.NoArgs, RunE: showHelp,
		Long: `Keys are files ID.key in a folder, 32 random bytes in base64 each, readable by nobody else; the file "current" names the
one that new bodies are encrypted with. To rotate: keys new, wait until all processes have read it (a second), events reseal,
and only then take the old file away. Keep a copy of every key as long as archives that were written with it.`,
	}
	cmd.AddCommand(newKeysAdd(s), newKeysUse(s), newKeysList(s))
	return cmd
}

func keysFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "keys", "", "folder of key files")
	env(cmd, "keys", "JOURNEYMAN_KEYS")
}

func newKeysAdd(s Streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "new ID", Short: "Make a key and use it for new bodies", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "keys"); err != nil {
				return err
			}
			if err := seal.Generate(dir, args[0]); err != nil {
				return exit(ExitWrong, err)
			}
			_, err := fmt.Fprintf(s.Err, "key %s is the current one in %s\n", args[0], dir)
			return err
		},
	}
	keysFlag(cmd, &dir)
	return cmd
}

func newKeysUse(s Streams) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "use ID", Short: "Use a key of the folder for new bodies", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, "keys"); err != nil {
				return err
			}
			if err := seal.Use(dir, args[0]); err != nil {
				return exit(ExitWrong, err)
			}
			_, err := fmt.Fprintf(s.Err, "key %s is the current one in %s\n", args[0], dir)
			return err
		},
	}
	keysFlag(cmd, &dir)
	return cmd
}

func newKeysList(s Streams) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the ids of the keys, never the keys", Args: cobra.NoArgs,
		Long: `With --json it prints {"current", "keys": [...]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "keys"); err != nil {
				return err
			}
			d, err := seal.OpenDir(dir)
			if err != nil {
				return exit(ExitMissing, err)
			}
			current, err := d.Current()
			if err != nil {
				return exit(ExitMissing, err)
			}
			if asJSON {
				return printJSON(s.Out, map[string]any{"current": current, "keys": d.IDs()})
			}
			for _, id := range d.IDs() {
				mark := ""
				if id == current {
					mark = " (current)"
				}
				if _, err := fmt.Fprintln(s.Out, id+mark); err != nil {
					return err
				}
			}
			return nil
		},
	}
	keysFlag(cmd, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newEventsReseal(s Streams) *cobra.Command {
	var db databaseFlags
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "reseal", Short: "Encrypt stored bodies anew with the current key", Args: cobra.NoArgs,
		Long: `Reseal goes through outbox, parked messages, event log, ledger, inbox, webhooks and operation records and encrypts every body that is under an
older key with the current one, some hundred to a transaction, while everything runs. It may be stopped and run again. Hashes of the
audit chains stay as they are. Give --record-schema "" when the records are in another database, and --schema "" for
that one. It ends with 3 when bodies are left whose key is missing, or that are not as they were encrypted.
With --json it prints {"rows", "left": {"key id": bodies}, "changed"}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", "keys"); err != nil {
				return err
			}
			if db.schema == "" && db.recordSchema == "" {
				return exit(ExitUsage, errors.New("--schema and --record-schema are both empty, want one at least"))
			}
			keys, err := seal.OpenDir(dir)
			if err != nil {
				return exit(ExitMissing, err)
			}
			pool, err := db.open(cmd.Context(), 2)
			if err != nil {
				return err
			}
			defer pool.Close()
			var tables []seal.Table
			if db.schema != "" {
				tables = slices.Concat(outbox.SealedTables(db.schema), inbox.SealedTables(db.schema), work.SealedTables(db.schema))
			}
			if db.recordSchema != "" {
				tables = append(tables, inbox.SealedTables(db.recordSchema)...)
				more, err := there(cmd.Context(), pool, append(webhook.SealedTables(db.recordSchema), sagas.SealedTables(db.recordSchema)...))
				if err != nil {
					return exit(ExitMissing, err)
				}
				tables = append(tables, more...)
			}
			got, err := seal.Reseal(cmd.Context(), pool, keys, tables, func(table string, rows int64) {
				if rows > 0 {
					_, _ = fmt.Fprintf(s.Err, "%s: %d bodies\n", table, rows)
				}
			})
			if err != nil {
				return exit(ExitMissing, err)
			}
			return printResealed(s, got, asJSON)
		},
	}
	db.add(cmd)
	keysFlag(cmd, &dir)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// there leaves out the tables that a database does not have: one without webhooks or records.
func there(ctx context.Context, pool *pgxpool.Pool, tables []seal.Table) (found []seal.Table, err error) {
	for _, t := range tables {
		var is bool
		if err := pool.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, t.Name).Scan(&is); err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, err)
		}
		if is {
			found = append(found, t)
		}
	}
	return found, nil
}

func printResealed(s Streams, got seal.Resealed, asJSON bool) error {
	if asJSON {
		if err := printJSON(s.Out, map[string]any{"rows": got.Rows, "left": got.Left, "changed": got.Changed}); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(s.Out, "%d bodies encrypted anew\n", got.Rows); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(got.Left)) {
		_, _ = fmt.Fprintf(s.Err, "key %s is missing: %d bodies left\n", id, got.Left[id])
	}
	if got.Changed > 0 {
		_, _ = fmt.Fprintf(s.Err, "%d bodies are not as they were encrypted\n", got.Changed)
	}
	if len(got.Left) > 0 || got.Changed > 0 {
		return exit(ExitPartly, errSilent)
	}
	return nil
}
