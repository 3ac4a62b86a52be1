package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/export"
	"github.com/vitrip/journeyman/sagas/sagatest"
	"github.com/vitrip/journeyman/sagas/tourbooking"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/worker/workertest"
)

var db workertest.Database //nolint:gochecknoglobals // one server for all tests

func TestMain(m *testing.M) { os.Exit(db.Main(m)) }

// shelf is an object storage in memory. before is asked before each Put, after behind it: an error of after is an answer that was lost.
type shelf struct {
	mu            sync.Mutex
	objects       map[string][]byte
	puts          map[string]int
	before, after func(ctx context.Context, name string) error
}

func (s *shelf) Put(ctx context.Context, name string, content []byte) error {
	if s.before != nil {
		if err := s.before(ctx, name); err != nil {
			return err
		}
	}
	s.mu.Lock()
	if old, ok := s.objects[name]; ok && !bytes.Equal(old, content) {
		s.mu.Unlock()
		return errors.New("another content under the same name")
	}
	s.objects[name] = bytes.Clone(content)
	s.puts[name]++
	s.mu.Unlock()
	if s.after != nil {
		return s.after(ctx, name)
	}
	return nil
}

func (s *shelf) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
	return nil
}

func (s *shelf) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

func (s *shelf) joined() (all []byte) {
	for _, name := range s.names() {
		s.mu.Lock()
		all = append(all, s.objects[name]...)
		s.mu.Unlock()
	}
	return all
}

