package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vitrip/journeyman/operator"
)

// Role is what a person may do.
type Role string

// The roles (spec P3), each with all that the ones before it may.
const (
	RoleViewer   Role = "viewer"   // look
	RoleOperator Role = "operator" // act: retry, remediate
	RoleAdmin    Role = "admin"
)

// Roles lists the roles.
func Roles() []Role { return []Role{RoleViewer, RoleOperator, RoleAdmin} }

func (r Role) mayAct() bool { return r == RoleOperator || r == RoleAdmin }

// Person is somebody who has signed in.
type Person struct {
	Name  string // who acts, in the audit
	Role  Role
	Until time.Time // when the credentials end; zero = the session's length counts
}

// ErrDenied is what [SignIn].Check returns for credentials that are not good, or give no role here.
var ErrDenied = errors.New("these credentials are not accepted here")

// SignIn makes people sign in with a token: an access token, or one of their own. The session is a cookie that scripts cannot
// read and other sites do not send; it holds an id and no rights. Sessions live in this process.
type SignIn struct {
	// Check says whose a token is. ErrDenied = nobody's; any other error is a 503. It must take the same time for near misses.
	Check func(ctx context.Context, token string) (Person, error)
	// Hosts are the names under which people reach the console, without port; requests for others are refused. Loopback names
	// are always allowed.
	Hosts []string
	// Plaintext leaves out the cookie's Secure attribute: only where the console listens on loopback without TLS.
	Plaintext bool
	Keep      time.Duration // length of a session; 0 = 8 hours
}

func (s *SignIn) check() error {
	var errs []error
	if s.Check == nil {
		errs = append(errs, errors.New("console: SignIn.Check is nil, want what knows tokens"))
	}
	if s.Keep < 0 {
		errs = append(errs, fmt.Errorf("console: SignIn.Keep is %v, want more than 0", s.Keep))
	}
	for _, h := range s.Hosts {
		if h == "" || strings.ContainsAny(h, "/ ") {
			errs = append(errs, fmt.Errorf("console: SignIn.Hosts has %q, want a host name without port", h))
		}
	}
	return errors.Join(errs...)
}

func (s *SignIn) host(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.ContainsFunc(s.Hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

const (
	maxSessions = 1000
	maxToken    = 8 << 10
)

// session is one signed-in browser.
type session struct {
	Person
	csrf    string
	expires time.Time
}

// sessions are those of this process, by the digest of their id: who reads our memory dump cannot use one.
type sessions struct {
	mu  sync.Mutex
	all map[[sha256.Size]byte]session
	now func() time.Time
}

func newSessions() *sessions {
	return &sessions{all: map[[sha256.Size]byte]session{}, now: time.Now}
}

// open starts a session and gives the id for the cookie.
func (s *sessions) open(p Person, keep time.Duration) (id string, expires time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for k, one := range s.all {
		if !now.Before(one.expires) {
			delete(s.all, k)
		}
	}
	if len(s.all) >= maxSessions {
		return "", expires, errors.New("too many people are signed in, try again later")
	}
	expires = now.Add(keep)
	if !p.Until.IsZero() && p.Until.Before(expires) {
		expires = p.Until
	}
	id = rand.Text() + rand.Text()
	s.all[sha256.Sum256([]byte(id))] = session{Person: p, csrf: rand.Text(), expires: expires}
	return id, expires, nil
}

func (s *sessions) find(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(id))
	one, ok := s.all[key]
	if ok && !s.now().Before(one.expires) {
		delete(s.all, key)
		return session{}, false
	}
	return one, ok
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}

// cookieName has the prefix with which browsers refuse a cookie that another host or a page without TLS sets.
func (c *console) cookieName() string {
	if c.cfg.SignIn.Plaintext {
		return "journeyman-session"
	}
	return "__Host-journeyman-session"
}

func (c *console) setCookie(w http.ResponseWriter, value string, expires time.Time) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure unless it is a loopback address without TLS
		Name: c.cookieName(), Value: value, Path: "/", Expires: expires, HttpOnly: true, Secure: !c.cfg.SignIn.Plaintext, SameSite: http.SameSiteStrictMode,
	})
}

type sessionKey struct{}

// who is the session of a request; none on an open console.
func who(r *http.Request) (session, bool) {
	s, ok := r.Context().Value(sessionKey{}).(session)
	return s, ok
}

