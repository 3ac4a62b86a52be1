package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// createOf starts an instance of a process with these variables beside its key.
func (s *site) createOf(process, key, vars string) int64 {
	s.t.Helper()
	i, err := s.conn.CreateInstance(s.ctx, process, fmt.Sprintf(`{"key":%q,%s}`, key, vars))
	if err != nil {
		s.t.Fatal(err)
	}
	return i.ProcessInstanceKey
}

// TestCredentials: a worker whose token the gateway does not take keeps asking, bounded and visibly, and works when it does; one whose
// token runs out in the middle of its work gets another, and no job is lost.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var good, tokens atomic.Int64
	good.Store(1000) // none of the first tokens
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("client_secret") != "right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprint("T", tokens.Add(1)), "expires_in": 3600})
	}))
	defer idp.Close()
	p := &proxy{admit: func(ctx context.Context) error {
		md, _ := metadata.FromIncomingContext(ctx)
		var n int64
		if a := md.Get("authorization"); len(a) != 1 {
			return status.Error(codes.Unauthenticated, "no token")
		} else if _, err := fmt.Sscanf(a[0], "Bearer T%d", &n); err != nil || n < good.Load() {
			return status.Error(codes.Unauthenticated, "expired")
		}
		return nil
	}}
	wrong, err := zeebe.OAuth(zeebe.OAuthConfig{URL: idp.URL, ClientID: "id", ClientSecret: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	right, err := zeebe.OAuth(zeebe.OAuthConfig{URL: idp.URL, ClientID: "id", ClientSecret: "right"})
	if err != nil {
		t.Fatal(err)
	}
	var src atomic.Pointer[zeebe.TokenSource]
	src.Store(wrong)
	s.behind(p, zeebe.Config{
		TokenInClear: true, Token: func(ctx context.Context) (string, error) { return src.Load().Token(ctx) }, Rejected: func(tok string) { src.Load().Rejected(tok) },
	})
	w := s.start(nil, quickPolls)
	s.until("visible", func() bool {
		h := streamOf(w, "room.hold")
		return h.Stream == worker.StreamDown && strings.Contains(h.StreamError, "UNAUTHENTICATED") && strings.Contains(h.StreamError, "401")
	})
	if p.polls.Load()+p.opens.Load() != 0 {
		t.Error("a call was made without a token")
	}
	src.Store(right) // the tokens come now, and are refused
	s.until("refused", func() bool { return p.polls.Load() >= 3 && p.opens.Load() >= 3 })
	good.Store(0)
	for i := range 5 {
		s.instanceIs(s.create(fmt.Sprint("k", i)), "COMPLETED")
	}
	for i := range 5 { // the token runs out, again and again
		good.Store(tokens.Load() + 1)
		s.instanceIs(s.create(fmt.Sprint("m", i)), "COMPLETED")
	}
	if n := s.runs.Load(); n != 10 {
		t.Errorf("%d handlers ran for 10 jobs", n)
	}
}

// TestGateway_neverAnswers: the gateway takes connections and says nothing. Calls end by their own time-out, attempts are bounded, and
// the worker stops at once when it is told to.
func TestGateway_neverAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	var mu sync.Mutex
	var taken atomic.Int64
	go func() {
		for {
			c, err := lis.Accept()
			if err != nil {
				return
			}
			taken.Add(1)
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = lis.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	})
	conn, err := zeebe.Dial(zeebe.Config{Address: lis.Addr().String(), Plaintext: true, Timeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s.conn2 = conn
	mux := worker.NewMux()
	mux.Handle("room.hold", (&clerk{shape: "transactional"}).handler())
	var polls atomic.Int64
	log := zerolog.New(zerolog.NewTestWriter(t)).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) {
		if strings.HasPrefix(message, "activation failed") {
			polls.Add(1)
		}
	}))
	const wait, calm = 100 * time.Millisecond, time.Second
	began := time.Now()
	w, stop := s.runUntil(mux, worker.Config{
		MaxJobsActive: 8, Concurrency: 2, PollWait: wait, PollBackoff: outcome.Backoff{Min: calm, Max: calm, Factor: 1, Floor: calm}, Log: log,
	})
	s.until("the stream is shown down", func() bool { return taken.Load() > 0 && streamOf(w, "room.hold").Stream == worker.StreamDown })
	s.until("polls have had the time to fail", func() bool { return polls.Load() > 1 && time.Since(began) > 4*time.Second })
	// A poll takes its wait and its time-out, and a pause follows; each of the two connections takes 5 s to give up.
	dialled, asked, past := taken.Load(), polls.Load(), time.Since(began)
	if most := 1 + int64(past/(wait+300*time.Millisecond+calm)); asked > most {
		t.Errorf("%d polls failed in %s, want at most %d", asked, past, most)
	}
	if most := 2 * (1 + int64(past/(5*time.Second))); dialled > most {
		t.Errorf("%d connections in %s, want at most %d", dialled, past, most)
	}
	if err := conn.Complete(s.ctx, 1, ""); zeebe.Code(err) != zeebe.DeadlineExceeded && zeebe.Code(err) != zeebe.Unavailable {
		t.Errorf("a call to it: %v", err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); stop() }()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the worker does not end")
	}
}

