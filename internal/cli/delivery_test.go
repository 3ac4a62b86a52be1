package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/operator"
)

// pastEvents is a migrated database with n published messages of two keys on a day that is over.
func pastEvents(t *testing.T, n int) (pool *pgxpool.Pool, env map[string]string) {
	t.Helper()
	pool = pgtest.Pool(t)
	ctx := context.Background()
	if err := app.Migrate(ctx, pool, "journeyman", "records"); err != nil {
		t.Fatal(err)
	}
	day := time.Now().UTC().AddDate(0, 0, -2)
	for _, sql := range []string{
		fmt.Sprintf(`CREATE TABLE journeyman.event_log_%s PARTITION OF journeyman.event_log FOR VALUES FROM ('%s 00:00+00') TO ('%s 00:00+00')`,
			day.Format("20060102"), day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)),
		fmt.Sprintf(`
			INSERT INTO journeyman.event_log (logged_at, shard, id, event_id, type, version, class, topic, business_key, seq, operation_id, headers, body, occurred_at, created_at)
			SELECT t, 0, n, eid::uuid, 'test.thing.created', 1, 'domain', 'test.thing.created.v1', 'K-' || n %% 2, n / 2 + 1, 'op-' || n, ARRAY['event_id', eid],
				convert_to('{"messageId":"' || eid || '","messageKind":"event","messageType":"test.thing.created","messageVersion":1,"data":{"n":' || n || '},"metadata":{"businessKey":"K-' || n %% 2 || '"}}', 'UTF8'), t, t
			FROM (SELECT n, gen_random_uuid()::text AS eid, '%s 00:00+00'::timestamptz + n * interval '1 s' AS t FROM generate_series(1, %d) n) r`, day.Format(time.DateOnly), n),
	} {
		if _, err := pool.Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	return pool, map[string]string{"JOURNEYMAN_DSN": pool.Config().ConnString(), "USER": "ann"}
}

func TestEventsReplay(t *testing.T) {
	t.Parallel()
	_, env := pastEvents(t, 100)
	dry := []string{"events", "replay", "run", "--dry-run", "--reason", "look", "--type", "test.*"}
	if p := decode[replay.Plan](t, env, ExitDone, dry...); p.Messages != 100 || p.Keys != 2 || p.Types["test.thing.created"] != 100 {
		t.Errorf("dry run %+v", p)
	}
	if code, out, _ := run(env, append(dry, "--key", "K-1")...); code != ExitDone || !strings.Contains(out, "50") {
		t.Errorf("dry run for people: %d %s", code, out)
	}
	for what, args := range map[string][]string{
		"reason":   {"--to", "group:view"},
		"--to":     {"--reason", "x"},
		"--kafka":  {"--reason", "x", "--to", "origin"},
		"--source": {"--reason", "x", "--source", "hearsay", "--to", "group:view"},
		"--from":   {"--reason", "x", "--from", "yesterday", "--to", "group:view"},
	} {
		if code, _, errs := run(env, append([]string{"events", "replay", "run"}, args...)...); code != ExitUsage || !strings.Contains(errs, what) {
			t.Errorf("without %s: %d %s", what, code, errs)
		}
	}
	p := decode[replay.Replay](t, env, ExitDone, "events", "replay", "run", "--reason", "view was wrong", "--to", "group:view", "--mode", "again", "--rate", "100000")
	if p.State != replay.Completed || p.Delivered != 100 || p.Target != "group:view" || !strings.HasPrefix(p.Actor, "ann") {
		t.Errorf("run %+v", p)
	}
	if got := decode[replay.Replay](t, env, ExitDone, "events", "replay", "show", p.ID); got.Delivered != 100 {
		t.Errorf("show %+v", got)
	}
	if list := decode[struct{ Replays []replay.Replay }](t, env, ExitDone, "events", "replay", "list"); len(list.Replays) != 1 {
		t.Errorf("list %+v", list)
	}
	if code, _, errs := run(env, "events", "replay", "cancel", p.ID, "--reason", "x"); code != ExitWrong || !strings.Contains(errs, "ended") {
		t.Errorf("cancel of an ended one: %d %s", code, errs)
	}
	if code, _, errs := run(env, "events", "replay", "resume", p.ID, "--reason", "x", "--to", "group:view"); code != ExitWrong || !strings.Contains(errs, "ended") {
		t.Errorf("resume of an ended one: %d %s", code, errs)
	}
	if v := decode[operator.Verification](t, env, ExitDone, "audit", "verify"); v.Rows != 2 {
		t.Errorf("%d audit rows, want the start and the asked-for resume", v.Rows)
	}
}

