package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/worker"
)

// Objects is the object storage. It must be safe for concurrent use.
type Objects interface {
	// Put writes an object whole or not at all. One that is there already has the same content and stays.
	Put(ctx context.Context, name string, content []byte) error
	// Delete removes an object. One that is not there is removed.
	Delete(ctx context.Context, name string) error
}

// Sagas is what export.publish needs of *sagas.Sagas: to decide, in its own transaction.
type Sagas interface {
	Decide(ctx context.Context, tx *outbox.Tx, sagaID string, d sagas.Decision) error
}

// Config is for [New]. Pool, Objects, Sagas, Catalog and Datasets must be set.
type Config struct {
	Pool      *pgxpool.Pool // the domain database
	Schema    string        // "" = "journeyman"
	Objects   Objects
	Sagas     Sagas
	Catalog   *events.Catalog // says which fields may leave the house
	Datasets  []Dataset       // those of [TypeConfig]
	PageRows  int             // records of one page; 0 = 1000
	MaxRows   int             // records of one export; 0 = 500 000
	PerSecond float64         // exports per second that are expected (spec W10); 0 = 0.1
	// Retain is how long objects and what the handlers did are kept: the retention of the operation type (spec D1); 0 = 30 days.
	Retain time.Duration
}

// Exports has the handlers of data-export.bpmn and deletes objects whose time has come. It is safe for concurrent use.
type Exports struct {
	cfg    Config
	sql    queries
	freeze map[string]string // statement by data set
}

//go:generate journeyman generate ../../bpmn/models/data-export.bpmn

var _ DataExportHandlers = (*Exports)(nil)

// New checks the configuration.
//
// Errors: every field that is missing or bad, and every data set with fields that the catalog does not allow, at once.
func New(cfg Config) (*Exports, error) {
	var errs []error
	if cfg.Pool == nil || cfg.Objects == nil || cfg.Sagas == nil || cfg.Catalog == nil || len(cfg.Datasets) == 0 {
		errs = append(errs, errors.New("export: Pool, Objects, Sagas, Catalog and Datasets must be set"))
	}
	if cfg.PageRows < 0 || cfg.MaxRows < 0 || cfg.Retain < 0 || cfg.PerSecond < 0 {
		errs = append(errs, fmt.Errorf("export: PageRows is %d, MaxRows is %d, Retain is %v and PerSecond is %v, want 0 or more", cfg.PageRows, cfg.MaxRows, cfg.Retain, cfg.PerSecond))
	}
	errs = append(errs, postgres.CheckSchema(postgres.SchemaOr(cfg.Schema)))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if cfg.PageRows == 0 {
		cfg.PageRows = 1000
	}
	if cfg.MaxRows == 0 {
		cfg.MaxRows = 500_000
	}
	if cfg.PerSecond == 0 {
		cfg.PerSecond = 0.1
	}
	cfg.Retain = max(cfg.Retain, retention)
	e := &Exports{cfg: cfg, sql: render(postgres.SchemaOr(cfg.Schema)), freeze: map[string]string{}}
	for _, d := range cfg.Datasets {
		errs = append(errs, d.check(cfg.Catalog))
		e.freeze[d.Name] = d.freeze(postgres.SchemaOr(cfg.Schema))
	}
	return e, errors.Join(errs...)
}

// Install registers the handlers of all job types of the export.
func (e *Exports) Install(mux *worker.Mux) { RegisterDataExport(mux, e) }

// sla bounds how long the object storage may leave a page unknown; the page is written again until then.
const sla = 24 * time.Hour

