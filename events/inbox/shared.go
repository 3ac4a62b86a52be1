package inbox

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// sharedTx is a connection whose transaction several handlers share. What stands
// between two handlers travels with the next one's first statement.
type sharedTx struct {
	conn    *pgx.Conn
	head    []string
	touched bool // a statement may have changed settings of the transaction
}

// changesSettings finds statements that change settings, or may do so out of sight (DO, CALL).
var changesSettings = regexp.MustCompile(`(?is)(?:^|;)(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:set|reset|do|call)\b|set_config`) //nolint:gochecknoglobals // compiled once

// flush sends what is to be sent before a statement that cannot travel in a batch.
func (s *sharedTx) flush(ctx context.Context, sql string) error {
	s.touched = s.touched || changesSettings.MatchString(sql)
	if len(s.head) == 0 {
		return nil
	}
	return s.with(ctx, &pgx.Batch{}).Close()
}

// with sends a batch behind what is to be sent before, and gives the results of the batch.
func (s *sharedTx) with(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	all := &pgx.Batch{}
	for _, sql := range s.head {
		all.Queue(sql)
	}
	n := len(s.head)
	s.head = nil
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	results := s.conn.SendBatch(ctx, all)
	for range n {
		if _, err := results.Exec(); err != nil {
			break // every later result gives this error
		}
	}
	return results
}

// Exec sends what is to be sent before along with a statement that has arguments.
func (s *sharedTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if len(s.head) > 0 && len(args) > 0 && !execMode(args[0]) {
		s.touched = s.touched || changesSettings.MatchString(sql)
		b := &pgx.Batch{}
		b.Queue(sql, args...)
		results := s.with(ctx, b)
		tag, err := results.Exec()
		if cerr := results.Close(); err == nil {
			err = cerr
		}
		return tag, err
	}
	if err := s.flush(ctx, sql); err != nil {
		return pgconn.CommandTag{}, err
	}
	return s.conn.Exec(ctx, sql, args...)
}

// execMode reports arguments that are the connection's matter.
func execMode(arg any) bool {
	switch arg.(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return true
	}
	return false
}

// Query runs a query as in pgx.
func (s *sharedTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := s.flush(ctx, sql); err != nil {
		return nil, err
	}
	return s.conn.Query(ctx, sql, args...)
}

// QueryRow runs a query for one row as in pgx.
func (s *sharedTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := s.flush(ctx, sql); err != nil {
		return brokenRow{err}
	}
	return s.conn.QueryRow(ctx, sql, args...)
}

// SendBatch sends a batch as in pgx.
func (s *sharedTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		s.touched = s.touched || changesSettings.MatchString(q.SQL)
	}
	return s.with(ctx, b)
}

type brokenRow struct{ err error }

func (r brokenRow) Scan(...any) error { return r.err }
