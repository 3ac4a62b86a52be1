package sagas

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
)

// Polls of running operations, each of another one so that none is refused, against the same server answering a constant
// with the same authentication: issue 6 asks for at least 0.4. The last line gives the ratio of the run.
func BenchmarkPolls(b *testing.B) {
	w := setupWith(b, nil)
	const operations = 20_000
	if _, err := w.records.Exec(w.ctx, `INSERT INTO journeyman_records.record (operation_id, started_on, tenant, type, key, internal_key, attempt, business_key, plan, origin, state,
			started_at, timeout_at, estimated_at, steps, completed, partial, start_state, start_next_at)
		SELECT 'op_' || n, current_date, 'agency', 'trip', 'k' || n, 'k' || n, 1, 'agency:B-' || n, '{}', '{}', 'in_progress', now(), now() + interval '1 h', now(), '{flight,hotel,confirm}', '{flight}',
			'{"flight":{"status":"confirmed"}}', 'started', now() FROM generate_series(1, $1) n`, operations); err != nil {
		b.Fatal(err)
	}
	if _, err := w.records.Exec(w.ctx, `ANALYZE journeyman_records.record`); err != nil {
		b.Fatal(err)
	}
	polls := w.server(w.s)
	auth, err := NewStaticTokens(map[string]Principal{"a": {Tenant: "agency"}})
	if err != nil {
		b.Fatal(err)
	}
	constant := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if _, err := auth.Authenticate(r); err != nil {
			out.WriteHeader(http.StatusUnauthorized)
			return
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"operation_id":"op_1","state":"in_progress"}`)
	}))
	b.Cleanup(constant.Close)
	var n atomic.Int64
	perSecond := map[string]float64{}
	for _, c := range []struct {
		name   string
		server *httptest.Server
		want   int
	}{{"constant", constant, http.StatusOK}, {"polls", polls, http.StatusAccepted}} {
		b.Run(c.name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			defer client.CloseIdleConnections()
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req, _ := http.NewRequestWithContext(w.ctx, http.MethodGet, c.server.URL+"/v1/operations/op_"+strconv.FormatInt(n.Add(1)%operations+1, 10), nil)
					req.Header.Set("Authorization", "Bearer a")
					res, err := client.Do(req)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if res.StatusCode != c.want && res.StatusCode != http.StatusTooManyRequests {
						b.Errorf("got %d", res.StatusCode)
						return
					}
				}
			})
			perSecond[c.name] = float64(b.N) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond[c.name], "req/s")
			if constant := perSecond["constant"]; c.name == "polls" && constant > 0 {
				b.ReportMetric(perSecond["polls"]/constant, "of_constant")
			}
		})
	}
}
