package sagas

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// HTTPConfig is for [Sagas.Handler] and [Sagas.Server]. Auth must be set.
type HTTPConfig struct {
	Auth    Authenticator
	MaxBody int64         // bytes of a request body; 0 = 256 KiB
	Timeout time.Duration // of one request's work; 0 = 10 s

	// MaxWait is the longest a request may wait for the end with "Prefer: wait=n"; 0 = 20 s. It must be shorter than the
	// server's write time-out ([Server] has 30 s). A longer wish is cut, and Preference-Applied says to what.
	MaxWait time.Duration
	// MaxWaiting is how many requests may wait at a time; 0 = 100. Others are answered at once.
	MaxWaiting int

	// Metrics serves GET /metrics, see [Sagas.MetricsHandler]; false = not here.
	Metrics bool

	// Sandbox makes a server for trying the API out: operations end as the header X-Sandbox-Outcome asks for, or complete;
	// no process starts and no function of the domain but Parse runs. Give it a record store and a domain schema of its own, or
	// its keys and bookings stand among the real ones.
	Sandbox bool
}

const defaultMaxBody = 256 << 10

func (c HTTPConfig) withDefaults() HTTPConfig {
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.MaxWait == 0 {
		c.MaxWait = 20 * time.Second
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 100
	}
	return c
}

// Handler is the HTTP API for partners:
//
//	POST /v1/operations/{type}          start, or poll with the same Idempotency-Key
//	GET  /v1/operations/{id}            status
//	POST /v1/operations/{id}/cancel     ask for a cancel
//	GET  /v1/openapi.yaml               what this API is, as OpenAPI 3.1; needs no credentials
//
// Errors are RFC 9457 problem documents. It refuses a configuration without Auth.
func (s *Sagas) Handler(cfg HTTPConfig) (http.Handler, error) {
	if cfg.Auth == nil {
		return nil, errors.New("sagas HTTP: Auth is nil, want an Authenticator")
	}
	if cfg.MaxBody < 0 || cfg.Timeout < 0 || cfg.MaxWait < 0 || cfg.MaxWaiting < 0 {
		return nil, errors.New("sagas HTTP: MaxBody, Timeout, MaxWait and MaxWaiting must not be negative")
	}
	cfg = cfg.withDefaults()
	a := &api{Sagas: s, cfg: cfg, waiting: make(chan struct{}, cfg.MaxWaiting)}
	document, err := s.OpenAPI()
	if err != nil {
		return nil, err
	}
	a.document = document
	return a.mux(), nil
}

// Server is an http.Server for a handler with every time-out set, so that slow clients hold nothing for ever.
// The caller sets Addr and calls Serve and Shutdown.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: 60 * time.Second, MaxHeaderBytes: 32 << 10,
	}
}

type api struct {
	*Sagas
	cfg      HTTPConfig
	waiting  chan struct{} // one place per request that waits for an end
	document []byte        // OpenAPI
}

// request is one authenticated request.
type request struct {
	*http.Request
	principal Principal
	arrived   time.Time
	sandbox   string          // outcome to force, "" outside of the sandbox
	whole     context.Context // ends with the connection; that of the request ends with its time-out
}

func (a *api) guard(next func(w http.ResponseWriter, r request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		arrived := time.Now()
		p, err := a.cfg.Auth.Authenticate(r)
		switch {
		case errors.Is(err, ErrUnauthenticated) || err == nil && p.Tenant == "":
			w.Header().Set("WWW-Authenticate", "Bearer")
			a.refuse(w, http.StatusUnauthorized, problemUnauthorized, "Authentication is needed", "send Authorization: Bearer <token>")
			return
		case errors.Is(err, ErrForbidden):
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			a.refuse(w, http.StatusForbidden, problemForbidden, "These credentials may not do this", "the token lacks the scope of this API")
			return
		case err != nil:
			a.unavailable(w, r, "", err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), a.cfg.Timeout)
		defer cancel()
		next(w, request{Request: r.WithContext(ctx), principal: p, arrived: arrived, whole: r.Context()})
	}
}

func (a *api) method(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		a.refuse(w, http.StatusMethodNotAllowed, problemMethod, "This method is not allowed here", "use "+allow)
	}
}

func (a *api) refuse(w http.ResponseWriter, status int, name, title, detail string, more ...func(*Problem)) {
	a.count.add(func(m *Metrics) { m.Refused++ })
	writeProblem(w, status, name, title, detail, more...)
}

// unavailable says that we failed. A repeat with the same key is safe, whatever had been done.
func (a *api) unavailable(w http.ResponseWriter, r *http.Request, operationID string, err error) {
	a.Sagas.cfg.Log.Error().Str("operation_id", operationID).Str("method", r.Method).Err(err).Msg("request failed")
	setRetryAfter(w, retryAfter[0])
	writeProblem(w, http.StatusServiceUnavailable, problemUnavailable, "The request could not be handled now",
		"repeat it with the same Idempotency-Key", withOperation(operationID))
}

// body reads a JSON body within the limit. It has answered when ok is false.
func (a *api) body(w http.ResponseWriter, r request) (body []byte, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		a.refuse(w, http.StatusUnsupportedMediaType, problemMediaType, "The body must be JSON", "send Content-Type: application/json")
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.cfg.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		a.refuse(w, http.StatusRequestEntityTooLarge, problemTooLarge, "The body is too large", "at most "+byteCount(a.cfg.MaxBody)+" are read",
			withErrors([]*FieldError{{Field: "", Reason: "is larger than " + byteCount(a.cfg.MaxBody)}}))
		return nil, false
	case err != nil:
		a.refuse(w, http.StatusBadRequest, problemInvalid, "The body could not be read", "the connection ended before the body did")
		return nil, false
	}
	return body, true
}

