package zeebe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// MaxMessage is the largest gRPC message in bytes that is received or sent: Zeebe's own default limit.
const MaxMessage = 4 << 20

// Config says how to reach a gateway. The zero value is refused: Address or Dialer must be given.
type Config struct {
	Address   string      // host:port of the gateway's gRPC side
	Plaintext bool        // no TLS; otherwise TLS with the system's roots, or TLS
	TLS       *tls.Config // nil = system roots, TLS 1.2 or later

	// Token gives the bearer token of each call; nil = none. See [OAuth].
	Token func(ctx context.Context) (string, error)
	// Rejected is told of a token that the gateway refused, so that the next Token call gets a new one. May be nil.
	Rejected func(token string)
	// TokenInClear allows Token together with Plaintext. Without it the two together are refused.
	TokenInClear bool

	Dialer    func(ctx context.Context, addr string) (net.Conn, error) // in-memory listeners, proxies; nil = TCP
	Cluster   string                                                   // name of the cluster in our rows (path rule 9); "" = "default"
	Timeout   time.Duration                                            // of one call that is not a poll; 0 = 10 s
	KeepAlive time.Duration                                            // ping of an idle connection; 0 = 45 s, at least 10 s
	UserAgent string
	Log       zerolog.Logger

	KeepAliveTimeout time.Duration // wait for the answer to a ping before the connection counts as dead; 0 = 20 s
}

// DefaultCluster names the cluster of a Config that names none.
const DefaultCluster = "default"

func (c Config) withDefaults() Config {
	if c.Cluster == "" {
		c.Cluster = DefaultCluster
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.KeepAlive == 0 {
		c.KeepAlive = 45 * time.Second
	}
	if c.KeepAliveTimeout == 0 {
		c.KeepAliveTimeout = 20 * time.Second
	}
	if c.Address == "" && c.Dialer != nil {
		c.Address = "gateway"
	}
	return c
}

func (c Config) check() error {
	var errs []error
	if c.Address == "" {
		errs = append(errs, errors.New("zeebe address: empty, want host:port"))
	}
	if c.Plaintext && c.TLS != nil {
		errs = append(errs, errors.New("zeebe plaintext: set together with a TLS configuration, want one of the two"))
	}
	if c.Plaintext && c.Token != nil && !c.TokenInClear {
		errs = append(errs, errors.New("zeebe token: would be sent without TLS; use TLS, or set TokenInClear"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("zeebe timeout %s: want above 0", c.Timeout))
	}
	if c.KeepAlive < 10*time.Second {
		errs = append(errs, fmt.Errorf("zeebe keep-alive %s: want 10s or more, gateways close faster pingers", c.KeepAlive))
	}
	if c.KeepAliveTimeout < 0 {
		errs = append(errs, fmt.Errorf("zeebe keep-alive timeout %s: want above 0", c.KeepAliveTimeout))
	}
	if len(c.Cluster) > 200 {
		errs = append(errs, fmt.Errorf("zeebe cluster: %d bytes, want at most 200", len(c.Cluster)))
	}
	return errors.Join(errs...)
}

// Conn is a connection to one gateway. Safe for concurrent use. Close it.
type Conn struct {
	cfg    Config
	cc     *grpc.ClientConn
	client pb.GatewayClient

	sc      *grpc.ClientConn // for job streams; connects at the first one
	streams pb.GatewayClient
}

// Dial makes a connection. It does not wait for the gateway: an unreachable one shows at the first call.
// All mistakes in cfg are reported at once.
func Dial(cfg Config) (*Conn, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c := &Conn{cfg: cfg}
	creds := insecure.NewCredentials()
	if !cfg.Plaintext {
		t := cfg.TLS
		if t == nil {
			t = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		creds = credentials.NewTLS(t)
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: cfg.KeepAlive, Timeout: cfg.KeepAliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 5 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithDisableServiceConfig(),
	}
	if cfg.UserAgent != "" {
		opts = append(opts, grpc.WithUserAgent(cfg.UserAgent))
	}
	target := cfg.Address
	if cfg.Dialer != nil {
		opts = append(opts, grpc.WithContextDialer(cfg.Dialer))
		target = "passthrough:///" + target
	}
	if cfg.Token != nil {
		opts = append(opts, grpc.WithUnaryInterceptor(c.authUnary), grpc.WithStreamInterceptor(c.authStream))
	}
	cc, err := grpc.NewClient(target, opts...)
	if err != nil {
		return nil, fmt.Errorf("zeebe address %q: %w", cfg.Address, err)
	}
	c.cc, c.client = cc, pb.NewGatewayClient(cc)
	sc, err := grpc.NewClient(target, append(opts, grpc.WithInitialWindowSize(StreamWindow))...)
	if err != nil {
		_ = cc.Close()
		return nil, fmt.Errorf("zeebe address %q: %w", cfg.Address, err)
	}
	c.sc, c.streams = sc, pb.NewGatewayClient(sc)
	return c, nil
}

// Cluster is the name that rows of this cluster carry (path rule 9).
func (c *Conn) Cluster() string { return c.cfg.Cluster }

// Close ends the connection; calls under way fail with Canceled.
func (c *Conn) Close() error { return errors.Join(c.sc.Close(), c.cc.Close()) }

// bounded gives ctx the configured time-out of one call.
func (c *Conn) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}
