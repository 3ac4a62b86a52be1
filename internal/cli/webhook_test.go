package cli

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/internal/operatortest"
)

// TestWebhook_E11: dead deliveries are listed and sent again; the act is audited in its transaction.
func TestWebhook_E11(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	if err := webhook.Migrate(t.Context(), r.Pool, "rig_records"); err != nil {
		t.Fatal(err)
	}
	env := operatorEnv(r)
	env["JOURNEYMAN_RECORD_SCHEMA"] = "rig_records"
	r.Run(`INSERT INTO rig_records.webhook_delivery (id, endpoint, tenant, type, operation_id, body, state, reason, next_at, created_at, finished_at)
		VALUES ('msg_1', 'acme-1', 'acme', 'operation.failed', 'op_1', '{}', 'dead', 'status 500', now(), now(), now())`)
	type list struct {
		Deliveries []webhook.Delivery `json:"deliveries"`
	}
	if got := decode[list](t, env, ExitDone, "webhook", "list", "--state", "dead"); len(got.Deliveries) != 1 || got.Deliveries[0].Reason != "status 500" {
		t.Errorf("list: %+v", got)
	}
	if code, stdout, _ := run(env, "webhook", "endpoints"); code != ExitDone || !strings.Contains(stdout, "acme-1") {
		t.Errorf("endpoints: %d %s", code, stdout)
	}
	if code, stdout, stderr := run(env, "webhook", "resend", "msg_1", "msg_2", "--reason", "they are back"); code != ExitPartly || !strings.Contains(stdout, "msg_1 will be sent again") || !strings.Contains(stderr, "unknown") {
		t.Errorf("resend of a good and an unknown one: %d %s %s", code, stdout, stderr)
	}
	if got := decode[list](t, env, ExitDone, "webhook", "list", "--state", "pending"); len(got.Deliveries) != 1 {
		t.Errorf("after the resend: %+v, want it pending", got)
	}
	if rows, err := r.Desk.Audit(t.Context(), "webhook:msg_1", 0, 10); err != nil || len(rows) != 1 || rows[0].Action != "webhook.resend" || string(rows[0].Before) != `{"state":"dead"}` {
		t.Errorf("audit: %+v, %v", rows, err)
	}
	if code, _, stderr := run(env, "saga", "list", "--event-archive", "ftp://x"); code != ExitUsage || !strings.Contains(stderr, "--event-archive: ") {
		t.Errorf("a bad archive: %d %s", code, stderr)
	}
}
