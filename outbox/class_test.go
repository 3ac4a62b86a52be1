package outbox_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

const classesYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester]}
  - {type: test.page.viewed, class: analytical, owner: test, producers: [tester]}
  - {type: test.saga.started, class: saga, owner: test, producers: [tester], topic: test.saga.progress.v1}
  - {type: test.saga.completed, class: saga, owner: test, producers: [tester], topic: test.saga.progress.v1}
  - {type: test.step.started, class: domain, owner: test, producers: [tester], order_scope: test.steps}
  - {type: test.step.completed, class: domain, owner: test, producers: [tester], order_scope: test.steps}
  - {type: test.access.granted, class: audit, owner: test, producers: [tester], partitions: 2}
  - {type: test.disk.filled, class: operational, owner: test, producers: [tester]}
  - {type: test.contract.signed, class: compliance, owner: test, producers: [tester]}
`

// classes gives a fixture whose stager knows all six classes.
func classes(t *testing.T, more string, edit ...func(*outbox.Config)) *fixture {
	t.Helper()
	f := setup(t)
	f.Stager = classStager(t, more, edit...)
	return f
}

func classStager(t *testing.T, more string, edit ...func(*outbox.Config)) *outbox.Stager {
	t.Helper()
	var all []*events.Catalog
	for _, text := range []string{classesYAML + more, string(outbox.Catalog())} {
		c, err := events.ParseCatalog([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	cat, err := events.Merge(all...)
	if err != nil {
		t.Fatal(err)
	}
	cfg := outbox.Config{Catalog: cat, Producer: "tester", Instance: "tester-1", Env: "test"}
	for _, e := range edit {
		e(&cfg)
	}
	s, err := outbox.NewStager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func message(typ, key string, n int) events.Message {
	return events.Message{Type: typ, BusinessKey: key, Data: map[string]any{"n": n}}
}

func (f *fixture) mustStage(msgs ...events.Message) {
	f.Helper()
	if err := f.stage(events.Origin{BusinessKey: "B"}, msgs); err != nil {
		f.Fatal(err)
	}
}

// Only analytical messages are dropped, only above the limit, each is counted,
// a marker tells of all, and what goes on has no gap.
func TestClasses_SheddingIsForAnalyticalOnly_E4(t *testing.T) {
	t.Parallel()
	f := classes(t, "", func(c *outbox.Config) { c.ShedAbove = 20 })
	all := []string{"test.thing.created", "test.saga.started", "test.access.granted", "test.disk.filled", "test.contract.signed"}
	again := func() { // forget that the backlog was counted a moment ago
		if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.outbox_pressure SET sampled_at = '-infinity'`); err != nil {
			t.Fatal(err)
		}
	}
	f.mustStage(message("test.page.viewed", "K", 0), message("test.thing.created", "K", 0), message("test.page.viewed", "K", 1))
	for i := range 20 {
		f.mustStage(created("L", i))
	}
	again()
	want := f.count(`SELECT count(*) FROM journeyman.outbox`)
	for i := range 3 {
		msgs := []events.Message{message("test.page.viewed", "K", i), message("test.page.viewed", "M", i)}
		for _, typ := range all {
			msgs = append(msgs, message(typ, "K", i))
		}
		f.mustStage(msgs...)
		want += len(all)
	}
	if got := f.count(`SELECT count(*) FROM journeyman.outbox`); got != want {
		t.Errorf("%d rows, want %d: all but the analytical ones", got, want)
	}
	if err := f.stage(events.Origin{}, []events.Message{message("test.page.viewed", "K", 9)}, "SELECT 1/0"); err == nil {
		t.Fatal("the transaction should have failed")
	}
	p, err := f.desk.Pressure(f.ctx, f.pool)
	if err != nil || !p.Shedding || p.Untold != 6 || p.Backlog != 21 {
		t.Fatalf("pressure %+v, %v; want 6 untold: what was rolled back does not count", p, err)
	}
	bk := newBroker()
	r, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.ShedEvery = 20 * time.Millisecond })
	log := f.wait(bk, "everything and the marker", atLeast(want+1))
	f.eventually("the counter", func() bool { return r.Stats().Shed == 6 })
	var told struct {
		Total   int64
		Dropped []outbox.Dropped
	}
	for _, rec := range log {
		if rec.Topic == outbox.DroppedType+".v1" {
			e, err := events.ParseEnvelope(rec.Body)
			if err == nil {
				err = e.Decode(&told)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if told.Total != 6 || len(told.Dropped) != 1 || told.Dropped[0].Count != 6 || told.Dropped[0].Type != "test.page.viewed" {
		t.Errorf("the marker tells %+v", told)
	}
	again()
	f.mustStage(message("test.page.viewed", "K", 3))
	log = f.wait(bk, "an analytical message when the pressure is over", atLeast(want+2))
	stop()
	if n := inversions(log); n != 0 {
		t.Errorf("%d gaps or inversions of `sequence`: %v", n, brief(log))
	}
	if p, err = f.desk.Pressure(f.ctx, f.pool); err != nil || p.Shedding || p.Untold != 0 {
		t.Errorf("pressure %+v, %v", p, err)
	}
	cat, _ := events.ParseCatalog([]byte(classesYAML))
	if _, err := outbox.NewStager(outbox.Config{Catalog: cat, Producer: "tester", Instance: "i", Env: "test"}); err == nil || !strings.Contains(err.Error(), outbox.DroppedType) {
		t.Errorf("a catalog that cannot tell of dropped messages: got %v", err)
	}
}

// Each message of a scope names the one before it of its key, over all topics of the scope; others name none.
func TestClasses_StrictOrderNamesThePrevious_E4(t *testing.T) {
	t.Parallel()
	f := classes(t, "")
	f.mustStage(message("test.saga.started", "K", 1), message("test.thing.created", "K", 2), message("test.step.started", "K", 3), message("test.saga.completed", "K", 4))
	f.mustStage(message("test.thing.created", "K", 5), message("test.step.completed", "K", 6), message("test.saga.completed", "L", 1))
	f.mustStage(message("test.saga.started", "K", 7))
	bk := newBroker()
	f.relay(bk)
	got := map[string]string{}
	for _, r := range f.wait(bk, "eight", atLeast(8)) {
		got[r.Key+r.Header(events.HeaderSequence)] = r.Header(events.HeaderPreviousSequence)
	}
	for at, want := range map[string]string{"K1": "0", "K2": "", "K3": "0", "K4": "1", "K5": "", "K6": "3", "K7": "4", "L1": "0"} {
		if got[at] != want {
			t.Errorf("%s: previous %q, want %q", at, got[at], want)
		}
	}
}

// Audit messages are links of a chain per partition, written with the transaction.
func TestClasses_AuditIsAChain_E4(t *testing.T) {
	t.Parallel()
	f := classes(t, "")
	for i := range 6 {
		f.mustStage(message("test.access.granted", "K-"+strconv.Itoa(i), i), message("test.access.granted", "K-"+strconv.Itoa(i+1), i))
	}
	if err := f.stage(events.Origin{}, []events.Message{message("test.access.granted", "K-0", 1)}, "SELECT 1/0"); err == nil {
		t.Fatal("the transaction should have failed")
	}
	bk := newBroker()
	f.relay(bk)
	last, links := map[string]string{}, 0
	for _, r := range f.wait(bk, "twelve links", atLeast(12)) {
		chain := r.Header(events.HeaderAuditChain)
		if chain != outbox.Chain("tester", r.Topic, 2, r.Key) || len(r.Header(events.HeaderAuditHash)) != 64 {
			t.Errorf("headers %v", r.Headers)
		}
		last[chain+"/"+r.Header(events.HeaderAuditLink)] = r.Header(events.HeaderAuditHash)
		links++
	}
	for _, r := range bk.records() {
		n, _ := strconv.Atoi(r.Header(events.HeaderAuditLink))
		want := last[r.Header(events.HeaderAuditChain)+"/"+strconv.Itoa(n-1)]
		if n == 1 {
			want = strings.Repeat("0", 64)
		}
		if r.Header(events.HeaderAuditPrevious) != want {
			t.Errorf("link %d: previous %q, want %q", n, r.Header(events.HeaderAuditPrevious), want)
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_ledger WHERE class = 'audit'`); n != links || links != 12 {
		t.Errorf("%d rows in the ledger, want 12", n)
	}
}

// Many transactions of one chain at once leave one unbroken chain.
func TestClasses_ChainsStandConcurrency_E4(t *testing.T) {
	t.Parallel()
	f := classes(t, "")
	errs := make(chan error, 8)
	for w := range 8 {
		go func() {
			var err error
			for i := range 15 {
				if err == nil {
					err = f.stage(events.Origin{}, []events.Message{message("test.access.granted", "K-"+strconv.Itoa(w*100+i), i), message("test.access.granted", "J-"+strconv.Itoa(i), i)})
				}
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	broken := f.count(`SELECT count(*) FROM (
		SELECT previous <> coalesce(lag(hash) OVER w, repeat('0', 64)) OR link <> row_number() OVER w OR recorded_at < lag(recorded_at) OVER w AS bad
		FROM journeyman.event_ledger WINDOW w AS (PARTITION BY chain ORDER BY link)) x WHERE bad`)
	if n := f.count(`SELECT count(*) FROM journeyman.event_ledger`); n != 240 || broken != 0 {
		t.Errorf("%d links, want 240; %d of them broken", n, broken)
	}
}

// The database refuses to change what compliance and audit have written, and the same id again.
func TestClasses_LedgerIsImmutable_E4(t *testing.T) {
	t.Parallel()
	f := classes(t, "")
	o := events.Origin{OperationID: "op-1", BusinessKey: "K"}
	msgs := []events.Message{message("test.contract.signed", "K", 1), message("test.access.granted", "K", 1)}
	if err := f.stage(o, msgs); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		`UPDATE journeyman.event_ledger SET body = '{}'`, `UPDATE journeyman.event_ledger SET recorded_at = now()`, `DELETE FROM journeyman.event_ledger`, `TRUNCATE journeyman.event_ledger`,
		`SET journeyman.reseal = 'on'; UPDATE journeyman.event_ledger SET body = '{}'`, `SET journeyman.reseal = 'on'; DELETE FROM journeyman.event_ledger`,
	} {
		_, err := f.pool.Exec(f.ctx, sql)
		if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "42501" {
			t.Errorf("%s: got %v, want a refusal", sql, err)
		}
	}
	err := f.stage(o, []events.Message{{Type: "test.contract.signed", BusinessKey: "K", Data: map[string]any{"n": 2}}})
	if pg, ok := errors.AsType[*pgconn.PgError](err); !ok || pg.Code != "23505" {
		t.Errorf("another content under the same id: got %v, want a refusal", err)
	}
	id := events.DeriveID("op-2", 0, events.Message{Type: "test.contract.signed", Version: 1, BusinessKey: "K"})
	self := message("test.contract.signed", "K", 3)
	self.Corrects = strings.ToUpper(id)
	if err := f.stage(events.Origin{OperationID: "op-2"}, []events.Message{self}); err == nil || !strings.Contains(err.Error(), "corrects itself") {
		t.Errorf("got %v", err)
	}
	if n := f.count(`SELECT count(*) FROM journeyman.event_ledger`); n != 2 {
		t.Errorf("%d rows, want the two first", n)
	}
}

func keys(t *testing.T, ids ...string) (string, *seal.Dir) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "keys")
	for _, id := range ids {
		if err := seal.Generate(dir, id); err != nil {
			t.Fatal(err)
		}
	}
	d, err := seal.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, d
}

// Bodies of encrypted classes rest sealed in outbox, event log and ledger; the
// broker gets what the catalog says. A missing key parks, and nothing is lost.
func TestClasses_Encryption_E4(t *testing.T) {
	t.Parallel()
	_, both := keys(t, "one")
	f := classes(t, "encryption: {domain: at_rest, saga: end_to_end, audit: at_rest}\n", func(c *outbox.Config) { c.Keys = both })
	secret := func(typ string) events.Message {
		return events.Message{Type: typ, BusinessKey: "K", Data: map[string]any{"secret": "passport-4711"}}
	}
	f.mustStage(secret("test.thing.created"), secret("test.saga.started"), secret("test.access.granted"), secret("test.disk.filled"))
	clear := func(table string) int {
		return f.count(`SELECT count(*) FROM journeyman.` + table + ` WHERE position('passport-4711'::bytea IN body) > 0`)
	}
	if n := clear("outbox"); n != 1 {
		t.Errorf("%d clear bodies in the outbox, want that of the operational class only", n)
	}
	bk := newBroker()
	_, stop := f.relay(bk, func(c *outbox.RelayConfig) { c.Stager, c.Keys = nil, nil })
	f.eventually("the key is parked", func() bool { return f.count(`SELECT count(*) FROM journeyman.outbox_parked`) == 4 })
	stop()
	parked, err := f.desk.Parked(f.ctx, f.pool, 10)
	if err != nil || len(parked) != 1 || !strings.Contains(parked[0].Reason, `"one"`) || clear("outbox_parked") != 1 {
		t.Fatalf("parked %+v, %v", parked, err)
	}
	if err := f.desk.Release(f.ctx, f.pool, "K"); err != nil {
		t.Fatal(err)
	}
	f.relay(bk)
	for _, r := range f.wait(bk, "all four", atLeast(4)) {
		body := r.Body
		_, sealed := seal.Sealed(body)
		if want := r.Topic == "test.saga.progress.v1"; sealed != want || (r.Header(events.HeaderEncryption) == seal.Scheme) != want {
			t.Errorf("%s: sealed %v at the broker", r.Topic, sealed)
		}
		if sealed {
			if body, err = seal.Open(both, body, r.Header(events.HeaderEventID)); err != nil {
				t.Fatal(err)
			}
		}
		e, err := events.ParseEnvelope(body)
		if err != nil || !strings.Contains(string(e.Data), "passport-4711") || e.Metadata.Sequence == 0 || !json.Valid(body) {
			t.Errorf("%s: %v, %s", r.Topic, err, body)
		}
	}
	f.eventually("the event log", func() bool { return f.count(`SELECT count(*) FROM journeyman.event_log`) == 4 })
	if clear("event_log") != 1 || clear("event_ledger") != 0 || f.count(`SELECT count(*) FROM journeyman.event_ledger`) != 1 {
		t.Error("a clear body rests in the log or the ledger")
	}
	cat, _ := events.ParseCatalog([]byte("encryption: {domain: at_rest}\nmessages: [{type: platform.a.done, class: domain, owner: platform, producers: [a]}]"))
	if _, err := outbox.NewStager(outbox.Config{Catalog: cat, Producer: "a", Instance: "i", Env: "test"}); err == nil || !strings.Contains(err.Error(), "keys: missing") {
		t.Errorf("without keys: got %v", err)
	}
}

// Domain messages cost no statement more than before.
func TestClasses_DomainPathIsAsShortAsBefore(t *testing.T) {
	t.Parallel()
	b := &pgx.Batch{}
	if err := classStager(t, "").Queue(b, events.Origin{}, []events.Message{created("K", 1), created("L", 2)}); err != nil || b.Len() > 4 {
		t.Errorf("%d statements, want 4: xid, keys, two rows; %v", b.Len(), err)
	}
}
