package sagas

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/vitrip/journeyman/events"
)

// Principal is who sends a request. Keys and operations are scoped to Tenant (spec I12).
type Principal struct {
	Tenant string
	Actor  events.Actor
}

// Authenticator finds out who sends a request. ErrUnauthenticated = nobody we know, a 401; ErrForbidden = known, but
// not allowed to use this API, a 403; any other error is a 503. Safe for concurrent use.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// ErrUnauthenticated is what an [Authenticator] returns for a request without valid credentials.
var ErrUnauthenticated = errors.New("not authenticated")

// ErrForbidden is what an [Authenticator] returns for valid credentials that lack the permission this API needs.
var ErrForbidden = errors.New("not permitted")

// StaticTokens authenticates by a fixed bearer token per tenant: for demonstrations, nothing else.
type StaticTokens struct {
	tokens []staticToken
}

type staticToken struct {
	sum       [sha256.Size]byte
	principal Principal
}

// NewStaticTokens makes an authenticator from token to principal. It refuses empty tokens and tenants.
func NewStaticTokens(tokens map[string]Principal) (*StaticTokens, error) {
	a := &StaticTokens{}
	for token, p := range tokens {
		if token == "" || p.Tenant == "" {
			return nil, fmt.Errorf("static token of tenant %q: token and tenant must not be empty", p.Tenant)
		}
		a.tokens = append(a.tokens, staticToken{sha256.Sum256([]byte(token)), p})
	}
	return a, nil
}

// Authenticate looks for "Authorization: Bearer <token>". It compares with every token, in constant time.
func (a *StaticTokens) Authenticate(r *http.Request) (Principal, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(r.Header.Values("Authorization")) != 1 {
		return Principal{}, ErrUnauthenticated
	}
	sum := sha256.Sum256([]byte(token))
	found := -1
	for i := range a.tokens {
		if subtle.ConstantTimeCompare(sum[:], a.tokens[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Principal{}, ErrUnauthenticated
	}
	return a.tokens[found].principal, nil
}