// ExportFreeze copies the records aside.
func (e *Exports) ExportFreeze() ExportFreezeHandler {
	return ExportFreezeTx(func(ctx context.Context, tx *outbox.Tx, job worker.Job[ExportFreezeIn]) (ExportFreezeOut, error) {
		statement, ok := e.freeze[job.In.Dataset]
		if !ok {
			return ExportFreezeOut{}, worker.Fatal(fmt.Errorf("data set %q is not declared in this process", job.In.Dataset))
		}
		from, err := time.Parse(time.DateOnly, job.In.From)
		until, err2 := time.Parse(time.DateOnly, job.In.Until)
		if err := errors.Join(err, err2); err != nil {
			return ExportFreezeOut{}, worker.Fatal(err)
		}
		var rows int
		if err := tx.QueryRow(ctx, statement, job.Tenant, from, until, job.SagaID, e.cfg.MaxRows+1).Scan(&rows); err != nil {
			return ExportFreezeOut{}, fmt.Errorf("freeze: %w", err)
		}
		if rows > e.cfg.MaxRows {
			return ExportFreezeOut{}, worker.BusinessError(CodeExportTooLarge, fmt.Sprintf("more than %d records", e.cfg.MaxRows))
		}
		pages := (rows + e.cfg.PageRows - 1) / e.cfg.PageRows
		if _, err := tx.Exec(ctx, e.sql.insertExport, job.SagaID, job.Tenant, job.In.Dataset, rows, pages); err != nil {
			return ExportFreezeOut{}, fmt.Errorf("write export: %w", err)
		}
		out := ExportFreezeOut{Pages: make([]int64, pages)}
		for i := range out.Pages {
			out.Pages[i] = int64(i + 1)
		}
		return out, nil
	}, ExportFreezeUndoTx(func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ExportFreezeIn, ExportFreezeOut]) error {
		_, err := tx.Exec(ctx, e.sql.discardRows, u.Meta.SagaID)
		_, err2 := tx.Exec(ctx, e.sql.discard, u.Meta.SagaID)
		return errors.Join(err, err2)
	}), worker.Orphan(worker.Undo), e.retain(), e.expect(1, time.Second))
}

