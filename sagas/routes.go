package sagas

import "net/http"

// route is one address of the API with every answer it gives: status to the problem types it may carry, nil for answers
// that are no problem. The OpenAPI document is compared with it, and so is every answer seen in the tests.
type route struct {
	method, path string
	handle       func(a *api) http.HandlerFunc
	answers      map[int][]string
}

func routes() []route {
	running := func(more map[int][]string) map[int][]string {
		all := map[int][]string{
			http.StatusOK: nil, http.StatusAccepted: nil, http.StatusUnauthorized: {problemUnauthorized}, http.StatusForbidden: {problemForbidden},
			http.StatusNotFound: {problemNotFound}, http.StatusGone: {problemGone}, http.StatusServiceUnavailable: {problemUnavailable},
		}
		for status, types := range more {
			all[status] = types
		}
		return all
	}
	return []route{
		{http.MethodPost, "/v1/operations/{type}", func(a *api) http.HandlerFunc { return a.measure(a.guard(a.post)) }, running(map[int][]string{
			http.StatusBadRequest: {problemKeyMissing, problemKeyInvalid, problemInvalid}, http.StatusConflict: {problemNotRetryable},
			http.StatusPreconditionFailed: {problemChanged}, http.StatusRequestEntityTooLarge: {problemTooLarge}, http.StatusUnsupportedMediaType: {problemMediaType},
			http.StatusUnprocessableEntity: {problemKeyReused}, http.StatusTooManyRequests: {problemTooFast},
		})},
		{http.MethodGet, "/v1/operations/{id}", func(a *api) http.HandlerFunc { return a.measure(a.guard(a.get)) }, running(map[int][]string{
			http.StatusTooManyRequests: {problemTooFast},
		})},
		{http.MethodPost, "/v1/operations/{id}/cancel", func(a *api) http.HandlerFunc { return a.measure(a.guard(a.cancel)) }, running(map[int][]string{
			http.StatusBadRequest: {problemInvalid}, http.StatusPreconditionFailed: {problemChanged},
		})},
		{http.MethodGet, "/v1/openapi.yaml", func(a *api) http.HandlerFunc { return a.openapi }, map[int][]string{http.StatusOK: nil}},
	}
}

func (a *api) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range routes() {
		mux.HandleFunc(r.method+" "+r.path, r.handle(a))
	}
	mux.HandleFunc("/v1/operations/{id}", a.method("GET, POST"))
	mux.HandleFunc("/v1/operations/{id}/cancel", a.method("POST"))
	mux.HandleFunc("/v1/openapi.yaml", a.method("GET"))
	if a.cfg.Metrics {
		mux.Handle("GET /metrics", a.MetricsHandler())
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusNotFound, problemNotFound, "There is nothing here", "")
	})
	return mux
}
