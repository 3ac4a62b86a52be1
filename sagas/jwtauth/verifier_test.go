package jwtauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/vitrip/journeyman/sagas"
)

// issuer is an OpenID provider with one RSA and one EC key.
type issuer struct {
	*httptest.Server
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	kid     atomic.Value // string, of the RSA key
	fetches atomic.Int64
	down    atomic.Bool
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{}
	var err error
	if i.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	i.kid.Store("rsa-1")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		if i.down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		point, err := i.ec.PublicKey.Bytes()
		if err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.kid.Load().(string), "n": b64(i.rsa.N.Bytes()), "e": "AQAB"},
			{"kty": "EC", "kid": "ec-1", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
			{"kty": "oct", "kid": "shared", "k": b64([]byte("a shared secret of a fair length"))},
		}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) claims(edit func(c jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": i.URL, "aud": "operations", "sub": "client-7", "tenant": "agency", "scope": "read operations:write",
		"exp": time.Now().Add(time.Minute).Unix(), "nbf": time.Now().Add(-time.Minute).Unix(),
	}
	if edit != nil {
		edit(c)
	}
	return c
}

func sign(t *testing.T, m jwt.SigningMethod, key any, claims jwt.MapClaims, header map[string]any) string {
	t.Helper()
	tok := jwt.NewWithClaims(m, claims)
	maps.Copy(tok.Header, header)
	text, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func verifier(t *testing.T, i *issuer) *Verifier {
	t.Helper()
	v, err := New(Config{Issuer: i.URL, Audience: "operations", Scope: "operations:write"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ask(t *testing.T, v *Verifier, token string) (sagas.Principal, error) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, "/?tenant=broker", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Tenant", "broker") // only the token counts
	return v.Authenticate(r)
}

func head(kid string) map[string]any { return map[string]any{"typ": "at+jwt", "kid": kid} }

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := verifier(t, i)
	for name, token := range map[string]string{
		"RS256":         sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), head("rsa-1")),
		"ES256":         sign(t, jwt.SigningMethodES256, i.ec, i.claims(nil), head("ec-1")),
		"list audience": sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(func(c jwt.MapClaims) { c["aud"] = []string{"x", "operations"} }), head("rsa-1")),
		"media type":    sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), map[string]any{"typ": "application/AT+JWT", "kid": "rsa-1"}),
	} {
		p, err := ask(t, v, token)
		if err != nil || p.Tenant != "agency" || p.Actor.ServiceClient != "client-7" {
			t.Errorf("%s: got %+v, %v, want tenant agency", name, p, err)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("key fetches: got %d, want 1", n)
	}
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	i, other := newIssuer(t), newIssuer(t)
	v := verifier(t, i)
	rs := func(edit func(c jwt.MapClaims)) string {
		return sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(edit), head("rsa-1"))
	}
	good := rs(nil)
	parts := strings.Split(good, ".")
	public, err := json.Marshal(i.rsa.N)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token string
		want  error
	}{
		"expired":           {rs(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() }), sagas.ErrUnauthenticated},
		"never expires":     {rs(func(c jwt.MapClaims) { delete(c, "exp") }), sagas.ErrUnauthenticated},
		"not yet":           {rs(func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(2 * time.Minute).Unix() }), sagas.ErrUnauthenticated},
		"other audience":    {rs(func(c jwt.MapClaims) { c["aud"] = "admin" }), sagas.ErrUnauthenticated},
		"no audience":       {rs(func(c jwt.MapClaims) { delete(c, "aud") }), sagas.ErrUnauthenticated},
		"other issuer":      {rs(func(c jwt.MapClaims) { c["iss"] = "https://evil.example" }), sagas.ErrUnauthenticated},
		"ID token":          {sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), map[string]any{"typ": "JWT", "kid": "rsa-1"}), sagas.ErrUnauthenticated},
		"no kid":            {sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), map[string]any{"typ": "at+jwt"}), sagas.ErrUnauthenticated},
		"unknown kid":       {sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), head("rsa-9")), sagas.ErrUnauthenticated},
		"another's key":     {sign(t, jwt.SigningMethodRS256, other.rsa, i.claims(nil), head("rsa-1")), sagas.ErrUnauthenticated},
		"kid of other kind": {sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), head("ec-1")), sagas.ErrUnauthenticated},
		"other algorithm":   {sign(t, jwt.SigningMethodRS512, i.rsa, i.claims(nil), head("rsa-1")), sagas.ErrUnauthenticated},
		"critical header":   {sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(nil), map[string]any{"typ": "at+jwt", "kid": "rsa-1", "crit": []string{"b64"}}), sagas.ErrUnauthenticated},
		"none":              {sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, i.claims(nil), head("rsa-1")), sagas.ErrUnauthenticated},
		"HS256 by the RSA":  {sign(t, jwt.SigningMethodHS256, public, i.claims(nil), head("rsa-1")), sagas.ErrUnauthenticated},
		"HS256 shared":      {sign(t, jwt.SigningMethodHS256, []byte("a shared secret of a fair length"), i.claims(nil), head("shared")), sagas.ErrUnauthenticated},
		"cut":               {good[:len(good)-4], sagas.ErrUnauthenticated},
		"changed":           {parts[0] + "." + b64([]byte(`{"tenant":"broker"}`)) + "." + parts[2], sagas.ErrUnauthenticated},
		"padded":            {good + "=", sagas.ErrUnauthenticated},
		"long":              {good + strings.Repeat("A", maxToken), sagas.ErrUnauthenticated},
		"nothing":           {"", sagas.ErrUnauthenticated},
		"no scope":          {rs(func(c jwt.MapClaims) { c["scope"] = "operations:writes" }), sagas.ErrForbidden},
		"no tenant":         {rs(func(c jwt.MapClaims) { delete(c, "tenant") }), sagas.ErrForbidden},
		"tenant with colon": {rs(func(c jwt.MapClaims) { c["tenant"] = "agency:B-1" }), sagas.ErrForbidden},
		"tenant as list":    {rs(func(c jwt.MapClaims) { c["tenant"] = []string{"agency"} }), sagas.ErrForbidden},
	} {
		if p, err := ask(t, v, c.token); !errors.Is(err, c.want) || p.Tenant != "" {
			t.Errorf("%s: got %+v, %v, want %v", name, p, err, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Add("Authorization", "Bearer "+good)
	r.Header.Add("Authorization", "Bearer "+good)
	if _, err := v.Authenticate(r); !errors.Is(err, sagas.ErrUnauthenticated) {
		t.Errorf("two headers: got %v", err)
	}
	if n := i.fetches.Load(); n > 2 {
		t.Errorf("key fetches: got %d; unknown key ids must not make one each", n)
	}
}

// Keys rotate; an issuer that is down is our failure, not the partner's.
func TestKeysRotateAndOutages(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v := verifier(t, i)
	var ahead atomic.Int64
	v.keys.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	token := func(kid string) string {
		return sign(t, jwt.SigningMethodRS256, i.rsa, i.claims(func(c jwt.MapClaims) { c["exp"] = time.Now().Add(day).Unix() }), head(kid))
	}
	i.down.Store(true)
	if _, err := ask(t, v, token("rsa-1")); err == nil || errors.Is(err, sagas.ErrUnauthenticated) || errors.Is(err, sagas.ErrForbidden) {
		t.Errorf("issuer down: got %v, want an error that is a 503", err)
	}
	i.down.Store(false)
	ahead.Add(int64(fetchGap))
	if _, err := ask(t, v, token("rsa-1")); err != nil {
		t.Errorf("issuer up: got %v", err)
	}
	i.kid.Store("rsa-2")
	ahead.Add(int64(fetchGap))
	if _, err := ask(t, v, token("rsa-2")); err != nil {
		t.Errorf("a new key: got %v", err)
	}
	if _, err := ask(t, v, token("rsa-1")); !errors.Is(err, sagas.ErrUnauthenticated) {
		t.Errorf("the old key: got %v, want it refused", err)
	}
	i.down.Store(true)
	ahead.Add(int64(refreshEvery + time.Minute))
	if _, err := ask(t, v, token("rsa-2")); err != nil {
		t.Errorf("a short outage: got %v, want the keys we have used", err)
	}
	ahead.Add(int64(keepStale))
	if _, err := ask(t, v, token("rsa-2")); err == nil || errors.Is(err, sagas.ErrUnauthenticated) {
		t.Errorf("a long outage: got %v, want a 503", err)
	}
}

const day = 24 * time.Hour

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"Issuer":   {Audience: "a"},
		"https":    {Issuer: "http://login.example", Audience: "a"},
		"Audience": {Issuer: "https://login.example"},
		"HS256":    {Issuer: "https://login.example", Audience: "a", Algorithms: []string{"RS256", "HS256"}},
		"Leeway":   {Issuer: "https://login.example", Audience: "a", Leeway: time.Hour},
		"KeysURL":  {Issuer: "https://login.example", Audience: "a", KeysURL: "http://login.example/keys"},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
