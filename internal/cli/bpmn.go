package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/bpmn"
)

func newBPMN(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "bpmn", Short: "Check and draw BPMN models", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(newLint(s), newDraw(s))
	return cmd
}

// problem is one finding about a model.
type problem struct {
	File     string `json:"file"`
	Line     int    `json:"line"`    // 1-based, 0 = unknown
	Element  string `json:"element"` // id, may be empty
	Kind     string `json:"kind"`    // element kind, may be empty
	Rule     string `json:"rule"`
	Severity string `json:"severity"` // error or warning
	Reason   string `json:"reason"`
	Fix      string `json:"fix"` // text to paste or what to do, may be empty
}

func newLint(s Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "lint FILE...", Short: "Find what is wrong with models",
		Long: `Lint reads BPMN files and prints one line for each thing that Zeebe would refuse, and for each platform rule that
a model breaks: missing correlation inputs, side effects without compensation, unbounded retries, uncaught error codes and more.
It exits with 1 when there is an error; warnings alone exit with 0.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			problems, errs := []problem{}, 0
			for _, file := range files {
				found, err := lint(file)
				if err != nil {
					return exit(ExitMissing, err)
				}
				problems = append(problems, found...)
			}
			for _, p := range problems {
				if p.Severity == string(bpmn.SeverityError) {
					errs++
				}
			}
			if asJSON {
				if err := printJSON(s.Out, map[string]any{"files": len(files), "errors": errs, "problems": problems}); err != nil {
					return err
				}
			} else if err := printProblems(s.Out, problems); err != nil {
				return err
			}
			if errs > 0 {
				return exit(ExitWrong, errSilent)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printProblems(w io.Writer, problems []problem) error {
	for _, p := range problems {
		e := bpmn.Error{File: p.File, Line: p.Line, ElementID: p.Element, Kind: bpmn.Kind(p.Kind), Reason: p.Reason}
		if _, err := fmt.Fprintf(w, "%s (%s, %s)\n", e.Error(), p.Rule, p.Severity); err != nil {
			return err
		}
		if p.Fix != "" {
			if _, err := fmt.Fprintln(w, p.Fix); err != nil {
				return err
			}
		}
	}
	return nil
}

// lint gives what is wrong with one file; the error is about reading it.
func lint(file string) ([]problem, error) {
	f, err := os.Open(file) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	problems := []problem{}
	defs, err := bpmn.Parse(f)
	if err != nil {
		found := bpmn.Errors(err)
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, e := range found {
			problems = append(problems, problem{File: file, Line: e.Line, Element: e.ElementID, Kind: string(e.Kind), Rule: "deploy", Severity: string(bpmn.SeverityError), Reason: e.Reason})
		}
		return problems, nil
	}
	for _, x := range bpmn.Lint(defs) {
		problems = append(problems, problem{File: file, Line: x.Line, Element: x.ElementID, Kind: string(x.Kind), Rule: x.Rule, Severity: string(x.Severity), Reason: x.Message, Fix: x.Fix})
	}
	return problems, nil
}

func newDraw(s Streams) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "draw FILE", Short: "Draw a model as SVG from its own layout",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, files []string) (err error) {
			f, err := os.Open(files[0]) //nolint:gosec // the user names the file
			if err != nil {
				return exit(ExitMissing, err)
			}
			defer f.Close() //nolint:errcheck // read only
			defs, err := bpmn.Parse(f)
			if err != nil {
				return exit(ExitWrong, fmt.Errorf("%s: %w", files[0], err))
			}
			w := s.Out
			if out != "" {
				target, err := os.Create(out) //nolint:gosec // the user names the file
				if err != nil {
					return exit(ExitMissing, err)
				}
				defer func() { err = errors.Join(err, target.Close()) }()
				w = target
			}
			return exit(ExitWrong, bpmn.Draw(w, defs, bpmn.DrawOptions{}))
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "file to write; standard output when empty")
	return cmd
}
