// Package console serves the operator's web pages: sagas, incidents, effects in the air and the audit.
//
// Without [Config.SignIn] the console is open: nobody signs in. It is for one machine then, so it answers only requests that
// name a loopback host, and programs that serve it must listen on a loopback address ([CheckListen] says which). Each page says
// so. What a person does is audited under [Config.Actor].
//
// With it people sign in by a token, have a role, and act under their own name. Forms carry a secret of the session. An address from
// which five sign-ins failed has to wait before the next, a second at first and a minute at most.
//
// Pages work without JavaScript (there is none), by keyboard, on a phone and in dark mode. The Content-Security-Policy
// allows our own style sheet and nothing else; requests that change something pass [http.CrossOriginProtection].
package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/bpmn"
	"github.com/vitrip/journeyman/operator"
)

// Config is for [New]. Desk must be set, and Actor or SignIn.
type Config struct {
	Desk   *operator.Desk
	Actor  string        // who acts on an open console, in the audit; nobody is authenticated, so say that: "console@hostname"
	SignIn *SignIn       // nil = an open console
	Limit  time.Duration // longest a page may take; 0 = 15 s
	Log    zerolog.Logger
}

// console holds what all pages need.
type console struct {
	cfg      Config
	pages    pages
	sessions *sessions
	throttle *throttle
}

//go:embed style.css
var style []byte

//go:embed templates/*.html
var templates embed.FS

// New checks cfg and makes the handler. It starts no goroutines and opens no listener.
func New(cfg Config) (http.Handler, error) {
	if cfg.Limit == 0 {
		cfg.Limit = 15 * time.Second
	}
	var errs []error
	if cfg.Desk == nil {
		errs = append(errs, errors.New("console: Desk is nil, want an *operator.Desk"))
	}
	if cfg.SignIn != nil {
		signIn := *cfg.SignIn
		if signIn.Keep == 0 {
			signIn.Keep = 8 * time.Hour
		}
		cfg.SignIn = &signIn
		errs = append(errs, signIn.check())
	} else if cfg.Actor == "" || len(cfg.Actor) > 200 {
		errs = append(errs, fmt.Errorf("console: Actor is %q, want 1 to 200 bytes that name who acts", cfg.Actor))
	}
	if cfg.Limit < 0 {
		errs = append(errs, fmt.Errorf("console: Limit is %v, want more than 0", cfg.Limit))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	parsed, err := parsePages()
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	c := &console{cfg: cfg, pages: parsed, sessions: newSessions(), throttle: newThrottle()}
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, http.StatusForbidden, errors.New("this request came from another site and was refused"))
	}))
	return c.guard(cross.Handler(c.signedIn(c.routes()))), nil
}

func (c *console) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/sagas", http.StatusFound))
	mux.HandleFunc("GET /sagas", c.sagas)
	mux.HandleFunc("GET /sagas/{id...}", c.saga)
	mux.HandleFunc("GET /incidents", c.incidents)
	mux.HandleFunc("GET /incidents/{key}", c.incident)
	mux.HandleFunc("POST /incidents/{key}/retry", c.retry)
	mux.HandleFunc("POST /remediate/{id...}", c.remediate)
	mux.HandleFunc("GET /effects", c.effects)
	mux.HandleFunc("POST /calls/dismiss/{id...}", c.dismissCall)
	mux.HandleFunc("POST /calls/ask-again/{id...}", c.askAgain)
	mux.HandleFunc("GET /audit", c.audit)
	if c.cfg.SignIn != nil {
		mux.HandleFunc("GET /signin", c.signInPage)
		mux.HandleFunc("POST /signin", c.signIn)
		mux.HandleFunc("POST /signout", c.signOut)
	}
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(style)
		_, _ = io.WriteString(w, bpmn.StyleSheet())
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, http.StatusNotFound, fmt.Errorf("there is no page %s", r.URL.Path))
	})
	return mux
}

// policy allows our own style sheet and forms to ourselves, nothing else.
const policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard sets the headers of every answer, bounds each request and refuses hosts that are not loopback: a
// name of somebody else's that was made to point here (DNS rebinding) is not one.
func (c *console) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if signIn := c.cfg.SignIn; !loopbackHost(r.Host) && (signIn == nil || !signIn.host(r.Host)) {
			if signIn != nil {
				http.Error(w, fmt.Sprintf("host %q is not a name of this console", r.Host), http.StatusMisdirectedRequest)
				return
			}
			http.Error(w, fmt.Sprintf("host %q: the console answers on this machine only, as localhost or 127.0.0.1", r.Host), http.StatusMisdirectedRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), c.cfg.Limit)
		defer cancel()
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// fail shows an error page.
func (c *console) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	if status >= http.StatusInternalServerError {
		c.cfg.Log.Warn().Err(err).Str("page", r.URL.Path).Int("status", status).Msg("page failed")
	}
	c.show(w, r, status, "error", page{Title: http.StatusText(status), Problem: err.Error()})
}

// statusOf says which status an error of the desk deserves.
func statusOf(err error) int {
	var field *operator.FieldError
	switch {
	case errors.As(err, &field):
		return http.StatusUnprocessableEntity
	case errors.Is(err, operator.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, operator.ErrNotActive), errors.Is(err, operator.ErrRetried), errors.Is(err, operator.ErrNotManual), errors.Is(err, operator.ErrNotUnseen):
		return http.StatusConflict
	case errors.Is(err, operator.ErrNoEngine), errors.Is(err, operator.ErrUnreachable), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
