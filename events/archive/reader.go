package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/vitrip/journeyman/outbox"
)

// Reader reads an archive back, without a database. Safe for concurrent use.
type Reader struct{ store Store }

// NewReader gives a reader of a store.
func NewReader(store Store) *Reader { return &Reader{store} }

// Manifests gives the manifest that counts of each day from the first to the last, by date.
// A zero time means no bound.
func (r *Reader) Manifests(ctx context.Context, from, until time.Time) ([]Manifest, error) {
	names, err := r.store.List(ctx, fmt.Sprintf("v%d/", Format))
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	latest := map[string]string{} // by day; names are sorted, so the highest number comes last
	for _, name := range names {
		folder, file := path.Split(name)
		if strings.HasPrefix(file, "manifest-") && strings.HasSuffix(file, ".json") {
			latest[path.Base(folder)] = name
		}
	}
	var list []Manifest
	for day, name := range latest {
		d, err := time.Parse(time.DateOnly, day)
		if err != nil {
			return nil, fmt.Errorf("archive: object %s: %q is no day", name, day)
		}
		if !from.IsZero() && d.AddDate(0, 0, 1).Before(from) || !until.IsZero() && !d.Before(until) {
			continue
		}
		content, err := r.store.Read(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
		m, err := parseManifest(name, content)
		if err != nil {
			return nil, fmt.Errorf("archive: %w", err)
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Manifest) int { return strings.Compare(a.Day, b.Day) })
	return list, nil
}

func parseManifest(name string, content []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return m, fmt.Errorf("%s: %w", name, err)
	}
	if m.Format != Format {
		return m, fmt.Errorf("%s: format %d, this build reads %d", name, m.Format, Format)
	}
	return m, nil
}

// Rows gives the rows after a cursor and before a time in order to fn, which
// may end the reading by an error. A part is checked against its SHA-256 before
// any row of it is given. It holds one part in memory.
func (r *Reader) Rows(ctx context.Context, after outbox.LogCursor, until time.Time, fn func(outbox.Logged) error) error {
	days, err := r.Manifests(ctx, after.At, until)
	if err != nil {
		return err
	}
	for _, m := range days {
		for _, p := range m.Parts {
			if !behind(p.Last, after) || !until.IsZero() && !p.First.At.Before(until) {
				continue
			}
			content, err := r.store.Read(ctx, p.Name)
			if err != nil {
				return fmt.Errorf("archive: %w", err)
			}
			err = unpack(content, p, func(row outbox.Logged) error {
				if !behind(row.Cursor(), after) || !until.IsZero() && !row.LoggedAt.Before(until) {
					return nil
				}
				if err := fn(row); err != nil {
					return &stop{err}
				}
				return ctx.Err()
			})
			var s *stop
			if errors.As(err, &s) {
				return s.err
			}
			if err != nil {
				return fmt.Errorf("archive: %w", err)
			}
		}
	}
	return nil
}

// stop carries the error of the caller's function out unchanged.
type stop struct{ err error }

func (s *stop) Error() string { return s.err.Error() }

// behind says whether a comes after b.
func behind(a, b outbox.LogCursor) bool {
	return a.At.After(b.At) || a.At.Equal(b.At) && a.ID > b.ID
}

func checkPart(ctx context.Context, s Store, p Part) error {
	content, err := s.Read(ctx, p.Name)
	if err != nil {
		return err
	}
	return unpack(content, p, func(outbox.Logged) error { return nil })
}
