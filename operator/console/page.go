package console

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/vitrip/journeyman/operator"
)

// page is what every template is given. Data is the page's own.
type page struct {
	Title   string
	Section string // of the navigation: sagas, incidents, effects, audit
	Actor   string // set by show, as are the next four
	Open    bool   // nobody signs in
	Role    Role   // "" = nobody has signed in
	MayAct  bool
	CSRF    string // of the session, for forms; "" on an open console
	Problem string // shown above everything else
	Notice  string // what has just been done
	Data    any
}

type pages map[string]*template.Template

// parsePages reads one template per page, each inside the layout.
func parsePages() (pages, error) {
	names, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	all := pages{}
	for _, name := range names {
		base := strings.TrimSuffix(path.Base(name), ".html")
		if base == "layout" {
			continue
		}
		t, err := template.New("layout.html").Funcs(functions()).Option("missingkey=error").ParseFS(templates, "templates/layout.html", name)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", base, err)
		}
		all[base] = t
	}
	return all, nil
}

// show renders the whole page before the first byte is sent, so that a failing template is a 500 and not half a page.
func (c *console) show(w http.ResponseWriter, r *http.Request, status int, name string, p page) {
	p.Actor, p.Open, p.MayAct = c.cfg.Actor, c.cfg.SignIn == nil, c.cfg.SignIn == nil
	if s, ok := who(r); ok {
		p.Actor, p.Role, p.MayAct, p.CSRF = s.Name, s.Role, s.Role.mayAct(), s.csrf
	}
	var b bytes.Buffer
	if err := c.pages[name].Execute(&b, p); err != nil {
		c.cfg.Log.Error().Err(err).Str("page", r.URL.Path).Msg("template failed")
		http.Error(w, "this page could not be rendered; the console's log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func functions() template.FuncMap {
	return template.FuncMap{
		"stamp":   stamp,
		"deref":   deref,
		"path":    url.PathEscape,
		"tone":    tone,
		"seconds": func(s float64) string { return time.Duration(s * float64(time.Second)).Round(time.Second).String() },
		"words":   func(s []string) string { return strings.Join(s, ", ") },
		"why": func(parts ...string) string {
			return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "; ")
		},
		"money": func(m *operator.Money) string { return orDash(m) },
		"step": func(sagaID, operationID string) string {
			return strings.TrimPrefix(strings.TrimPrefix(operationID, sagaID), ":")
		},
		"activeIn": func(section, name string) bool { return section == name },
	}
}

// stamp shows a time of the database in UTC, to the millisecond.
func stamp(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s<span class="ms">%s</span></time>`, //nolint:gosec // digits only
		t.Format(time.RFC3339Nano), t.Format("2006-01-02 15:04:05"), t.Format(".000")))
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func orDash(m *operator.Money) string {
	if m == nil {
		return "–"
	}
	return m.String()
}

// tone is the CSS class of a state: good, wait, bad, undo or plain. The word itself is always shown too.
func tone(state string) string {
	switch state {
	case "completed", "SUCCESS", "delivered", "done", "undone", "RESOLVED":
		return "good"
	case "starting", "running", "pending", "claimed", "calling", "called", "open", "PENDING":
		return "wait"
	case "compensating", "revoked", "BUSINESS_ERROR", "expired", "undoing", "warn", "gone", "remediated":
		return "undo"
	case "failed", "manual", "stuck", "parked", "FATAL_ERROR", "ACTIVE", "bad":
		return "bad"
	}
	return "plain"
}
