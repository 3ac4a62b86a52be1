package sagas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// post starts an operation or says how the one with this key stands (spec I1, I2, I3).
func (a *api) post(w http.ResponseWriter, r request) {
	t := a.types[r.PathValue("type")]
	if t == nil {
		a.refuse(w, http.StatusNotFound, problemNotFound, "There is no such operation type", "")
		return
	}
	key, err := idempotencyKey(r.Header)
	switch {
	case errors.Is(err, errKeyMissing):
		a.refuse(w, http.StatusBadRequest, problemKeyMissing, "An idempotency key is needed", err.Error(), withErrors([]*FieldError{{Field: HeaderKey, Reason: "is missing"}}))
		return
	case err != nil:
		a.refuse(w, http.StatusBadRequest, problemKeyInvalid, "The idempotency key is invalid", err.Error(), withErrors([]*FieldError{{Field: HeaderKey, Reason: "is invalid"}}))
		return
	}
	force, err := forceRetry(r.Header)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, problemInvalid, "The request is invalid", err.Error(), withErrors([]*FieldError{{Field: HeaderForceRetry, Reason: "must be true or false, once"}}))
		return
	}
	when, ok := a.precondition(w, r)
	if !ok {
		return
	}
	if r.sandbox, ok = a.sandboxOutcome(w, r); !ok {
		return
	}
	body, ok := a.body(w, r)
	if !ok {
		return
	}
	// JSON alone first: a repeat is compared even where the type's rules have changed since.
	if err := scan(body, nil); err != nil {
		a.invalid(w, err)
		return
	}
	print, err := fingerprint(body)
	if err != nil {
		a.invalid(w, Invalid("", "cannot be read"))
		return
	}
	rec, err := a.readKey(r.Context(), r.principal.Tenant, t.Name, key)
	switch {
	case errors.Is(err, errNoRecord) && when.given:
		a.lost(w, record{})
	case errors.Is(err, errNoRecord):
		a.first(w, r, t, key, body, print)
	case err != nil:
		a.unavailable(w, r.Request, "", err)
	default:
		a.repeat(w, r, t, rec, repeated{body: body, print: print, force: force, when: when})
	}
}

// first makes the record and starts the saga. When a twin was faster this becomes a repeat.
func (a *api) first(w http.ResponseWriter, r request, t *Type, key string, body, print []byte) {
	done := a.polls.creating(OperationID(r.principal.Tenant, t.Name, key, 1))
	defer done()
	plan, ok := a.plan(w, r, t, body)
	if !ok {
		return
	}
	id, made, err := a.claim(r.Context(), t, r.principal.Tenant, key, print, plan, a.origin(r))
	if err != nil {
		a.unavailable(w, r.Request, id, err)
		return
	}
	rec, err := a.readKey(r.Context(), r.principal.Tenant, t.Name, key)
	if err != nil {
		a.unavailable(w, r.Request, id, err)
		return
	}
	if !made {
		a.repeat(w, r, t, rec, repeated{body: body, print: print, creation: true})
		return
	}
	a.count.add(func(m *Metrics) { m.Started++ })
	a.fastPath(r.Context(), rec)
	done() // the wait that may follow is no creation any more
	a.progress(w, r, rec, retryAfter[0], false)
}

// fastPath starts the saga at once. When that fails the record stands and the sweep starts it: the 202 is true.
func (a *api) fastPath(ctx context.Context, rec record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := a.begin(ctx, rec); err != nil {
		a.Sagas.cfg.Log.Warn().Str("operation_id", rec.ID).Str("business_key", rec.BusinessKey).Str("correlation_id", rec.Origin.CorrelationID).
			Err(err).Msg("start left to the sweep")
		a.signal()
	}
}

