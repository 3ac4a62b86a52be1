package outcome

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Reasons that [HTTP] adds.
const (
	ReasonLimited     = "limited"     // RETRYABLE: the other system asks to come back later
	ReasonCredentials = "credentials" // FATAL: the other system refuses who we are
	ReasonRejected    = "rejected"    // FATAL: the other system refuses the request as it is
)

// MostRetryAfter bounds the Retry-After of another system; a longer one is a FATAL outcome, as nobody would wait for it.
const MostRetryAfter = 24 * time.Hour

// HTTP reads what an HTTP call came to, from the two results of [http.Client.Do]; nil = a status under 400. Domain answers that
// the API declares (409 "sold out", 404 "no such offer") are for the caller to read first. Everything else:
//
//	never connected (name, refused, TLS)   RETRYABLE unavailable: nothing was sent
//	any other error of Do                  RETRYABLE unknown, of GET, HEAD, OPTIONS what [Classify] says
//	408 425 429 503                        RETRYABLE limited or unavailable, after Retry-After: it was not processed
//	401 403 407                            FATAL credentials
//	every other 4xx                        FATAL rejected
//	500 502 504, every other 5xx           RETRYABLE unknown, of GET, HEAD, OPTIONS unavailable
//
// Unknown means that the other system may have acted (spec Z3). The body is not read and never in the message.
func HTTP(resp *http.Response, err error) *Error {
	if err != nil {
		return httpFailed(resp, err)
	}
	code := resp.StatusCode
	text := fmt.Errorf("HTTP status %d %s", code, http.StatusText(code))
	switch {
	case code < 400:
		return nil
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		e := NewRetryable(text, 0)
		e.Reason = ReasonUnavailable
		if code == http.StatusTooManyRequests {
			e.Reason = ReasonLimited
		}
		var bad error
		if e.After, bad = retryAfter(resp.Header.Get("Retry-After"), time.Now()); bad != nil {
			return Fatalf(ReasonLimited, "%w: %w", text, bad)
		}
		return e
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return Fatalf(ReasonCredentials, "%w", text)
	case code < 500:
		return Fatalf(ReasonRejected, "%w", text)
	case safe(resp.Request):
		e := NewRetryable(text, 0)
		e.Reason = ReasonUnavailable
		return e
	default:
		return NewUnknown(text)
	}
}

func httpFailed(resp *http.Response, err error) *Error {
	e := Classify(err)
	switch {
	case NotSent(err):
		c := *e
		c.Class, c.Reason = Retryable, ReasonUnavailable
		return &c
	case e.Class != Retryable, resp != nil && safe(resp.Request):
		return e
	default:
		return NewUnknown(err)
	}
}

func safe(r *http.Request) bool {
	return r != nil && (r.Method == http.MethodGet || r.Method == "" || r.Method == http.MethodHead || r.Method == http.MethodOptions)
}

// NotSent reports whether err says that no connection came about, so that certainly nothing was sent: names that are not found,
// connections that are refused or time out while they are made.
func NotSent(err error) bool {
	var dns *net.DNSError
	var op *net.OpError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// retryAfter reads the header: seconds or an HTTP date; "" = 0.
func retryAfter(v string, now time.Time) (time.Duration, error) {
	if v == "" {
		return 0, nil
	}
	d := time.Duration(0)
	if n, err := strconv.Atoi(v); err == nil && n >= 0 && n <= int(MostRetryAfter/time.Second) {
		d = time.Duration(n) * time.Second
	} else if at, terr := http.ParseTime(v); terr == nil {
		d = max(at.Sub(now), 0)
	} else if err == nil {
		d = MostRetryAfter + 1
	}
	if d > MostRetryAfter {
		return 0, fmt.Errorf("retry-after of %d bytes: want at most %s", len(v), MostRetryAfter)
	}
	return d, nil
}