func TestEventsArchive(t *testing.T) {
	t.Parallel()
	pool, env := pastEvents(t, 100)
	folder := t.TempDir()
	env["JOURNEYMAN_ARCHIVE"] = "file://" + folder
	if d := decode[archive.Done](t, env, ExitDone, "events", "archive", "run", "--once", "--log-level", "disabled", "--part-rows", "30"); d.Rows != 100 || d.Parts != 4 || d.Days != 1 {
		t.Errorf("run %+v", d)
	}
	type days struct {
		Archived bool
		Days     []struct {
			Day   string
			Kept  bool
			State string
			Rows  int64
		}
	}
	if d := decode[days](t, env, ExitDone, "events", "archive", "days"); !d.Archived || len(d.Days) != 1 || d.Days[0].State != "verified" || d.Days[0].Rows != 100 {
		t.Errorf("days %+v", d)
	}
	if a := decode[archive.Audit](t, env, ExitDone, "events", "archive", "audit"); a.Rows != 100 || len(a.Faults) != 0 {
		t.Errorf("audit %+v", a)
	}
	if p := decode[replay.Plan](t, env, ExitDone, "events", "replay", "run", "--dry-run", "--reason", "look", "--source", "archive"); p.Messages != 100 {
		t.Errorf("archive has %+v", p)
	}
	parts, err := filepath.Glob(filepath.Join(folder, "v1", "*", "part-00002*"))
	if err != nil || len(parts) != 1 || os.WriteFile(parts[0], []byte("x"), 0o600) != nil {
		t.Fatal(parts, err)
	}
	if a := decode[archive.Audit](t, env, ExitWrong, "events", "archive", "audit"); len(a.Faults) != 1 {
		t.Errorf("audit of a damaged archive %+v", a)
	}
	if code, _, errs := run(env, "events", "archive", "off", "--reason", "moving house"); code != ExitDone {
		t.Errorf("off: %d %s", code, errs)
	}
	var by, why string
	if err := pool.QueryRow(context.Background(), `SELECT changed_by, reason FROM journeyman.event_log_policy WHERE NOT archive`).Scan(&by, &why); err != nil || !strings.HasPrefix(by, "ann") || why != "moving house" {
		t.Errorf("policy changed by %q because %q, %v", by, why, err)
	}
}

func TestEventsDLQ(t *testing.T) {
	t.Parallel()
	pool, env := pastEvents(t, 4)
	if _, err := pool.Exec(context.Background(), `
		INSERT INTO journeyman.inbox_dead (consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, sent_at, attempts, class, reason, error, first_at, died_at)
		SELECT 'view', 'dead', 'K', event_id::text, type, topic, 0, id, headers, body, now(), 7, 'RETRYABLE_ERROR', 'poisoned', E'\x1b[31mno', now(), now() FROM journeyman.event_log ORDER BY id`); err != nil {
		t.Fatal(err)
	}
	list := decode[struct{ Letters []dead }](t, env, ExitDone, "events", "dlq", "list", "--why", "poisoned").Letters
	if len(list) != 4 || list[0].Attempts != 7 || list[0].Body != nil {
		t.Fatalf("list %+v", list)
	}
	if code, out, _ := run(env, "events", "dlq", "list"); code != ExitDone || strings.Contains(out, "\x1b") || !strings.Contains(out, "poisoned") {
		t.Errorf("list for people: %d %q", code, out)
	}
	if code, out, _ := run(env, "events", "dlq", "heaps"); code != ExitDone || !strings.Contains(out, "poisoned") {
		t.Errorf("heaps: %d %s", code, out)
	}
	id := func(n int) string { return fmt.Sprint(list[n].ID) }
	type results struct {
		Results []struct {
			ID           int64
			MessageID    string `json:"message_id"`
			NewMessageID string `json:"new_message_id"`
			Target       string
			Error        string
		}
	}
	why := []string{"--reason", "fixed in 1.2.3", "--root-cause", "unknown flag"}
	if code, _, errs := run(env, "events", "dlq", "redrive", id(0), "--reason", "x"); code != ExitUsage || !strings.Contains(errs, "root-cause") {
		t.Errorf("without a root cause: %d %s", code, errs)
	}
	if r := decode[results](t, env, ExitWrong, append([]string{"events", "dlq", "redrive", id(3)}, why...)...); len(r.Results) != 1 || !strings.Contains(r.Results[0].Error, "older message") {
		t.Errorf("the last before the first: %+v", r)
	}
	if r := decode[results](t, env, ExitPartly, append([]string{"events", "dlq", "redrive", "999", id(0)}, why...)...); len(r.Results) != 2 || r.Results[0].Target != "group:view" {
		t.Errorf("one of two: %+v", r)
	}
	data := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(data, []byte(`{"n": 2, "mended": true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := decode[results](t, env, ExitDone, append([]string{"events", "dlq", "edit", id(1), "--data", data}, why...)...); len(r.Results) != 1 || r.Results[0].NewMessageID == "" || r.Results[0].NewMessageID == list[1].MessageID {
		t.Errorf("edit: %+v", r)
	}
	if r := decode[results](t, env, ExitDone, "events", "dlq", "drop", id(2), "--reason", "agreed"); len(r.Results) != 1 || r.Results[0].Error != "" {
		t.Errorf("drop: %+v", r)
	}
	if m := decode[dead](t, env, ExitDone, "events", "dlq", "show", id(3), "--body"); m.Body == nil || len(m.Headers) != 1 {
		t.Errorf("show %+v", m)
	}
	if code, out, _ := run(env, "events", "dlq", "show", id(3)); code != ExitDone || strings.Contains(out, "messageType") || strings.Contains(out, "\x1b") {
		t.Errorf("show for people tells the body or speaks to the terminal: %d %q", code, out)
	}
	rows := decode[struct{ Rows []operator.AuditRow }](t, env, ExitDone, "audit", "list").Rows
	if len(rows) != 3 || rows[0].Action != "dlq.drop" || rows[1].Action != "dlq.edit" || rows[2].Action != "dlq.redrive" || rows[2].Reason != "fixed in 1.2.3" {
		t.Errorf("audit %+v", rows)
	}
	var n int
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM journeyman.inbox_retry`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d messages in the group's queue, want two", n)
	}
}
