package archive_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func TestMain(m *testing.M) {
	if os.Getenv(envChild) != "" {
		child()
		return
	}
	code := pgtest.Main(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// memory is a store in memory that can be damaged.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte
}

func (m *memory) Create(_ context.Context, name string, content []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.objects[name]; ok {
		return archive.ErrExists
	}
	if m.objects == nil {
		m.objects = map[string][]byte{}
	}
	m.objects[name] = slices.Clone(content)
	return nil
}

func (m *memory) Read(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c, ok := m.objects[name]; ok {
		return slices.Clone(c), nil
	}
	return nil, archive.ErrMissing
}

func (m *memory) List(_ context.Context, prefix string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for n := range m.objects {
		if strings.HasPrefix(n, prefix) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// damage flips a byte of the first object whose name holds text.
func (m *memory) damage(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n, c := range m.objects {
		if strings.Contains(n, text) {
			c[len(c)/2] ^= 1
			return n
		}
	}
	return ""
}

type fixture struct {
	*testing.T
	ctx  context.Context
	dsn  string
	pool *pgxpool.Pool
}

func setup(t *testing.T) *fixture {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	f := &fixture{T: t, ctx: ctx, dsn: pgtest.DSN(t)}
	var err error
	if f.pool, err = pgxpool.New(ctx, f.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.pool.Close)
	for _, migrate := range []func(context.Context, outbox.Beginner, string) error{outbox.Migrate, archive.Migrate} {
		if err := migrate(ctx, f.pool, "journeyman"); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.ctx, sql, args...); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	var n int
	if err := f.pool.QueryRow(f.ctx, sql, args...).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

// day makes a day of the log with n rows from id first on.
func (f *fixture) day(day string, first, n int) {
	f.Helper()
	d, err := time.Parse(time.DateOnly, day)
	if err != nil {
		f.Fatal(err)
	}
	f.exec(fmt.Sprintf(`CREATE TABLE journeyman.event_log_%s PARTITION OF journeyman.event_log FOR VALUES FROM ('%s 00:00+00') TO ('%s 00:00+00')`,
		d.Format("20060102"), day, d.AddDate(0, 0, 1).Format(time.DateOnly)))
	f.rows(day, first, n)
}

func (f *fixture) rows(day string, first, n int) {
	f.Helper()
	f.exec(`
		INSERT INTO journeyman.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
		SELECT t, n % 64, n, gen_random_uuid(), 'test.thing.' || CASE WHEN n % 3 = 0 THEN 'renamed' ELSE 'created' END, 1, 'domain', 'test.thing.v1', 'K-' || n % 100, n / 100 + 1, 'op-' || n,
			ARRAY['event_id', 'x', 'producer', 'tést "1"'], convert_to('{"messageId":"' || n || '","data":{"text":"zwölf ☃"},"metadata":{"businessKey":"K-' || n % 100 || '"}}', 'UTF8'), t, t
		FROM (SELECT n, $1::date::timestamp AT TIME ZONE 'UTC' + (n / 10) * interval '1 ms' AS t FROM generate_series($2::int, $2::int + $3::int - 1) n) r`, day, first, n)
}

func (f *fixture) archiver(s archive.Store, edit ...func(*archive.Config)) *archive.Archiver {
	f.Helper()
	cfg := archive.Config{PartRows: 3000}
	for _, e := range edit {
		e(&cfg)
	}
	a, err := archive.New(f.pool, s, cfg)
	if err != nil {
		f.Fatal(err)
	}
	return a
}

func (f *fixture) pass(a *archive.Archiver) archive.Done {
	f.Helper()
	d, err := a.Pass(f.ctx)
	if err != nil {
		f.Fatal(err)
	}
	return d
}

// logged gives the whole log as text, one row each.
func (f *fixture) logged() []string {
	f.Helper()
	log := outbox.NewLog("journeyman")
	var all []string
	for at := (outbox.LogCursor{}); ; {
		page, err := log.Page(f.ctx, f.pool, at, outbox.LogFilter{Until: time.Now()}, 5000)
		if err != nil {
			f.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		for _, r := range page {
			all, at = append(all, text(r)), r.Cursor()
		}
	}
}

func text(r outbox.Logged) string {
	r.LoggedAt, r.OccurredAt, r.CreatedAt = r.LoggedAt.UTC(), r.OccurredAt.UTC(), r.CreatedAt.UTC()
	return fmt.Sprintf("%+v", r)
}

// archived gives what a reader reads, as text.
func (f *fixture) archived(s archive.Store) []string {
	f.Helper()
	var all []string
	if err := archive.NewReader(s).Rows(f.ctx, outbox.LogCursor{}, time.Time{}, func(r outbox.Logged) error {
		all = append(all, text(r))
		return nil
	}); err != nil {
		f.Fatal(err)
	}
	return all
}

func (f *fixture) same(got, want []string) {
	f.Helper()
	if len(got) != len(want) {
		f.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			f.Fatalf("row %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

func (f *fixture) sound(a *archive.Archiver, rows int64) {
	f.Helper()
	audit, err := a.Audit(f.ctx, nil)
	if err != nil {
		f.Fatal(err)
	}
	if len(audit.Faults) > 0 || audit.Rows != rows {
		f.Errorf("audit %+v, want %d rows and no faults", audit, rows)
	}
}

func (f *fixture) eventually(what string, ok func() bool) {
	deadline := time.NewTimer(2 * time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			f.Errorf("waited in vain for %s", what)
			return
		}
	}
}
