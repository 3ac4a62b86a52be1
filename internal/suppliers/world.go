package suppliers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Supplier names one simulator.
type Supplier string

// The four simulators.
const (
	Flight   Supplier = "flight"
	Hotel    Supplier = "hotel"
	Transfer Supplier = "transfer"
	Payment  Supplier = "payment"
)

// All lists the simulators.
func All() []Supplier { return []Supplier{Flight, Hotel, Transfer, Payment} }

// Limits that keep a world bounded. A request over one of them is answered 503 and has no effect.
const (
	maxBody    = 64 << 10 // bytes of a request body
	maxHeld    = 1024     // requests held by a script at once
	maxRecords = 1 << 20  // ledger entries, and things that can be asked for
)

// Config says where the simulators listen. The zero value is four free loopback ports.
type Config struct {
	// Listen opens the listener of one simulator; nil = a free port on 127.0.0.1. It is the seam for
	// networks of tests.
	Listen func(s Supplier) (net.Listener, error)
	// Now is the clock of the ledger; nil = time.Now.
	Now func() time.Time
	// CallbackAttempts is how often a callback that is not answered 2xx is tried; 0 = 40.
	CallbackAttempts int
	// CallbackPause is the pause between two tries; 0 = 250 ms.
	CallbackPause time.Duration
	Log           zerolog.Logger
}

// World is the four running simulators. It is safe for concurrent use.
type World struct {
	cfg     Config
	ledger  *ledger
	scripts *scripts
	held    chan struct{} // one token per request that a script may hold
	client  *http.Client

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup // servers, requests and callbacks; grows only while not closed

	urls    map[Supplier]string
	servers []*http.Server
}

// Start opens all listeners and serves until [World.Close]. It owns one goroutine per simulator and
// one per callback under way.
func Start(cfg Config) (*World, error) {
	if cfg.CallbackAttempts < 0 || cfg.CallbackPause < 0 {
		return nil, fmt.Errorf("suppliers: CallbackAttempts is %d and CallbackPause is %v, want 0 or more", cfg.CallbackAttempts, cfg.CallbackPause)
	}
	if cfg.Listen == nil {
		cfg.Listen = func(Supplier) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.CallbackAttempts == 0 {
		cfg.CallbackAttempts = 40
	}
	if cfg.CallbackPause == 0 {
		cfg.CallbackPause = 250 * time.Millisecond
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &World{
		cfg: cfg, ledger: newLedger(cfg.Now), scripts: newScripts(), held: make(chan struct{}, maxHeld),
		client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}},
		ctx:    ctx, cancel: cancel, urls: map[Supplier]string{},
	}
	for _, s := range All() {
		l, err := cfg.Listen(s)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("listen for the %s supplier: %w", s, err), w.Close())
		}
		server := &http.Server{Handler: w.counted(w.routes(s)), ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
		w.urls[s] = "http://" + l.Addr().String()
		w.servers = append(w.servers, server)
		w.work.Go(func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				w.cfg.Log.Error().Err(err).Str("supplier", string(s)).Msg("supplier stopped serving")
			}
		})
	}
	return w, nil
}

// URL is the base address of one simulator, without a trailing slash.
func (w *World) URL(s Supplier) string { return w.urls[s] }

// Close ends all simulators, held requests and callbacks, and waits for them. It may be called twice.
func (w *World) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	var errs []error
	for _, s := range w.servers {
		errs = append(errs, s.Close())
	}
	w.work.Wait()
	w.client.CloseIdleConnections()
	return errors.Join(errs...)
}

// enter counts one more piece of work, unless the world is closed.
func (w *World) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.work.Add(1)
	}
	return !w.closed
}

// spawn runs f on a goroutine that Close waits for.
func (w *World) spawn(f func()) {
	if !w.enter() {
		return
	}
	go func() {
		defer w.work.Done()
		f()
	}()
}

// counted makes Close wait for requests.
func (w *World) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.enter() {
			abort()
		}
		defer w.work.Done()
		next.ServeHTTP(rw, r)
	})
}

func (w *World) routes(s Supplier) http.Handler {
	mux := http.NewServeMux()
	if s == Payment {
		(&payments{world: w, keys: newKeys()}).routes(mux)
		return mux
	}
	r := &reservations{world: w, supplier: s, keys: newKeys(), ignoreKeys: s == Hotel}
	r.routes(mux)
	if s == Flight {
		(&tickets{world: w, keys: newKeys()}).routes(mux)
	}
	return mux
}
