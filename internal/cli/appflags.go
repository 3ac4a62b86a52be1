package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/webhook"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
)

// Secrets never stand in flags: these variables hold them.
const (
	callbackSecret = "JOURNEYMAN_CALLBACK_SECRET"     // signs callback addresses
	kafkaPassword  = "JOURNEYMAN_KAFKA_PASSWORD"      //nolint:gosec // the name of a variable
	zeebeSecret    = "JOURNEYMAN_ZEEBE_CLIENT_SECRET" //nolint:gosec // the name of a variable
)

// secretsHelp is for the help of commands that run the application.
const secretsHelp = `Secrets come from the environment alone: ` + callbackSecret + ` signs callback addresses (16 bytes or more,
the same in every process), ` + kafkaPassword + ` and ` + zeebeSecret + ` belong to --kafka-user and --zeebe-client-id.`

// appFlags say how a process of the application is set up: the same flags for `run` and `api`.
type appFlags struct {
	db          databaseFlags
	cfg         app.Config
	bus         busFlags
	messages    messageFlags
	connections int32
	level       string

	limits, webhooks, archive string // files, and a URL or folder
	eventArchive              string // of the event log; "" where the command has no such flag
	oauth                     zeebe.OAuthConfig
}

func (f *appFlags) add(cmd *cobra.Command) {
	f.db.add(cmd)
	f.bus.add(cmd)
	f.messages.add(cmd)
	c, fl := &f.cfg, cmd.Flags()
	fl.StringVar(&c.Gateway, "zeebe", "", "host:port of the Zeebe gateway's gRPC API")
	fl.BoolVar(&c.Plaintext, "zeebe-plaintext", false, "connect to the gateway without TLS")
	fl.StringVar(&f.oauth.URL, "zeebe-oauth-url", "", "token endpoint of the gateway's identity service; none when empty")
	fl.StringVar(&f.oauth.ClientID, "zeebe-client-id", "", "client id at that service")
	fl.StringVar(&f.oauth.Audience, "zeebe-audience", "", "audience to ask that service for")
	fl.StringVar(&c.REST, "rest", "", "base URL of the REST API, to tell orphans from answers that were accepted")
	fl.StringVar(&c.Cluster, "cluster", "", "name of the Zeebe cluster in our rows; never reuse it for a rebuilt one")
	fl.StringVar(&c.Env, "environment", "development", "name of the environment, in events")
	fl.StringVar(&c.Suppliers.Flight, "flight", "", "base URL of the flight supplier")
	fl.StringVar(&c.Suppliers.Hotel, "hotel", "", "base URL of the hotel supplier")
	fl.StringVar(&c.Suppliers.Transfer, "transfer", "", "base URL of the transfer supplier")
	fl.StringVar(&c.Suppliers.Payment, "payment", "", "base URL of the payment provider")
	fl.StringVar(&c.Callback, "callback", "", "base URL where suppliers reach our API")
	fl.DurationVar(&c.CallTimeout, "call-timeout", 20*time.Second, "one call of a supplier")
	fl.DurationVar(&c.RelayLease, "relay-lease", 15*time.Second, "events of a relay that died wait this long at most for another")
	fl.StringVar(&f.limits, "limits", "", "YAML file with time-outs, retention and SLAs by operation type")
	fl.StringVar(&f.webhooks, "webhooks", "", "YAML file with the endpoints of partners; nobody is told by webhook without it")
	fl.DurationVar(&c.BeginWithin, "begin-within", time.Minute, "a saga that has not begun by then, or is undecided so long after its deadline, counts as stuck")
	fl.DurationVar(&c.UndoWithin, "undo-within", 10*time.Minute, "an undo that has not ended by then counts as stuck")
	fl.DurationVar(&c.ManualWithin, "manual-within", 4*time.Hour, "a saga that waits longer for a person has breached its SLA")
	fl.StringVar(&f.archive, "archive", "", "folder or URL (file:///…, s3://…) for operation records past their retention; they stay in the database without it")
	fl.DurationVar(&c.RetainEvery, "retain-every", time.Hour, "how often records are archived and deleted")
	fl.Int32Var(&f.connections, "connections", 32, "largest number of database connections")
	fl.StringVar(&f.level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	for flag, variable := range map[string]string{
		"zeebe": "ZEEBE", "zeebe-plaintext": "ZEEBE_PLAINTEXT", "zeebe-oauth-url": "ZEEBE_OAUTH_URL", "zeebe-client-id": "ZEEBE_CLIENT_ID", "zeebe-audience": "ZEEBE_AUDIENCE",
		"rest": "REST", "cluster": "CLUSTER", "environment": "ENV", "flight": "FLIGHT", "hotel": "HOTEL", "transfer": "TRANSFER", "payment": "PAYMENT",
		"callback": "CALLBACK", "call-timeout": "CALL_TIMEOUT", "relay-lease": "RELAY_LEASE", "limits": "LIMITS", "webhooks": "WEBHOOKS",
		"begin-within": "BEGIN_WITHIN", "undo-within": "UNDO_WITHIN", "manual-within": "MANUAL_WITHIN", "archive": "ARCHIVE", "retain-every": "RETAIN_EVERY",
		"connections": "CONNECTIONS", "log-level": "LOG_LEVEL",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// required refuses a command that lacks what every process of the application needs, all at once.
func (f *appFlags) required(cmd *cobra.Command, more ...string) error {
	return required(cmd, append([]string{"dsn", "zeebe", f.bus.needs(), "cluster", "flight", "hotel", "transfer", "payment", "callback"}, more...)...)
}

// positive names the durations that must be more than nothing: 0 would silently mean the default.
func (f *appFlags) positive() error {
	var errs []error
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{"call-timeout", f.cfg.CallTimeout}, {"relay-lease", f.cfg.RelayLease}, {"begin-within", f.cfg.BeginWithin}, {"undo-within", f.cfg.UndoWithin},
		{"manual-within", f.cfg.ManualWithin}, {"retain-every", f.cfg.RetainEvery},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("--%s %v: want more than 0", d.flag, d.value))
		}
	}
	if f.connections < 4 {
		errs = append(errs, fmt.Errorf("--connections %d: want 4 or more", f.connections))
	}
	return errors.Join(errs...)
}

