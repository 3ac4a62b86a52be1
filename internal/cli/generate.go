package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/bpmn/generate"
)

func newGenerate(s Streams) *cobra.Command {
	var pkg, dir string
	var check, asJSON bool
	var foreign []string
	cmd := &cobra.Command{
		Use: "generate FILE.bpmn...", Short: "Write Go code from models: names, inputs and outputs, handlers",
		Long: `Generate writes the Go side of BPMN models into one package: job types, error codes,
message names and element ids, input and output structs, an interface of handlers
per model with its registration, and a check of the error codes.

Types come from properties (journeyman:input.FIELD, journeyman:output.FIELD) and
from example data in NAME.example.json beside NAME.bpmn.

With --check nothing is written: it exits with 1 and shows the differences when the
files on disk are not what the models say. Run that in CI.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			models, err := readModels(paths)
			if err != nil {
				return exit(ExitMissing, err)
			}
			if pkg == "" {
				abs, err := filepath.Abs(dir)
				if err != nil {
					return exit(ExitMissing, err)
				}
				pkg = strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(filepath.Base(abs)))
			}
			opts := generate.Options{Package: pkg}
			if cmd.Flags().Changed("foreign") {
				opts.Foreign = append([]string{}, foreign...)
			}
			files, err := generate.Files(models, opts)
			if err != nil {
				return exit(ExitWrong, err)
			}
			if check {
				return compare(s, dir, files, asJSON)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a source folder
				return exit(ExitMissing, err)
			}
			if err := generate.Write(dir, files); err != nil {
				return exit(ExitWrong, err)
			}
			names := make([]string, len(files))
			for i, f := range files {
				names[i] = f.Name
			}
			if asJSON {
				return printJSON(s.Out, map[string]any{"package": pkg, "folder": dir, "files": names})
			}
			_, err = fmt.Fprintf(s.Out, "package %s in %s: %s\n", pkg, dir, strings.Join(names, ", "))
			return err
		},
	}
	f := cmd.Flags()
	f.StringVarP(&pkg, "package", "p", "", "name of the Go package; default: the folder's name")
	f.StringVarP(&dir, "output", "o", ".", "folder to write to")
	f.BoolVar(&check, "check", false, "write nothing, exit with 1 when the files differ")
	f.StringSliceVar(&foreign, "foreign", nil, `job types that other code serves, a trailing * matches the rest (default "saga.*")`)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func readModels(paths []string) ([]generate.Model, error) {
	models := make([]generate.Model, len(paths))
	for i, path := range paths {
		source, err := os.ReadFile(path) //nolint:gosec // the user names the file
		if err != nil {
			return nil, err
		}
		example, err := os.ReadFile(strings.TrimSuffix(path, ".bpmn") + ".example.json") //nolint:gosec // beside it
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		models[i] = generate.Model{Name: filepath.Base(path), Source: source, Example: example}
	}
	return models, nil
}

// difference is one entry of the JSON that --check prints.
type difference struct {
	File   string   `json:"file"`
	Reason string   `json:"reason"` // missing, differs or stale
	Lines  []string `json:"lines"`  // the first changed lines
	More   int      `json:"more"`   // changed lines that are not shown
}

func compare(s Streams, dir string, files []generate.File, asJSON bool) error {
	found, err := generate.Compare(dir, files)
	if err != nil {
		return exit(ExitMissing, err)
	}
	if asJSON {
		out := make([]difference, len(found))
		for i, d := range found {
			out[i] = difference{File: d.File, Reason: d.Reason, Lines: append([]string{}, d.Lines...), More: d.More}
		}
		if err := printJSON(s.Out, map[string]any{"differences": out}); err != nil {
			return err
		}
	} else {
		for _, d := range found {
			fmt.Fprintf(s.Out, "%s: %s\n", filepath.Join(dir, d.File), d.Reason)
			for _, l := range d.Lines {
				fmt.Fprintf(s.Out, "\t%s\n", l)
			}
			if d.More > 0 {
				fmt.Fprintf(s.Out, "\tand %d changed lines more\n", d.More)
			}
		}
	}
	if len(found) > 0 {
		return exit(ExitWrong, errSilent)
	}
	return nil
}
