package cli

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/bpmn/generate"
)

//go:embed scaffold/*.tmpl
var scaffold embed.FS //nolint:gochecknoglobals // like a constant

// scaffoldFiles names the templates of each kind and what they become.
func scaffoldFiles(kind, name string) map[string]string {
	snake := strings.ReplaceAll(name, "-", "_")
	switch kind {
	case "worker":
		return map[string]string{"worker.go.tmpl": snake + ".go", "worker_test.go.tmpl": snake + "_test.go", "worker_schema.sql.tmpl": "schema.sql"}
	case "saga":
		return map[string]string{"saga.go.tmpl": snake + ".go", "saga_test.go.tmpl": snake + "_test.go", "saga_schema.sql.tmpl": "schema.sql", "saga.bpmn.tmpl": name + ".bpmn"}
	default:
		return map[string]string{"consumer.go.tmpl": snake + ".go", "consumer_test.go.tmpl": snake + "_test.go", "consumer_schema.sql.tmpl": "schema.sql", "consumer_catalog.yaml.tmpl": "catalog.yaml"}
	}
}

// blank is what templates are filled with.
type blank struct {
	Name    string // room-reserve
	Package string // roomreserve
	GoName  string // RoomReserve
	Title   string // Room reserve
	Job     string // worker: room.reserve; saga: prefix of its job types
	Import  string // import path of the package
	Event   string // consumer: shop.order.placed
	Domain  string // of Event
}

var (
	moduleLine    = regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)"?`)               //nolint:gochecknoglobals // compiled once
	scaffoldName  = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)             //nolint:gochecknoglobals // compiled once
	scaffoldEvent = regexp.MustCompile(`^[a-z][a-z0-9-]*\.[a-z0-9_]+\.[a-z0-9_]+$`) //nolint:gochecknoglobals // compiled once
)

func newNew(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "new", Short: "Write the start of a worker, a saga or a consumer", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	for kind, short := range map[string]string{
		"worker":   "A handler for one job type, its table and its test",
		"saga":     "A model with compensation, its handlers, its operation type and tests of both",
		"consumer": "A handler for one event type, its catalog entry and its test",
	} {
		cmd.AddCommand(newScaffold(s, kind, short))
	}
	return cmd
}

func newScaffold(s Streams, kind, short string) *cobra.Command {
	var dir, event string
	cmd := &cobra.Command{
		Use: kind + " NAME", Short: short,
		Long: short + ".\n\nThe code goes into a package of its own below the Go module of the current folder.\nIt compiles, and its tests pass, before you change a line.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			b := blank{Name: args[0], Event: event}
			if !scaffoldName.MatchString(b.Name) {
				return exit(ExitUsage, fmt.Errorf("name %q: want lower-case words with - between them, such as room-reserve", b.Name))
			}
			if !scaffoldEvent.MatchString(event) {
				return exit(ExitUsage, fmt.Errorf("--event %q: want <domain>.<entity>.<action>, such as shop.order.placed", event))
			}
			b.Package = strings.ReplaceAll(b.Name, "-", "")
			b.GoName = generate.Name(b.Name)
			words := strings.ReplaceAll(b.Name, "-", " ")
			b.Title = strings.ToUpper(words[:1]) + words[1:]
			b.Job = b.Name
			if kind == "worker" {
				b.Job = strings.Replace(b.Name, "-", ".", 1)
			}
			b.Domain, _, _ = strings.Cut(event, ".")
			if dir == "" {
				dir = b.Package
			}
			var err error
			if b.Import, err = importPath(dir); err != nil {
				return exit(ExitMissing, err)
			}
			written, err := b.write(kind, dir)
			if err != nil {
				return exit(ExitWrong, err)
			}
			fmt.Fprintf(s.Out, "package %s:\n", b.Import)
			for _, name := range written {
				fmt.Fprintf(s.Out, "\t%s\n", filepath.Join(dir, name))
			}
			_, err = fmt.Fprintf(s.Out, "Try it: go test ./%s\n", filepath.ToSlash(dir))
			return err
		},
	}
	cmd.Flags().StringVarP(&dir, "output", "o", "", "folder to write to; default: the name without -")
	if kind == "consumer" {
		cmd.Flags().StringVar(&event, "event", "shop.order.placed", "message type to consume")
	} else {
		event = "shop.order.placed" // not used
	}
	return cmd
}

// importPath finds the Go module around a folder.
func importPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for root := abs; ; root = filepath.Dir(root) {
		text, err := os.ReadFile(filepath.Join(root, "go.mod")) //nolint:gosec // around the folder that the user names
		if err == nil {
			module := moduleLine.FindSubmatch(text)
			if module == nil {
				return "", fmt.Errorf("%s names no module", filepath.Join(root, "go.mod"))
			}
			rel, err := filepath.Rel(root, abs)
			return path.Join(string(module[1]), filepath.ToSlash(rel)), err
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if root == filepath.Dir(root) {
			return "", fmt.Errorf("no go.mod in %s or above it: run go mod init first", abs)
		}
	}
}

// write fills the templates into a folder that has no such files yet, and gives their names.
func (b blank) write(kind, dir string) ([]string, error) {
	files := map[string][]byte{}
	for from, to := range scaffoldFiles(kind, b.Name) {
		t, err := template.ParseFS(scaffold, "scaffold/"+from)
		if err != nil {
			return nil, err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, b); err != nil {
			return nil, err
		}
		files[to] = text.Bytes()
	}
	if model := b.Name + ".bpmn"; files[model] != nil {
		generated, err := generate.Files([]generate.Model{{Name: model, Source: files[model]}}, generate.Options{Package: b.Package})
		if err != nil {
			return nil, err
		}
		for _, f := range generated {
			files[f.Name] = f.Text
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a source folder
		return nil, err
	}
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, fmt.Errorf("%s: is there already, nothing was written", filepath.Join(dir, name))
		}
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil { //nolint:gosec // source code is for everybody
			return nil, err
		}
	}
	return names, nil
}