// get is the status of one operation. That of another tenant is as unknown as one that never was (spec I12).
func (a *api) get(w http.ResponseWriter, r request) {
	rec, p, err := a.look(r.Context(), r.PathValue("id"), r.principal.Tenant)
	if !a.found(w, r, rec, err) {
		return
	}
	a.count.add(func(m *Metrics) { m.Repeats++ })
	a.answer(w, r, rec, &p)
}

func (a *api) find(w http.ResponseWriter, r request) (rec record, ok bool) {
	rec, err := a.readOperation(r.Context(), r.PathValue("id"))
	return rec, a.found(w, r, rec, err)
}

// found has answered when it is false.
func (a *api) found(w http.ResponseWriter, r request, rec record, err error) bool {
	switch {
	case errors.Is(err, errNoRecord) || rec.ID != "" && rec.Tenant != r.principal.Tenant: // also when the record cannot be opened
		a.refuse(w, http.StatusNotFound, problemNotFound, "There is no such operation", "")
		return false
	case err != nil:
		a.unavailable(w, r.Request, r.PathValue("id"), err)
		return false
	}
	about(w, rec.Type)
	return true
}

// polled answers a repeat, which is a poll while the operation runs.
func (a *api) polled(w http.ResponseWriter, r request, rec record) {
	if rec.terminal() || rec.Gone {
		a.final(w, rec, true)
		return
	}
	p, err := a.Sagas.poll(r.Context(), rec)
	if err != nil {
		a.unavailable(w, r.Request, rec.ID, err)
		return
	}
	a.answer(w, r, rec, &p)
}

// answer sends the state of a record: the final answer byte for byte, or the progress. p is nil when this is no poll of a
// running operation.
func (a *api) answer(w http.ResponseWriter, r request, rec record, p *polled) {
	if rec.terminal() || rec.Gone {
		a.final(w, rec, true)
		return
	}
	wait := retryAfter[0]
	if p != nil {
		wait = p.wait
		if p.early {
			a.meter.inc(metricViolations, rec.Type)
		}
		if p.allowed {
			a.meter.inc(metricPolls, rec.Type)
		}
		a.count.add(func(m *Metrics) {
			if p.early {
				m.PollingViolations++
			}
			if !p.allowed {
				m.TooManyRequests++
				return
			}
			m.Polls++
			m.RepeatsAnswered++
		})
		if !p.allowed {
			setRetryAfter(w, wait)
			writeProblem(w, http.StatusTooManyRequests, problemTooFast, "Polled too fast", "at most one poll a second; Retry-After of the last answer says when to come again", withOperation(rec.ID))
			return
		}
	}
	a.progress(w, r, rec, wait, true)
}

// final sends the final answer as it was stored, or says that it is no longer kept.
func (a *api) final(w http.ResponseWriter, rec record, replayed bool) {
	a.polls.forget(rec.ID)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Location", location(rec.ID))
	if rec.Gone {
		writeProblem(w, http.StatusGone, problemGone, "The operation is past its retention", "its answer is no longer kept; use a new key for a new operation", withOperation(rec.ID))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", rec.etag())
	if replayed {
		w.Header().Set(HeaderReplayed, "true")
		a.count.add(func(m *Metrics) { m.RepeatsAnswered++ })
	}
	_, _ = w.Write(rec.Final)
}

// progress sends the state of a running operation, after waiting for its end when the request prefers that.
func (a *api) progress(w http.ResponseWriter, r request, rec record, wait time.Duration, replayed bool) {
	if rec = a.settle(w, r, rec); rec.terminal() {
		a.final(w, rec, replayed)
		return
	}
	a.accepted(w, rec, wait, replayed)
}

// inProgress is the body of a 202 (spec I1).
type inProgress struct {
	OperationID string                     `json:"operation_id"`
	Type        string                     `json:"type"`
	State       string                     `json:"state"`
	StartedAt   time.Time                  `json:"started_at"`
	EstimatedAt time.Time                  `json:"estimated_completion_at"`
	TimeoutAt   time.Time                  `json:"timeout_at"`
	Progress    progressView               `json:"progress"`
	Partial     map[string]json.RawMessage `json:"partial_result"`
}

type progressView struct {
	Completed   []string `json:"completed_steps"`
	Current     string   `json:"current_step"`
	Remaining   []string `json:"remaining_steps"`
	LastEventID string   `json:"last_progress_event_id,omitempty"`
}

func (a *api) accepted(w http.ResponseWriter, rec record, wait time.Duration, replayed bool) {
	body, err := json.Marshal(inProgress{
		OperationID: rec.ID, Type: rec.Type, State: rec.State, StartedAt: rec.StartedAt.UTC(), EstimatedAt: rec.EstimatedAt.UTC(), TimeoutAt: rec.TimeoutAt.UTC(),
		Progress: progressView{Completed: rec.Completed, Current: rec.currentStep(), Remaining: rec.remaining(), LastEventID: rec.LastProgressEventID},
		Partial:  rec.Partial,
	})
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, problemUnavailable, "The progress cannot be shown", "", withOperation(rec.ID))
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Location", location(rec.ID))
	h.Set("Content-Location", location(rec.ID))
	h.Set("ETag", rec.etag())
	if replayed {
		h.Set(HeaderReplayed, "true")
	}
	setRetryAfter(w, wait)
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(append(body, '\n'))
}

func location(id string) string { return "/v1/operations/" + id }
