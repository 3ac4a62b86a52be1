package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/sagas"
)

// databaseFlags say which database and schemas a command works on.
type databaseFlags struct {
	dsn, schema, recordSchema string
}

func (f *databaseFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dsn, "dsn", "", "PostgreSQL connection string")
	cmd.Flags().StringVar(&f.schema, "schema", postgres.DefaultSchema, "PostgreSQL schema of our tables")
	cmd.Flags().StringVar(&f.recordSchema, "record-schema", sagas.DefaultRecordSchema, "PostgreSQL schema of the record store")
	env(cmd, "dsn", "JOURNEYMAN_DSN")
	env(cmd, "schema", "JOURNEYMAN_SCHEMA")
	env(cmd, "record-schema", "JOURNEYMAN_RECORD_SCHEMA")
}

// open connects and pings within a few seconds. most is the largest number of connections, 0 = pgx's default.
func (f *databaseFlags) open(ctx context.Context, most int32) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(f.dsn)
	if err != nil {
		return nil, exit(ExitUsage, fmt.Errorf("--dsn: %w", err))
	}
	if most > 0 {
		cfg.MaxConns = most
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, exit(ExitMissing, fmt.Errorf("database: %w", err))
	}
	ping, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pool.Ping(ping); err != nil {
		pool.Close()
		return nil, exit(ExitMissing, fmt.Errorf("database: %w", err))
	}
	return pool, nil
}
