package suppliers

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// answer is what a simulator sends back. The zero status is not valid.
type answer struct {
	status int
	body   any
	after  func(twice bool) // runs once the answer is decided; for callbacks
}

// problem is the body of every refusal.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

func refused(status int, code, message string) answer {
	return answer{status: status, body: problem{Code: code, Message: message}}
}

// seam is the one place where faults enter: every request of every simulator passes here, after it was read
// and before it acts.
func (w *World) seam(rw http.ResponseWriter, r *http.Request, t target, act func() answer) {
	b := w.scripts.next(t)
	if b.when != nil && !w.hold(r, b.when) {
		abort()
	}
	switch b.do {
	case doesRefuse:
		w.send(rw, refused(http.StatusConflict, b.code, "refused"), false)
	case doesTimeout:
		w.hold(r, nil)
		abort()
	case doesActTimeout:
		w.effect(act())
		w.hold(r, nil)
		abort()
	case doesLate:
		a := act()
		w.effect(a)
		w.hold(r, b.release)
		a.after = nil
		w.send(rw, a, false)
	case doesLandLate:
		w.landLate(b.release)
		w.send(rw, act(), false)
	case doesTwice:
		a := act()
		if a.after == nil {
			a = act()
		}
		w.send(rw, a, true)
	case doesFail:
		w.send(rw, refused(http.StatusInternalServerError, "BROKEN", "scripted failure"), false)
	case doesActThenFail:
		w.effect(act())
		w.send(rw, refused(http.StatusInternalServerError, "BROKEN", "scripted failure after the effect"), false)
	default:
		w.send(rw, act(), false)
	}
}

// effect lets the callback of an unanswered request go out.
func (w *World) effect(a answer) {
	if a.after != nil {
		a.after(false)
	}
}

// hold waits for the caller to go, the release or the end of the world, and reports whether it was the release.
// Over the limit it does not wait.
func (w *World) hold(r *http.Request, release <-chan struct{}) bool {
	select {
	case w.held <- struct{}{}:
		defer func() { <-w.held }()
	default:
		return false
	}
	// The server notices a caller that hangs up only while somebody reads.
	_, _ = io.Copy(io.Discard, r.Body)
	select {
	case <-r.Context().Done():
		return false
	case <-release:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// landLate waits for the release or the end of the world, whatever the caller does.
func (w *World) landLate(release <-chan struct{}) {
	select {
	case <-release:
	case <-w.ctx.Done():
		abort()
	}
}

// abort ends a request without an answer.
func abort() { panic(http.ErrAbortHandler) } //nolint:forbidigo // net/http's own way to drop a connection

func (w *World) send(rw http.ResponseWriter, a answer, twice bool) {
	if a.after != nil {
		a.after(twice)
	}
	body, err := json.Marshal(a.body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(a.status)
	_, _ = rw.Write(body) // the caller may have gone
}

// read decodes the request body into v. On a bad body it answers and reports false.
func (w *World) read(rw http.ResponseWriter, r *http.Request, v any) bool {
	d := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		return true
	}
	status := http.StatusBadRequest
	if tooBig := (*http.MaxBytesError)(nil); errors.As(err, &tooBig) {
		status = http.StatusRequestEntityTooLarge
	}
	w.send(rw, refused(status, "BAD_REQUEST", err.Error()), false)
	return false
}
