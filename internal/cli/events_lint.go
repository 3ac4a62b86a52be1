package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events"
)

func newEventsLint(s Streams) *cobra.Command {
	var dir string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "lint", Short: "Check the catalogs, and that no entry leaves something to guess", Args: cobra.NoArgs,
		Long: `Lint reads every ` + catalogFile + ` below a folder, joins them and prints all that is wrong: names, classes, owners, keys,
retention, retry and poison rules, schemas; and each entry that lacks consumers, a schema, the operator's action or a word on
personal data. It ends with 1 when there is any. With --json it prints {"types", "problems": [...]}.`,
		RunE: func(_ *cobra.Command, _ []string) error {
			problems := []string{}
			types := 0
			catalog, err := catalogsBelow(dir)
			if err == nil {
				types = len(catalog.Entries())
				err = catalog.Complete()
			}
			if e, ok := errors.AsType[*events.CatalogError](err); ok {
				problems = append(problems, e.Problems...)
			} else if err != nil {
				problems = append(problems, err.Error())
			}
			if asJSON {
				if err := printJSON(s.Out, map[string]any{"types": types, "problems": problems}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					if _, err := fmt.Fprintln(s.Out, p); err != nil {
						return err
					}
				}
			}
			if len(problems) > 0 {
				return exit(ExitWrong, errSilent)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "folder with the catalogs")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