// TestDeadlineOnArrival: by the broker's clock the job's time was over when it came, or an hour is left: what counts is our receipt. The
// job runs, its end is told, a failure too.
func TestDeadlineOnArrival(t *testing.T) {
	t.Parallel()
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		for _, pollOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("deadline off by %s poll only %v", off, pollOnly), func(t *testing.T) {
				t.Parallel()
				s := newSite(t)
				p := &proxy{edit: func(j *pb.ActivatedJob) { j.Deadline = time.Now().Add(off).UnixMilli() }}
				s.behind(p, zeebe.Config{})
				var failed atomic.Bool
				s.start(func(_ context.Context, _ *worker.Tx, j worker.Job[hold]) (map[string]any, error) {
					if left := time.Until(j.Deadline); left < 10*time.Second || left > 40*time.Second {
						t.Errorf("the handler sees %s until its deadline, want the job's time-out from receipt", left)
					}
					if !failed.Swap(true) {
						return nil, errors.New("once")
					}
					return nil, nil
				}, func(c *worker.Config) { c.PollOnly = pollOnly })
				s.instanceIs(s.create("a"), "COMPLETED")
			})
		}
	}
}

// TestClocksApart: the engine's clock is an hour ahead or behind ours, and so is the database's; jobs run, failures are told, and an
// external call is settled.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ engine, database time.Duration }{{time.Hour, 0}, {0, time.Hour}, {0, -time.Hour}, {time.Hour, -time.Hour}} {
		t.Run(fmt.Sprintf("engine %s database %s", tt.engine, tt.database), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if tt.engine != 0 {
				s.eng.AdvanceClock(tt.engine)
			}
			if tt.database != 0 {
				if err := postgres.AdvanceClock(s.ctx, s.pool, postgres.DefaultSchema, tt.database); err != nil {
					t.Fatal(err)
				}
			}
			var tries atomic.Int64
			mux := worker.NewMux()
			mux.Handle("room.hold", worker.External(worker.Remote[stay, map[string]any, map[string]any]{
				Call: func(context.Context, worker.Call[stay]) (map[string]any, error) {
					switch tries.Add(1) {
					case 1:
						return nil, worker.Retryable(errors.New("busy"))
					case 2:
						return nil, worker.Unknown(errors.New("time-out after send"))
					}
					return map[string]any{"id": 1}, nil
				},
				Resolve: func(context.Context, worker.Call[stay]) (map[string]any, error) { return nil, worker.ErrNotHappened },
			}, worker.NoEffect(), worker.KeyValidFor(time.Hour)))
			quick := outcome.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond, Factor: 2}
			s.run(mux, worker.Config{MaxJobsActive: 8, Concurrency: 2, PollWait: time.Second, Backoff: quick, UnknownBackoff: quick, Elements: s.rest})
			k := s.createOf("one", "a", stayVars)
			s.instanceIs(k, "COMPLETED")
			if tries.Load() != 3 {
				t.Errorf("%d calls, want 3", tries.Load())
			}
		})
	}
}
