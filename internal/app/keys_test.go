package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
)

// E4: where class saga is encrypted, operation records rest so too, and partners get their answers; where it is not, they rest
// clear although there are keys.
func TestRecordsRestAsTheCatalogSays_E4(t *testing.T) {
	t.Parallel()
	without := onNATS(pgtest.Pool(t), "nats://127.0.0.1:1")
	without.Messages.Encryption = map[events.Class]events.Encryption{events.ClassSaga: events.EncryptAtRest}
	if _, err := app.New(without); err == nil || !strings.Contains(err.Error(), "Messages.Keys is nil") {
		t.Errorf("without keys: got %v, want a refusal to start", err)
	}
	for name, encrypted := range map[string]map[events.Class]events.Encryption{
		"saga": {events.ClassSaga: events.EncryptAtRest}, "another class": {events.ClassAudit: events.EncryptAtRest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "keys")
			if err := seal.Generate(folder, "k1"); err != nil {
				t.Fatal(err)
			}
			keys, err := seal.OpenDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			h := open(t, func(cfg *app.Config) { cfg.Messages = app.Messages{Encryption: encrypted, Keys: keys} })
			h.run(h.app.Relay, h.app.Record)
			h.book("k-1")
			var plan, final string
			if err := h.pool.QueryRow(h.ctx, `SELECT plan::text || origin::text, encode(final, 'escape') FROM try_records.record`).Scan(&plan, &final); err != nil {
				t.Fatal(err)
			}
			_, want := encrypted[events.ClassSaga]
			if got := strings.HasPrefix(final, "jms1") && !strings.Contains(plan, "tok_1"); got != want || want == strings.Contains(final, "completed") {
				t.Errorf("plan %s and answer %s rest encrypted: %v, want %v", plan, final, got, want)
			}
		})
	}
}
