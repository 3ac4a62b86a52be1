package operator_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vitrip/journeyman/internal/operatortest"
	"github.com/vitrip/journeyman/operator"
)

const unseenCall = "op_1:hotelReserve:beach"

// unseen makes a saga with a call that was asked about to the end and never seen.
func unseen(t *testing.T) *operatortest.Rig {
	t.Helper()
	r := operatortest.NewDatabase(t)
	r.Saga("op_1", "failed", "failed", "1 min")
	r.Operation(unseenCall, "op_1", `job_type = 'hotel.reserve', state = 'revoked', called_at = {{schema}}.now() - interval '2 d', asked = 7, asks_over_at = {{schema}}.now()`)
	return r
}

func call(id, reason string) operator.CallRequest {
	return operator.CallRequest{OperationID: id, Actor: "ann", Reason: reason}
}

func open(t *testing.T, r *operatortest.Rig) (over, asked int64) {
	t.Helper()
	e, err := r.Desk.Effects(t.Context(), 0)
	if err != nil || int64(len(e.AsksOver)) != e.Counts.LateOpen || int64(len(e.Asked)) != e.Counts.LateAsked {
		t.Fatalf("effects: %+v, %v", e.Counts, err)
	}
	return e.Counts.LateOpen, e.Counts.LateAsked
}

// TestDismissCall: a person settles a call: it leaves list and count, its row stays, and the saga's timeline tells who and why.
func TestDismissCall(t *testing.T) {
	t.Parallel()
	r := unseen(t)
	res, err := r.Desk.DismissCall(t.Context(), call(unseenCall, "the hotel has no such booking"))
	if err != nil {
		t.Fatal(err)
	}
	if res.AuditSeq != 1 || res.SagaID != "op_1" || res.JobType != "hotel.reserve" || res.DismissedAt == nil || res.AskUntil != nil || !strings.Contains(res.Happened, unseenCall) {
		t.Errorf("result: %+v", res)
	}
	if over, asked := open(t, r); over != 0 || asked != 0 {
		t.Errorf("after it was dismissed: %d never seen, %d asked about", over, asked)
	}
	row, err := r.Desk.AuditRow(t.Context(), 1)
	if err != nil || row.Actor != "ann" || row.Action != operator.ActionDismissCall || row.Target != "operation:"+unseenCall || row.Reason != "the hotel has no such booking" ||
		!strings.Contains(string(row.Before), `"asked":7`) || !strings.Contains(string(row.After), `"dismissed_at":"`) {
		t.Errorf("audit row: %+v, %v", row, err)
	}
	if _, err := r.Desk.DismissCall(t.Context(), call(unseenCall, "once more")); !errors.Is(err, operator.ErrNotUnseen) || !strings.Contains(err.Error(), "dismissed at") {
		t.Errorf("twice: %v, want ErrNotUnseen", err)
	}
	s, err := r.Desk.Saga(t.Context(), "op_1")
	if err != nil {
		t.Fatal(err)
	}
	for source, what := range map[string]string{"operator": "call.dismiss by ann", "operation": "asked no more"} {
		if !slices.ContainsFunc(s.Timeline, func(m operator.Moment) bool { return m.Source == source && m.What == what }) {
			t.Errorf("the timeline lacks %q: %+v", what, s.Timeline)
		}
	}
	if v, err := r.Desk.VerifyAudit(t.Context()); err != nil || !v.OK() || v.Rows != 2 {
		t.Errorf("audit: %+v, %v; want the act and the refusal", v, err)
	}
}

// TestAskAgain: the supplier is asked again for the time that was stated, also about a dismissed call.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	r := unseen(t)
	if _, err := r.Desk.DismissCall(t.Context(), call(unseenCall, "settled")); err != nil {
		t.Fatal(err)
	}
	ask := operator.AskAgainRequest{CallRequest: call(unseenCall, "the hotel says it may come"), For: 36 * time.Hour}
	res, err := r.Desk.AskAgain(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if res.AuditSeq != 2 || res.AskUntil == nil || res.DismissedAt != nil || !strings.Contains(res.Happened, "asked about again until "+res.AskUntil.UTC().Format(time.RFC3339)) {
		t.Errorf("result: %+v", res)
	}
	if over, asked := open(t, r); over != 0 || asked != 1 {
		t.Errorf("while it is asked about: %d never seen, %d asked about", over, asked)
	}
	var hours float64
	if err := r.Pool.QueryRow(t.Context(), `SELECT extract(epoch FROM ask_until - ask_from) / 3600 FROM `+operatortest.Schema+`.operation WHERE ask_at <= `+operatortest.Schema+`.now()`).Scan(&hours); err != nil || hours != 36 {
		t.Errorf("asked at once and for %v hours, %v; want 36", hours, err)
	}
	row, err := r.Desk.AuditRow(t.Context(), 2)
	if err != nil || row.Action != operator.ActionAskAgain || !strings.Contains(string(row.Before), `"dismissed_at":"`) || !strings.Contains(string(row.After), `"ask_until":"`) {
		t.Errorf("audit row: %+v, %v", row, err)
	}
	for name, act := range map[string]func() error{
		"ask again": func() error { _, err := r.Desk.AskAgain(t.Context(), ask); return err },
		"dismiss":   func() error { _, err := r.Desk.DismissCall(t.Context(), call(unseenCall, "x")); return err },
	} {
		if err := act(); !errors.Is(err, operator.ErrNotUnseen) || !strings.Contains(err.Error(), "asked about it still") {
			t.Errorf("%s while it is asked about: %v, want ErrNotUnseen", name, err)
		}
	}
}

