package cli

import (
	"encoding/json"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const exitCodes = `Exit codes:
  0    done
  1    it ran and something is wrong: an audit found faults, a model has errors, the act failed
  2    the command line is wrong: unknown command or flag, missing or bad value
  3    partly done: some of many items failed
  4    something needed is missing or does not answer: PostgreSQL, broker, engine
  130  ended by an interrupt (Ctrl-C)
  143  ended by SIGTERM before it was done
`

// newExitCodes is a help topic: a command that cannot run is shown as one by cobra.
func newExitCodes() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodes}
}

func newVersion(s Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print version, revision and Go version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if asJSON {
				return printJSON(s.Out, v)
			}
			_, err := io.WriteString(s.Out, "journeyman "+v.Version+" "+v.Revision+" "+v.Go+"\n")
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// version is what the Go toolchain stamped into the binary; "unknown" where it did not.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func buildVersion() version {
	v := version{Version: "unknown", Revision: "unknown", Go: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	v.Go = info.GoVersion
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// printJSON writes one indented JSON document and a newline.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
