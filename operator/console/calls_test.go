package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vitrip/journeyman/internal/operatortest"
)

// TestCallsNeverSeen: a person dismisses a call or has it asked about for longer, from the page that lists it.
func TestCallsNeverSeen(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	for _, id := range []string{"op_1:hotelReserve:a/b", "op_1:hotelReserve:c"} {
		r.Operation(id, "op_1", `state = 'revoked', called_at = {{schema}}.now(), asks_over_at = {{schema}}.now()`)
	}
	s := open(t, r)
	dismiss, ask := "/calls/dismiss/op_1:hotelReserve:a%2Fb", "/calls/ask-again/op_1:hotelReserve:c"
	s.page(t, "/effects", 200, "Calls never seen", `action="`+dismiss+`"`, `formaction="`+ask+`"`)

	status, header, body := s.ask(t, http.MethodPost, ask, url.Values{"reason": {"go " + hostile}, "for": {"soon"}})
	if status != 422 || !strings.Contains(body, "Not done: for &#34;soon&#34;: want a duration") || !strings.Contains(body, "go &lt;script&gt;") || !strings.Contains(body, `value="soon"`) {
		t.Errorf("ask again without a time: %d, want 422 that names the field and keeps the form\n%s", status, body)
	}
	sound(t, ask, header, body)
	if status, _, body = s.ask(t, http.MethodPost, dismiss, url.Values{"reason": {" "}}); status != 422 || !strings.Contains(body, `reason &#34; &#34;: want 1 to 500`) {
		t.Errorf("dismiss without a reason: %d\n%s", status, body)
	}

	if status, header, _ = s.ask(t, http.MethodPost, dismiss, url.Values{"reason": {"the hotel has none"}}); status != 303 || header.Get("Location") != "/effects?audit=1" {
		t.Fatalf("dismiss: %d to %q", status, header.Get("Location"))
	}
	if body = s.page(t, "/effects?audit=1", 200, "recorded as audit row 1."); strings.Contains(body, dismiss) {
		t.Error("a dismissed call is still listed")
	}
	if status, _, _ = s.ask(t, http.MethodPost, ask, url.Values{"reason": {"it may come"}, "for": {"48h"}}); status != 303 {
		t.Fatalf("ask again: %d", status)
	}
	if body = s.page(t, "/effects", 200, "Calls asked again"); strings.Contains(body, "<h2>Calls never seen") {
		t.Error("a call that is asked about again is still listed as never seen")
	}
	status, header, body = s.ask(t, http.MethodPost, dismiss, url.Values{"reason": {"again"}})
	if status != 409 || !strings.Contains(body, "dismissed at") {
		t.Errorf("dismiss twice: %d, want 409\n%s", status, body)
	}
	sound(t, dismiss, header, body)
	s.page(t, "/audit", 200, "call.dismiss", "call.ask-again", "call.dismiss.refused", "the hotel has none", "console@test")
}