// plan asks the type what to start. It has answered when ok is false.
func (a *api) plan(w http.ResponseWriter, r request, t *Type, body []byte) (plan Plan, ok bool) {
	plan, err := t.Parse(r.Context(), r.principal.Tenant, body)
	if err == nil {
		err = plan.check()
	}
	if err != nil {
		if _, isField := fieldErrors(err); isField {
			a.invalid(w, err)
		} else {
			a.unavailable(w, r.Request, "", fmt.Errorf("parse %s: %w", t.Name, err))
		}
		return plan, false
	}
	return plan, true
}

func (a *api) invalid(w http.ResponseWriter, err error) {
	errs, _ := fieldErrors(err)
	detail := ""
	if len(errs) > 0 {
		detail = errs[0].Error()
	}
	a.refuse(w, http.StatusBadRequest, problemInvalid, "The request is invalid", detail, withErrors(errs))
}

// origin carries trace and actor from the request (spec E1).
func (a *api) origin(r request) origin {
	return origin{Traceparent: r.Header.Get("Traceparent"), Actor: r.principal.Actor, Sandbox: r.sandbox}
}

// repeated is a request whose key is there.
type repeated struct {
	body, print     []byte
	force, creation bool // creation: it arrived while the record was being made
	when            precondition
}

// repeat answers a request whose key is there.
func (a *api) repeat(w http.ResponseWriter, r request, t *Type, rec record, q repeated) {
	a.count.add(func(m *Metrics) { m.Repeats++ })
	if !bytes.Equal(rec.Fingerprint, q.print) {
		a.count.add(func(m *Metrics) { m.Mismatches++ })
		w.Header().Set("Content-Location", location(rec.ID))
		writeProblem(w, http.StatusUnprocessableEntity, problemKeyReused, "The key was used with another payload",
			"the operation that has this key goes on unchanged; use a new key for a new operation", withOperation(rec.ID))
		return
	}
	if !rec.Gone && !q.when.holds(rec) {
		a.lost(w, rec)
		return
	}
	if q.force && rec.terminal() && !rec.Gone {
		a.force(w, r, t, rec, q)
		return
	}
	// Another process may be creating it: until the fast path's time is over such a request is no poll either.
	q.creation = q.creation || a.polls.duringCreation(rec.ID, r.arrived) || rec.StartState == "pending" && rec.Now.Sub(rec.StartedAt) < startGrace
	if q.creation && !rec.terminal() {
		a.count.add(func(m *Metrics) { m.RepeatsAnswered++ })
		a.progress(w, r, rec, retryAfter[0], true)
		return
	}
	a.polled(w, r, rec)
}

// force starts a new attempt of an operation that ended failed or expired (spec I7).
func (a *api) force(w http.ResponseWriter, r request, t *Type, rec record, q repeated) {
	if rec.State == string(Completed) {
		a.refuse(w, http.StatusConflict, problemNotRetryable, "The operation has completed", "only a failed or expired operation can be tried again", withOperation(rec.ID))
		return
	}
	plan, ok := a.plan(w, r, t, q.body)
	if !ok {
		return
	}
	next := OperationID(rec.Tenant, rec.Type, rec.Key, rec.Attempt+1)
	done := a.polls.creating(next)
	defer done()
	made, err := a.retry(r.Context(), t, rec, plan, a.origin(r))
	if err != nil {
		a.unavailable(w, r.Request, next, err)
		return
	}
	now, err := a.readKey(r.Context(), rec.Tenant, rec.Type, rec.Key)
	if err != nil {
		a.unavailable(w, r.Request, next, err)
		return
	}
	switch {
	case made:
		a.count.add(func(m *Metrics) { m.ForceRetries++ })
		a.fastPath(r.Context(), now)
		done()
		a.progress(w, r, now, retryAfter[0], false)
	case !now.Gone && !q.when.holds(now): // a twin was faster, and we were told to act on the old attempt alone
		a.lost(w, now)
	case now.terminal():
		a.answer(w, r, now, nil)
	default:
		a.progress(w, r, now, retryAfter[0], true) // a twin was faster
	}
}

func byteCount(n int64) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d KiB", n/1024)
	}
	return fmt.Sprintf("%d bytes", n)
}
