package jwtauth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/sagas"
)

// Config is for [New]. Issuer and Audience must be set.
type Config struct {
	Issuer   string // as the tokens spell it; https, or http of this machine
	Audience string // this API, as the tokens name it
	KeysURL  string // of the JWKS; "" = what the issuer's discovery document says
	Scope    string // a scope that tokens must have; "" = none
	// TenantClaim is the claim that names the tenant; "" = "tenant".
	TenantClaim string
	// Algorithms that are accepted; nil = RS256, ES256, EdDSA. Symmetric ones are refused by New.
	Algorithms []string
	// AnyType accepts tokens whose typ is not at+jwt, from issuers that do not follow RFC 9068. ID tokens then pass too if
	// they carry this audience.
	AnyType bool
	Leeway  time.Duration // between clocks; 0 = 30 s, at most 60 s
	Client  *http.Client  // nil = one of our own that follows no redirects
}

// maxToken is the longest token looked at, in bytes.
const maxToken = 8 << 10

// Verifier is a [sagas.Authenticator] for access tokens. It is safe for concurrent use.
type Verifier struct {
	cfg    Config
	keys   *keySet
	parser *jwt.Parser
}

// New checks the configuration. It does not reach for the issuer: its keys are fetched with the first token.
func New(cfg Config) (*Verifier, error) {
	if cfg.TenantClaim == "" {
		cfg.TenantClaim = "tenant"
	}
	if cfg.Algorithms == nil {
		cfg.Algorithms = []string{"RS256", "ES256", "EdDSA"}
	}
	if cfg.Leeway == 0 {
		cfg.Leeway = 30 * time.Second
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg, keys: &keySet{client: cfg.Client, issuer: cfg.Issuer, url: cfg.KeysURL, now: time.Now}}
	v.parser = jwt.NewParser(jwt.WithValidMethods(cfg.Algorithms), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(cfg.Leeway), jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return v.keys.now() }))
	return v, nil
}

func (c Config) check() error {
	errs := []error{checkURL("Issuer", c.Issuer)}
	if c.KeysURL != "" {
		errs = append(errs, checkURL("KeysURL", c.KeysURL))
	}
	if c.Audience == "" {
		errs = append(errs, errors.New("jwtauth: Audience is empty, want the name of this API in tokens"))
	}
	if c.Leeway < 0 || c.Leeway > time.Minute {
		errs = append(errs, fmt.Errorf("jwtauth: Leeway is %v, want 0 to 1m", c.Leeway))
	}
	known := []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
	for _, alg := range c.Algorithms {
		if !slices.Contains(known, alg) {
			errs = append(errs, fmt.Errorf("jwtauth: algorithm %q is not accepted, want some of %v", alg, known))
		}
	}
	return errors.Join(errs...)
}

// checkURL wants https, or http to this very machine.
func checkURL(field, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return fmt.Errorf("jwtauth: %s is %q, want a URL", field, text)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "https" && (u.Scheme != "http" || ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("jwtauth: %s is %q, want https", field, text)
	}
	return nil
}

var tenantForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`) //nolint:gochecknoglobals // compiled once

// Authenticate looks for one "Authorization: Bearer <token>". A token that is not good is [sagas.ErrUnauthenticated]; one
// without the scope or without a tenant is [sagas.ErrForbidden]; keys that cannot be fetched are another error, a 503.
func (v *Verifier) Authenticate(r *http.Request) (sagas.Principal, error) {
	var p sagas.Principal
	values := r.Header.Values("Authorization")
	if len(values) != 1 || len(values[0]) > maxToken {
		return p, sagas.ErrUnauthenticated
	}
	scheme, text, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return p, sagas.ErrUnauthenticated
	}
	claims := jwt.MapClaims{}
	_, err := v.parser.ParseWithClaims(text, claims, func(t *jwt.Token) (any, error) { return v.key(r, t) })
	switch {
	case errors.Is(err, errUnavailable):
		return p, err
	case err != nil:
		return p, fmt.Errorf("%w: %w", sagas.ErrUnauthenticated, err)
	}
	scopes, _ := claims["scope"].(string)
	if v.cfg.Scope != "" && !slices.Contains(strings.Fields(scopes), v.cfg.Scope) {
		return p, fmt.Errorf("%w: the token lacks scope %s", sagas.ErrForbidden, v.cfg.Scope)
	}
	tenant, _ := claims[v.cfg.TenantClaim].(string)
	if !tenantForm.MatchString(tenant) {
		return p, fmt.Errorf("%w: claim %s names no tenant", sagas.ErrForbidden, v.cfg.TenantClaim)
	}
	subject, _ := claims.GetSubject()
	client, _ := claims["client_id"].(string)
	if client == "" {
		client = subject
	}
	return sagas.Principal{Tenant: tenant, Actor: events.Actor{ServiceClient: client}}, nil
}

// key finds the key a token says it is signed with. It refuses keys that are declared for another algorithm.
func (v *Verifier) key(r *http.Request, t *jwt.Token) (any, error) {
	typ, _ := t.Header["typ"].(string)
	if kind := strings.TrimPrefix(strings.ToLower(typ), "application/"); !v.cfg.AnyType && kind != "at+jwt" {
		return nil, errors.New("typ is not at+jwt")
	}
	if _, critical := t.Header["crit"]; critical {
		return nil, errors.New("crit is not understood")
	}
	kid, _ := t.Header["kid"].(string)
	if kid == "" {
		return nil, errors.New("kid is missing")
	}
	k, ok, err := v.keys.find(r.Context(), kid)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.New("kid is not one of the issuer's")
	case k.alg != "" && k.alg != t.Method.Alg():
		return nil, errors.New("the key is for another algorithm")
	}
	return k.key, nil
}
