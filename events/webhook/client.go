package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// errRefused is wrapped when an address may not be dialled.
var errRefused = errors.New("address refused")

// Bounds of an answer.
const (
	maxAnswer        = 4 << 10
	maxAnswerHeaders = 16 << 10
)

// client dials only what allow lets pass. It is asked with the address that the connection is about to be made to, so there
// is no moment between looking and dialling in which a name could come to mean another.
func client(timeout time.Duration, allow func(netip.AddrPort) error) *http.Client {
	dialer := &net.Dialer{Timeout: timeout, ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("%w: %s %s", errRefused, network, address)
		}
		if err := allow(to); err != nil {
			return fmt.Errorf("%w: %w", errRefused, err)
		}
		return nil
	}}
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: maxAnswerHeaders,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, // Proxy stays nil: a proxy would dial for us
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// plain takes the address out of a client's error: its query may hold what is nobody's business.
func plain(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	return text[:min(len(text), 300)]
}
