// Package rig is what the benchmarks of this module stand on: a PostgreSQL of the run's own, and figures.
package rig

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/internal/postgres"
)

// Start launches a fresh PostgreSQL that flushes every commit to disk, as one in production does. parent is the folder on the disk
// to measure, "" = the temporary folder; settings are added.
func Start(ctx context.Context, parent string, settings ...string) (*postgres.Cluster, error) {
	bin, err := postgres.Find("", "")
	if err != nil {
		return nil, err
	}
	return postgres.LaunchIn(ctx, bin, parent, append([]string{"fsync=on", "full_page_writes=on", "shared_buffers=512MB", "max_connections=200", "max_wal_size=4GB"}, settings...)...)
}

// Pool opens a pool whose connections stay: what they used is read from their processes afterwards.
func Pool(ctx context.Context, dsn string, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns, cfg.MaxConnIdleTime, cfg.MaxConnLifetime = int32(conns), 24*time.Hour, 24*time.Hour //nolint:gosec // small
	return pgxpool.NewWithConfig(ctx, cfg)
}
