package worker

import (
	"context"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// groupConn is a connection whose transaction several handlers share. What stands between two handlers (release or rollback of
// the one's savepoint, the next one's) travels with the next handler's first statement, so it costs no round trip.
type groupConn struct {
	conn     *pgx.Conn
	head     []string // to be sent before the next statement
	touched  bool     // a statement may have changed settings of the transaction
	harmless string   // the last statement that was looked at and changes none: handlers of a group repeat theirs
}

// settings finds statements that change settings, or that may do so out of sight (DO, CALL). A function that calls set_config
// inside is not seen.
var settings = regexp.MustCompile(`(?is)(?:^|;)(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:set|reset|do|call)\b|set_config`)

func (g *groupConn) look(sql string) {
	switch {
	case g.touched || sql == g.harmless:
	case settings.MatchString(sql):
		g.touched = true
	default:
		g.harmless = sql
	}
}

// with gives a batch that begins with what is to be sent before.
func (g *groupConn) with() (*pgx.Batch, int) {
	b := &pgx.Batch{}
	for _, sql := range g.head {
		b.Queue(sql)
	}
	n := len(g.head)
	g.head = nil
	return b, n
}

// flush sends what is to be sent before a statement that cannot travel in a batch.
func (g *groupConn) flush(ctx context.Context) error {
	if len(g.head) == 0 {
		return nil
	}
	b, _ := g.with()
	return g.conn.SendBatch(ctx, b).Close()
}

// plain reports whether a statement with args means the same in a batch: without arguments it may be several statements, and an
// execution mode is the connection's matter.
func plain(args []any) bool {
	if len(args) == 0 {
		return false
	}
	switch args[0].(type) {
	case pgx.QueryExecMode, pgx.QueryResultFormats, pgx.QueryResultFormatsByOID:
		return false
	}
	return true
}

// start sends a batch and takes what was to be sent before off its results.
func (g *groupConn) start(ctx context.Context, b *pgx.Batch, skip int) pgx.BatchResults {
	br := g.conn.SendBatch(ctx, b)
	for range skip {
		if _, err := br.Exec(); err != nil {
			break // every later result gives this error
		}
	}
	return br
}

func (g *groupConn) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	g.look(sql)
	if len(g.head) > 0 && plain(args) {
		b, n := g.with()
		b.Queue(sql, args...)
		br := g.start(ctx, b, n)
		tag, err := br.Exec()
		if cerr := br.Close(); err == nil {
			err = cerr
		}
		return tag, err
	}
	if err := g.flush(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return g.conn.Exec(ctx, sql, args...)
}

func (g *groupConn) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	g.look(sql)
	if len(g.head) > 0 && plain(args) {
		b, n := g.with()
		b.Queue(sql, args...)
		br := g.start(ctx, b, n)
		rows, err := br.Query()
		r := &groupRows{Rows: rows, br: br}
		if err != nil {
			r.Close()
		}
		return r, err
	}
	if err := g.flush(ctx); err != nil {
		return nil, err
	}
	return g.conn.Query(ctx, sql, args...)
}

func (g *groupConn) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := g.Query(ctx, sql, args...)
	return groupRow{rows, err}
}

func (g *groupConn) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		g.look(q.SQL)
	}
	if len(g.head) == 0 {
		return g.conn.SendBatch(ctx, b)
	}
	all, n := g.with()
	all.QueuedQueries = append(all.QueuedQueries, b.QueuedQueries...)
	return g.start(ctx, all, n)
}

// groupRows ends the batch with its rows.
type groupRows struct {
	pgx.Rows
	br     pgx.BatchResults
	err    error
	closed bool
}

func (r *groupRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	if r.Rows != nil {
		r.Rows.Close()
	}
	r.err = r.br.Close()
}

func (r *groupRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *groupRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

// groupRow is QueryRow over Query, with the error of no row as pgx has it.
type groupRow struct {
	rows pgx.Rows
	err  error
}

func (r groupRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}
