package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// TypeName is the operation type of a data export.
const TypeName = "data-export"

// Request is the body of POST /v1/operations/data-export.
type Request struct {
	Dataset string `json:"dataset"`
	From    string `json:"from"`  // first day, 2026-10-01
	Until   string `json:"until"` // day behind the last one, in UTC
}

// maxPeriod bounds one export; records are kept for about as long (spec I9).
const maxPeriod = 366 * 24 * time.Hour

func (r Request) check(sets map[string]Dataset) error {
	var errs []error
	if _, ok := sets[r.Dataset]; !ok {
		errs = append(errs, sagas.Invalid("dataset", "is none that can be exported"))
	}
	day := func(field, value string) time.Time {
		t, err := time.Parse(time.DateOnly, value)
		if err != nil {
			errs = append(errs, sagas.Invalid(field, "must be a day such as 2026-10-01"))
		}
		return t
	}
	from, until := day("from", r.From), day("until", r.Until)
	if len(errs) == 0 && (!until.After(from) || until.Sub(from) > maxPeriod) {
		errs = append(errs, sagas.Invalid("until", "must be behind from, by a year at most"))
	}
	return errors.Join(errs...)
}

// Times of the type (spec I5).
const (
	timeout   = 7 * 24 * time.Hour
	retention = 30 * 24 * time.Hour
)

// TypeConfig is for [Type]. Datasets must be set.
type TypeConfig struct {
	Schema   string        // "" = "journeyman"
	Timeout  time.Duration // of the saga; 0 = 7 d (spec I5)
	Datasets []Dataset
}

// Type describes the saga to package sagas.
//
// Errors: a bad schema name, no data set.
func Type(cfg TypeConfig) (sagas.Type, error) {
	if err := postgres.CheckSchema(postgres.SchemaOr(cfg.Schema)); err != nil {
		return sagas.Type{}, fmt.Errorf("export: %w", err)
	}
	if len(cfg.Datasets) == 0 {
		return sagas.Type{}, errors.New("export: Datasets is empty, want what partners may export")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = timeout
	}
	k := kind{sets: map[string]Dataset{}, sql: render(postgres.SchemaOr(cfg.Schema))}
	for _, d := range cfg.Datasets {
		k.sets[d.Name] = d
	}
	return sagas.Type{
		Name: TypeName, ProcessID: ProcessDataExport, Timeout: cfg.Timeout, Retention: retention, Estimate: min(time.Minute, cfg.Timeout),
		Steps: []string{ElementDataExportExportFreeze, ElementDataExportPageWrite, ElementDataExportExportPublish},
		Parse: k.parse, Result: k.result, Partial: partial,
		Docs: sagas.Docs{
			Reasons: map[string]string{
				CodeExportTooLarge:        "the period has more records than one export may have; ask for a shorter one",
				worker.CodeOutcomeUnknown: "the object storage did not say in time whether it wrote; what it had written was deleted",
			},
			Segments: map[string][]string{"export": {"frozen", "writing", "published"}},
		},
	}, nil
}

type kind struct {
	sets map[string]Dataset
	sql  queries
}

func (k kind) parse(_ context.Context, tenant string, body []byte) (sagas.Plan, error) {
	r, err := sagas.Decode[Request](body)
	if err != nil {
		return sagas.Plan{}, err
	}
	if err := r.check(k.sets); err != nil {
		return sagas.Plan{}, err
	}
	return sagas.Plan{
		BusinessKey: tenant + ":export:" + r.Dataset,
		Variables:   map[string]any{"dataset": r.Dataset, "from": r.From, "until": r.Until},
	}, nil
}

// Result is what the final answer of a published export shows.
type Result struct {
	Dataset  string    `json:"dataset"`
	Location string    `json:"location"` // the objects' names begin with it: part-00001.ndjson, …
	Objects  int       `json:"objects"`
	Rows     int64     `json:"rows"`
	Bytes    int64     `json:"bytes"`
	SHA256   string    `json:"sha256"`     // of all objects joined in order, in hexadecimal; "" when there are none
	FrozenAt time.Time `json:"frozen_at"`  // the moment that all objects show
	Expires  time.Time `json:"expires_at"` // when the objects are deleted
}

func (k kind) result(ctx context.Context, tx *outbox.Tx, a sagas.Attempt, e sagas.Ending) (any, error) {
	if e.Decision != sagas.Completed {
		return nil, nil //nolint:nilnil // no result
	}
	out := Result{Location: prefix(a.Tenant, a.OperationID)}
	if err := tx.QueryRow(ctx, k.sql.total, a.OperationID).Scan(&out.Dataset, &out.Rows, &out.Objects, &out.FrozenAt, &out.Expires, &out.Bytes, &out.SHA256); err != nil {
		return nil, fmt.Errorf("read export %s: %w", a.OperationID, err)
	}
	out.FrozenAt, out.Expires = out.FrozenAt.UTC(), out.Expires.UTC()
	return out, nil
}

// prefix is where the objects of an export lie.
func prefix(tenant, sagaID string) string { return "exports/" + tenant + "/" + sagaID + "/" }

// view is what a partner sees while the export runs.
type view struct {
	Status  string `json:"status"`
	Written int    `json:"pages_written"`
	Pages   int    `json:"pages,omitempty"`
}

func partial(s worker.Step) (segment string, v any) {
	if s.Class != outcome.Success {
		return "", nil
	}
	switch s.Type {
	case JobExportFreeze:
		return "export", view{Status: "frozen"}
	case JobExportPublish:
		return "export", view{Status: "published"}
	case JobExportWrite:
		var w written
		if json.Unmarshal(s.Result, &w) == nil {
			return "export", view{Status: "writing", Written: w.Page, Pages: w.Pages}
		}
	}
	return "", nil
}
