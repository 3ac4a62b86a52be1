package cli

import (
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

// unseenCalls makes three calls that were never seen, and one that is asked about still.
func unseenCalls(t *testing.T) (*operatortest.Rig, map[string]string) {
	t.Helper()
	r := operatortest.NewDatabase(t)
	for _, id := range []string{"op_1:a", "op_1:b", "op_1:c"} {
		r.Operation(id, "op_1", `state = 'revoked', called_at = {{schema}}.now(), asks_over_at = {{schema}}.now()`)
	}
	r.Operation("op_1:asked", "op_1", `state = 'revoked', ask_at = {{schema}}.now() + interval '1 h'`)
	return r, operatorEnv(r)
}

type actedAnswer struct {
	Results []acted `json:"results"`
}

// TestEffectsDismissAndAskAgain: what the list of effects shows as never seen is settled or asked about for longer.
func TestEffectsDismissAndAskAgain(t *testing.T) {
	t.Parallel()
	r, env := unseenCalls(t)
	if code, stdout, _ := run(env, "effects"); code != ExitDone || strings.Count(stdout, "never seen ") < 3 {
		t.Errorf("effects: %d %s", code, stdout)
	}
	got := decode[actedAnswer](t, env, ExitPartly, "effects", "dismiss", "op_1:a", "op_1:asked", "--reason", "the hotel has none", "--actor", "bob")
	if len(got.Results) != 2 || !got.Results[0].OK || got.Results[0].Result.AuditSeq != 1 || got.Results[0].Result.DismissedAt == nil ||
		got.Results[1].OK || !strings.Contains(got.Results[1].Error, "asked about it still") {
		t.Errorf("dismiss one and one that is asked about: %+v", got)
	}
	got = decode[actedAnswer](t, env, ExitDone, "effects", "ask-again", "op_1:b", "--for", "48h", "--reason", "it may come")
	if len(got.Results) != 1 || !got.Results[0].OK || got.Results[0].Result.AskUntil == nil {
		t.Errorf("ask again: %+v", got)
	}
	if code, stdout, _ := run(env, "effects", "ask-again", "op_1:a", "--for", "1h", "--reason", "dismissed by mistake"); code != ExitDone ||
		!strings.HasPrefix(stdout, "call op_1:a is asked about again until ") || !strings.Contains(stdout, "; audit row 4") {
		t.Errorf("ask again in text: %d %s", code, stdout)
	}
	if code, stdout, stderr := run(env, "effects", "dismiss", "op_1:a", "--reason", "x"); code != ExitWrong || stdout != "" || !strings.Contains(stderr, "asked about it still") {
		t.Errorf("dismiss what is asked about: %d %s %s; want 1 and the reason", code, stdout, stderr)
	}
	e := decode[operator.Effects](t, env, ExitDone, "effects")
	if e.Counts.LateOpen != 1 || len(e.AsksOver) != 1 || e.AsksOver[0].OperationID != "op_1:c" || e.Counts.LateAsked != 3 {
		t.Errorf("effects afterwards: %+v, %+v", e.Counts, e.AsksOver)
	}
	rows, err := r.Desk.Audit(t.Context(), "operation:op_1:a", 0, 10)
	if err != nil || len(rows) != 3 || rows[0].Action != "call.dismiss.refused" || rows[1].Action != operator.ActionAskAgain || rows[2].Actor != "bob" {
		t.Errorf("audit of op_1:a: %+v, %v", rows, err)
	}
	// One event for each row (spec P2).
	var events int
	if err := r.Pool.QueryRow(t.Context(), `SELECT count(*) FROM jm_test.event_ledger WHERE type = $1`, operator.EventActed).Scan(&events); err != nil || events != 5 {
		t.Errorf("%d audit events, %v; want 5", events, err)
	}
}

func TestEffectsAct_refuses(t *testing.T) {
	t.Parallel()
	r, env := unseenCalls(t)
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		code int
		want string
	}{
		"no operation":        {env, []string{"dismiss", "--reason", "x"}, ExitUsage, "requires at least 1 arg"},
		"no reason":           {env, []string{"dismiss", "op_1:c"}, ExitUsage, `--reason "": want why`},
		"long reason":         {env, []string{"dismiss", "op_1:c", "--reason", strings.Repeat("x", 501)}, ExitUsage, "at most 500 characters"},
		"nobody":              {map[string]string{"JOURNEYMAN_DSN": env["JOURNEYMAN_DSN"]}, []string{"dismiss", "op_1:c", "--reason", "x"}, ExitUsage, "--actor"},
		"no database":         {map[string]string{"USER": "ann"}, []string{"dismiss", "op_1:c", "--reason", "x"}, ExitUsage, "--dsn or JOURNEYMAN_DSN"},
		"no time":             {env, []string{"ask-again", "op_1:c", "--reason", "x"}, ExitUsage, "--for 0s: want 1h0m0s to 2160h0m0s"},
		"too short":           {env, []string{"ask-again", "op_1:c", "--reason", "x", "--for", "59m"}, ExitUsage, "--for 59m0s: want 1h0m0s"},
		"no duration":         {env, []string{"ask-again", "op_1:c", "--reason", "x", "--for", "soon"}, ExitUsage, "--for"},
		"no such operation":   {env, []string{"dismiss", "op_9", "--reason", "x"}, ExitWrong, "call.dismiss op_9: not found"},
		"unknown act":         {env, []string{"forget", "op_1:c"}, ExitUsage, `unknown command "forget"`},
		"database down":       {env, []string{"dismiss", "op_1:c", "--reason", "x", "--dsn", "host=/nowhere user=x"}, ExitMissing, "database"},
		"asked about already": {env, []string{"ask-again", "op_1:asked", "--reason", "x", "--for", "2h"}, ExitWrong, "asked about it still"},
	} {
		if code, _, stderr := run(c.env, append([]string{"effects"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, want %d and %q: %s", name, code, c.code, c.want, stderr)
		}
	}
	if v, err := r.Desk.VerifyAudit(t.Context()); err != nil || v.Rows != 2 {
		t.Errorf("audit: %+v, %v; want the two that were well formed", v, err)
	}
}
