package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/vitrip/journeyman/internal/operatortest"
)

func token(t string) url.Values { return url.Values{"token": {t}} }

func from(address string) func(*http.Request) {
	return func(r *http.Request) { r.RemoteAddr = address }
}

// Failed sign-ins of an address make it wait, longer each time and never for long; a good token counts only after the wait, and other
// addresses do not wait.
func TestSignIn_throttled(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	synctest.Test(t, func(t *testing.T) {
		b := &browser{t: t, h: guarded(t, r, nil)}
		try := func(address, tok string) (status, wait int) {
			t.Helper()
			res := b.ask(http.MethodPost, "https://ops.example/signin", token(tok), from(address))
			if s := res.Header.Get("Retry-After"); s != "" {
				var err error
				if wait, err = strconv.Atoi(s); err != nil {
					t.Fatal(err)
				}
			}
			return res.StatusCode, wait
		}
		const here, there = "192.0.2.1:1000", "192.0.2.2:1000"
		for n := range 5 {
			if status, _ := try(fmt.Sprintf("192.0.2.1:%d", n), "wrong"); status != http.StatusForbidden {
				t.Fatalf("failure %d: %d", n+1, status)
			}
		}
		for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			if status, wait := try(here, "operator-token"); status != http.StatusTooManyRequests || wait != want {
				t.Fatalf("within the wait: %d, wait %d s; want 429 and %d s", status, wait, want)
			}
			<-time.After(time.Duration(want)*time.Second - time.Millisecond)
			if status, wait := try(here, "operator-token"); status != http.StatusTooManyRequests || wait != 1 {
				t.Errorf("a moment before the end of the wait: %d, wait %d s", status, wait)
			}
			<-time.After(time.Millisecond)
			if status, _ := try(here, "wrong"); status != http.StatusForbidden {
				t.Errorf("after %d s: %d, want it looked at", want, status)
			}
		}
		if status, _ := try(there, "operator-token"); status != http.StatusSeeOther {
			t.Errorf("from another address: %d", status)
		}
		<-time.After(time.Minute)
		if status, _ := try(here, "operator-token"); status != http.StatusSeeOther {
			t.Errorf("a good token after the wait: %d", status)
		}
		if status, _ := try(here, "wrong"); status != http.StatusForbidden {
			t.Errorf("after a good one the count begins anew: %d", status)
		}
	})
}

// An outage of who knows tokens is nobody's failure; a quarter of an hour without one is forgotten; one host's IPv6 addresses are one.
func TestSignIn_throttlesFailuresOnly(t *testing.T) {
	t.Parallel()
	r := operatortest.NewDatabase(t)
	synctest.Test(t, func(t *testing.T) {
		b := &browser{t: t, h: guarded(t, r, nil)}
		try := func(address, tok string, want int) {
			t.Helper()
			if res := b.ask(http.MethodPost, "https://ops.example/signin", token(tok), from(address)); res.StatusCode != want {
				t.Errorf("%s from %s: %d, want %d", tok, address, res.StatusCode, want)
			}
		}
		for range 20 {
			try("192.0.2.3:1", "outage", http.StatusServiceUnavailable)
		}
		try("192.0.2.3:1", "viewer-token", http.StatusSeeOther)
		for n := range 5 {
			try(fmt.Sprintf("[2001:db8:0:1::%x]:1", n+1), "wrong", http.StatusForbidden)
		}
		try("[2001:db8:0:1:ffff::1]:1", "wrong", http.StatusTooManyRequests)
		try("[2001:db8:0:2::1]:1", "wrong", http.StatusForbidden)
		<-time.After(15 * time.Minute)
		for range 5 {
			try("[2001:db8:0:1::9]:1", "wrong", http.StatusForbidden)
		}
	})
}
