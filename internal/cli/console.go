package cli

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/operator/console"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/jwtauth"
)

// newConsole serves the operator's pages.
func newConsole(s Streams) *cobra.Command {
	var f deskFlags
	var people peopleFlags
	var listen, cert, key, level, who string
	var inFront bool
	cmd := &cobra.Command{
		Use: "console", Short: "Serve the operator's web console",
		Long: `Console serves the pages of the operator: sagas, incidents, effects, deliveries and the audit.

On a loopback address it may be open: nobody signs in, and every page says so. Elsewhere people must sign in, by access tokens
(JWT) of --issuer for --audience, whose scope gives the role, or by tokens of a file, --people:

  - {name: ann, role: operator, token_sha256: <hex of SHA-256 of the token>}

Roles are viewer, operator and admin. Elsewhere than on loopback it also needs --tls-cert and --tls-key, or --tls-in-front
where something in front of it ends TLS; --host names it as browsers do. Sessions live in this process.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(s, "journeyman-console", level)
			if err != nil {
				return err
			}
			signIn, err := people.signIn()
			open := signIn == nil && err == nil
			local := console.CheckListen(listen) == nil
			switch {
			case err != nil:
			case open && !local:
				err = fmt.Errorf("--listen %s: on another address than loopback people must sign in: want --issuer or --people", listen)
			case !local && cert == "" && !inFront:
				err = fmt.Errorf("--listen %s: on another address than loopback want --tls-cert and --tls-key, or --tls-in-front", listen)
			case !local && len(people.hosts) == 0:
				err = fmt.Errorf("--listen %s: on another address than loopback want --host, the names under which browsers reach it", listen)
			}
			if (cert == "") != (key == "") {
				err = errors.Join(err, errors.New("--tls-cert and --tls-key: want both or none"))
			}
			if err != nil {
				return exit(ExitUsage, err)
			}
			if signIn != nil {
				signIn.Plaintext = local && cert == "" && !inFront
			}
			cfg := console.Config{SignIn: signIn, Log: log}
			if open {
				if cfg.Actor, err = actor(who, s); err != nil {
					return err
				}
			}
			return f.with(cmd, func(ctx context.Context, d *operator.Desk) error {
				cfg.Desk = d
				handler, err := console.New(cfg)
				if err != nil {
					return exit(ExitUsage, err)
				}
				server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
				return serve(ctx, s, "console", listen, cert, key, server)
			}, "dsn")
		},
	}
	f.add(cmd)
	people.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "127.0.0.1:8081", "host:port to serve on")
	fl.StringVar(&cert, "tls-cert", "", "file with the certificate (PEM)")
	fl.StringVar(&key, "tls-key", "", "file with its key (PEM)")
	fl.BoolVar(&inFront, "tls-in-front", false, "something in front of the console ends TLS, and nothing else reaches it")
	fl.StringVar(&who, "actor", "", "who acts on an open console; default: user@host")
	fl.StringVar(&level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	for flag, variable := range map[string]string{
		"listen": "CONSOLE_LISTEN", "tls-cert": "TLS_CERT", "tls-key": "TLS_KEY", "tls-in-front": "TLS_IN_FRONT", "actor": "ACTOR", "log-level": "LOG_LEVEL",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
	return cmd
}

// peopleFlags say who may sign in.
type peopleFlags struct {
	issuerFlags
	viewer, worker string // scopes
	file           string
	hosts          []string
	session        time.Duration
}

func (f *peopleFlags) add(cmd *cobra.Command) {
	f.issuerFlags.add(cmd, "the console")
	fl := cmd.Flags()
	fl.StringVar(&f.jwt.TenantClaim, "user-claim", "sub", "claim that names the person: letters, digits, dot, underscore, hyphen")
	fl.StringVar(&f.viewer, "viewer-scope", "journeyman.view", "scope of tokens of people who may look")
	fl.StringVar(&f.worker, "operator-scope", "journeyman.operate", "scope of tokens of people who may act")
	fl.StringVar(&f.file, "people", "", "YAML file of people: name, role, token_sha256")
	fl.StringSliceVar(&f.hosts, "host", nil, "names under which browsers reach the console, without port, comma-separated")
	fl.DurationVar(&f.session, "session", 8*time.Hour, "how long a session lasts")
	for flag, variable := range map[string]string{
		"audience": "CONSOLE_AUDIENCE", "user-claim": "USER_CLAIM",
		"viewer-scope": "VIEWER_SCOPE", "operator-scope": "OPERATOR_SCOPE", "people": "PEOPLE", "host": "CONSOLE_HOST", "session": "SESSION",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// signIn gives nil where nobody is named: an open console.
func (f *peopleFlags) signIn() (*console.SignIn, error) {
	in := &console.SignIn{Hosts: f.hosts, Keep: f.session}
	if f.session <= 0 {
		return nil, fmt.Errorf("--session %v: want more than 0", f.session)
	}
	switch {
	case f.jwt.Issuer != "" && f.file != "":
		return nil, errors.New("--issuer and --people: want one of them")
	case f.jwt.Issuer != "":
		check, err := f.byToken()
		in.Check = check
		return in, err
	case f.file != "":
		check, err := readPeople(f.file)
		in.Check = check
		return in, flagError("people", err)
	}
	return nil, nil //nolint:nilnil // nobody signs in
}

// byToken checks access tokens as the partners' API does; the scope gives the role.
func (f *peopleFlags) byToken() (func(ctx context.Context, token string) (console.Person, error), error) {
	type verifier struct {
		role console.Role
		v    *jwtauth.Verifier
	}
	var all []verifier
	for _, r := range []struct {
		role  console.Role
		scope string
	}{{console.RoleOperator, f.worker}, {console.RoleViewer, f.viewer}} {
		if r.scope == "" {
			return nil, errors.New("--operator-scope and --viewer-scope: want both")
		}
		cfg := f.jwt
		cfg.Scope = r.scope
		v, err := app.JWT(cfg, f.keysFile)
		if err != nil {
			return nil, err
		}
		all = append(all, verifier{r.role, v})
	}
	return func(ctx context.Context, token string) (console.Person, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if err != nil {
			return console.Person{}, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
		for _, one := range all {
			var p sagas.Principal
			p, err = one.v.Authenticate(r)
			if err == nil {
				return console.Person{Name: p.Tenant, Role: one.role, Until: expiry(token)}, nil
			}
			if !errors.Is(err, sagas.ErrForbidden) {
				break
			}
		}
		if errors.Is(err, sagas.ErrForbidden) || errors.Is(err, sagas.ErrUnauthenticated) {
			return console.Person{}, console.ErrDenied
		}
		return console.Person{}, err
	}, nil
}

// expiry reads when a token that was verified ends: its session must not outlive it.
func expiry(token string) time.Time {
	parts := strings.Split(token, ".")
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if len(parts) == 3 {
		if text, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil && json.Unmarshal(text, &claims) == nil && claims.Exp > 0 {
			return time.Unix(int64(claims.Exp), 0)
		}
	}
	return time.Unix(1, 0) // not to be read: a session that has ended
}

// person is one line of the file of people.
type person struct {
	Name   string       `yaml:"name"`
	Role   console.Role `yaml:"role"`
	Digest string       `yaml:"token_sha256"`
}

// readPeople reads who may sign in. The file holds digests: who reads it cannot sign in by it.
func readPeople(name string) (func(ctx context.Context, token string) (console.Person, error), error) {
	r, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	var list []person
	dec := yaml.NewDecoder(r)
	dec.KnownFields(true)
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var errs []error
	digests := make([][]byte, len(list))
	for i, p := range list {
		if digests[i], err = hex.DecodeString(p.Digest); err != nil || len(digests[i]) != sha256.Size {
			errs = append(errs, fmt.Errorf("%s: person %d %q: token_sha256: want 64 hexadecimal digits", name, i+1, p.Name))
		}
		if p.Name == "" || len(p.Name) > 200 {
			errs = append(errs, fmt.Errorf("%s: person %d: name %q: want 1 to 200 bytes", name, i+1, p.Name))
		}
		if !slices.Contains(console.Roles(), p.Role) {
			errs = append(errs, fmt.Errorf("%s: person %d %q: role %q: want one of %v", name, i+1, p.Name, p.Role, console.Roles()))
		}
	}
	if len(list) == 0 {
		errs = append(errs, fmt.Errorf("%s: names nobody", name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return func(_ context.Context, token string) (console.Person, error) {
		sum := sha256.Sum256([]byte(token))
		found := -1
		for i, d := range digests { // all of them, whichever it is
			if subtle.ConstantTimeCompare(sum[:], d) == 1 {
				found = i
			}
		}
		if found < 0 {
			return console.Person{}, console.ErrDenied
		}
		return console.Person{Name: list[found].Name, Role: list[found].Role}, nil
	}, nil
}
