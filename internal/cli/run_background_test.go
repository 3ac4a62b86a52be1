package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/app"
)

// A worker process as a user starts it, without a gateway to reach: it stages a scheduled message when it is due, encrypted at rest,
// copies a dead letter to its topic, and archives the event log; a signal drains it.
func TestRun_Background_E4_E8_E14(t *testing.T) {
	t.Parallel()
	pool, _ := migrated(t)
	dir := t.TempDir()
	keys := filepath.Join(dir, "keys")
	if err := seal.Generate(keys, "k1"); err != nil {
		t.Fatal(err)
	}
	opened, err := seal.OpenDir(keys)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `
		INSERT INTO records.inbox_dead (consumer, state, business_key, message_id, type, topic, partition, "offset", headers, body, sent_at, attempts, class, reason, error, first_at, died_at)
		VALUES ('operation-records', 'dead', 'K', 'm', 'platform.saga.started', 'platform.saga.progress.v1', 0, 1, ARRAY['event_id', 'm'], 'x', now(), 7, 'FATAL_ERROR', 'panic', 'no', now(), now())`); err != nil {
		t.Fatal(err)
	}
	later(t, pool, app.Messages{Keys: opened, Encryption: map[events.Class]events.Encryption{events.ClassDomain: events.EncryptAtRest}})
	none := "http://127.0.0.1:1"
	r := start(t, map[string]string{
		callbackSecret: strings.Repeat("s", 32), "JOURNEYMAN_KEYS": keys, "JOURNEYMAN_ENCRYPT": "domain=at_rest", "JOURNEYMAN_EVENT_ARCHIVE": filepath.Join(dir, "cold"),
		"JOURNEYMAN_TRANSPORT": "nats", "JOURNEYMAN_NATS": jetStream(t), "JOURNEYMAN_RECORD_SCHEMA": "records",
	}, "run", "--dsn", pool.Config().ConnString(), "--replication", "1", "--zeebe", "127.0.0.1:1", "--zeebe-plaintext", "--cluster", "c",
		"--flight", none, "--hotel", none, "--transfer", none, "--payment", none, "--callback", none, "--log-level", "disabled")

	var body []byte
	r.until("the scheduled message to be published", func() bool {
		return pool.QueryRow(context.Background(), `SELECT body FROM journeyman.event_log WHERE type = 'ticketing.ticket.recorded'`).Scan(&body) == nil
	})
	if mode, sealed := seal.Sealed(body); !sealed || mode != seal.AtRest {
		t.Errorf("the event log has %q, want it encrypted", body)
	}
	desk, err := deadletter.New(deadletter.Config{DB: pool, Schema: "records"})
	if err != nil {
		t.Fatal(err)
	}
	r.until("the dead letter to be copied", func() bool {
		d, err := desk.Depth(context.Background())
		return err == nil && d.Dead == 1 && d.Unforwarded == 0 && d.Refused == 0
	})
	r.until("the archiver", func() bool {
		var on bool
		return pool.QueryRow(context.Background(), `SELECT archive FROM journeyman.event_log_policy`).Scan(&on) == nil && on
	})
}

// later puts a message that is due now.
func later(t *testing.T, pool *pgxpool.Pool, messages app.Messages) {
	t.Helper()
	office, err := app.NewOffice(app.OfficeConfig{Pool: pool, Schema: "journeyman", RecordSchema: "records", Cluster: "c", Messages: messages})
	if err != nil {
		t.Fatal(err)
	}
	store, err := work.NewStore("journeyman", messages.Keys)
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return store.Schedule(t.Context(), tx, office.Stager, "ticket", time.Now(), events.Origin{OperationID: "op", BusinessKey: "B-1", CorrelationID: "c"},
			events.Message{Type: "ticketing.ticket.recorded", Data: map[string]any{"booking": "B-1", "sagaId": "S", "number": "N-1"}})
	})
	if err != nil {
		t.Fatal(err)
	}
}
