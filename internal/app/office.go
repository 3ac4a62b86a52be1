package app

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// OfficeConfig is for [NewOffice]. Pool and Cluster must be set.
type OfficeConfig struct {
	Pool                 *pgxpool.Pool
	Schema, RecordSchema string       // "" = the defaults
	Cluster              string       // name of the engine's cluster in our rows
	Engine               *rest.Client // tells whether process instances have ended; nil = sagas cannot be closed by hand
	Env                  string       // environment, for events; "" = "development"
	Messages             Messages     // as the workers have them
	Log                  zerolog.Logger
}

// Office is what the acts of operators need of the application: its sagas and its stager, without engine connection or broker.
type Office struct {
	Stager *outbox.Stager
	Sagas  *sagas.Sagas
}

// NewOffice makes an office. It touches neither database nor network and starts nothing.
func NewOffice(cfg OfficeConfig) (*Office, error) {
	if cfg.Pool == nil {
		return nil, errors.New("app: office: Pool is nil")
	}
	if cfg.Env == "" {
		cfg.Env = "development"
	}
	w, err := cfg.Messages.open(append(emits(), operator.EventActed))
	if err != nil {
		return nil, err
	}
	defer w.close() // staging asks no registry
	stager, err := w.stager(cfg.Schema, cfg.Env)
	if err != nil {
		return nil, err
	}
	queue, err := zeebe.NewQueue(cfg.Schema, cfg.Cluster)
	if err != nil {
		return nil, err
	}
	all, err := types(cfg.Schema, true)
	if err != nil {
		return nil, err
	}
	var ended func(ctx context.Context, of string, key int64) (bool, error)
	if cfg.Engine != nil {
		ended = instanceEnded(cfg.Engine, cfg.Cluster)
	}
	s, err := sagas.New(sagas.Config{
		Domain: cfg.Pool, Schema: cfg.Schema, RecordSchema: cfg.RecordSchema, Stager: stager, Commands: queue, Cluster: cfg.Cluster, InstanceEnded: ended,
		Keys: w.keys, KeysOpenOnly: !w.sealsRecords(), Log: cfg.Log,
	}, all...)
	if err != nil {
		return nil, err
	}
	return &Office{Stager: stager, Sagas: s}, nil
}
