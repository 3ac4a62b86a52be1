package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events"
)

// Endpoint is where a partner wants to be told, and what.
type Endpoint struct {
	ID      string
	Tenant  string
	URL     string   // https; no user, no fragment
	Types   []string // patterns as in [events.Match]; empty = everything
	Secrets []Secret // each signs: to change one, add the new one, let the partner take it up, drop the old one
}

func (e Endpoint) wants(messageType string) bool {
	return len(e.Types) == 0 || slices.ContainsFunc(e.Types, func(p string) bool { return events.Match(p, messageType) })
}

func (e Endpoint) check(plaintext bool) error {
	bad := func(field, want string) error {
		return fmt.Errorf("webhook endpoint %q: %s: want %s", e.ID, field, want)
	}
	var errs []error
	if e.ID == "" || len(e.ID) > 100 {
		errs = append(errs, bad("ID", "1 to 100 characters"))
	}
	if e.Tenant == "" {
		errs = append(errs, bad("Tenant", "whose endpoint it is"))
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "":
		errs = append(errs, bad("URL", "an absolute address"))
	case u.Scheme != "https" && (u.Scheme != "http" || !plaintext):
		errs = append(errs, bad("URL", "https"))
	case u.User != nil || u.Fragment != "":
		errs = append(errs, bad("URL", "neither user nor fragment"))
	}
	if len(e.Secrets) == 0 || len(e.Secrets) > 4 {
		errs = append(errs, bad("Secrets", "1 to 4"))
	}
	for _, s := range e.Secrets {
		if len(s.key) < secretMin {
			errs = append(errs, bad("Secrets", "each from ParseSecret"))
		}
	}
	return errors.Join(errs...)
}

// ErrUnknown is wrapped when there is no such endpoint or delivery.
var ErrUnknown = errors.New("unknown")

// Directory knows the endpoints. Safe for concurrent use.
type Directory interface {
	// Endpoints lists those of a tenant. It is asked inside of transactions and should answer from memory.
	Endpoints(ctx context.Context, tenant string) ([]Endpoint, error)
	// Endpoint gives one. It wraps [ErrUnknown] when there is none: what waits for it is dead then.
	Endpoint(ctx context.Context, id string) (Endpoint, error)
}

// Endpoints is a [Directory] in memory.
type Endpoints struct {
	mu  sync.RWMutex
	all []Endpoint
}

// NewEndpoints makes a directory. [Webhooks] looks at the endpoints more closely.
func NewEndpoints(all ...Endpoint) *Endpoints {
	d := &Endpoints{}
	d.Set(all...)
	return d
}

// Set replaces all endpoints, for example to change a secret while running.
func (d *Endpoints) Set(all ...Endpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.Clone(all)
}

// Endpoints lists those of a tenant.
func (d *Endpoints) Endpoints(_ context.Context, tenant string) ([]Endpoint, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var out []Endpoint
	for _, e := range d.all {
		if e.Tenant == tenant {
			out = append(out, e)
		}
	}
	return out, nil
}

// Endpoint gives one by id.
func (d *Endpoints) Endpoint(_ context.Context, id string) (Endpoint, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, e := range d.all {
		if e.ID == id {
			return e, nil
		}
	}
	return Endpoint{}, fmt.Errorf("webhook endpoint %q: %w", id, ErrUnknown)
}

// ReadEndpoints reads endpoints from a YAML file. Secrets stand in files of their own (relative to this one):
//
//	endpoints:
//	  - id: acme
//	    tenant: acme
//	    url: https://acme.example/hooks
//	    types: ["operation.*"]
//	    secret_files: [acme-new.secret, acme.secret]
func ReadEndpoints(path string) ([]Endpoint, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("webhook endpoints: %w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	var doc struct {
		Endpoints []struct {
			ID, Tenant, URL string
			Types           []string
			SecretFiles     []string `yaml:"secret_files"`
		}
	}
	dec := yaml.NewDecoder(f)
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("webhook endpoints %s: %w", path, err)
	}
	var (
		out  []Endpoint
		errs []error
		seen = map[string]bool{}
	)
	for _, d := range doc.Endpoints {
		e := Endpoint{ID: d.ID, Tenant: d.Tenant, URL: d.URL, Types: d.Types}
		for _, name := range d.SecretFiles {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(path), name)
			}
			text, err := os.ReadFile(name)
			if err == nil {
				var s Secret
				s, err = ParseSecret(string(text))
				e.Secrets = append(e.Secrets, s)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("webhook endpoint %q: secret file: %w", e.ID, err))
			}
		}
		if seen[e.ID] {
			errs = append(errs, fmt.Errorf("webhook endpoint %q: stands twice", e.ID))
		}
		seen[e.ID] = true
		errs = append(errs, e.check(false))
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}