// written is a page that lies in the object storage.
type written struct {
	Object string `json:"object"`
	Page   int    `json:"page"`
	Pages  int    `json:"pages"`
	Rows   int64  `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // of all pages up to this one
	Chain  []byte `json:"chain"`
}

// ExportWrite writes one page. Asking what became of it is writing it again: name and content are the same.
func (e *Exports) ExportWrite() ExportWriteHandler {
	return ExportWriteExternal(worker.Remote[ExportWriteIn, written, ExportWriteOut]{
		Call: e.write, Resolve: e.write,
		Settle: func(ctx context.Context, tx *outbox.Tx, job worker.Job[ExportWriteIn], w written) (ExportWriteOut, error) {
			_, err := tx.Exec(ctx, e.sql.insertPage, job.SagaID, w.Page, w.Object, w.Rows, w.Bytes, w.SHA256, w.Chain)
			if err == nil {
				first, last := e.bounds(w.Page)
				_, err = tx.Exec(ctx, e.sql.dropRows, job.SagaID, first, last)
			}
			return ExportWriteOut{}, err
		},
	}, ExportWriteUndo(worker.RemoteUndo[ExportWriteIn, written]{
		Call: func(ctx context.Context, _ string, u worker.UndoOf[ExportWriteIn, written]) error {
			if err := e.cfg.Objects.Delete(ctx, u.Res.Object); err != nil {
				return worker.Retryable(err)
			}
			return nil
		},
		Settle: func(ctx context.Context, tx *outbox.Tx, u worker.UndoOf[ExportWriteIn, written]) error {
			_, err := tx.Exec(ctx, e.sql.dropPage, u.Meta.SagaID, u.Res.Page)
			return err
		},
	}), worker.Orphan(worker.Undo), worker.KeyValidFor(e.cfg.Retain), worker.SLA(sla), e.retain(), e.expect(pagesOfEach, 200*time.Millisecond))
}

// bounds are the numbers of the records of a page: above first, up to last.
func (e *Exports) bounds(page int) (first, last int64) {
	return int64(page-1) * int64(e.cfg.PageRows), int64(page) * int64(e.cfg.PageRows)
}

func (e *Exports) write(ctx context.Context, c worker.Call[ExportWriteIn]) (written, error) {
	w := written{Page: int(c.In.Page), Object: fmt.Sprintf("%spart-%05d.ndjson", prefix(c.Tenant, c.SagaID), c.In.Page)}
	sum := sha256.New()
	if w.Page > 1 {
		var chain []byte
		if err := e.cfg.Pool.QueryRow(ctx, e.sql.chain, c.SagaID, w.Page-1).Scan(&chain); err != nil {
			return written{}, worker.Retryable(fmt.Errorf("checksum of page %d: %w", w.Page-1, err))
		}
		if err := sum.(encoding.BinaryUnmarshaler).UnmarshalBinary(chain); err != nil { //nolint:forcetypeassert // documented by crypto/sha256
			return written{}, worker.Fatal(fmt.Errorf("checksum of page %d: %w", w.Page-1, err))
		}
	}
	if err := e.cfg.Pool.QueryRow(ctx, e.sql.pages, c.SagaID).Scan(&w.Pages); err != nil {
		return written{}, worker.Retryable(fmt.Errorf("read export: %w", err))
	}
	first, last := e.bounds(w.Page)
	rows, err := e.cfg.Pool.Query(ctx, e.sql.readPage, c.SagaID, first, last)
	if err != nil {
		return written{}, worker.Retryable(fmt.Errorf("read page: %w", err))
	}
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[string])
	switch {
	case err != nil:
		return written{}, worker.Retryable(fmt.Errorf("read page: %w", err))
	case len(bodies) == 0:
		return written{}, worker.Fatal(fmt.Errorf("page %d of export %s has no records", w.Page, c.SagaID))
	}
	var content bytes.Buffer
	for _, body := range bodies {
		content.WriteString(body)
		content.WriteByte('\n')
	}
	_, _ = sum.Write(content.Bytes())
	if w.Chain, err = sum.(encoding.BinaryMarshaler).MarshalBinary(); err != nil { //nolint:forcetypeassert // documented by crypto/sha256
		return written{}, worker.Fatal(err)
	}
	w.Rows, w.Bytes, w.SHA256 = int64(len(bodies)), int64(content.Len()), hex.EncodeToString(sum.Sum(nil))
	if err := e.cfg.Objects.Put(ctx, w.Object, content.Bytes()); err != nil {
		return written{}, worker.Unknown(fmt.Errorf("write %s: %w", w.Object, err))
	}
	return w, nil
}

// ExportPublish is the pivot: all pages are there, and the operation is decided.
func (e *Exports) ExportPublish() ExportPublishHandler {
	return ExportPublishTx(func(ctx context.Context, tx *outbox.Tx, job worker.Job[ExportPublishIn]) (ExportPublishOut, error) {
		tag, err := tx.Exec(ctx, e.sql.publish, job.SagaID, e.cfg.Retain)
		if err != nil {
			return ExportPublishOut{}, fmt.Errorf("publish: %w", err)
		}
		if tag.RowsAffected() != 1 {
			return ExportPublishOut{}, worker.Fatal(fmt.Errorf("export %s is not frozen with all of its pages written", job.SagaID))
		}
		return ExportPublishOut{SagaDecision: string(sagas.Completed)}, e.cfg.Sagas.Decide(ctx, tx, job.SagaID, sagas.Completed)
	}, worker.Pivot(), worker.NotCompensable("the pivot: a published export expires"), e.retain(), e.expect(1, 10*time.Millisecond))
}

// pagesOfEach is how many pages an export is expected to have.
const pagesOfEach = 10

// expect declares how often a step runs per export, and what one run costs (spec W10).
func (e *Exports) expect(perExport float64, cost time.Duration) worker.Option {
	return worker.Expect(e.cfg.PerSecond*perExport, cost)
}

func (e *Exports) retain() worker.Option { return worker.Retain(e.cfg.Retain) }