// config reads the files that flags name and makes the configuration; all mistakes are told at once. Call close when the
// application has ended.
func (f *appFlags) config(ctx context.Context, s Streams, log zerolog.Logger) (cfg app.Config, closing func() error, err error) {
	cfg, closing = f.cfg, func() error { return nil }
	cfg.CallbackSecret = []byte(s.Getenv(callbackSecret))
	cfg.Schema, cfg.RecordSchema, cfg.Log = f.db.schema, f.db.recordSchema, log
	errs := []error{f.positive(), f.bus.configure(&cfg, s)}
	if f.oauth.URL != "" || f.oauth.ClientID != "" {
		o := f.oauth
		o.ClientSecret = s.Getenv(zeebeSecret)
		if _, err := zeebe.OAuth(o); err != nil {
			errs = append(errs, fmt.Errorf("--zeebe-oauth-url, --zeebe-client-id, %s: %w", zeebeSecret, err))
		}
		cfg.OAuth = &o
	}
	if f.limits != "" {
		cfg.Limits, err = readLimits(f.limits)
		errs = append(errs, flagError("limits", err))
	}
	if f.webhooks != "" {
		endpoints, err := webhook.ReadEndpoints(f.webhooks)
		errs = append(errs, flagError("webhooks", err))
		cfg.Webhooks = webhook.NewEndpoints(endpoints...)
	}
	cfg.Messages, err = f.messages.open(s.Getenv)
	if err := errors.Join(append(errs, err)...); err != nil {
		return cfg, closing, err
	}
	return f.stores(ctx, cfg)
}

// stores opens the object storage that flags name.
func (f *appFlags) stores(ctx context.Context, cfg app.Config) (_ app.Config, closing func() error, err error) {
	var open []*bucket.Bucket
	closing = func() error {
		var errs []error
		for _, b := range open {
			errs = append(errs, b.Close())
		}
		return errors.Join(errs...)
	}
	if f.archive != "" {
		b, err := openArchive(ctx, f.archive)
		if err != nil {
			return cfg, closing, flagError("archive", err)
		}
		open = append(open, b)
		cfg.Archive, cfg.Exports = app.Objects(b), app.ExportObjects(b)
	}
	if f.eventArchive != "" {
		b, err := openArchive(ctx, f.eventArchive)
		if err != nil {
			return cfg, closing, errors.Join(flagError("event-archive", err), closing())
		}
		open = append(open, b)
		cfg.Background.EventArchive = b
	}
	return cfg, closing, nil
}

func flagError(flag string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", flag, err)
}

func readLimits(name string) (map[string]sagas.Limits, error) {
	r, err := os.Open(name) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // read only
	return sagas.ReadLimits(r)
}

// openArchive opens object storage by URL; what is no URL is a folder.
func openArchive(ctx context.Context, where string) (*bucket.Bucket, error) {
	if !strings.Contains(where, "://") {
		path, err := filepath.Abs(where)
		if err != nil {
			return nil, err
		}
		where = "file://" + filepath.ToSlash(path)
	}
	return bucket.Open(ctx, where)
}
