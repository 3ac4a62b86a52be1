package webhook

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// Caller is who asks the HTTP API. Tenant "" = an operator, who sees all tenants.
type Caller struct {
	Tenant, Name string
	Operator     bool
}

// Handler is the API of what was sent, for partners (their own tenant's, whatever they ask for) and operators:
//
//	GET  /v1/webhooks/deliveries              ?state=&endpoint=&operation=&after=&limit=
//	GET  /v1/webhooks/deliveries/{id}         with its attempts
//	POST /v1/webhooks/deliveries/{id}/resend  {"reason":"…"}
//	GET  /v1/webhooks/endpoints               operators only
//	POST /v1/webhooks/endpoints/{id}/reopen   {"reason":"…"}, operators only
//
// Bodies of messages are not shown. who finds out who asks; an error of it is a 401. Errors are RFC 9457 problem documents.
func (w *Webhooks) Handler(who func(r *http.Request) (Caller, error)) http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, do func(out http.ResponseWriter, r *http.Request, c Caller) (any, error)) {
		mux.HandleFunc(pattern, func(out http.ResponseWriter, r *http.Request) {
			c, err := who(r)
			if err != nil || c.Tenant == "" && !c.Operator {
				problem(out, http.StatusUnauthorized, "Authentication is needed")
				return
			}
			result, err := do(out, r, c)
			if err != nil {
				w.refuse(out, r, err)
				return
			}
			out.Header().Set("Content-Type", "application/json")
			out.Header().Set("Cache-Control", "no-store")
			_ = json.NewEncoder(out).Encode(result)
		})
	}
	on("GET /v1/webhooks/deliveries", func(_ http.ResponseWriter, r *http.Request, c Caller) (any, error) {
		q, limit := r.URL.Query(), 0
		if text := q.Get("limit"); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 500 {
				return nil, requestError("limit must be 1 to 500")
			}
			limit = n
		}
		list, err := w.List(r.Context(), Filter{
			Tenant: c.Tenant, State: q.Get("state"), Endpoint: q.Get("endpoint"), OperationID: q.Get("operation"), After: q.Get("after"), Limit: limit,
		})
		if list == nil {
			list = []Delivery{}
		}
		return map[string]any{"deliveries": list}, err
	})
	on("GET /v1/webhooks/deliveries/{id}", func(_ http.ResponseWriter, r *http.Request, c Caller) (any, error) {
		d, attempts, err := w.Show(r.Context(), r.PathValue("id"))
		if err == nil && !c.Operator && d.Tenant != c.Tenant {
			err = ErrUnknown
		}
		return struct {
			Delivery
			Log []Attempt `json:"log"`
		}{d, attempts}, err
	})
	on("POST /v1/webhooks/deliveries/{id}/resend", func(out http.ResponseWriter, r *http.Request, c Caller) (any, error) {
		id := r.PathValue("id")
		reason, err := reasonOf(out, r)
		if err != nil {
			return nil, err
		}
		d, err := one(r.Context(), w.cfg.Pool, w.sql.show, id)
		if err == nil && !c.Operator && d.Tenant != c.Tenant {
			err = ErrUnknown
		}
		if err != nil {
			return nil, err
		}
		return map[string]string{"id": id, "state": Pending}, w.Resend(r.Context(), id, c.Name, reason)
	})
	on("GET /v1/webhooks/endpoints", func(_ http.ResponseWriter, r *http.Request, c Caller) (any, error) {
		if !c.Operator {
			return nil, ErrUnknown
		}
		all, err := w.State(r.Context())
		return map[string]any{"endpoints": all}, err
	})
	on("POST /v1/webhooks/endpoints/{id}/reopen", func(out http.ResponseWriter, r *http.Request, c Caller) (any, error) {
		if !c.Operator {
			return nil, ErrUnknown
		}
		reason, err := reasonOf(out, r)
		if err != nil {
			return nil, err
		}
		return map[string]string{"id": r.PathValue("id"), "state": "open"}, w.Reopen(r.Context(), r.PathValue("id"), c.Name, reason)
	})
	return mux
}

type requestError string

// Error says what is wrong with the request.
func (e requestError) Error() string { return string(e) }

func reasonOf(out http.ResponseWriter, r *http.Request) (string, error) {
	var in struct{ Reason string }
	text, err := io.ReadAll(http.MaxBytesReader(out, r.Body, 4<<10))
	if err != nil || json.Unmarshal(text, &in) != nil || in.Reason == "" {
		return "", requestError(`the body must be {"reason":"…"}`)
	}
	return in.Reason, nil
}

func (w *Webhooks) refuse(out http.ResponseWriter, r *http.Request, err error) {
	var bad requestError
	switch {
	case errors.As(err, &bad):
		problem(out, http.StatusBadRequest, bad.Error())
	case errors.Is(err, ErrUnknown):
		problem(out, http.StatusNotFound, "There is nothing here")
	case errors.Is(err, ErrGone):
		problem(out, http.StatusConflict, ErrGone.Error())
	default:
		w.cfg.Log.Error().Str("method", r.Method).Err(err).Msg("webhook request failed")
		problem(out, http.StatusServiceUnavailable, "The request could not be handled now")
	}
}

func problem(out http.ResponseWriter, status int, title string) {
	out.Header().Set("Content-Type", "application/problem+json")
	out.WriteHeader(status)
	_ = json.NewEncoder(out).Encode(map[string]any{"type": "about:blank", "status": status, "title": title})
}
