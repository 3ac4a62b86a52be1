package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/internal/app"
)

// newMigrate brings every owner's tables up to date.
func newMigrate(s Streams) *cobra.Command {
	var db databaseFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the tables of a database up to date",
		Long: `Migrate applies the embedded migrations of every part, each in one transaction under
an advisory lock. It is safe to run from many processes at once and does nothing when all is up to date.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn"); err != nil {
				return err
			}
			return migrate(cmd.Context(), s, db, asJSON)
		},
	}
	db.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// applied is one migration that the database has.
type applied struct {
	Schema string `json:"schema"`
	Owner  string `json:"owner"`
	Name   string `json:"name"`
}

func migrate(ctx context.Context, s Streams, db databaseFlags, asJSON bool) error {
	pool, err := db.open(ctx, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := app.Migrate(ctx, pool, db.schema, db.recordSchema); err != nil {
		return exit(ExitWrong, err)
	}
	all := []applied{}
	for _, schema := range []string{db.schema, db.recordSchema} {
		some, err := migrations(ctx, pool, schema)
		if err != nil {
			return exit(ExitWrong, err)
		}
		all = append(all, some...)
	}
	if asJSON {
		return printJSON(s.Out, map[string]any{"migrations": all})
	}
	for _, m := range all {
		if _, err := fmt.Fprintf(s.Out, "%-20s %-14s %s\n", m.Schema, m.Owner, m.Name); err != nil {
			return err
		}
	}
	return nil
}

// migrations lists what stands in the schema's migration table; Migrate has checked the schema's name.
func migrations(ctx context.Context, pool *pgxpool.Pool, schema string) ([]applied, error) {
	rows, err := pool.Query(ctx, "SELECT owner, name FROM "+schema+".migration ORDER BY owner, name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []applied
	for rows.Next() {
		a := applied{Schema: schema}
		if err := rows.Scan(&a.Owner, &a.Name); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, rows.Err()
}
