package sagas

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// family is one metric. Labels hold operation types, results and states: never ids or keys.
type family struct {
	name, help string
	labels     []string
	buckets    []float64 // nil for a counter
	gauge      bool
}

//nolint:gochecknoglobals // constant tables
var (
	metricRequests   = family{"journeyman_idempotent_requests_total", "Requests that carry an idempotency key or ask for a state, by how they were answered.", []string{"operation", "result"}, nil, false}
	metricForce      = family{"journeyman_force_retries_total", "Forced retries by result: won, lost, denied, running.", []string{"operation", "result"}, nil, false}
	metricPolls      = family{"journeyman_long_running_polls_total", "Polls of running operations.", []string{"operation"}, nil, false}
	metricViolations = family{"journeyman_polling_violations_total", "Polls earlier than Retry-After said.", []string{"operation"}, nil, false}
	metricEnded      = family{"journeyman_operations_total", "Operations that ended, by state.", []string{"operation", "state"}, nil, false}
	metricExpired    = family{"journeyman_expired_operations_total", "Operations that ended expired.", []string{"operation"}, nil, false}
	metricStuck      = family{"journeyman_saga_stuck_total", "Sagas that were found stuck, each told once per reason.", []string{"operation", "reason"}, nil, false}
	metricBreaches   = family{"journeyman_saga_sla_breaches_total", "SLAs that were breached, each told once: step, operation, deadline, manual.", []string{"operation", "what"}, nil, false}
	metricActive     = family{"journeyman_sagas_active", "Sagas that are not closed, by state; over all processes.", []string{"operation", "state"}, nil, true}
	metricStuckNow   = family{"journeyman_sagas_stuck", "Sagas that are stuck now, by reason; over all processes.", []string{"operation", "reason"}, nil, true}
	metricPollsPer   = family{"long_running_in_progress_polls_per_operation", "Polls per operation while it was in progress, observed at its end.", []string{"operation"}, []float64{1, 2, 5, 10, 20, 50, 100}, false}
	metricDuration   = family{"journeyman_operation_duration_seconds", "From the request to the final answer.", []string{"operation", "state"}, []float64{1, 5, 15, 60, 300, 900, 1800, 3600, 14400, 86400, 604800}, false}
)

// meter counts in this process. Safe for concurrent use.
type meter struct {
	mu     sync.Mutex
	series map[string]map[string]*series // by metric name and rendered labels
	all    map[string]family
}

type series struct {
	count  uint64
	sum    float64
	within []uint64 // per bucket, not cumulated
}

func newMeter() *meter {
	return &meter{series: map[string]map[string]*series{}, all: map[string]family{}}
}

func (m *meter) inc(f family, values ...string) { m.observe(f, 0, values...) }

func (m *meter) observe(f family, v float64, values ...string) {
	key := labelled(f, values)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series[f.name] == nil {
		m.series[f.name], m.all[f.name] = map[string]*series{}, f
	}
	s := m.series[f.name][key]
	if s == nil {
		s = &series{within: make([]uint64, len(f.buckets))}
		m.series[f.name][key] = s
	}
	s.count++
	s.sum += v
	for i, le := range f.buckets {
		if v <= le {
			s.within[i]++
			break
		}
	}
}

func labelled(f family, values []string) string {
	labels := make([]string, len(values))
	for i, value := range values {
		labels[i] = f.labels[i] + "=" + strconv.Quote(value)
	}
	return strings.Join(labels, ",")
}

// set gives a gauge its value.
func (m *meter) set(f family, v float64, values ...string) {
	m.inc(f, values...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.series[f.name][labelled(f, values)].sum = v
}

// reset forgets a gauge's values, so that what is no more is not shown.
func (m *meter) reset(f family) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.series, f.name)
}

// text renders everything in the Prometheus text format, version 0.0.4.
func (m *meter) text() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(m.series)) {
		f := m.all[name]
		kind := "counter"
		switch {
		case f.buckets != nil:
			kind = "histogram"
		case f.gauge:
			kind = "gauge"
		}
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, f.help, name, kind)
		for _, labels := range slices.Sorted(maps.Keys(m.series[name])) {
			s := m.series[name][labels]
			if f.gauge {
				fmt.Fprintf(&b, "%s{%s} %s\n", name, labels, strconv.FormatFloat(s.sum, 'g', -1, 64))
				continue
			}
			if f.buckets == nil {
				fmt.Fprintf(&b, "%s{%s} %d\n", name, labels, s.count)
				continue
			}
			below := uint64(0)
			for i, le := range f.buckets {
				below += s.within[i]
				fmt.Fprintf(&b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, strconv.FormatFloat(le, 'g', -1, 64), below)
			}
			fmt.Fprintf(&b, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %s\n%s_count{%s} %d\n", name, labels, s.count,
				name, labels, strconv.FormatFloat(s.sum, 'g', -1, 64), name, labels, s.count)
		}
	}
	return b.Bytes()
}

// MetricsHandler serves what this process counted, in the Prometheus text format (spec I10). It asks for no
// credentials: serve it on a listener of its own, or behind [HTTPConfig.Metrics] where the API is not public.
func (s *Sagas) MetricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(s.meter.text())
	})
}

// measured notes how a request was answered.
type measured struct {
	http.ResponseWriter
	status    int
	operation string // type, "" until it is known
}

// WriteHeader notes the status.
func (w *measured) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes 200 when no status was written.
func (w *measured) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *measured) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// about says which type of operation an answer is about.
func about(w http.ResponseWriter, operation string) {
	if m, ok := w.(*measured); ok {
		m.operation = operation
	}
}

// measure counts the requests of a route.
func (a *api) measure(next http.HandlerFunc) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		w := &measured{ResponseWriter: out, operation: "unknown"}
		if t := a.types[r.PathValue("type")]; t != nil {
			w.operation = t.Name
		}
		next(w, r)
		replayed := w.Header().Get(HeaderReplayed) != ""
		a.meter.inc(metricRequests, w.operation, requestResult(w.status, replayed))
		if force, err := forceRetry(r.Header); err == nil && force && r.PathValue("type") != "" {
			a.meter.inc(metricForce, w.operation, forceResult(w.status, replayed))
		}
	}
}

func requestResult(status int, replayed bool) string {
	switch {
	case status == http.StatusOK && replayed:
		return "replay"
	case status == http.StatusAccepted && replayed:
		return "in_flight"
	case status < 300:
		return "new"
	case status == http.StatusUnprocessableEntity:
		return "mismatch"
	case status == http.StatusGone:
		return "gone"
	case status == http.StatusTooManyRequests:
		return "too_fast"
	case status >= 500:
		return "failed"
	default:
		return "refused"
	}
}

func forceResult(status int, replayed bool) string {
	switch {
	case status < 300 && !replayed:
		return "won"
	case status < 300:
		return "running"
	case status == http.StatusPreconditionFailed:
		return "lost"
	default:
		return "denied"
	}
}

// observeEnd counts an operation that ended.
func (m *meter) observeEnd(operation, state string, polls int64, took time.Duration) {
	m.inc(metricEnded, operation, state)
	if state == string(Expired) {
		m.inc(metricExpired, operation)
	}
	m.observe(metricPollsPer, float64(polls), operation)
	m.observe(metricDuration, took.Seconds(), operation, state)
}
