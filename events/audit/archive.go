package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/postgres"
)

// The archive of the chains is write-once: each segment is an object that is
// created whole and never over another ([archive.Store]); a bucket with object
// lock makes that hold against its owner, too.
//
//	audit/v1/<chain, path-escaped>/<first link, 20 digits>.jsonl.gz
//
// A segment holds consecutive links of one chain, one JSON object ([Row]) a
// line. Where it ends is where the next one begins. Bodies are as in the ledger,
// sealed where the catalog says so.
const archivePrefix = "audit/v1/"

const (
	segmentRows = 5_000
	maxLine     = 64 << 20
)

// ErrBroken is wrapped by the refusal to archive links that do not follow those before them.
var ErrBroken = errors.New("chain is broken")

// Archived is what one call of [Archive] wrote.
type Archived struct {
	Rows     int64 `json:"rows"`
	Segments int   `json:"segments"`
}

// Archive writes what the archive lacks of all chains of a schema's ledger. It
// may run in several processes at once and be killed at any time: a segment is
// there whole or not at all. Links that do not follow what is archived are
// refused with [ErrBroken], and the other chains go on.
func Archive(ctx context.Context, db *pgxpool.Pool, schema string, store archive.Store) (Archived, error) {
	var out Archived
	if err := postgres.CheckSchema(schema); err != nil {
		return out, err
	}
	sql := render(schema)
	rows, err := db.Query(ctx, sql.chains)
	if err != nil {
		return out, fmt.Errorf("archive audit: %w", err)
	}
	chains, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return out, fmt.Errorf("archive audit: %w", err)
	}
	var errs []error
	for _, name := range chains {
		if err := archiveChain(ctx, db, sql, store, name, &out); err != nil {
			errs = append(errs, fmt.Errorf("archive audit chain %s: %w", name, err))
		}
	}
	return out, errors.Join(errs...)
}

func archiveChain(ctx context.Context, db *pgxpool.Pool, sql statements, store archive.Store, name string, out *Archived) error {
	for {
		head, err := archivedHead(ctx, store, name)
		if err != nil {
			return err
		}
		res, err := db.Query(ctx, sql.links, name, head.Link, segmentRows)
		if err != nil {
			return err
		}
		rows, err := pgx.CollectRows(res, scan)
		if err != nil || len(rows) == 0 {
			return err
		}
		v := newVerifier(nil, nil)
		v.chains[name] = &chain{Head: head, met: map[int]bool{}}
		for _, r := range rows {
			v.add(r)
		}
		if r := v.report(); !r.OK() {
			return fmt.Errorf("%w: %s", ErrBroken, r.Faults[0])
		}
		content, err := pack(rows)
		if err != nil {
			return err
		}
		switch err := store.Create(ctx, segment(name, rows[0].Link), content); {
		case errors.Is(err, archive.ErrExists): // another process was faster: go on behind its segment
		case err != nil:
			return err
		default:
			out.Rows += int64(len(rows))
			out.Segments++
		}
	}
}

func segment(chain string, first int64) string {
	return fmt.Sprintf("%s%s/%020d.jsonl.gz", archivePrefix, url.PathEscape(chain), first)
}

// place reads a segment's name.
func place(name string) (chain string, first int64, err error) {
	dir, file, ok := strings.Cut(strings.TrimPrefix(name, archivePrefix), "/")
	number, isSegment := strings.CutSuffix(file, ".jsonl.gz")
	if ok && isSegment {
		if chain, err = url.PathUnescape(dir); err == nil {
			first, err = strconv.ParseInt(number, 10, 64)
		}
	}
	if !ok || !isSegment || err != nil {
		return "", 0, fmt.Errorf("object %s is no segment of the audit archive", name)
	}
	return chain, first, nil
}

// archivedHead reads the last segment of a chain.
func archivedHead(ctx context.Context, store archive.Store, name string) (Head, error) {
	head := Head{Chain: name, Hash: Genesis}
	list, err := store.List(ctx, archivePrefix+url.PathEscape(name)+"/")
	if err != nil || len(list) == 0 {
		return head, err
	}
	err = readSegment(ctx, store, list[len(list)-1], func(r Row) { head.Link, head.Hash = r.Link, r.Hash })
	return head, err
}

func pack(rows []Row) ([]byte, error) {
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	enc := json.NewEncoder(zip)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		r.RecordedAt, r.OccurredAt = r.RecordedAt.UTC(), r.OccurredAt.UTC()
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

func readSegment(ctx context.Context, store archive.Store, name string, fn func(Row)) error {
	content, err := store.Read(ctx, name)
	if err != nil {
		return err
	}
	return unpack(name, content, fn)
}

func unpack(name string, content []byte, fn func(Row)) error {
	zip, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	lines := bufio.NewScanner(zip)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var r Row
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return fmt.Errorf("%s line %d: %w", name, n, err)
		}
		fn(r)
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// VerifyArchive reads the archive alone: every segment of every chain from link
// 1. A segment that is missing, was written anew or cannot be read shows, the last
// ones of a chain only by a known head. Give its heads to [VerifyLedger] to
// compare the database with the archive.
func VerifyArchive(ctx context.Context, store archive.Store, keys seal.Keys, progress Progress, known ...Head) (Report, error) {
	list, err := store.List(ctx, archivePrefix)
	if err != nil {
		return Report{}, fmt.Errorf("verify audit archive: %w", err)
	}
	v := newVerifier(keys, known)
	for _, name := range list {
		chain, first, err := place(name)
		if err != nil {
			return Report{}, fmt.Errorf("verify audit archive: %w", err)
		}
		begins := first
		err = readSegment(ctx, store, name, func(r Row) {
			if r.Chain != chain || begins != 0 && r.Link != begins {
				v.fault(chain, first, r.EventID, "object %s holds another link: %d of chain %s", name, r.Link, r.Chain)
			}
			begins = 0
			v.add(r)
			progress.tell(v.rows)
		})
		switch {
		case ctx.Err() != nil || errors.Is(err, archive.ErrMissing):
			return Report{}, fmt.Errorf("verify audit archive: %w", err)
		case err != nil:
			v.fault(chain, first, "", "cannot be read: %v", err)
		}
	}
	return v.report(), nil
}
