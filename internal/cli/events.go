package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/asyncapi"
	"github.com/vitrip/journeyman/events/compat"
	"github.com/vitrip/journeyman/events/schema/codec"
)

// catalogFile is how catalogs are called that commands find by themselves.
const catalogFile = "catalog.yaml"

func newEvents(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "events", Short: "Catalog, audit chains and encryption of messages", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newEventsCheck(s), newEventsDocs(s), newEventsLint(s), newEventsAcceptGap(s), newEventsVerify(s), newEventsArchiveAudit(s), newEventsKeys(s), newEventsReseal(s))
	cmd.AddCommand(deliveryCommands(s)...)
	return cmd
}

func newEventsCheck(s Streams) *cobra.Command {
	var against, dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check", Short: "Compare the catalog with a revision of git", Args: cobra.NoArgs,
		Long: `Check reads every ` + catalogFile + ` below a folder, now and at a revision of git, and prints what breaks those who read
or write the messages: a schema (JSON Schema, Avro, Protobuf) that changed without a new major version, with the field; a
type, topic, key, partition count, format, wire form, retry schedule or dead-letter route that changed or went without an
entry under signed_off. It ends with 1 when there is any.
With --json it prints {"against", "types", "breaks": [{"type", "version", "change", "field", "from", "to", "fix"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			is, err := catalogsBelow(dir)
			if err != nil {
				return exit(ExitWrong, err)
			}
			was, err := catalogsAt(cmd.Context(), dir, against)
			if err != nil {
				return exit(ExitMissing, err)
			}
			breaks := compat.Compare(was, is)
			if asJSON {
				if err := printJSON(s.Out, map[string]any{"against": against, "types": len(is.Entries()), "breaks": append([]compat.Break{}, breaks...)}); err != nil {
					return err
				}
			} else {
				for _, b := range breaks {
					if _, err := fmt.Fprintln(s.Out, b); err != nil {
						return err
					}
				}
			}
			if len(breaks) > 0 {
				return exit(ExitWrong, errSilent)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&against, "against", "", "revision of git, for example origin/main")
	cmd.Flags().StringVar(&dir, "dir", ".", "folder inside the git checkout")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.MarkFlagRequired("against") // the flag exists
	return cmd
}

func newEventsDocs(s Streams) *cobra.Command {
	var dir, out string
	var info asyncapi.Info
	cmd := &cobra.Command{
		Use: "docs", Short: "Write AsyncAPI 3 and a page to browse", Args: cobra.NoArgs,
		Long: `Docs reads every ` + catalogFile + ` below a folder and writes asyncapi.yaml (AsyncAPI 3.0) and index.html, which needs no network.`,
		RunE: func(_ *cobra.Command, _ []string) error {
			catalog, err := catalogsBelow(dir)
			if err != nil {
				return exit(ExitWrong, err)
			}
			text, err := asyncapi.YAML(catalog, info)
			if err != nil {
				return exit(ExitUsage, err)
			}
			page, err := asyncapi.Page(catalog, info)
			if err != nil {
				return exit(ExitWrong, err)
			}
			if err := os.MkdirAll(out, 0o750); err != nil {
				return exit(ExitWrong, err)
			}
			for name, content := range map[string][]byte{"asyncapi.yaml": text, "index.html": page} {
				if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil { //nolint:gosec // made to be read by all
					return exit(ExitWrong, err)
				}
			}
			_, err = fmt.Fprintf(s.Err, "%d message types: %s and %s\n", len(catalog.Entries()), filepath.Join(out, "asyncapi.yaml"), filepath.Join(out, "index.html"))
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder with the catalogs")
	cmd.Flags().StringVar(&out, "out", "events-docs", "folder to write into")
	cmd.Flags().StringVar(&info.Title, "title", "Messages", "title of the documents")
	cmd.Flags().StringVar(&info.Version, "doc-version", "1", "version of the documents")
	return cmd
}

// catalogsBelow reads, checks and joins the catalogs below a folder, schemas included. Hidden folders, testdata and node_modules are passed over.
func catalogsBelow(dir string) (*events.Catalog, error) {
	texts := map[string][]byte{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && at != dir && skipped(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || d.Name() != catalogFile:
			return nil
		}
		texts[at], err = os.ReadFile(at) //nolint:gosec // a file the user points at
		return err
	})
	if err != nil {
		return nil, err
	}
	c, err := joined(texts, dir)
	if err != nil {
		return nil, err
	}
	_, err = codec.Compile(c)
	return c, err
}

func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "testdata" || folder == "node_modules"
}

// catalogsAt reads the catalogs below a folder as they were at a revision.
func catalogsAt(ctx context.Context, dir, revision string) (*events.Catalog, error) {
	if strings.HasPrefix(revision, "-") || revision == "" {
		return nil, fmt.Errorf("--against %q, want a revision of git", revision)
	}
	list, err := git(ctx, dir, "ls-tree", "-r", "-z", "--name-only", revision, "--", ".")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, name := range strings.Split(string(list), "\x00") {
		folders := strings.Split(path.Dir(name), "/")
		hidden := false
		for _, f := range folders {
			hidden = hidden || f != "." && skipped(f)
		}
		if path.Base(name) != catalogFile || hidden {
			continue
		}
		if texts[name], err = git(ctx, dir, "show", revision+":./"+name); err != nil {
			return nil, err
		}
	}
	return joined(texts, revision)
}

func git(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...) //nolint:gosec // the revision cannot be an option
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(e.Stderr)))
	}
	return out, err
}

func joined(texts map[string][]byte, where string) (*events.Catalog, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("no %s in %s", catalogFile, where)
	}
	var all []*events.Catalog
	for name, text := range texts {
		c, err := events.ParseCatalog(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, c)
	}
	return events.Merge(all...)
}
