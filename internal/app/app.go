// Package app puts the travel application together from the library's parts:
// workers, command sender, relay, saga sweeps and the consumer of the operation
// records, and the HTTP API for partners. The command `journeyman run` and the
// demo are two programs made of it.
package app

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/vitrip/journeyman/bpmn/models"
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/kafka"
	"github.com/vitrip/journeyman/events/nats"
	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/export"
	"github.com/vitrip/journeyman/worker"
	"github.com/vitrip/journeyman/zeebe"
)

// producer is this application's name in the event catalogs.
const producer = "tour-workers"

// recordGroup is the consumer group that moves the operation records.
const recordGroup = "operation-records"

// Suppliers are the base URLs of the companies we buy from.
type Suppliers struct{ Flight, Hotel, Transfer, Payment string }

// Config says where everything is. Pool, Gateway, Cluster, Env, Suppliers, Callback
// and the transport's addresses must be set.
type Config struct {
	Pool                 *pgxpool.Pool // domain database and record store
	Schema, RecordSchema string        // "" = the defaults

	Gateway   string             // host:port of the Zeebe gateway's gRPC API
	Plaintext bool               // without TLS
	OAuth     *zeebe.OAuthConfig // credentials for both APIs of the gateway; nil = none
	REST      string             // base URL of the REST API; "" = orphans cannot be told and are only shown
	Cluster   string             // name of the cluster in our rows (path rule 9)
	// Transport is [TransportKafka] or [TransportNATS]; "" = Kafka. The configuration of the other one must be empty.
	Transport string
	Brokers   []string     // of Kafka
	Kafka     kafka.Config // how Kafka is reached beside that: TLS, credentials
	NATS      nats.Config  // URL must be set for NATS
	// Replication makes [App.EnsureTopics] create missing topics with so many copies; 0 = topics are somebody else's business.
	Replication int
	Env         string // environment, for events
	Messages    Messages
	Suppliers   Suppliers
	Callback    string // base URL of our API, as suppliers reach it
	// CallbackSecret signs callback addresses: at least 16 bytes, the same in every process.
	CallbackSecret []byte

	Concurrency, MaxJobsActive int           // 0 = 16 and 64
	JobTimeout, CallTimeout    time.Duration // 0 = the worker's defaults
	RelayLease                 time.Duration // events of a relay that died wait this long at most; 0 = the relay's default
	// Webhooks are where partners are told of the end of their operations; nil = they ask.
	Webhooks webhook.Directory
	// Limits changes time-outs and retention of operation types by name (spec I5); see [sagas.ReadLimits].
	Limits map[string]sagas.Limits
	// BeginWithin, UndoWithin and ManualWithin are when a saga counts as stuck or late (spec S5); 0 = those of [sagas.Config].
	BeginWithin, UndoWithin, ManualWithin time.Duration
	// Archive is where operation records go when their retention ends (spec I9), see [Objects]; nil = they stay in the store.
	Archive sagas.Archive
	// Exports is where data exports of partners are written, see [ExportObjects]; nil = they are not offered.
	Exports export.Objects
	// RetainEvery is how often a retention round runs; 0 = one hour.
	RetainEvery time.Duration
	Background  Background
	Log         zerolog.Logger
}

func (c Config) withDefaults() Config {
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	if c.MaxJobsActive == 0 {
		c.MaxJobsActive = 64
	}
	if c.Transport == "" {
		c.Transport = TransportKafka
	}
	if len(c.Brokers) > 0 {
		c.Kafka.Brokers = c.Brokers
	}
	if c.RetainEvery == 0 {
		c.RetainEvery = time.Hour
	}
	return c
}

