package jwtauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	refreshEvery = 10 * time.Minute // keys older than this are fetched again
	keepStale    = time.Hour        // and used for so long when that fails
	fetchGap     = 10 * time.Second // between two fetches, whatever key ids tokens name
	maxDocument  = 1 << 20
	minRSABits   = 2048
)

// errUnavailable: whether the token is good cannot be said now.
var errUnavailable = errors.New("the issuer's keys cannot be fetched")

// keySet caches the signing keys of an issuer.
type keySet struct {
	client *http.Client
	issuer string
	now    func() time.Time

	mu      sync.Mutex
	url     string // "" until discovered
	keys    map[string]signingKey
	fetched time.Time // last success
	tried   time.Time // last try
	err     error     // of the last try
}

type signingKey struct {
	key crypto.PublicKey
	alg string // "" = any the key can do
}

// find gives the key with this id. ok is false when the issuer has none such.
func (s *keySet) find(ctx context.Context, kid string) (k signingKey, ok bool, err error) {
	s.mu.Lock() // held while fetching: who comes meanwhile waits for the same answer
	defer s.mu.Unlock()
	now := s.now()
	k, ok = s.keys[kid]
	stale := now.Sub(s.fetched)
	if (!ok || stale > refreshEvery) && now.Sub(s.tried) >= fetchGap {
		s.tried = now
		if s.err = s.fetch(ctx); s.err == nil {
			s.fetched, stale = now, 0
		}
		k, ok = s.keys[kid]
	}
	if stale > keepStale || !ok && s.err != nil {
		return k, false, fmt.Errorf("%w: %w", errUnavailable, s.err)
	}
	return k, ok, nil
}

func (s *keySet) fetch(ctx context.Context) error {
	if s.url == "" {
		var d struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		if err := s.get(ctx, strings.TrimSuffix(s.issuer, "/")+"/.well-known/openid-configuration", &d); err != nil {
			return err
		}
		if d.Issuer != s.issuer {
			return fmt.Errorf("discovery: issuer is %q, want %q", d.Issuer, s.issuer)
		}
		if err := checkURL("jwks_uri", d.JWKSURI); err != nil {
			return fmt.Errorf("discovery: %w", err)
		}
		s.url = d.JWKSURI
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := s.get(ctx, s.url, &set); err != nil {
		return err
	}
	keys := map[string]signingKey{}
	for _, k := range set.Keys {
		if k.Use != "" && k.Use != "sig" || k.Kid == "" {
			continue
		}
		if pub := k.public(); pub != nil { // others are of kinds we do not accept, symmetric ones above all
			keys[k.Kid] = signingKey{pub, k.Alg}
		}
	}
	if len(keys) == 0 {
		return errors.New("the key set has no signing key that can be used")
	}
	s.keys = keys
	return nil
}

func (s *keySet) get(ctx context.Context, url string, into any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // one caller's going away is not everybody's
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: status %d", url, res.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxDocument)).Decode(into); err != nil {
		return fmt.Errorf("GET %s: %w", url, err)
	}
	return nil
}

type jwk struct {
	Kty, Use, Kid, Alg, Crv string
	N, E, X, Y              string
}

// public gives the key, nil for one that is not accepted: symmetric, too short, off its curve, not understood.
func (k jwk) public() crypto.PublicKey {
	switch k.Kty {
	case "RSA":
		n, e := number(k.N), number(k.E)
		if n == nil || e == nil || n.BitLen() < minRSABits || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}
	case "EC":
		curve := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}[k.Crv]
		x, xErr := base64.RawURLEncoding.DecodeString(k.X)
		y, yErr := base64.RawURLEncoding.DecodeString(k.Y)
		if curve == nil || xErr != nil || yErr != nil || len(x) != (curve.Params().BitSize+7)/8 || len(y) != len(x) {
			return nil
		}
		pub, err := ecdsa.ParseUncompressedPublicKey(curve, append(append([]byte{4}, x...), y...))
		if err != nil {
			return nil
		}
		return pub
	case "OKP":
		x, err := base64.RawURLEncoding.DecodeString(k.X)
		if k.Crv != "Ed25519" || err != nil || len(x) != ed25519.PublicKeySize {
			return nil
		}
		return ed25519.PublicKey(x)
	default:
		return nil
	}
}

func number(s string) *big.Int {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) == 0 {
		return nil
	}
	return new(big.Int).SetBytes(b)
}
