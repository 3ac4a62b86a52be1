package sagas

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/worker"
)

// DefaultRecordSchema is where the record store lives unless configured otherwise.
const DefaultRecordSchema = "journeyman_records"

// Config says where sagas keep what. Domain, Stager and Commands must be set.
type Config struct {
	Domain  *pgxpool.Pool // the domain database: gate, decision, ledger
	Records *pgxpool.Pool // the record store; nil = Domain. It may be another database (spec Z6)

	Schema       string // in Domain; "" = "journeyman"
	RecordSchema string // in Records; "" = DefaultRecordSchema. It must differ from Schema

	// Keys encrypt the contents of records where they rest (spec E4): plan, origin, partial results, final answer, in the record
	// store and in the archive. nil = they rest in the clear. Set it when the catalog encrypts class saga, in all processes that
	// answer for, start or move these records: one without the key answers 503. Records that rest in the clear are still read.
	Keys seal.Keys
	// KeysOpenOnly lets new contents rest in the clear although there are keys, which open what is encrypted: while not all
	// processes have keys yet, and after encryption was given up.
	KeysOpenOnly bool

	Stager   Stager   // *outbox.Stager
	Commands Commands // *zeebe.Queue of the cluster
	Sender   Sender   // *zeebe.Sender for the fast path; nil = every command waits for the sweep
	Cluster  string   // name of the cluster whose processes run the sagas (path rule 9); must be set

	// Limits changes times of types by name (spec I5), see [ReadLimits]; a name of no type is refused.
	Limits map[string]Limits

	// MaxStartDelay is how long the start message waits in the broker for its instance, and so how long
	// a start may be republished without starting twice (path rule 15); 0 = one hour.
	MaxStartDelay time.Duration
	// BeginWithin is when a saga that has not begun counts as stuck; 0 = one minute.
	BeginWithin time.Duration
	// UndoWithin is when an undo that has not ended counts as stuck; 0 = ten minutes.
	UndoWithin time.Duration
	// ManualWithin is how long a saga may wait for a person before that is told as a breach of an SLA; 0 = four hours.
	ManualWithin time.Duration
	// SweepEvery is how often starts that the fast path lost are taken up again; 0 = one second.
	SweepEvery time.Duration

	// Undo compensates forward operations of sagas that no process instance will end: worker.Runtime has it.
	// nil = such sagas are shown as stuck.
	Undo func(ctx context.Context, forwardOperationID, reason string) (worker.UndoResult, error)
	// Webhooks tells partners of the end of their operations; nil = they ask.
	Webhooks Webhooks
	// InstanceEnded says whether a process instance was terminated or has completed. nil = unknown, then
	// only sagas that never began are ended by the sweep.
	InstanceEnded func(ctx context.Context, cluster string, processInstanceKey int64) (bool, error)

	Log zerolog.Logger
}

// Stager stages messages in a transaction. *outbox.Stager is one.
type Stager interface {
	Check(msgs ...events.Message) error
	Queue(b *pgx.Batch, o events.Origin, msgs []events.Message, keys ...string) error
	SeqSQL() string
	Wake()
}

// Sagas runs long-running operations. It is safe for concurrent use.
type Sagas struct {
	cfg       Config
	types     map[string]*Type
	byProc    map[string]*Type
	sql       domainSQL
	rec       recordSQL
	polls     *pollBook
	pollReads *pollReads
	wake      chan struct{}
	count     counters
	meter     *meter

	gaugesMu sync.Mutex
	gaugesAt time.Time
}

