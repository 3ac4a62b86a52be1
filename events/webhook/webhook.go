package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
)

// Config is for [New]. Pool and Directory must be set.
type Config struct {
	Pool      *pgxpool.Pool // where the tables are: the database of the transactions that stage
	Schema    string        // "" = "journeyman"
	Directory Directory
	// Keys encrypt messages where they rest (spec E4); nil = they rest as they are. Partners get them clear. What was staged under
	// other keys needs those too, until [seal.Reseal] went through [SealedTables].
	Keys seal.Keys

	Schedule    Schedule      // waits between attempts; nil = [DefaultSchedule]
	Timeout     time.Duration // of one attempt, all of it; 0 = 10 s
	Concurrency int           // endpoints served at a time; 0 = 8. A slow one holds one place
	SweepEvery  time.Duration // how often due messages are looked for; 0 = 500 ms
	MaxBody     int           // bytes of a message; 0 = 256 KiB. A larger one is refused at staging
	Keep        time.Duration // how long delivered messages are kept; 0 = 30 days
	KeepDead    time.Duration // how long dead ones are; 0 = 365 days. Not shorter than Keep

	// Allow says whether an address may be dialled; nil = [PublicOnly].
	Allow func(netip.AddrPort) error
	// Plaintext lets endpoints have http addresses: for tests and demonstrations.
	Plaintext bool
	// Audit writes down, in the act's transaction, what a person did; an error undoes the act. nil = acts are logged only.
	Audit func(ctx context.Context, tx *outbox.Tx, a Act) error

	Hooks Hooks
	Log   zerolog.Logger
}

// Hooks are called by the sending goroutines and must return quickly. Nil ones are not called.
type Hooks struct {
	Attempt func(endpoint string, status int, took time.Duration) // status 0: no answer came
	Dead    func(endpoint, delivery, reason string)               // alert: a message is in the dead letters
}

// Act is what a person did. Before is the state the delivery had.
type Act struct {
	Action string // "webhook.resend" or "webhook.reopen"
	Target string // delivery or endpoint
	Actor  string
	Reason string
	Before string
}

// Webhooks stages and sends. It is safe for concurrent use.
type Webhooks struct {
	cfg    Config
	sql    statements
	client *http.Client
	spread func() float64
	now    func() time.Time // the receivers' clock, for time-stamps
}

// New checks the configuration; it does not touch database or network.
func New(cfg Config) (*Webhooks, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Webhooks{cfg: cfg, sql: render(cfg.Schema), client: client(cfg.Timeout, cfg.Allow), spread: rand.Float64, now: time.Now}, nil
}

func (c Config) withDefaults() Config {
	c.Schema = postgres.SchemaOr(c.Schema)
	if c.Schedule == nil {
		c.Schedule = DefaultSchedule()
	}
	if c.Concurrency == 0 {
		c.Concurrency = 8
	}
	if c.MaxBody == 0 {
		c.MaxBody = 256 << 10
	}
	if c.Allow == nil {
		c.Allow = PublicOnly
	}
	const day = 24 * time.Hour
	for _, d := range []struct {
		field *time.Duration
		def   time.Duration
	}{{&c.Timeout, 10 * time.Second}, {&c.SweepEvery, 500 * time.Millisecond}, {&c.Keep, 30 * day}, {&c.KeepDead, 365 * day}} {
		if *d.field == 0 {
			*d.field = d.def
		}
	}
	return c
}

func (c Config) check() error {
	errs := []error{postgres.CheckSchema(c.Schema), c.Schedule.check()}
	if c.Pool == nil {
		errs = append(errs, errors.New("webhook: Pool is nil"))
	}
	if c.Directory == nil {
		errs = append(errs, errors.New("webhook: Directory is nil, want where the endpoints are"))
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > time.Minute {
		errs = append(errs, fmt.Errorf("webhook: Timeout is %v, want 10ms to 1m", c.Timeout))
	}
	if c.Concurrency < 1 || c.MaxBody < 1 || c.SweepEvery < 0 || c.Keep < 0 {
		errs = append(errs, errors.New("webhook: Concurrency, MaxBody, SweepEvery and Keep must be more than 0"))
	}
	if c.KeepDead < c.Keep {
		errs = append(errs, fmt.Errorf("webhook: KeepDead is %v, want at least Keep, %v", c.KeepDead, c.Keep))
	}
	return errors.Join(errs...)
}
