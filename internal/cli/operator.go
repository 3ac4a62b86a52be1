package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres"
	"github.com/vitrip/journeyman/operator"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/zeebe"
	"github.com/vitrip/journeyman/zeebe/rest"
)

// operatorCommands are the commands of the operator: one file each, listed here.
func operatorCommands(s Streams) []*cobra.Command {
	return []*cobra.Command{newIncident(s), newSaga(s), newEffects(s), newAudit(s), newConsole(s), newWork(s), newWebhook(s)}
}

// deskFlags say which database and engine an operator's command works on. They have the names and variables that `run` has.
type deskFlags struct {
	db      databaseFlags
	rest    string
	cluster string
	asJSON  bool

	environment string
	archive     string
	messages    messageFlags
}

// add declares the flags; needRest are for commands that ask the engine and cannot do without.
func (f *deskFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.db.dsn, "dsn", "", "PostgreSQL connection string")
	cmd.Flags().StringVar(&f.db.schema, "schema", postgres.DefaultSchema, "PostgreSQL schema of our tables")
	cmd.Flags().StringVar(&f.db.recordSchema, "record-schema", sagas.DefaultRecordSchema, "PostgreSQL schema of the record store")
	cmd.Flags().StringVar(&f.archive, "event-archive", "", "folder or URL of the event log's archive, for timelines of long ago")
	cmd.Flags().StringVar(&f.environment, "environment", "development", "name of the environment, in audit events")
	cmd.Flags().StringVar(&f.rest, "rest", "", "base URL of the engine's REST API, for example http://127.0.0.1:8080")
	cmd.Flags().StringVar(&f.cluster, "cluster", zeebe.DefaultCluster, "name of the engine's cluster in our tables")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	env(cmd, "dsn", "JOURNEYMAN_DSN")
	env(cmd, "schema", "JOURNEYMAN_SCHEMA")
	env(cmd, "record-schema", "JOURNEYMAN_RECORD_SCHEMA")
	env(cmd, "environment", "JOURNEYMAN_ENV")
	env(cmd, "event-archive", "JOURNEYMAN_EVENT_ARCHIVE")
	env(cmd, "rest", "JOURNEYMAN_REST")
	env(cmd, "cluster", "JOURNEYMAN_CLUSTER")
	f.messages.addQuiet(cmd)
}

// with opens a desk, runs fn and closes it. needs are flags that must be set.
func (f *deskFlags) with(cmd *cobra.Command, fn func(ctx context.Context, d *operator.Desk) error, needs ...string) error {
	if err := required(cmd, needs...); err != nil {
		return err
	}
	messages, err := f.messages.open(os.Getenv) // an act is told of by one event
	if err != nil {
		return exit(ExitUsage, err)
	}
	pool, err := f.db.open(cmd.Context(), 4)
	if err != nil {
		return err
	}
	defer pool.Close()
	cfg := operator.Config{Pool: pool, Schema: f.db.schema, Cluster: f.cluster}
	if f.rest != "" {
		transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented
		defer transport.CloseIdleConnections()
		if cfg.Engine, err = rest.New(rest.Config{Base: f.rest, HTTP: &http.Client{Transport: transport, Timeout: 10 * time.Second}}); err != nil {
			return exit(ExitUsage, fmt.Errorf("--rest: %w", err))
		}
	}
	office, err := app.NewOffice(app.OfficeConfig{Pool: pool, Schema: f.db.schema, RecordSchema: f.db.recordSchema, Cluster: f.cluster, Engine: cfg.Engine, Env: f.environment, Messages: messages})
	if err != nil {
		return exit(ExitUsage, err)
	}
	cfg.Stager, cfg.Sagas = office.Stager, office.Sagas
	if f.archive != "" {
		b, err := openArchive(cmd.Context(), f.archive)
		if err != nil {
			return exit(ExitUsage, flagError("event-archive", err))
		}
		defer b.Close() //nolint:errcheck // only read
		cfg.Archive = archive.NewReader(b)
	}
	d, err := operator.New(cfg)
	if err != nil {
		return exit(ExitUsage, err)
	}
	return deskExit(fn(cmd.Context(), d))
}

// deskExit gives an error of the desk its exit code.
func deskExit(err error) error {
	var coded *exitError
	var field *operator.FieldError
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case errors.As(err, &field):
		return exit(ExitUsage, err)
	case errors.Is(err, operator.ErrUnreachable):
		return exit(ExitMissing, err)
	default:
		return exit(ExitWrong, err)
	}
}

// table prints rows under a header in aligned columns. Cells are made safe for a terminal.
func table(w io.Writer, header []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells []string) {
		for n, c := range cells {
			if n > 0 {
				_, _ = io.WriteString(tw, "\t")
			}
			_, _ = io.WriteString(tw, plain(c))
		}
		_, _ = io.WriteString(tw, "\n")
	}
	line(header)
	for _, r := range rows {
		line(r)
	}
	return tw.Flush()
}

// plain makes text from elsewhere safe to print: one line, no control characters, "-" for nothing.
func plain(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return '\uFFFD'
		}
		return r
	}, s)
	if s == "" {
		return "-"
	}
	return s
}

// moment prints a time of the database.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func momentOf(t *time.Time) string {
	if t == nil {
		return ""
	}
	return moment(*t)
}

// facts prints name and value pairs, one a line.
func facts(w io.Writer, pairs ...string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for n := 0; n+1 < len(pairs); n += 2 {
		_, _ = io.WriteString(tw, pairs[n]+"\t"+plain(pairs[n+1])+"\n")
	}
	return tw.Flush()
}

// show is the RunE of a command that only groups others.
func showHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// actor names who acts: the flag, its variable, else the login name of the environment.
func actor(given string, s Streams) (string, error) {
	for _, name := range []string{given, s.Getenv("USER"), s.Getenv("LOGNAME")} {
		if name != "" {
			host, err := os.Hostname()
			if given != "" || err != nil {
				return name, nil
			}
			return name + "@" + host, nil
		}
	}
	return "", errors.New("--actor: empty and the environment names no user; want who acts, for the audit")
}
