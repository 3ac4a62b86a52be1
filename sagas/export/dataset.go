package export

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/vitrip/journeyman/events"
)

// Dataset is one kind of records that partners may export.
type Dataset struct {
	// Name is what the partner asks for: lower-case letters and "-".
	Name string
	// Rows selects the records of one tenant and period, in an order that says what comes first: SQL with {{schema}}, $1 the
	// tenant, $2 and $3 the first moment of the period and that behind it. Every column named in Fields must be there; others
	// never leave the database.
	Rows string
	// Event is the catalog type (version 1) that says the fields hold no personal data.
	Event string
	// Fields are the columns that are exported, under their names. Each is a field of Event, or in Times.
	Fields []string
	// Times are those of Fields that only say when something was.
	Times []string
}

// Operations are the partner's operations, by when they started.
func Operations() Dataset {
	return Dataset{
		Name: "operations", Event: "platform.saga.started",
		Rows: `SELECT id AS "sagaId", type AS "sagaType", decision, reason AS code, started_at AS "startedAt", closed_at AS "finishedAt"
			FROM {{schema}}.saga WHERE tenant = $1 AND started_at >= $2 AND started_at < $3 ORDER BY started_at, id`,
		Fields: []string{"sagaId", "sagaType", "decision", "code", "startedAt", "finishedAt"}, Times: []string{"startedAt", "finishedAt"},
	}
}

// Bookings are the partner's bookings, by when they were made.
func Bookings() Dataset {
	return Dataset{
		Name: "bookings", Event: "tour.booking.confirmed",
		Rows: `SELECT booking, saga_id AS "sagaId", state, amount, currency, created_at AS "createdAt", updated_at AS "changedAt"
			FROM {{schema}}.tour_booking WHERE tenant = $1 AND created_at >= $2 AND created_at < $3 ORDER BY created_at, business_key`,
		Fields: []string{"booking", "sagaId", "state", "amount", "currency", "createdAt", "changedAt"}, Times: []string{"createdAt", "changedAt"},
	}
}

var (
	datasetName = regexp.MustCompile(`^[a-z][a-z-]{0,62}$`)         //nolint:gochecknoglobals // compiled once
	fieldName   = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]{0,62}$`) //nolint:gochecknoglobals // compiled once
)

// check refuses what the catalog does not say to be free of personal data.
func (d Dataset) check(c *events.Catalog) error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("data set %q: "+format, append([]any{d.Name}, args...)...))
	}
	if !datasetName.MatchString(d.Name) {
		bad("the name is to be lower-case letters and -")
	}
	if d.Rows == "" || len(d.Fields) == 0 {
		bad("Rows and Fields must be set")
	}
	entry, ok := c.Entry(d.Event, 1)
	if !ok {
		bad("event %q is not in the catalog", d.Event)
		return errors.Join(errs...)
	}
	if entry.PII != "none" {
		bad("event %q holds personal data: %s", d.Event, entry.PII)
	}
	schema, _ := entry.Schema.(map[string]any)
	known, _ := schema["properties"].(map[string]any)
	for _, f := range d.Fields {
		if _, ok := known[f]; !ok && !slices.Contains(d.Times, f) {
			bad("field %q is none of event %q", f, d.Event)
		}
		if !fieldName.MatchString(f) {
			bad("field %q: want letters and digits", f)
		}
	}
	return errors.Join(errs...)
}

// freeze is the statement that copies the records aside, at most $5 of them, and says how many those are. One statement sees
// one moment.
func (d Dataset) freeze(schema string) string {
	pairs := make([]string, len(d.Fields))
	for i, f := range d.Fields {
		pairs[i] = fmt.Sprintf(`'%s', q."%s"`, f, f)
	}
	return strings.ReplaceAll(`WITH put AS (INSERT INTO {{schema}}.data_export_row (export_id, n, body)
		SELECT $4, q.n, json_build_object(`+strings.Join(pairs, ", ")+`)::text
		FROM (SELECT r.*, row_number() OVER () AS n FROM (`+d.Rows+`) r LIMIT $5) q RETURNING 1) SELECT count(*) FROM put`, "{{schema}}", schema)
}
