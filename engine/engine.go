package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // Node clients compress their requests
	"google.golang.org/grpc/keepalive"

	"github.com/vitrip/journeyman/engine/internal/broker"
	"github.com/vitrip/journeyman/engine/internal/gateway"
	"github.com/vitrip/journeyman/engine/internal/rest"
)

// version is what topology calls report: the protocol level, not a product version.
const version = "8.8.0"

// maxMessage is Zeebe's limit for one gRPC message, in bytes.
const maxMessage = 4 << 20

// closeGrace is how long Close waits for REST answers in flight.
const closeGrace = 2 * time.Second

// Engine is a running engine. Its methods are safe for concurrent use.
type Engine struct {
	broker      *broker.Broker
	faults      faults
	grpc        *grpc.Server
	http        *http.Server // nil without REST
	addr        string
	restAddr    string
	incarnation string
	wg          sync.WaitGroup
	closeOnce   sync.Once
	closeErr    error
}

// Start opens the listeners and serves until [Engine.Close]. All mistakes in
// cfg are reported together.
func Start(cfg Config) (*Engine, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	lis := cfg.Listener
	if lis == nil {
		var err error
		if lis, err = net.Listen("tcp", cfg.Addr); err != nil {
			return nil, fmt.Errorf("engine: listen for gRPC: %w", err)
		}
	}
	restLis := cfg.RESTListener
	if restLis == nil && cfg.RESTAddr != "" {
		var err error
		if restLis, err = net.Listen("tcp", cfg.RESTAddr); err != nil {
			return nil, errors.Join(fmt.Errorf("engine: listen for REST: %w", err), lis.Close())
		}
	}
	state, incarnation, err := openState(cfg)
	if err != nil {
		err = errors.Join(err, lis.Close())
		if restLis != nil {
			err = errors.Join(err, restLis.Close())
		}
		return nil, err
	}
	e := &Engine{
		broker:      state,
		faults:      faults{log: cfg.Log},
		addr:        lis.Addr().String(),
		incarnation: incarnation,
	}
	host, port := split(e.addr)
	compat85 := cfg.Compat == Compat85
	e.grpc = grpc.NewServer(
		grpc.UnaryInterceptor(e.faults.unary), grpc.StreamInterceptor(e.faults.stream),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
	)
	pb.RegisterGatewayServer(e.grpc, gateway.New(e.broker, compat85, version, host, port))
	e.wg.Go(func() {
		if err := e.grpc.Serve(lis); err != nil {
			cfg.Log.Error().Err(err).Msg("engine: gRPC server ended")
		}
	})
	if restLis != nil {
		e.restAddr = restLis.Addr().String()
		e.http = &http.Server{
			Handler:           e.faults.rest(rest.New(e.broker, compat85, version, host, port)),
			ReadHeaderTimeout: 10 * time.Second,
		}
		e.wg.Go(func() {
			if err := e.http.Serve(restLis); err != nil && !errors.Is(err, http.ErrServerClosed) {
				cfg.Log.Error().Err(err).Msg("engine: REST server ended")
			}
		})
	}
	kept := cfg.DataDir
	if kept == "" {
		kept = "memory: gone when the engine stops"
	}
	cfg.Log.Info().Str("grpc", e.addr).Str("rest", e.restAddr).Str("compat", string(cfg.Compat)).Str("state", kept).
		Msg(Banner)
	return e, nil
}

// openState begins a state in memory, or opens the one in cfg.DataDir. A state keeps its incarnation.
func openState(cfg Config) (*broker.Broker, string, error) {
	offset := keyOffset(time.Now())
	incarnation := strconv.FormatInt(offset, 36)
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return nil, "", fmt.Errorf("engine: random seed: %w", err)
	}
	var b *broker.Broker
	if cfg.DataDir == "" {
		b = broker.New(offset, seed)
	} else {
		var err error
		if b, err = broker.Open(cfg.DataDir, offset, incarnation, seed); err != nil {
			return nil, "", fmt.Errorf("engine: %w", err)
		}
		incarnation = b.Incarnation()
	}
	if err := b.KeepHistory(cfg.HistoryLimit, cfg.HistoryAge); err != nil {
		return nil, "", errors.Join(fmt.Errorf("engine: %w", err), b.Close())
	}
	return b, incarnation, nil
}

// keyOffset makes keys of one state unlike those of any earlier state: seconds
// since 2020 shifted by 20 bits, which leaves a million keys a second and stays
// far inside a partition's 51 bits.
func keyOffset(t time.Time) int64 {
	const epoch = 1577836800
	return ((t.Unix() - epoch) & (1<<30 - 1) << 20) + int64(t.Nanosecond()/1000)
}

func split(addr string) (string, int32) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0 // an in-memory listener
	}
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return host, 0
	}
	return host, int32(n)
}

// Addr is the gRPC address, host:port.
func (e *Engine) Addr() string { return e.addr }

// RESTAddr is the REST address, host:port; empty when there is no REST server.
// Routes begin with /v2.
func (e *Engine) RESTAddr() string { return e.restAddr }

// Incarnation names this state: it differs for every new state, so that an
// answer meant for an earlier one can be told apart (rule 9).
func (e *Engine) Incarnation() string { return e.incarnation }

// Now is the engine's time: real time plus what AdvanceClock added.
func (e *Engine) Now() time.Time { return e.broker.Now() }

// AdvanceClock moves the engine's clock forward by d and returns after
// everything that became due has happened, in order, each at its own time. A
// negative d moves it back: nothing happens, and timers that run take that much longer.
// An error means that the state on disk cannot be written any more, which every
// later command says too; with the state in memory there is none.
func (e *Engine) AdvanceClock(d time.Duration) error {
	if err := e.broker.Advance(d); err != nil {
		return fmt.Errorf("engine: advance the clock by %s: %w", d, err)
	}
	return nil
}

// Close ends all calls, streams and timers and waits for them. The state is
// gone, unless Config.DataDir keeps it.
func (e *Engine) Close() error {
	e.closeOnce.Do(func() {
		e.closeErr = e.broker.Close()
		e.grpc.Stop()
		if e.http != nil {
			ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
			defer cancel()
			if err := e.http.Shutdown(ctx); err != nil {
				e.closeErr = errors.Join(e.closeErr, fmt.Errorf("engine: stop REST: %w", err), e.http.Close())
			}
		}
		e.wg.Wait()
	})
	return e.closeErr
}
