package app

import (
	"context"
	"errors"
	"net/http"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

type travel struct{}

func newTravel(Config) *travel { return &travel{} }

func (t *travel) types() []sagas.Type { return nil }

func (t *travel) install(*App, *worker.Mux) error { return errors.New("not yet") }

func (t *travel) callbacks(*http.ServeMux) {}

func migrateTravel(context.Context, *pgxpool.Pool, string) error { return nil }

func catalogs() map[string][]byte { return map[string][]byte{"sagas": sagas.Catalog()} }

func (a *App) elements() worker.Elements { return nil }

func (a *App) instanceEnded() func(ctx context.Context, cluster string, processInstanceKey int64) (bool, error) {
	return nil
}