func catalog(t testing.TB) *events.Catalog {
	t.Helper()
	var all []*events.Catalog
	for _, text := range [][]byte{sagas.Catalog(), tourbooking.Catalog()} {
		c, err := events.ParseCatalog(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	c, err := events.Merge(all...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type stage struct {
	*sagatest.Kit
	t       *testing.T
	shelf   *shelf
	exports *export.Exports
}

// start runs the saga with pages of ten records and exports of at most a hundred.
func start(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	st := &stage{t: t, shelf: &shelf{objects: map[string][]byte{}, puts: map[string]int{}}}
	sets := []export.Dataset{export.Operations(), export.Bookings()}
	typ, err := export.Type(export.TypeConfig{Datasets: sets})
	if err != nil {
		t.Fatal(err)
	}
	model, err := models.Read(models.DataExport)
	if err != nil {
		t.Fatal(err)
	}
	var pool *pgxpool.Pool
	st.Kit = sagatest.Start(t, sagatest.Config{
		Database: &db, Types: []sagas.Type{typ}, Models: map[string][]byte{models.DataExport: model}, Catalogs: [][]byte{tourbooking.Catalog()},
		Migrate: func(ctx context.Context, p *pgxpool.Pool) error {
			pool = p
			return errors.Join(tourbooking.Migrate(ctx, p, ""), export.Migrate(ctx, p, ""))
		},
		Install: func(mux *worker.Mux, s *sagas.Sagas) (err error) {
			st.exports, err = export.New(export.Config{
				Pool: pool, Objects: st.shelf, Sagas: s, Catalog: catalog(t), Datasets: sets, PageRows: 10, MaxRows: 100,
			})
			if err == nil {
				st.exports.Install(mux)
			}
			return err
		},
	})
	return st
}

// sold writes bookings of a tenant down, all on the third of October.
func (st *stage) sold(tenant string, from, n int) {
	st.t.Helper()
	if _, err := st.Pool.Exec(st.t.Context(), `INSERT INTO journeyman.tour_booking
		(business_key, tenant, booking, saga_id, state, segments, travellers, amount, currency, created_at, updated_at)
		SELECT $1 || ':B-' || i, $1, 'B-' || i, 'op_1', 'confirmed', 3, 2, 100, 'EUR', '2026-10-03', '2026-10-03' FROM generate_series($2::int, $2::int + $3::int - 1) i`,
		tenant, from, n); err != nil {
		st.t.Fatal(err)
	}
}

func october(set string) json.RawMessage {
	return json.RawMessage(`{"dataset":"` + set + `","from":"2026-10-01","until":"2026-11-01"}`)
}

// left counts the rows that no export needs any more.
func (st *stage) left() (n int) {
	st.t.Helper()
	if err := st.Pool.QueryRow(st.t.Context(), `SELECT (SELECT count(*) FROM journeyman.data_export_row) +
		(SELECT count(*) FROM journeyman.data_export WHERE state = 'frozen')`).Scan(&n); err != nil {
		st.t.Fatal(err)
	}
	return n
}

// One moment, whatever is written meanwhile; own records only; checksum and count are those of the objects; and after the
// retention the objects are gone.
func TestExport_oneMomentAndOnlyTheOwn(t *testing.T) {
	st := start(t)
	st.sold("tester", 1, 25)
	st.sold("other", 1, 25)
	st.shelf.before = func(_ context.Context, name string) error {
		if strings.HasSuffix(name, "part-00001.ndjson") { // the records are frozen: this one is too late
			_, err := st.Pool.Exec(context.WithoutCancel(t.Context()), `INSERT INTO journeyman.tour_booking
				(business_key, tenant, booking, saga_id, state, segments, travellers, amount, currency, created_at, updated_at)
				VALUES ('tester:late', 'tester', 'late', 'op_2', 'confirmed', 3, 2, 100, 'EUR', '2026-10-01', '2026-10-01') ON CONFLICT DO NOTHING`)
			return err
		}
		return nil
	}
	r := st.Run(export.TypeName, "k", october("bookings"))
	r.Want("completed", "")
	var got export.Result
	if err := json.Unmarshal(r.Answer, &got); err != nil {
		t.Fatal(err)
	}
	all := st.shelf.joined()
	sum := sha256.Sum256(all)
	if got.Rows != 25 || got.Objects != 3 || got.Bytes != int64(len(all)) || got.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("answer %+v, want 25 rows in 3 objects of %d bytes and %x", got, len(all), sum)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(all)) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		seen[fmt.Sprint(row["booking"])] = true
		if fields := slices.Sorted(maps.Keys(row)); !slices.Equal(fields, []string{"amount", "booking", "changedAt", "createdAt", "currency", "sagaId", "state"}) {
			t.Fatalf("fields %v", fields)
		}
	}
	if len(seen) != 25 || seen["late"] {
		t.Errorf("%d bookings, late one %v, want 25 and no late one", len(seen), seen["late"])
	}
	for _, name := range st.shelf.names() {
		if !strings.HasPrefix(name, got.Location) || !strings.HasPrefix(name, "exports/tester/") {
			t.Errorf("object %s is not under %s", name, got.Location)
		}
	}
	if n := st.left(); n != 0 {
		t.Errorf("%d rows are left behind", n)
	}
	if n, err := st.exports.Expire(t.Context()); n != 0 || err != nil {
		t.Errorf("%d expired at once, %v", n, err)
	}
	st.Advance(30*24*time.Hour + time.Minute)
	if n, err := st.exports.Expire(t.Context()); n != 1 || err != nil || len(st.shelf.names()) != 0 {
		t.Errorf("%d expired, %v, objects %v; want one and none", n, err, st.shelf.names())
	}
}

// A page whose answer was lost, as by a process that was killed, is written again with the same content; the pages before stay.
func TestExport_goesOnWhereItWas(t *testing.T) {
	st := start(t)
	st.sold("tester", 1, 25)
	lost := 2
	st.shelf.after = func(_ context.Context, name string) error {
		if st.shelf.mu.Lock(); lost > 0 && strings.HasSuffix(name, "part-00002.ndjson") {
			lost--
			st.shelf.mu.Unlock()
			return errors.New("connection reset")
		}
		st.shelf.mu.Unlock()
		return nil
	}
	st.Run(export.TypeName, "k", october("bookings")).Want("completed", "")
	for name, n := range st.shelf.puts {
		want := 1
		if strings.HasSuffix(name, "part-00002.ndjson") {
			want = 3
		}
		if n != want {
			t.Errorf("%s was written %d times, want %d", name, n, want)
		}
	}
}

// Spec I5: after seven days it is over, and nothing of it is left. While it runs the partner sees how many pages are written.
func TestExport_expiresAfterSevenDays(t *testing.T) {
	st := start(t)
	st.sold("tester", 1, 25)
	release := make(chan struct{})
	st.shelf.before = func(_ context.Context, name string) error {
		if strings.HasSuffix(name, "part-00002.ndjson") { // it lands after the saga was given up
			<-release
		}
		return nil
	}
	id := st.Post(export.TypeName, "k", october("bookings"))
	st.Until("the partner sees the first page", func() bool {
		var n int
		err := st.Pool.QueryRow(t.Context(), `SELECT coalesce((partial->'export'->>'pages_written')::int, 0) FROM journeyman_records.record WHERE operation_id = $1`, id).Scan(&n)
		return err == nil && n == 1
	})
	st.Advance(7*24*time.Hour + time.Minute)
	st.Until("it is given up", func() bool {
		d, err := st.Sagas.Show(t.Context(), id)
		return err == nil && d.Decision == sagas.Expired
	})
	close(release)
	if r := st.Wait(id); r.State != "expired" || r.Reason.Code != "deadline" {
		t.Errorf("got %s %q", r.State, r.Reason.Code)
	}
	if names := st.shelf.names(); len(names) != 0 || st.left() != 0 {
		t.Errorf("objects %v and %d rows are left", names, st.left())
	}
}

func TestExport_tooLargeAndEmpty(t *testing.T) {
	st := start(t)
	st.Run(export.TypeName, "none", october("bookings")).Want("completed", "")
	st.sold("tester", 1, 101)
	st.Run(export.TypeName, "many", october("bookings")).Want("failed", export.CodeExportTooLarge)
	if names := st.shelf.names(); len(names) != 0 || st.left() != 0 {
		t.Errorf("objects %v and %d rows are left", names, st.left())
	}
}

// Operations export themselves too: the first one is in the second's file.
func TestExport_operations(t *testing.T) {
	st := start(t)
	day := time.Now().UTC()
	body := json.RawMessage(fmt.Sprintf(`{"dataset":"operations","from":%q,"until":%q}`, day.AddDate(0, 0, -1).Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly)))
	first := st.Run(export.TypeName, "first", october("bookings"))
	st.Run(export.TypeName, "second", body).Want("completed", "")
	if all := string(st.shelf.joined()); !strings.Contains(all, first.OperationID) || strings.Contains(all, "variables") {
		t.Errorf("exported %s", all)
	}
}

// What the catalog does not say to be free of personal data is refused at start-up.
func TestNew_refusesWhatTheCatalogDoesNotAllow(t *testing.T) {
	t.Parallel()
	pii, err := events.ParseCatalog(bytes.ReplaceAll(tourbooking.Catalog(), []byte("pii: none"), []byte("pii: names, agreed with the data protection officer")))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		catalog *events.Catalog
		edit    func(*export.Dataset)
		want    string
	}{
		"a field of no event": {catalog(t), func(d *export.Dataset) { d.Fields = append(d.Fields, "travellers") }, `field "travellers" is none of event`},
		"personal data":       {pii, func(*export.Dataset) {}, "holds personal data"},
		"no such event":       {catalog(t), func(d *export.Dataset) { d.Event = "tour.booking.dreamt" }, "not in the catalog"},
	} {
		set := export.Bookings()
		c.edit(&set)
		_, err := export.New(export.Config{Pool: &pgxpool.Pool{}, Objects: &shelf{}, Sagas: &sagas.Sagas{}, Catalog: c.catalog, Datasets: []export.Dataset{set}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	typ, err := export.Type(export.TypeConfig{Datasets: []export.Dataset{export.Bookings()}})
	if err != nil {
		t.Fatal(err)
	}
	if typ.Timeout != 7*24*time.Hour || typ.Retention != 30*24*time.Hour {
		t.Errorf("times %v, %v, want 7 d and 30 d (spec I5)", typ.Timeout, typ.Retention)
	}
	if p, err := typ.Parse(t.Context(), "acme", october("bookings")); err != nil || p.BusinessKey != "acme:export:bookings" {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, body := range []string{
		`{}`, string(october("secrets")), `{"dataset":"bookings","from":"2026-11-01","until":"2026-10-01"}`,
		`{"dataset":"bookings","from":"2020-11-01","until":"2026-10-01"}`, `{"dataset":"bookings","from":"yesterday","until":"2026-10-01"}`,
	} {
		if _, err := typ.Parse(t.Context(), "acme", []byte(body)); err == nil {
			t.Errorf("%s was taken", body)
		}
	}
}