// actor names who acts, in the audit.
func (c *console) actor(r *http.Request) string {
	if s, ok := who(r); ok {
		return s.Name
	}
	return c.cfg.Actor
}

// signedIn lets requests with a session through, and everybody to the page where one signs in. Requests that change something
// must carry the session's own secret besides.
func (c *console) signedIn(next http.Handler) http.Handler {
	if c.cfg.SignIn == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/signin" || r.URL.Path == "/style.css" {
			next.ServeHTTP(w, r)
			return
		}
		var s session
		cookie, err := r.Cookie(c.cookieName())
		ok := err == nil
		if ok {
			s, ok = c.sessions.find(cookie.Value)
		}
		switch {
		case !ok && r.Method == http.MethodGet:
			http.Redirect(w, r, "/signin", http.StatusSeeOther)
			return
		case !ok:
			c.fail(w, r, http.StatusUnauthorized, errors.New("you are not signed in, or your session has ended"))
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), sessionKey{}, s))
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if err := r.ParseForm(); err != nil {
				c.badForm(w, r, err)
				return
			}
			if subtle.ConstantTimeCompare([]byte(r.PostFormValue("csrf")), []byte(s.csrf)) != 1 {
				c.fail(w, r, http.StatusForbidden, errors.New("this form is not of your session; open the page again"))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mayAct answers, and audits, a request of somebody whose role does not allow acts.
func (c *console) mayAct(w http.ResponseWriter, r *http.Request, action, target string) bool {
	s, ok := who(r)
	if !ok || s.Role.mayAct() {
		return true
	}
	err := fmt.Errorf("the role %s may look but not act", s.Role)
	err = c.cfg.Desk.RecordRefusal(r.Context(), operator.AuditRow{Actor: s.Name, Action: action, Target: target, Reason: "not permitted"}, err)
	c.fail(w, r, http.StatusForbidden, err)
	return false
}

func (c *console) signInPage(w http.ResponseWriter, r *http.Request) {
	c.show(w, r, http.StatusOK, "signin", page{Title: "Sign in"})
}

func (c *console) signIn(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		c.badForm(w, r, err)
		return
	}
	from := addressOf(r.RemoteAddr)
	if wait := c.throttle.enter(from); wait > 0 {
		seconds := int((wait + time.Second - 1) / time.Second)
		c.cfg.Log.Warn().Str("remote", r.RemoteAddr).Int("wait_s", seconds).Msg("sign-in refused: too many failed")
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		c.show(w, r, http.StatusTooManyRequests, "signin", page{Title: "Sign in", Problem: fmt.Sprintf("too many sign-ins from your address have failed; wait %d s", seconds)})
		return
	}
	token := strings.TrimSpace(r.PostFormValue("token"))
	person, err := Person{}, ErrDenied
	if token != "" && len(token) <= maxToken {
		person, err = c.cfg.SignIn.Check(r.Context(), token)
	}
	if err == nil && (person.Name == "" || !slices.Contains(Roles(), person.Role)) {
		err = ErrDenied
	}
	var id string
	var expires time.Time
	if err == nil {
		id, expires, err = c.sessions.open(person, c.cfg.SignIn.Keep)
	}
	switch {
	case errors.Is(err, ErrDenied):
		c.cfg.Log.Warn().Str("remote", r.RemoteAddr).Msg("sign-in refused")
		c.show(w, r, http.StatusForbidden, "signin", page{Title: "Sign in", Problem: ErrDenied.Error()})
	case err != nil:
		c.throttle.undecided(from)
		c.cfg.Log.Warn().Err(err).Msg("sign-in failed")
		c.show(w, r, http.StatusServiceUnavailable, "signin", page{Title: "Sign in", Problem: "whose token this is cannot be said now; try again"})
	default:
		c.throttle.passed(from)
		c.cfg.Log.Info().Str("actor", person.Name).Str("role", string(person.Role)).Msg("signed in")
		c.setCookie(w, id, expires)
		http.Redirect(w, r, "/sagas", http.StatusSeeOther)
	}
}

func (c *console) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(c.cookieName()); err == nil {
		c.sessions.end(cookie.Value)
	}
	c.setCookie(w, "", time.Unix(1, 0))
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
}

func (c *console) badForm(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusBadRequest
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		status = http.StatusRequestEntityTooLarge
	}
	c.fail(w, r, status, fmt.Errorf("form: %w", err))
}
