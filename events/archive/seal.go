package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/crash"
)

// seal writes the manifest of a day whose parts are all checked, reads it back
// and marks the day verified. A day without rows needs no manifest.
func (a *Archiver) seal(ctx context.Context, tx pgx.Tx, day time.Time, done *Done) (func(), error) {
	parts, err := a.parts(ctx, tx, day, 0)
	if err != nil {
		return nil, err
	}
	m := Manifest{Format: Format, Day: day.Format(time.DateOnly), Parts: parts}
	sum := new(big.Int)
	for _, p := range parts {
		m.Rows += p.Rows
		part, ok := new(big.Int).SetString(p.IDSum, 10)
		if !ok {
			return nil, fmt.Errorf("%s: id sum %q, want a number", p.Name, p.IDSum)
		}
		sum.Add(sum, part)
	}
	m.IDSum = sum.String()
	if len(parts) == 0 {
		if _, err := tx.Exec(ctx, a.sql.addDay, day, 0, "0"); err != nil {
			return nil, err
		}
	} else if err := a.manifest(ctx, tx, day, m); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, a.sql.markDay, day); err != nil {
		return nil, err
	}
	return func() {
		done.Days++
		a.cfg.Log.Info().Str("day", m.Day).Int64("rows", m.Rows).Int("parts", len(parts)).Msg("archive: day verified")
		if a.cfg.Hooks.Verified != nil {
			a.cfg.Hooks.Verified(m.Day, m.Rows)
		}
	}, nil
}

// manifest writes the day's next manifest, unless the last one names the same parts already.
func (a *Archiver) manifest(ctx context.Context, tx pgx.Tx, day time.Time, m Manifest) error {
	rows, err := tx.Query(ctx, a.sql.manifests, day)
	if err != nil {
		return err
	}
	old, err := pgx.CollectRows(rows, scanRecorded)
	if err != nil {
		return err
	}
	if n := len(old); n > 0 && old[n-1].parts == len(m.Parts) {
		_, err := a.read(ctx, old[n-1])
		return err
	}
	m.Number = len(old) + 1
	var previous Link
	err = tx.QueryRow(ctx, a.sql.previous).Scan(&previous.Name, &previous.SHA256)
	switch {
	case err == nil:
		m.Previous = &previous
	case !errors.Is(err, pgx.ErrNoRows):
		return err
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return err
	}
	r := recorded{day: day, number: m.Number, parts: len(m.Parts), Link: Link{Name: fmt.Sprintf("v%d/%s/manifest-%05d.json", Format, m.Day, m.Number), SHA256: hash(text.Bytes())}}
	if err := a.create(ctx, r.Name, text.Bytes()); err != nil {
		return err
	}
	crash.Point("archive.manifest.written", r.Name)
	if _, err := a.read(ctx, r); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, a.sql.insertManifest, day, r.number, r.parts, r.Name, r.SHA256)
	return err
}

// recorded is a manifest as the database knows it.
type recorded struct {
	day           time.Time
	number, parts int
	Link
}

func scanRecorded(row pgx.CollectableRow) (recorded, error) {
	var r recorded
	err := row.Scan(&r.day, &r.number, &r.parts, &r.Name, &r.SHA256)
	return r, err
}

// read gets a manifest and checks it against what the database knows.
func (a *Archiver) read(ctx context.Context, r recorded) (Manifest, error) {
	content, err := a.store.Read(ctx, r.Name)
	if err != nil {
		return Manifest{}, err
	}
	if got := hash(content); got != r.SHA256 {
		return Manifest{}, fmt.Errorf("archive is damaged: %s: sha256 %s, recorded is %s", r.Name, got, r.SHA256)
	}
	return parseManifest(r.Name, content)
}

// Audit is what [Archiver.Audit] found.
type Audit struct {
	Days   int      `json:"days"`
	Rows   int64    `json:"rows"`
	Parts  int      `json:"parts"`
	Faults []string `json:"faults"` // empty: every object is there and whole
}

// Audit reads the whole archive back and compares it with what the database
// recorded when it was written: manifests, their chain, every part. progress,
// which may be nil, is called after each manifest. An error means that it could not be read.
func (a *Archiver) Audit(ctx context.Context, progress func(day string, rows int64)) (Audit, error) {
	var out Audit
	out.Faults = []string{}
	rows, err := a.db.Query(ctx, a.sql.manifests, nil)
	if err != nil {
		return out, fmt.Errorf("archive audit: %w", err)
	}
	all, err := pgx.CollectRows(rows, scanRecorded)
	if err != nil {
		return out, fmt.Errorf("archive audit: %w", err)
	}
	var before *Link
	for i, r := range all {
		m, err := a.read(ctx, r)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case err != nil:
			out.Faults = append(out.Faults, err.Error())
		case (m.Previous == nil) != (before == nil) || before != nil && *m.Previous != *before:
			out.Faults = append(out.Faults, r.Name+": does not continue the manifest before it")
		}
		link := r.Link
		before = &link
		if err != nil || i+1 < len(all) && laterSameDay(all[i+1:], r) {
			continue // its parts are in the later one too
		}
		out.Days++
		for _, p := range m.Parts {
			if err := checkPart(ctx, a.store, p); err != nil {
				out.Faults = append(out.Faults, err.Error())
				continue
			}
			out.Parts, out.Rows = out.Parts+1, out.Rows+p.Rows
		}
		if progress != nil {
			progress(m.Day, m.Rows)
		}
	}
	return out, ctx.Err()
}

func laterSameDay(later []recorded, r recorded) bool {
	for _, l := range later {
		if l.day.Equal(r.day) {
			return true
		}
	}
	return false
}
