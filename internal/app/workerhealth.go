package app

import (
	"encoding/json"
	"net/http"

	"github.com/vitrip/journeyman/worker"
)

// typeHealth is one job type as GET /health shows it: what its handler declares beside what is measured (spec W10).
type typeHealth struct {
	Type              string  `json:"type"`
	ExpectedPerSecond float64 `json:"expectedPerSecond"` // 0 = not declared
	MeasuredPerSecond float64 `json:"measuredPerSecond"` // of the last minute
	ExpectedCost      float64 `json:"expectedCostMs"`
	MeasuredCost      float64 `json:"measuredCostMs"`
	Stream            string  `json:"stream"`
	Slowed            bool    `json:"slowed"` // its jobs fail in masses
}

type workerHealth struct {
	Active   int          `json:"active"`  // jobs received and not done
	Stalled  int          `json:"stalled"` // of them, without progress
	Types    []typeHealth `json:"types"`
	Unserved []string     `json:"unserved"` // job types with jobs that nobody takes
}

// WorkerHandler serves how the workers of this process do: GET /health as JSON, GET /metrics for Prometheus, see
// [App.MetricsHandler]. Neither holds a payload.
func (a *App) WorkerHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(shown(a.worker.Health())) // the caller is gone, or it went well
	})
	mux.Handle("GET /metrics", a.MetricsHandler())
	return mux
}

func shown(h worker.Health) workerHealth {
	out := workerHealth{Active: h.Active, Stalled: h.Stalled, Types: []typeHealth{}, Unserved: []string{}}
	for _, t := range h.Types {
		out.Types = append(out.Types, typeHealth{
			Type: t.Type, ExpectedPerSecond: t.ExpectedPerSecond, MeasuredPerSecond: t.JobsPerSecond,
			ExpectedCost: float64(t.ExpectedCost.Microseconds()) / 1000, MeasuredCost: float64(t.JobCost.Microseconds()) / 1000,
			Stream: t.Stream, Slowed: t.Slowed,
		})
	}
	for _, u := range h.Unserved {
		out.Unserved = append(out.Unserved, u.Type)
	}
	return out
}