func (c Config) check() error {
	var errs []error
	if c.Pool == nil {
		errs = append(errs, errors.New("app: Pool is nil"))
	}
	for _, f := range []struct{ name, value string }{
		{"Gateway", c.Gateway}, {"Cluster", c.Cluster}, {"Env", c.Env}, {"Callback", c.Callback}, {"Suppliers.Flight", c.Suppliers.Flight},
		{"Suppliers.Hotel", c.Suppliers.Hotel}, {"Suppliers.Transfer", c.Suppliers.Transfer}, {"Suppliers.Payment", c.Suppliers.Payment},
	} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("app: %s is empty", f.name))
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"RetainEvery", c.RetainEvery}, {"RelayLease", c.RelayLease}, {"JobTimeout", c.JobTimeout}, {"CallTimeout", c.CallTimeout},
	} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("app: %s is %v, want more than 0", d.name, d.value))
		}
	}
	errs = append(errs, c.checkBackground()...)
	return errors.Join(append(errs, c.checkTransport()...)...)
}

// App is the application, connected but not running. Close it.
type App struct {
	cfg Config
	writing
	conn    *zeebe.Conn
	token   func(context.Context) (string, error) // for the REST API; nil = none
	bus     Bus
	stager  *outbox.Stager
	queue   *zeebe.Queue
	sagas   *sagas.Sagas
	hooks   *webhook.Webhooks // nil = none
	worker  *worker.Worker
	exports *export.Exports              // nil = not offered
	relay   atomic.Pointer[outbox.Relay] // of this process, once it runs
	lag     atomic.Pointer[inbox.LagWatch]
	handled *inbox.Meter
	done    *work.Meter
	gauges  gauges
}