// TestActOnCallOnce lets many people act at once, on both sides: one act is done, each of the others is refused and audited.
func TestActOnCallOnce(t *testing.T) {
	t.Parallel()
	r := unseen(t)
	const people = 8
	errs := make([]error, people)
	var wg sync.WaitGroup
	for n := range people {
		wg.Go(func() {
			if n%2 == 0 {
				_, errs[n] = r.Desk.DismissCall(t.Context(), call(unseenCall, "settled"))
			} else {
				_, errs[n] = r.Desk.AskAgain(t.Context(), operator.AskAgainRequest{CallRequest: call(unseenCall, "wait"), For: time.Hour})
			}
		})
	}
	wg.Wait()
	dismissed, asked := 0, 0
	for n, err := range errs {
		switch {
		case err == nil && n%2 == 0:
			dismissed++
		case err == nil:
			asked++
		case !errors.Is(err, operator.ErrNotUnseen):
			t.Errorf("act %d: %v, want ErrNotUnseen", n, err)
		}
	}
	// One may ask about what another has just dismissed.
	if dismissed > 1 || asked > 1 || dismissed+asked == 0 {
		t.Errorf("dismissed %d times and asked again %d times, want each once at most", dismissed, asked)
	}
	v, err := r.Desk.VerifyAudit(t.Context())
	if err != nil || !v.OK() || v.Rows != people {
		t.Errorf("audit: %+v, %v; want a row for each of %d", v, err, people)
	}
	if n := count(t, r, `SELECT count(*) FROM {{schema}}.operator_audit WHERE action LIKE '%.refused'`); n != people-dismissed-asked {
		t.Errorf("%d refusals in the audit, want %d", n, people-dismissed-asked)
	}
}

func TestActOnCall_refuses(t *testing.T) {
	t.Parallel()
	r := unseen(t)
	r.Operation("asked", "", `state = 'revoked', asks_over_at = NULL, ask_at = {{schema}}.now() + interval '1 h'`)
	r.Operation("done", "", `class = 'SUCCESS'`)
	r.Operation("landed", "", `state = 'revoked', effect = 'known', asks_over_at = {{schema}}.now()`)
	r.Operation("slim", "", `state = 'revoked', asks_over_at = {{schema}}.now(), slimmed_at = {{schema}}.now()`)
	ask := func(id, reason string, d time.Duration) operator.AskAgainRequest {
		return operator.AskAgainRequest{CallRequest: call(id, reason), For: d}
	}
	audited := 0
	for _, c := range []struct {
		id, reason string
		dismiss    bool
		d          time.Duration
		is         error // nil = a field
		want       string
	}{
		{"asked", "x", true, 0, operator.ErrNotUnseen, "is asked about it still"},
		{"asked", "x", false, time.Hour, operator.ErrNotUnseen, "is asked about it still"},
		{"done", "x", true, 0, operator.ErrNotUnseen, "it is done and nobody asks about it"},
		{"landed", "x", true, 0, operator.ErrNotUnseen, "it was seen"},
		{"slim", "x", false, time.Hour, operator.ErrNotUnseen, "its input went with its retention"},
		{"none", "x", false, time.Hour, operator.ErrNotFound, "none: not found"},
		{unseenCall, " ", true, 0, nil, `reason " ": want 1 to 500`},
		{"", "x", true, 0, nil, `operation "": want`},
		{unseenCall, "x", false, 0, nil, `for "0s": want 1h0m0s to 2160h0m0s`},
		{unseenCall, "x", false, 59 * time.Minute, nil, `for "59m0s": want 1h0m0s`},
		{unseenCall, "x", false, operator.MaxAskFor + 1, nil, `for "2160h0m0.000000001s"`},
	} {
		var err error
		if c.dismiss {
			_, err = r.Desk.DismissCall(t.Context(), call(c.id, c.reason))
		} else {
			_, err = r.Desk.AskAgain(t.Context(), ask(c.id, c.reason, c.d))
		}
		var field *operator.FieldError
		if err == nil || !strings.Contains(err.Error(), c.want) || c.is == nil && !errors.As(err, &field) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.is != nil {
			audited++
		}
	}
	if n := count(t, r, `SELECT count(*) FROM {{schema}}.operator_audit WHERE action LIKE 'call.%.refused'`); n != audited {
		t.Errorf("%d refusals in the audit, want %d: of requests that were well formed", n, audited)
	}
	if over, asked := open(t, r); over != 3 || asked != 1 {
		t.Errorf("after refusals: %d never seen, %d asked about; want all as they were", over, asked)
	}
	if res, err := r.Desk.DismissCall(t.Context(), call("slim", "settled")); err != nil || res.DismissedAt == nil {
		t.Errorf("dismiss a slimmed one: %+v, %v", res, err)
	}
}
