// Package rest serves the routes of the Orchestration Cluster REST API v2
// (shapes of 8.8) that operators and clients need, over a broker.
package rest

import (
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/broker"
)

// DefaultTenant is the only tenant there is.
const DefaultTenant = "<default>"

// server holds what the routes need.
type server struct {
	broker   *broker.Broker
	compat85 bool
	version  string
	host     string
	port     int32
}

// handler answers one route: a value for 200, nil for 204, an error for a problem document.
type handler func(r *http.Request) (any, error)

// New returns the handler of all routes.
func New(b *broker.Broker, compat85 bool, version, host string, port int32) http.Handler {
	s := &server{broker: b, compat85: compat85, version: version, host: host, port: port}
	mux := http.NewServeMux()
	for pattern, h := range map[string]handler{
		"GET /v2/topology":                  s.topology,
		"GET /v2/status":                    s.status,
		"GET /v2/authentication/me":         s.me,
		"POST /v2/deployments":              s.deploy,
		"POST /v2/process-instances":        s.createInstance,
		"POST /v2/messages/publication":     s.publish,
		"POST /v2/messages/correlation":     s.correlate,
		"POST /v2/signals/broadcast":        s.broadcast,
		"POST /v2/resources/{key}/deletion": s.deleteResource,
		"POST /v2/jobs/activation":          s.activate,
		"POST /v2/jobs/{key}/completion":    s.completeJob,
		"POST /v2/jobs/{key}/failure":       s.failJob,
		"POST /v2/jobs/{key}/error":         s.throwError,
		"PATCH /v2/jobs/{key}":              s.updateJob,
		"POST /v2/jobs/search":              s.searchJobs,

		"POST /v2/process-instances/search":                 s.searchInstances,
		"GET /v2/process-instances/{key}":                   s.getInstance,
		"POST /v2/process-instances/{key}/cancellation":     s.cancelInstance,
		"POST /v2/process-instances/{key}/modification":     s.modifyInstance,
		"POST /v2/process-instances/{key}/migration":        s.migrateInstance,
		"POST /v2/process-instances/{key}/incidents/search": s.searchInstanceIncidents,
		"POST /v2/incidents/search":                         s.searchIncidents,
		"GET /v2/incidents/{key}":                           s.getIncident,
		"POST /v2/incidents/{key}/resolution":               s.resolveIncident,
		"POST /v2/element-instances/search":                 s.searchElements,
		"GET /v2/element-instances/{key}":                   s.getElement,
		"PUT /v2/element-instances/{key}/variables":         s.setVariables,
		"POST /v2/variables/search":                         s.searchVariables,
		"GET /v2/variables/{key}":                           s.getVariable,
		"POST /v2/process-definitions/search":               s.searchDefinitions,
		"GET /v2/process-definitions/{key}":                 s.getDefinition,
		"GET /v2/process-definitions/{key}/xml":             s.definitionXML,
		"POST /v2/user-tasks/search":                        s.searchUserTasks,
		"GET /v2/user-tasks/{key}":                          s.getUserTask,
		"PATCH /v2/user-tasks/{key}":                        s.updateUserTask,
		"POST /v2/user-tasks/{key}/completion":              s.completeUserTask,
		"POST /v2/user-tasks/{key}/assignment":              s.assignUserTask,
		"DELETE /v2/user-tasks/{key}/assignee":              s.unassignUserTask,

		"PUT /v2/clock":          s.pinClock,
		"POST /v2/clock/reset":   s.resetClock,
		"POST /v2/clock/advance": s.advanceClock,
	} {
		mux.Handle(pattern, serve(h))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, r, problemf(http.StatusNotFound, "No endpoint %s %s.", r.Method, r.URL.Path))
	})
	return mux
}
