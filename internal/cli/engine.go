package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/engine"
)

// newEngine serves the embedded engine until a signal.
func newEngine(s Streams) *cobra.Command {
	var grpcAddr, restAddr, level, data, compat string
	var history int
	var historyAge time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "engine", Short: "Run the embedded Zeebe-compatible engine",
		Long: `Engine serves the gateway's gRPC API and the REST API v2. It is for development, tests and
demonstrations on one machine only. Its state is in memory and ends with the process;
with --data it is kept in a directory: a log of commands, written (fsync) before each answer, and
a snapshot. After a crash it comes back as it was, the clock's offset included.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLog(s, "journeyman-engine", level)
			if err != nil {
				return err
			}
			e, err := engine.Start(engine.Config{Addr: grpcAddr, RESTAddr: restAddr, DataDir: data, HistoryLimit: history, HistoryAge: historyAge, Compat: engine.Compat(compat), Log: log})
			if err != nil {
				return exit(ExitMissing, err)
			}
			if asJSON {
				if err := printJSON(s.Out, map[string]string{"grpc": e.Addr(), "rest": "http://" + e.RESTAddr(), "incarnation": e.Incarnation(), "data": data}); err != nil {
					return errors.Join(err, e.Close())
				}
			} else if _, err := fmt.Fprintf(s.Out, "embedded engine, for development on this machine only\ngRPC %s\nREST http://%s\nstop with Ctrl-C\n", e.Addr(), e.RESTAddr()); err != nil {
				return errors.Join(err, e.Close())
			}
			<-cmd.Context().Done()
			return e.Close() // stopping is its only way to end
		},
	}
	cmd.Flags().StringVar(&grpcAddr, "grpc", "127.0.0.1:26500", "address of the gRPC API")
	cmd.Flags().StringVar(&restAddr, "rest", "127.0.0.1:8080", "address of the REST API")
	cmd.Flags().StringVar(&data, "data", "", "directory that keeps the state (empty: memory only)")
	cmd.Flags().IntVar(&history, "history", engine.DefaultHistoryLimit, "how many ended process instances are kept for searches (-1: all, and memory grows with what was run)")
	cmd.Flags().DurationVar(&historyAge, "history-age", 0, "how long ended process instances are kept, by the engine's clock (0: for ever, within --history)")
	cmd.Flags().StringVar(&compat, "compat", string(engine.Compat88), "refuse at deploy what this version does not know: 8.8 or 8.5")
	cmd.Flags().StringVar(&level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the addresses as JSON")
	env(cmd, "grpc", "JOURNEYMAN_ENGINE_GRPC")
	env(cmd, "rest", "JOURNEYMAN_ENGINE_REST")
	env(cmd, "data", "JOURNEYMAN_ENGINE_DATA")
	env(cmd, "history", "JOURNEYMAN_ENGINE_HISTORY")
	env(cmd, "history-age", "JOURNEYMAN_ENGINE_HISTORY_AGE")
	env(cmd, "compat", "JOURNEYMAN_ENGINE_COMPAT")
	env(cmd, "log-level", "JOURNEYMAN_LOG_LEVEL")
	cmd.AddCommand(newClock(s))
	return cmd
}

func newClock(s Streams) *cobra.Command {
	clock := &cobra.Command{Use: "clock", Short: "Move the engine's clock", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var rest string
	var by time.Duration
	var asJSON bool
	advance := &cobra.Command{
		Use: "advance", Short: "Move the clock of a running embedded engine forward",
		Long: `Advance moves the embedded engine's clock, so that timers and time-outs come due at once.
It moves the engine only: workers that use a database ask that for the time.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if by <= 0 {
				return fmt.Errorf("--by %v: want more than 0", by)
			}
			if err := advanceEngine(cmd.Context(), rest, by); err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.Out, map[string]any{"advanced_ms": by.Milliseconds()})
			}
			_, err := fmt.Fprintf(s.Out, "clock moved by %v\n", by)
			return err
		},
	}
	advance.Flags().StringVar(&rest, "rest", "http://127.0.0.1:8080", "base URL of the engine's REST API")
	advance.Flags().DurationVar(&by, "by", 0, "how far, for example 31m")
	advance.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	env(advance, "rest", "JOURNEYMAN_REST")
	clock.AddCommand(advance)
	return clock
}

func advanceEngine(ctx context.Context, rest string, by time.Duration) error {
	body, err := json.Marshal(map[string]int64{"milliseconds": by.Milliseconds()})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(rest, "/")+"/v2/clock/advance", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("--rest: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return exit(ExitMissing, fmt.Errorf("engine: %w", err))
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return exit(ExitWrong, fmt.Errorf("engine: status %d: %s", res.StatusCode, text))
	}
	return nil
}