// New connects the parts. It does not touch the network beyond that: what cannot be reached shows when it is used. Only a schema
// registry is asked, when what is emitted needs one. All mistakes in cfg are reported at once.
func New(cfg Config) (_ *App, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	a := &App{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if a.writing, err = cfg.Messages.open(emits()); err != nil {
		return nil, err
	}
	a.handled, a.done = inbox.NewMeter(a.catalog), work.NewMeter()
	if a.stager, err = a.writing.stager(cfg.Schema, cfg.Env); err != nil {
		return nil, err
	}
	if err := a.stager.Declare(emits()...); err != nil {
		return nil, err
	}
	gateway := zeebe.Config{Address: cfg.Gateway, Plaintext: cfg.Plaintext, Cluster: cfg.Cluster, Log: cfg.Log}
	if cfg.OAuth != nil {
		tokens, err := zeebe.OAuth(*cfg.OAuth)
		if err != nil {
			return nil, err
		}
		gateway.Token, gateway.Rejected, a.token = tokens.Token, tokens.Rejected, tokens.Token
	}
	if a.conn, err = zeebe.Dial(gateway); err != nil {
		return nil, err
	}
	if a.bus, err = OpenBus(cfg); err != nil {
		a.bus = nil // a nil client in an interface is not nil
		return nil, err
	}
	if a.queue, err = zeebe.NewQueue(cfg.Schema, cfg.Cluster); err != nil {
		return nil, err
	}
	return a, a.build()
}

// Close ends the connections. The pool is the caller's.
func (a *App) Close() error {
	var errs []error
	if a.worker != nil {
		a.worker.Runtime().Close()
	}
	if a.bus != nil {
		errs = append(errs, a.bus.Close())
	}
	a.writing.close()
	if a.conn != nil {
		errs = append(errs, a.conn.Close())
	}
	return errors.Join(errs...)
}

// Subscriber joins consumer groups of the application's bus.
func (a *App) Subscriber() events.Subscriber { return a.bus }

// Work runs a worker process until ctx ends, then drains: jobs, recorded answers, the relay, the sweeps of the sagas.
func (a *App) Work(ctx context.Context) error {
	all, err := a.loops()
	if err != nil {
		return err
	}
	all["worker"] = a.worker.Run
	return together(ctx, all)
}

// Relay runs what [App.Work] runs, but for the workers: events are published, sagas swept, webhooks sent, records archived, and
// what [Background] says. A sandbox needs no more.
func (a *App) Relay(ctx context.Context) error {
	all, err := a.loops()
	if err != nil {
		return err
	}
	return together(ctx, all)
}

func (a *App) loops() (map[string]func(context.Context) error, error) {
	relay, err := outbox.NewRelay(a.cfg.Pool, publisher(a.bus), outbox.RelayConfig{Schema: a.cfg.Schema, Lease: a.cfg.RelayLease, Stager: a.stager, Listen: true, Log: a.cfg.Log})
	if err != nil {
		return nil, err
	}
	ringer, err := a.ringer()
	if err != nil {
		return nil, err
	}
	a.relay.Store(relay)
	all := map[string]func(context.Context) error{"relay": relay.Run, "ringer": ringer.Run, "sagas": a.sagas.Run}
	if err := a.background(all); err != nil {
		return nil, err
	}
	if a.hooks != nil {
		all["webhooks"] = a.hooks.Run
	}
	if a.exports != nil {
		all["exports"] = a.expire
	}
	if a.cfg.Archive != nil {
		all["retention"] = func(ctx context.Context) error {
			return a.sagas.RunRetention(ctx, sagas.Retention{Archive: a.cfg.Archive}, a.cfg.RetainEvery)
		}
	}
	return all, nil
}

// ringer tells relays of other processes what is staged here: the shard of a key may be another's.
func (a *App) ringer() (*outbox.Ringer, error) {
	return outbox.NewRinger(a.cfg.Pool, outbox.RingerConfig{Schema: a.cfg.Schema, Stager: a.stager, Log: a.cfg.Log})
}

// Record runs the consumer that moves the operation records, which the API answers from, until ctx ends.
func (a *App) Record(ctx context.Context) error {
	records, err := inbox.New(a.bus, a.cfg.Pool, inbox.Config{
		Group: recordGroup, Catalog: a.catalog, Codec: a.codec, Keys: a.keys, Schema: a.recordSchema(), Concurrency: 4,
		Hooks: a.handled.Hooks(recordGroup, inbox.Hooks{}), Log: a.cfg.Log,
	}, a.sagas.Routes()...)
	if err != nil {
		return err
	}
	return together(ctx, map[string]func(context.Context) error{"records": records.Run})
}

// together runs all until ctx ends or one fails.
func together(ctx context.Context, all map[string]func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for name, run := range all {
		g.Go(func() error {
			if err := run(ctx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func (a *App) schema() string { return postgres.SchemaOr(a.cfg.Schema) }

func (a *App) recordSchema() string {
	if a.cfg.RecordSchema == "" {
		return sagas.DefaultRecordSchema
	}
	return a.cfg.RecordSchema
}

// FlushCommands writes down, until ctx ends, which of the commands that the API sent were acknowledged, and tells the relays of
// other processes what it staged. A process that runs Work does that by itself; in others nobody would, and the sweep would send
// the commands again.
func (a *App) FlushCommands(ctx context.Context) error {
	ringer, err := a.ringer()
	if err != nil {
		return err
	}
	return together(ctx, map[string]func(context.Context) error{"ringer": ringer.Run, "commands": a.flush})
}

func (a *App) flush(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := a.worker.Sender().Flush(ctx); err != nil && ctx.Err() == nil {
				a.cfg.Log.Warn().Err(err).Msg("acknowledged commands not deleted yet")
			}
		}
	}
}

// Deploy deploys the models of the travel sagas.
func (a *App) Deploy(ctx context.Context) error {
	var resources []zeebe.Resource
	for _, name := range models.Names() {
		content, err := models.Read(name)
		if err != nil {
			return err
		}
		resources = append(resources, zeebe.Resource{Name: name, Content: content})
	}
	if _, err := a.conn.Deploy(ctx, resources...); err != nil {
		return fmt.Errorf("deploy models: %w", err)
	}
	return nil
}
