package sagas

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Headers of the API.
const (
	HeaderKey        = "Idempotency-Key"
	HeaderForceRetry = "X-Idempotency-Force-Retry"
	HeaderReplayed   = "Idempotent-Replayed"
)

const maxKey = 255

var (
	errKeyMissing = errors.New("header Idempotency-Key is missing")
	errKeyInvalid = errors.New("header Idempotency-Key is invalid")
)

// idempotencyKey reads the key: a Structured Field string in quotes, or a bare token. It must stand exactly once:
// two headers could be two requests joined by a proxy.
func idempotencyKey(h http.Header) (string, error) {
	values := h.Values(HeaderKey)
	if len(values) == 0 {
		return "", errKeyMissing
	}
	if len(values) > 1 {
		return "", fmt.Errorf("%w: it stands %d times, want once", errKeyInvalid, len(values))
	}
	key, err := parseKey(strings.Trim(values[0], " \t"))
	switch {
	case err != nil:
		return "", err
	case key == "":
		return "", fmt.Errorf("%w: it is empty, want 1 to %d characters", errKeyInvalid, maxKey)
	case len(key) > maxKey:
		return "", fmt.Errorf("%w: it has %d characters, want 1 to %d", errKeyInvalid, len(key), maxKey)
	}
	return key, nil
}

// parseKey unquotes an sf-string (RFC 9651, 3.3.3) or checks a bare token: visible ASCII without quote, comma, semicolon and backslash.
func parseKey(v string) (string, error) {
	if !strings.HasPrefix(v, `"`) {
		for i := range len(v) {
			if c := v[i]; c <= ' ' || c > '~' || strings.IndexByte(`",;\`, c) >= 0 {
				return "", fmt.Errorf("%w: character %d is not allowed outside quotes", errKeyInvalid, i+1)
			}
		}
		return v, nil
	}
	var b strings.Builder
	for i := 1; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			if i != len(v)-1 {
				return "", fmt.Errorf("%w: something follows the closing quote", errKeyInvalid)
			}
			return b.String(), nil
		case c == '\\':
			i++
			if i == len(v) || v[i] != '"' && v[i] != '\\' {
				return "", fmt.Errorf("%w: a backslash may stand before a quote or a backslash only", errKeyInvalid)
			}
			b.WriteByte(v[i])
		case c < ' ' || c > '~':
			return "", fmt.Errorf("%w: character %d is not printable ASCII", errKeyInvalid, i+1)
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("%w: the closing quote is missing", errKeyInvalid)
}

// forceRetry reads the header that asks for a new attempt.
func forceRetry(h http.Header) (bool, error) {
	values := h.Values(HeaderForceRetry)
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) == 1 && strings.EqualFold(strings.TrimSpace(values[0]), "true"):
		return true, nil
	case len(values) == 1 && strings.EqualFold(strings.TrimSpace(values[0]), "false"):
		return false, nil
	default:
		return false, errors.New("header X-Idempotency-Force-Retry must be true or false, once")
	}
}
