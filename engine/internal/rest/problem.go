package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// maxBody is the limit of a JSON body, in bytes.
const maxBody = 4 << 20

// problemError is an RFC 9457 document.
type problemError struct {
	Type     string `json:"type"`
	Title    string `json:"title"`
	Status   int    `json:"status"`
	Detail   string `json:"detail"`
	Instance string `json:"instance"`
}

// Error implements error.
func (p *problemError) Error() string { return p.Detail }

func problemf(status int, format string, args ...any) *problemError {
	return &problemError{Type: "about:blank", Status: status, Title: http.StatusText(status), Detail: fmt.Sprintf(format, args...)}
}

// toProblem maps a rejection to its status; the title is the rejection's name, as Zeebe has it.
func toProblem(err error) *problemError {
	var p *problemError
	if errors.As(err, &p) {
		return p
	}
	var r *core.RejectedError
	if errors.As(err, &r) {
		status := http.StatusInternalServerError
		switch r.Reason {
		case core.NotFound:
			status = http.StatusNotFound
		case core.InvalidState, core.AlreadyExists:
			status = http.StatusConflict
		case core.InvalidArgument:
			status = http.StatusBadRequest
		}
		out := problemf(status, "%s", r.Error())
		out.Title = string(r.Reason)
		return out
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return problemf(http.StatusGatewayTimeout, "%v", err)
	}
	return problemf(http.StatusInternalServerError, "%v", err)
}

func writeProblem(w http.ResponseWriter, r *http.Request, p *problemError) {
	p.Instance = r.URL.Path
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	writeJSON(w, p)
}

// writeJSON writes v; an error means that the client has gone.
func writeJSON(w io.Writer, v any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) //nolint:errcheck // the status line is out; nobody is left to tell
}

// document is a body that is not JSON.
type document struct {
	contentType string
	body        []byte
}

func serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxUpload)
		v, err := h(r)
		switch {
		case err != nil:
			writeProblem(w, r, toProblem(err))
		case v == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			if d, ok := v.(document); ok {
				if d.contentType != "" {
					w.Header().Set("Content-Type", d.contentType)
				}
				_, _ = w.Write(d.body) //nolint:errcheck // the client has gone
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusOK)
			writeJSON(w, v)
		}
	})
}
