package worker

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/zeebe"
)

// logLines collects what a worker logs.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

// waits gives the waits in ms of the lines that have text in them.
func (l *logLines) waits(t *testing.T, text string) (out []time.Duration) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if !strings.Contains(line, text) {
			continue
		}
		var v struct{ Wait float64 }
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		out = append(out, time.Duration(v.Wait*float64(time.Millisecond)))
	}
	return out
}

// TestPoll_backoff: an overloaded, absent or late gateway is asked with growing, jittered waits, each inside its bounds, and at full
// speed again after the first answer (spec W13). Every error re-arms the poll.
func TestPoll_backoff(t *testing.T) {
	t.Parallel()
	for _, code := range []zeebe.ErrorCode{zeebe.ResourceExhausted, zeebe.Unavailable, zeebe.DeadlineExceeded, zeebe.Unauthenticated, zeebe.Internal, zeebe.PermissionDenied, zeebe.InvalidArgument} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			const bad = 8
			n := 0
			w.gw.before = func(call string, _ int64) error {
				if call != "activate" {
					return nil
				}
				if n++; n <= bad || n > bad+1 && n <= bad+3 {
					return &zeebe.Error{Call: "ActivateJobs", Code: code, Detail: "test"}
				}
				return nil
			}
			mux := NewMux()
			mux.Handle("flight.reserve", Transactional(w.insertRoom, NoEffect()))
			cfg := fast()
			cfg.PollBackoff = outcome.Backoff{Min: 16 * time.Millisecond, Max: 200 * time.Millisecond, Factor: 2, Floor: 2 * time.Millisecond}
			k := w.gw.add("flight.reserve", job("op", offer))
			logs := &logLines{}
			w.log = zerolog.New(logs)
			w.start(mux, cfg)
			w.wait(k, "completed")
			w.until("failed again after the success", func() bool { return len(logs.waits(t, "activation failed")) == bad+2 })
			waits := logs.waits(t, "activation failed")
			for i, d := range waits {
				fails := i + 1
				if i >= bad {
					fails = i - bad + 1
				}
				if d < cfg.PollBackoff.Floor || d > cfg.PollBackoff.Bound(fails) {
					t.Errorf("wait %d is %s, want %s to %s", i, d, cfg.PollBackoff.Floor, cfg.PollBackoff.Bound(fails))
				}
			}
			if s := slices.Clone(waits); len(slices.Compact(s)) < bad/2 {
				t.Errorf("waits %v: no jitter", waits)
			}
		})
	}
}

// TestPoll_asksFor: a poll asks for the declared input and the correlation variables alone, and for the configured tenants; a type that
// nobody handles is not asked for.
func TestPoll_asksFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := make(chan zeebe.ActivateRequest, 1000)
	w.gw.asked = func(r zeebe.ActivateRequest) {
		select {
		case asked <- r:
		default:
		}
	}
	s := newSupplier()
	mux := s.mux()
	cfg := fast()
	cfg.Tenants = []string{"north", "south"}
	w.start(mux, cfg)
	want := map[string][]string{
		"hotel.reserve": append(correlationNames(), "offer", "seats", "note"),
		"hotel.cancel":  append(correlationNames(), varForward),
	}
	for _, v := range want {
		slices.Sort(v)
	}
	seen := map[string]bool{}
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
	defer cancel()
	for len(seen) < 2 {
		select {
		case r := <-asked:
			seen[r.Type] = true
			got := slices.Sorted(slices.Values(r.Variables))
			if !slices.Equal(got, want[r.Type]) || !slices.Equal(r.Tenants, cfg.Tenants) || r.Worker != "journeyman" || r.Timeout != cfg.JobTimeout {
				t.Errorf("asked for %+v, want variables %v", r, want[r.Type])
			}
		case <-ctx.Done():
			t.Fatal("not asked")
		}
	}
}
