package engine

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxIntercepted is how much of a REST body an interceptor sees, in bytes: more
// than the longest that the API takes.
const maxIntercepted = 17 << 20

// RESTRequest is a call of the REST API as an interceptor sees it.
type RESTRequest struct {
	Method string
	Path   string // with /v2
	Query  string
	Header http.Header
	Body   []byte
}

// RESTResponse is the answer to a [RESTRequest].
type RESTResponse struct {
	Status int // 0: 200
	Header http.Header
	Body   []byte
}

// RESTInterceptor stands between a client and one route of the REST API. next
// runs the call: not calling it fails the call, calling it twice duplicates it.
// An error closes the connection without an answer: after next that loses the
// answer of a call that was executed. The response may be any, for example that of next or a 503.
type RESTInterceptor func(ctx context.Context, r RESTRequest, next func(ctx context.Context) (RESTResponse, error)) (RESTResponse, error)

type interceptedRoute struct {
	method string
	path   []string
	fn     RESTInterceptor
}

// InterceptREST installs fn for a route such as "POST /v2/jobs/{jobKey}/completion",
// where a name in braces stands for any one segment, or for all with "*".
// The newest interceptor runs outermost. remove takes it out again; calls that
// are already inside it finish there. Safe for concurrent use.
func (e *Engine) InterceptREST(route string, fn RESTInterceptor) (remove func()) {
	in := &interceptedRoute{fn: fn}
	if method, path, ok := strings.Cut(route, " "); ok {
		in.method, in.path = method, strings.Split(path, "/")
	}
	e.faults.mu.Lock()
	defer e.faults.mu.Unlock()
	e.faults.routes = append(e.faults.routes, in)
	return func() {
		e.faults.mu.Lock()
		defer e.faults.mu.Unlock()
		if i := slices.Index(e.faults.routes, in); i >= 0 {
			e.faults.routes = slices.Delete(slices.Clone(e.faults.routes), i, i+1)
		}
	}
}

func (in *interceptedRoute) matches(method string, path []string) bool {
	if in.path == nil {
		return true
	}
	return in.method == method && slices.EqualFunc(in.path, path, func(want, got string) bool { return want == got || strings.HasPrefix(want, "{") })
}

func (f *faults) ofRoute(r *http.Request) []*interceptedRoute {
	f.mu.RLock()
	defer f.mu.RUnlock()
	path := strings.Split(r.URL.Path, "/")
	var out []*interceptedRoute
	for _, in := range f.routes {
		if in.matches(r.Method, path) {
			out = append(out, in)
		}
	}
	return out
}

// rest puts the interceptors in front of the REST API.
func (f *faults) rest(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		chain := f.ofRoute(r)
		if len(chain) == 0 {
			api.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxIntercepted))
		if err != nil {
			panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to end a connection; the client has gone
		}
		req := RESTRequest{r.Method, r.URL.Path, r.URL.RawQuery, r.Header, body}
		call := func(ctx context.Context) (RESTResponse, error) {
			again := r.Clone(ctx)
			again.Body = io.NopCloser(bytes.NewReader(body))
			answer := &kept{header: http.Header{}}
			api.ServeHTTP(answer, again)
			return RESTResponse{answer.status, answer.header, answer.body.Bytes()}, nil
		}
		for _, in := range chain {
			next := call
			call = func(ctx context.Context) (RESTResponse, error) { return in.fn(ctx, req, next) }
		}
		answer, err := call(r.Context())
		if err != nil {
			panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's way to close a connection without an answer
		}
		for name, values := range answer.Header {
			w.Header()[name] = values
		}
		if answer.Status != 0 {
			w.WriteHeader(answer.Status)
		}
		_, _ = w.Write(answer.Body) //nolint:errcheck // the client has gone
	})
}

// kept is an answer that is not sent yet.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter; the first status counts.
func (k *kept) WriteHeader(status int) {
	if k.status == 0 {
		k.status = status
	}
}

// Write implements http.ResponseWriter.
func (k *kept) Write(b []byte) (int, error) {
	k.WriteHeader(http.StatusOK)
	return k.body.Write(b)
}