// New checks the configuration and the types: all mistakes are named at once. It does not touch the databases.
func New(cfg Config, types ...Type) (*Sagas, error) {
	cfg = cfg.withDefaults()
	errs := []error{cfg.check(), unknownLimits(cfg.Limits, types)}
	s := &Sagas{cfg: cfg, types: map[string]*Type{}, byProc: map[string]*Type{}, wake: make(chan struct{}, 1)}
	for _, t := range types {
		t = t.limited(cfg.Limits[t.Name])
		errs = append(errs, t.check())
		if s.types[t.Name] != nil {
			errs = append(errs, fmt.Errorf("saga type %q: declared twice", t.Name))
		}
		full := t.withDefaults()
		if s.byProc[full.ProcessID] != nil {
			errs = append(errs, fmt.Errorf("saga type %q: process id %q is another type's", t.Name, full.ProcessID))
		}
		s.types[t.Name], s.byProc[full.ProcessID] = full, full
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.sql, s.rec = renderDomain(cfg.Schema, cfg.Stager.SeqSQL()), renderRecords(cfg.RecordSchema)
	s.polls, s.pollReads, s.meter = newPollBook(), s.readPolls(), newMeter()
	return s, nil
}

func (c Config) withDefaults() Config {
	if c.Records == nil {
		c.Records = c.Domain
	}
	if c.Schema == "" {
		c.Schema = postgres.DefaultSchema
	}
	if c.RecordSchema == "" {
		c.RecordSchema = DefaultRecordSchema
	}
	for _, d := range []struct {
		field *time.Duration
		def   time.Duration
	}{{&c.MaxStartDelay, time.Hour}, {&c.BeginWithin, time.Minute}, {&c.UndoWithin, 10 * time.Minute}, {&c.ManualWithin, 4 * time.Hour}, {&c.SweepEvery, time.Second}} {
		if *d.field == 0 {
			*d.field = d.def
		}
	}
	return c
}

func (c Config) check() error {
	var errs []error
	if c.Domain == nil {
		errs = append(errs, errors.New("sagas: Domain is nil, want the pool of the domain database"))
	}
	if c.Stager == nil {
		errs = append(errs, errors.New("sagas: Stager is nil, want an *outbox.Stager"))
	}
	if d, ok := c.Stager.(interface{ Declare(types ...string) error }); ok { // a type that is not in the catalog shows at start-up (spec E3)
		if err := d.Declare(Events()...); err != nil {
			errs = append(errs, fmt.Errorf("sagas: %w", err))
		}
	}
	if c.Commands == nil {
		errs = append(errs, errors.New("sagas: Commands is nil, want the engine command queue"))
	}
	if c.Cluster == "" {
		errs = append(errs, errors.New("sagas: Cluster is empty, want the name of the Zeebe cluster"))
	}
	if c.Schema == c.RecordSchema {
		errs = append(errs, fmt.Errorf("sagas: RecordSchema is %q like Schema, want another", c.RecordSchema))
	}
	errs = append(errs, postgres.CheckSchema(c.Schema), postgres.CheckSchema(c.RecordSchema))
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"MaxStartDelay", c.MaxStartDelay}, {"BeginWithin", c.BeginWithin}, {"UndoWithin", c.UndoWithin}, {"ManualWithin", c.ManualWithin}, {"SweepEvery", c.SweepEvery}} {
		if d.value < 0 {
			errs = append(errs, fmt.Errorf("sagas: %s is %v, want more than 0", d.name, d.value))
		}
	}
	return errors.Join(errs...)
}

//go:embed migrations
var migrations embed.FS

// Conn is what the migrations need: a connection, a pool or a transaction.
type Conn interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Migrate brings the tables of the domain database up to date ("" = "journeyman").
func Migrate(ctx context.Context, db Conn, schema string) error {
	return migrate(ctx, db, schema, postgres.DefaultSchema, "sagas", "migrations/domain")
}

// MigrateRecords brings the tables of the record store up to date ("" = [DefaultRecordSchema]).
// The consumer that runs [Sagas.Apply] needs its inbox table there too.
func MigrateRecords(ctx context.Context, db Conn, schema string) error {
	return migrate(ctx, db, schema, DefaultRecordSchema, "sagas-records", "migrations/records")
}

func migrate(ctx context.Context, db Conn, schema, def, owner, dir string) error {
	if schema == "" {
		schema = def
	}
	return postgres.MigrateFolder(ctx, db, schema, owner, migrations, dir)
}

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the saga events, for events.ParseCatalog.
func Catalog() []byte { return append([]byte(nil), catalog...) }

func (s *Sagas) typeOf(name string) (*Type, error) {
	t := s.types[name]
	if t == nil {
		return nil, fmt.Errorf("saga type %q is not declared in this process", name)
	}
	return t, nil
}

// signal wakes the sweep. It never blocks.
func (s *Sagas) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
