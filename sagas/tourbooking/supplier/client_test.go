package supplier_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas/tourbooking/supplier"
)

func TestOutcome(t *testing.T) {
	t.Parallel()
	codes := map[string]string{"SOLD_OUT": "ROOM_GONE", "": "REFUSED"}
	answer := func(status int, body string) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(body))
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the caller has gone
		<-r.Context().Done()
	}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		codes   map[string]string
		class   outcome.Class
		reason  string
		code    string
	}{
		{"refused by a known code", answer(409, `{"code":"SOLD_OUT"}`), codes, outcome.Business, "", "ROOM_GONE"},
		{"refused by another code", answer(409, `{"code":"CLOSED"}`), codes, outcome.Business, "", "REFUSED"},
		{"refused without a body", answer(409, ``), codes, outcome.Business, "", "REFUSED"},
		{"refused, and no code is meant for it", answer(409, `{}`), nil, outcome.Fatal, "error", ""},
		{"key used for another request", answer(422, `{}`), codes, outcome.Fatal, "error", ""},
		{"broken", answer(500, `{}`), codes, outcome.Retryable, outcome.ReasonUnknown, ""},
		{"too many requests", answer(429, `{}`), codes, outcome.Retryable, outcome.ReasonUnknown, ""},
		{"moved", answer(302, ``), codes, outcome.Retryable, outcome.ReasonUnknown, ""},
		{"not JSON", answer(200, `<html>`), codes, outcome.Retryable, outcome.ReasonUnknown, ""},
		{"no answer", hang, codes, outcome.Retryable, outcome.ReasonUnknown, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.handler)
			defer server.Close()
			c, err := supplier.New(server.URL, 200*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Post(t.Context(), "/x", "k", struct{}{})
			check(t, supplier.Outcome(err, tt.codes), tt.class, tt.reason, tt.code)
		})
	}
}

func check(t *testing.T, err error, class outcome.Class, reason, code string) {
	t.Helper()
	var got *outcome.Error
	if !errors.As(err, &got) {
		t.Fatalf("%v is no outcome", err)
	}
	if got.Class != class || got.Reason != reason || got.Code != code {
		t.Errorf("class %s reason %q code %q, want %s %q %q", got.Class, got.Reason, got.Code, class, reason, code)
	}
}

func TestOutcome_neverSent(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := supplier.New(address, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Post(context.Background(), "/x", "k", struct{}{})
	check(t, supplier.Outcome(err, nil), outcome.Retryable, "error", "")
}

func TestAsk_notFound(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	c, err := supplier.New(server.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Ask(t.Context(), "/x", "r", "b", "s"); !errors.Is(err, supplier.ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}

func TestNew_refusesBadAddresses(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", "localhost:80", "ftp://x", "http://"} {
		if _, err := supplier.New(base, 0); err == nil {
			t.Errorf("%q was taken", base)
		}
	}
}
