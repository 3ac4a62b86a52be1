package main

import (
	"context"
	"fmt"
	"strings"
)

// resetStatements forgets what the server knows of statements so far.
func (b *bench) resetStatements(ctx context.Context) error {
	_, err := b.pool.Exec(ctx, `CREATE EXTENSION IF NOT EXISTS pg_stat_statements; SELECT pg_stat_statements_reset()`)
	return err
}

// statements shows, on stderr, where the server's time went since the reset: calls and microseconds per job, one line a statement.
func (b *bench) statements(ctx context.Context, jobs int) error {
	rows, err := b.pool.Query(ctx, `SELECT calls, total_exec_time * 1000, rows, wal_bytes::bigint, plans, total_plan_time * 1000, query FROM pg_stat_statements ORDER BY total_exec_time + total_plan_time DESC LIMIT 25`)
	if err != nil {
		return err
	}
	defer rows.Close()
	per := func(v float64) float64 { return v / float64(jobs) }
	for rows.Next() {
		var calls, got, wal, plans int64
		var us, planning float64
		var text string
		if err := rows.Scan(&calls, &us, &got, &wal, &plans, &planning, &text); err != nil {
			return err
		}
		text = strings.Join(strings.Fields(text), " ")
		fmt.Fprintf(b.progress, "  %5.2f calls a job  %6.1f us a job  %6.1f us a call  %4.1f rows a call %5.0f B WAL a job  planned %4.2f times, %5.1f us a job  %.90s\n", //nolint:errcheck // progress
			per(float64(calls)), per(us), us/float64(calls), float64(got)/float64(calls), per(float64(wal)), per(float64(plans)), per(planning), text)
	}
	return rows.Err()
}
