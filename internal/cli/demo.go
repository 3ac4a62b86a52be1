package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/examples/bookings"
	"github.com/vitrip/journeyman/internal/demo"
)

// newDemo plays the script and judges the run.
func newDemo(s Streams) *cobra.Command {
	var cfg demo.Config
	var asJSON bool
	var script string
	cmd := &cobra.Command{
		Use: "demo", Short: "Book tours, break things, undo, and audit the result",
		Long: `Demo starts everything it needs on this machine: a private PostgreSQL, a Kafka broker and the
embedded engine in this process, supplier simulators, the HTTP API, and the workers in a second process.
It plays the bookings of examples/bookings, kills the worker process at named points, moves the clocks,
and then audits the run from the outside: suppliers' ledgers, Kafka log, engine history and a witness in the database.

It exits with 0 when the audit is clean and with 1 when it is not. Ctrl-C leaves nothing behind.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Bookings < 0 {
				return fmt.Errorf("--bookings %d: want 0 or more", cfg.Bookings)
			}
			cfg.Script, cfg.Out, cfg.Terminal = bookings.FS(), s.Out, s.Terminal
			if script != "" {
				cfg.Script = os.DirFS(script)
			}
			if asJSON {
				cfg.Out, cfg.Terminal = s.Err, false // standard output is for the document alone
			}
			var err error
			if cfg.Executable, err = os.Executable(); err != nil {
				return exit(ExitMissing, err)
			}
			report, err := demo.Run(cmd.Context(), cfg)
			switch {
			case errors.Is(err, demo.ErrNoDatabase):
				return exit(ExitMissing, err)
			case err != nil:
				return exit(ExitWrong, err)
			case cmd.Context().Err() != nil && report.Bookings == 0:
				return errStopped
			}
			if asJSON {
				if err := printJSON(s.Out, report); err != nil {
					return err
				}
			} else if err := demo.PrintReport(s.Out, report); err != nil {
				return err
			}
			if !report.Clean() {
				return exit(ExitWrong, errSilent)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print only the summary, as JSON, on standard output")
	f.StringVar(&script, "script", "", "folder of *.json files to play instead of the built-in script")
	f.IntVar(&cfg.Bookings, "bookings", 0, "play so many bookings in all: the script and generated ones; 0 = the script and a few")
	f.Int64Var(&cfg.Seed, "seed", 1, "seed of the generated bookings")
	f.BoolVar(&cfg.Serve, "serve", false, "stay up with API and console until Ctrl-C")
	f.StringVar(&cfg.DSN, "dsn", "", "PostgreSQL server to use instead of a private one; a database is made on it and dropped")
	f.BoolVar(&cfg.FetchPostgres, "fetch-postgres", false, "install PostgreSQL's programs when the machine has none")
	f.StringVar(&cfg.LogFile, "log", "", "file for the log of all processes, JSON lines; dropped when empty")
	env(cmd, "dsn", "JOURNEYMAN_DSN")
	env(cmd, "log", "JOURNEYMAN_DEMO_LOG")
	return cmd
}
