package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

// ledger makes a database with three encrypted links of one chain, and a folder of keys.
func ledger(t *testing.T) (dsn, keys string, pool *pgxpool.Pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	dsn, keys = pgtest.DSN(t), filepath.Join(t.TempDir(), "keys")
	if code, _, errs := run(nil, "events", "keys", "new", "k1", "--keys", keys); code != ExitDone {
		t.Fatalf("keys new: %d\n%s", code, errs)
	}
	d, err := seal.OpenDir(keys)
	if err != nil {
		t.Fatal(err)
	}
	if pool, err = pgxpool.New(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	for _, migrate := range []func() error{
		func() error { return outbox.Migrate(ctx, pool, "journeyman") }, func() error { return inbox.Migrate(ctx, pool, "journeyman") },
		func() error { return inbox.Migrate(ctx, pool, "journeyman_records") }, func() error { return work.Migrate(ctx, pool, "journeyman") },
	} {
		if err := migrate(); err != nil {
			t.Fatal(err)
		}
	}
	cat, err := events.ParseCatalog([]byte(`{encryption: {audit: at_rest}, messages: [{type: platform.access.granted, class: audit, owner: platform, producers: [p], partitions: 1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := outbox.NewStager(outbox.Config{Catalog: cat, Producer: "p", Instance: "i", Env: "test", Keys: d})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		if err := s.Queue(b, events.Origin{}, []events.Message{{Type: "platform.access.granted", BusinessKey: fmt.Sprint("K", n), Data: map[string]any{"n": n}}}); err != nil {
			t.Fatal(err)
		}
		b.Queue("COMMIT")
		if err := pool.SendBatch(ctx, b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dsn, keys, pool
}

func TestEventsVerify_E4(t *testing.T) {
	t.Parallel()
	dsn, keys, pool := ledger(t)
	dir := filepath.Join(t.TempDir(), "archive")
	if code, out, errs := run(nil, "events", "archive-audit", "--dsn", dsn, "--archive", dir); code != ExitDone || !strings.Contains(out, "3 messages in 1 new") {
		t.Fatalf("archive: %d\n%s%s", code, out, errs)
	}
	env := map[string]string{"JOURNEYMAN_DSN": dsn, "JOURNEYMAN_KEYS": keys}
	code, out, errs := run(env, "events", "verify", "--archive", dir, "--json")
	var report struct {
		OK      bool
		Sources []verified
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != ExitDone || !report.OK || len(report.Sources) != 2 || report.Sources[1].Rows != 3 || report.Sources[1].Unchecked != 0 {
		t.Fatalf("whole: %d, %v\n%s%s", code, err, out, errs)
	}
	head := report.Sources[1].Heads[0].String()
	if code, out, _ := run(env, "events", "verify", "--table", "log"); code != ExitDone || !strings.Contains(out, "log: 0 messages") {
		t.Errorf("log: %d\n%s", code, out)
	}
	if _, err := pool.Exec(t.Context(), `SET session_replication_role = replica; DELETE FROM journeyman.event_ledger WHERE link = 3;
		UPDATE journeyman.outbox_chain SET link = 2, hash = (SELECT hash FROM journeyman.event_ledger WHERE link = 2); SET session_replication_role = DEFAULT`); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"a known head": {"--head", head}, "the archive": {"--archive", dir}} {
		if code, out, _ := run(env, append([]string{"events", "verify"}, args...)...); code != ExitWrong || !strings.Contains(out, "BROKEN chain p/platform.access.granted.v1/0, link 3") {
			t.Errorf("cut off, with %s: %d\n%s", name, code, out)
		}
	}
	for want, args := range map[int][]string{ExitUsage: {"--head", "nonsense"}, ExitMissing: {"--keys", dir}} {
		if code, _, errs := run(env, append([]string{"events", "verify"}, args...)...); code != want {
			t.Errorf("%v: exit code %d, want %d\n%s", args, code, want, errs)
		}
	}
	if code, _, _ := run(nil, "events", "verify"); code != ExitUsage {
		t.Errorf("without a source: exit code %d", code)
	}
}

func TestEventsReseal_E4(t *testing.T) {
	t.Parallel()
	dsn, keys, _ := ledger(t)
	if code, _, errs := run(nil, "events", "keys", "new", "k2", "--keys", keys); code != ExitDone {
		t.Fatalf("keys new: %d\n%s", code, errs)
	}
	if code, out, _ := run(nil, "events", "keys", "list", "--keys", keys); code != ExitDone || out != "k1\nk2 (current)\n" {
		t.Errorf("keys list: %d\n%s", code, out)
	}
	away := filepath.Join(keys, "k1.away")
	if err := os.Rename(filepath.Join(keys, "k1.key"), away); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(nil, "events", "reseal", "--dsn", dsn, "--keys", keys); code != ExitPartly || !strings.Contains(errs, "key k1 is missing: 6 bodies left") {
		t.Errorf("without the old key: %d\n%s%s", code, out, errs)
	}
	if err := os.Rename(away, filepath.Join(keys, "k1.key")); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(nil, "events", "reseal", "--dsn", dsn, "--keys", keys); code != ExitDone || !strings.Contains(out, "6 bodies") {
		t.Errorf("with both: %d\n%s%s", code, out, errs)
	}
	if err := os.Remove(filepath.Join(keys, "k1.key")); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := run(nil, "events", "verify", "--dsn", dsn, "--keys", keys); code != ExitDone || !strings.Contains(out, "0 bodies unchecked") {
		t.Errorf("under the new key: %d\n%s%s", code, out, errs)
	}
	if code, _, _ := run(nil, "events", "keys", "new", "k2", "--keys", keys); code != ExitWrong {
		t.Errorf("a key twice: exit code %d", code)
	}
}

// The repository's own catalogs are complete; an entry that leaves something to guess is named.
func TestEventsLint_E3(t *testing.T) {
	t.Parallel()
	if code, out, errs := run(nil, "events", "lint", "--dir", filepath.Join("..", "..")); code != ExitDone || out != "" {
		t.Errorf("own catalogs: exit code %d\n%s%s", code, out, errs)
	}
	dir := t.TempDir()
	writeCatalog(t, dir, eventsCatalog)
	code, out, _ := run(nil, "events", "lint", "--dir", dir, "--json")
	var report struct {
		Types    int
		Problems []string
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != ExitWrong || report.Types != 1 || len(report.Problems) != 4 || !strings.Contains(out, "operator_action: missing") {
		t.Errorf("exit code %d, %v\n%s", code, err, out)
	}
	writeCatalog(t, dir, "messages: [{type: platform.a.do, class: domain, owner: tour, producers: [a]}]")
	if code, out, _ := run(nil, "events", "lint", "--dir", dir); code != ExitWrong || !strings.Contains(out, "past tense") || !strings.Contains(out, `owner "tour"`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// An accepted gap is an audited act; a key without one is refused.
func TestEventsAcceptGap_E4(t *testing.T) {
	t.Parallel()
	ctx, dsn := t.Context(), pgtest.DSN(t)
	if code, _, errs := run(nil, "migrate", "--dsn", dsn); code != ExitDone {
		t.Fatalf("migrate: %d\n%s", code, errs)
	}
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, `
		INSERT INTO journeyman.inbox_order (consumer, scope, business_key, seq) VALUES ('view', 's', 'K', 1);
		INSERT INTO journeyman.inbox_dead (consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, sent_at, attempts, class, reason, error, first_at, died_at, scope, previous)
		SELECT 'view', 'parked', 'K', 'm', 't', 't.v1', 0, n, '{}', '{}', now(), 0, 'BUSINESS_ERROR', 'gap', '', now(), now(), 's', n FROM unnest(ARRAY[5, 7]) n`); err != nil {
		t.Fatal(err)
	}
	args := []string{"events", "accept-gap", "view", "K", "--dsn", dsn, "--actor", "ada", "--reason", "the sender was restored from a backup"}
	if code, out, errs := run(nil, args...); code != ExitDone || !strings.Contains(out, "goes on with key K") {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	var seq, waiting, parked, audited int
	if err := pool.QueryRow(ctx, `SELECT (SELECT seq FROM journeyman.inbox_order), (SELECT count(*) FROM journeyman.inbox_retry), (SELECT count(*) FROM journeyman.inbox_dead),
		(SELECT count(*) FROM journeyman.operator_audit WHERE action = 'order.accept_gap' AND actor = 'ada')`).Scan(&seq, &waiting, &parked, &audited); err != nil {
		t.Fatal(err)
	}
	if seq != 5 || waiting != 1 || parked != 1 || audited != 1 {
		t.Errorf("at sequence %d with %d due and %d parked, audited %d times; want 5, the first one due, the one behind the next gap parked", seq, waiting, parked, audited)
	}
	args[3] = "L"
	if code, _, errs := run(nil, args...); code != ExitWrong || !strings.Contains(errs, "no message waits") {
		t.Errorf("a key without gap: exit code %d\n%s", code, errs)
	}
}
