package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/operator/console"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/jwtauth"
)

// newAPI serves the HTTP API for partners.
func newAPI(s Streams) *cobra.Command {
	var f appFlags
	var auth partnerFlags
	var listen, metrics, cert, key string
	var sandbox bool
	cmd := &cobra.Command{
		Use: "api", Short: "Serve the HTTP API for partners",
		Long: `Api serves POST /v1/operations/{type} and its relatives, GET /v1/openapi.yaml, the webhook attempts of a partner and the
addresses that suppliers call back. Any number of processes may serve it; "journeyman run" does the work.

Partners authenticate by access tokens (JWT) of --issuer for --audience; the tenant is a claim. --tokens is a file of static
tokens for trying things out, and then the API listens on this machine only.

With --sandbox partners say how an operation ends (X-Sandbox-Outcome) and nothing is bought. It needs a database schema and a
record schema of its own, and runs the relay and the record consumer itself: no "journeyman run" beside it, no engine, no suppliers.

` + secretsHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sandbox {
				f.nobody()
			}
			if err := f.required(cmd, "listen"); err != nil {
				return err
			}
			log, err := newLog(s, "journeyman-api", f.level)
			if err != nil {
				return err
			}
			authenticator, err := auth.authenticator(listen)
			err = errors.Join(err, f.checkSandbox(sandbox))
			if (cert == "") != (key == "") {
				err = errors.Join(err, errors.New("--tls-cert and --tls-key: want both or none"))
			}
			if err != nil {
				return exit(ExitUsage, err)
			}
			cfg, closing, err := f.config(cmd.Context(), s, log)
			if err != nil {
				return exit(ExitUsage, err)
			}
			defer closing() //nolint:errcheck // what was archived was written
			if sandbox {
				cfg.Background = app.Background{Work: true, DeadLetters: true, LagEvery: lagEvery}
			}
			return f.runApp(cmd.Context(), cfg, func(a *app.App) ([]func(context.Context) error, error) {
				handler, err := a.Handler(app.APIConfig{Auth: authenticator, Sandbox: sandbox})
				if err != nil {
					return nil, err
				}
				all := []func(context.Context) error{
					func(ctx context.Context) error { return serve(ctx, s, "API", listen, cert, key, sagas.Server(handler)) },
					a.FlushCommands,
				}
				if metrics != "" {
					mux := http.NewServeMux()
					mux.Handle("GET /metrics", a.MetricsHandler())
					all = append(all, func(ctx context.Context) error { return serve(ctx, s, "metrics", metrics, "", "", sagas.Server(mux)) })
				}
				if sandbox {
					all = append(all, a.Relay, a.Record)
				}
				return all, nil
			})
		},
	}
	f.add(cmd)
	auth.add(cmd)
	fl := cmd.Flags()
	fl.StringVar(&listen, "listen", "", "host:port to serve the API on")
	fl.StringVar(&metrics, "metrics-listen", "", "host:port to serve metrics for Prometheus on, apart from the API; none when empty")
	fl.StringVar(&cert, "tls-cert", "", "file with the certificate (PEM); without it something in front ends TLS")
	fl.StringVar(&key, "tls-key", "", "file with its key (PEM)")
	fl.BoolVar(&sandbox, "sandbox", false, "for trying the API out: operations end as the request asks, nothing is bought")
	for flag, variable := range map[string]string{
		"listen": "API_LISTEN", "metrics-listen": "METRICS_LISTEN", "tls-cert": "TLS_CERT", "tls-key": "TLS_KEY", "sandbox": "SANDBOX",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
	return cmd
}

// nobody fills in who is not needed in a sandbox: nothing there calls an engine or a supplier.
func (f *appFlags) nobody() {
	c, none := &f.cfg, "http://127.0.0.1:9"
	if c.Gateway == "" {
		c.Gateway, c.Plaintext = "127.0.0.1:9", true
	}
	for _, field := range []*string{&c.Suppliers.Flight, &c.Suppliers.Hotel, &c.Suppliers.Transfer, &c.Suppliers.Payment, &c.Callback} {
		if *field == "" {
			*field = none
		}
	}
	if c.Cluster == "" {
		c.Cluster = "sandbox"
	}
}

