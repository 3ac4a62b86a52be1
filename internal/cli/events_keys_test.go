package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/sagas"
)

// Reseal goes through the operation records too: plan, origin, each partial result and the answer are under the new key afterwards.
func TestEventsReseal_Records_E4(t *testing.T) {
	t.Parallel()
	dsn, keys, pool := ledger(t)
	if err := sagas.MigrateRecords(t.Context(), pool, ""); err != nil {
		t.Fatal(err)
	}
	d, err := seal.OpenDir(keys)
	if err != nil {
		t.Fatal(err)
	}
	text := func(place, clear string) string {
		t.Helper()
		value, err := seal.JSON(d, []byte(clear), "record\nop_1\n"+place)
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	final, err := seal.Seal(d, seal.AtRest, []byte(`{"state":"completed"}`), "record\nop_1\nfinal")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO journeyman_records.record (operation_id, started_on, tenant, type, key, internal_key, attempt, business_key, plan, origin, partial, final, state,
			started_at, timeout_at, estimated_at, finished_at, start_state, start_next_at)
		VALUES ('op_1', current_date, 'acme', 'trip', 'k', 'k', 1, 'K', $1, $2, $3, $4, 'completed', now(), now(), now(), now(), 'started', now())`,
		text("plan", `{}`), text("origin", `{}`), `{"flight":`+text("partial\nflight", `1`)+`,"hotel":`+text("partial\nhotel", `2`)+`,"clear":3}`, final); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := run(nil, "events", "keys", "new", "k2", "--keys", keys); code != ExitDone {
		t.Fatalf("keys new: %d\n%s", code, errs)
	}
	for _, c := range []struct{ option, want string }{{"--schema=", "5 bodies"}, {"--record-schema=", "6 bodies"}, {"--json=false", "0 bodies"}} {
		if code, out, errs := run(nil, "events", "reseal", "--dsn", dsn, "--keys", keys, c.option); code != ExitDone || !strings.Contains(out, c.want) {
			t.Errorf("reseal %s: %d\n%s%s, want %s", c.option, code, out, errs, c.want)
		}
	}
	if code, _, _ := run(nil, "events", "reseal", "--dsn", dsn, "--keys", keys, "--schema=", "--record-schema="); code != ExitUsage {
		t.Errorf("reseal of nothing: exit code %d", code)
	}
	if err := os.Remove(filepath.Join(keys, "k1.key")); err != nil {
		t.Fatal(err)
	}
	if d, err = seal.OpenDir(keys); err != nil {
		t.Fatal(err)
	}
	var hotel, clear string
	if err := pool.QueryRow(t.Context(), `SELECT partial ->> 'clear', partial -> 'hotel', final FROM journeyman_records.record`).Scan(&clear, &hotel, &final); err != nil {
		t.Fatal(err)
	}
	view, err := seal.OpenJSON(d, []byte(hotel), "record\nop_1\npartial\nhotel")
	if err != nil || string(view) != "2" || clear != "3" {
		t.Errorf("partial results: %s and %s, %v", view, clear, err)
	}
	if answer, err := seal.Open(d, final, "record\nop_1\nfinal"); err != nil || string(answer) != `{"state":"completed"}` {
		t.Errorf("answer: %s, %v", answer, err)
	}
}
