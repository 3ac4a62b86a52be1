package outcome_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/outcome"
)

func TestHTTP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		method, after string
		status        int
		class         outcome.Class
		reason        string
		wait          time.Duration
	}{
		{"POST", "", 200, "", "", 0}, {"POST", "", 302, "", "", 0},
		{"POST", "", 429, outcome.Retryable, outcome.ReasonLimited, 0},
		{"POST", "17", 429, outcome.Retryable, outcome.ReasonLimited, 17 * time.Second},
		{"POST", "5", 503, outcome.Retryable, outcome.ReasonUnavailable, 5 * time.Second},
		{"POST", "", 408, outcome.Retryable, outcome.ReasonUnavailable, 0},
		{"POST", "", 425, outcome.Retryable, outcome.ReasonUnavailable, 0},
		{"POST", "Mon, 02 Jan 2006 15:04:05 GMT", 503, outcome.Retryable, outcome.ReasonUnavailable, 0},
		{"POST", "1000000", 429, outcome.Fatal, outcome.ReasonLimited, 0},
		{"POST", "Fri, 31 Dec 2399 23:59:59 GMT", 429, outcome.Fatal, outcome.ReasonLimited, 0},
		{"POST", "soon", 429, outcome.Retryable, outcome.ReasonLimited, 0},
		{"POST", "", 401, outcome.Fatal, outcome.ReasonCredentials, 0},
		{"POST", "", 403, outcome.Fatal, outcome.ReasonCredentials, 0},
		{"POST", "", 400, outcome.Fatal, outcome.ReasonRejected, 0},
		{"POST", "", 409, outcome.Fatal, outcome.ReasonRejected, 0},
		{"POST", "", 500, outcome.Retryable, outcome.ReasonUnknown, 0},
		{"POST", "", 502, outcome.Retryable, outcome.ReasonUnknown, 0},
		{"POST", "", 504, outcome.Retryable, outcome.ReasonUnknown, 0},
		{"GET", "", 504, outcome.Retryable, outcome.ReasonUnavailable, 0},
		{"GET", "", 500, outcome.Retryable, outcome.ReasonUnavailable, 0},
	} {
		h := http.Header{}
		h.Set("Retry-After", tt.after)
		e := outcome.HTTP(&http.Response{StatusCode: tt.status, Header: h, Request: &http.Request{Method: tt.method}}, nil)
		switch {
		case tt.class == "":
			if e != nil {
				t.Errorf("%s %d = %v, want nil", tt.method, tt.status, e)
			}
		case e == nil || e.Class != tt.class || e.Reason != tt.reason || e.After != tt.wait:
			t.Errorf("%s %d %q = %+v, want %s %s after %s", tt.method, tt.status, tt.after, e, tt.class, tt.reason, tt.wait)
		}
	}
}

// TestHTTP_errors: what never left says so; what may have arrived is unknown.
func TestHTTP_errors(t *testing.T) {
	t.Parallel()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := lis.Addr().String()
	_ = lis.Close()
	resp, err := http.Post("http://"+addr, "text/plain", strings.NewReader("x")) //nolint:noctx // refused at once
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("nobody listens, and yet somebody answers")
	}
	if e := outcome.HTTP(nil, err); !outcome.NotSent(err) || e.Class != outcome.Retryable || e.Reason != outcome.ReasonUnavailable {
		t.Errorf("refused: %+v", e)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}))
	defer srv.Close()
	resp, err = http.Post(srv.URL, "text/plain", strings.NewReader("x")) //nolint:noctx // ends at once
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("want an error")
	}
	if e := outcome.HTTP(nil, err); outcome.NotSent(err) || e.Reason != outcome.ReasonUnknown {
		t.Errorf("connection closed after the request: %+v", e)
	}
	if e := outcome.HTTP(nil, context.DeadlineExceeded); e.Reason != outcome.ReasonUnknown {
		t.Errorf("deadline: %+v", e)
	}
	if !outcome.NotSent(&net.DNSError{Err: "no such host"}) || outcome.NotSent(errors.New("x")) {
		t.Error("NotSent")
	}
}