// checkSandbox wants schemas of its own: a sandbox's keys and bookings must not stand among the real ones.
func (f *appFlags) checkSandbox(sandbox bool) error {
	if sandbox && (f.db.schema == postgres.DefaultSchema || f.db.recordSchema == sagas.DefaultRecordSchema) {
		return fmt.Errorf("--sandbox: --schema is %s and --record-schema is %s, want others than %s and %s", f.db.schema, f.db.recordSchema, postgres.DefaultSchema, sagas.DefaultRecordSchema)
	}
	return nil
}

// serve serves until ctx ends, then lets requests under way finish.
func serve(ctx context.Context, s Streams, what, address, cert, key string, server *http.Server) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	scheme := "http"
	if cert != "" {
		scheme = "https"
	}
	_, _ = fmt.Fprintf(s.Err, "%s on %s://%s\n", what, scheme, l.Addr())
	done := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), 25*time.Second)
		defer cancel()
		done <- server.Shutdown(within)
	})
	if cert != "" {
		err = server.ServeTLS(l, cert, key)
	} else {
		err = server.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return <-done
	}
	stop()
	return fmt.Errorf("listen %s: %w", address, errors.Join(err, l.Close()))
}

// issuerFlags name the issuer of access tokens and its keys.
type issuerFlags struct {
	jwt      jwtauth.Config
	keysFile string
}

// add declares the flags; us is who the tokens are for.
func (f *issuerFlags) add(cmd *cobra.Command, us string) {
	fl := cmd.Flags()
	fl.StringVar(&f.jwt.Issuer, "issuer", "", "who signs access tokens, as the tokens spell it: https, or http of this machine")
	fl.StringVar(&f.jwt.Audience, "audience", "", us+", as the tokens name it")
	fl.StringVar(&f.jwt.KeysURL, "keys-url", "", "where the issuer's keys (JWKS) are; found by its discovery document when empty")
	fl.StringVar(&f.keysFile, "keys-file", "", "file with the issuer's keys (JWKS), instead of fetching them")
	for flag, variable := range map[string]string{"issuer": "ISSUER", "keys-url": "KEYS_URL", "keys-file": "KEYS_FILE"} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// partnerFlags say how partners authenticate.
type partnerFlags struct {
	issuerFlags
	file string
}

func (f *partnerFlags) add(cmd *cobra.Command) {
	f.issuerFlags.add(cmd, "this API")
	fl := cmd.Flags()
	fl.StringVar(&f.jwt.Scope, "scope", "", "scope that tokens must have; none when empty")
	fl.StringVar(&f.jwt.TenantClaim, "tenant-claim", "tenant", "claim that names the tenant")
	fl.StringVar(&f.file, "tokens", "", "YAML file of static tokens, token: tenant; for trying things out on this machine")
	for flag, variable := range map[string]string{
		"audience": "AUDIENCE", "scope": "SCOPE", "tenant-claim": "TENANT_CLAIM", "tokens": "TOKENS",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

func (f *partnerFlags) authenticator(listen string) (sagas.Authenticator, error) {
	switch {
	case f.jwt.Issuer != "" && f.file != "":
		return nil, errors.New("--issuer and --tokens: want one of them")
	case f.jwt.Issuer != "":
		return app.JWT(f.jwt, f.keysFile)
	case f.file == "":
		return nil, errors.New("missing: --issuer or JOURNEYMAN_ISSUER (or --tokens, for trying things out)")
	}
	if err := console.CheckListen(listen); err != nil {
		return nil, fmt.Errorf("--tokens with --listen %s: static tokens are for trying things out, want 127.0.0.1, ::1 or localhost", listen)
	}
	text, err := os.ReadFile(f.file)
	if err != nil {
		return nil, fmt.Errorf("--tokens: %w", err)
	}
	var tenants map[string]string
	if err := yaml.Unmarshal(text, &tenants); err != nil || len(tenants) == 0 {
		return nil, fmt.Errorf("--tokens %s: want lines of token: tenant", f.file) // the parser's error would show tokens
	}
	principals := map[string]sagas.Principal{}
	for token, tenant := range tenants {
		principals[token] = sagas.Principal{Tenant: tenant, Actor: events.Actor{ServiceClient: tenant}}
	}
	return sagas.NewStaticTokens(principals)
}
