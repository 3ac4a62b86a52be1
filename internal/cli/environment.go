package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envKey is the flag annotation that names a flag's environment variable.
const envKey = "environment"

// env binds a flag to an environment variable: the flag wins, then the variable, then the default.
func env(cmd *cobra.Command, flag, variable string) {
	f := cmd.Flags().Lookup(flag)
	if f == nil {
		panic("cli: no flag " + flag) //nolint:forbidigo // a mistake in this package that its first test meets
	}
	f.Usage += " (env " + variable + ")"
	f.Annotations = map[string][]string{envKey: {variable}}
}

// fromEnvironment fills flags that were not given from their variables. An empty variable counts as absent.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string) error {
	var err error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names := f.Annotations[envKey]
		if f.Changed || len(names) == 0 || err != nil {
			return
		}
		if v := getenv(names[0]); v != "" {
			if bad := cmd.Flags().Set(f.Name, v); bad != nil {
				err = fmt.Errorf("%s=%q: %w", names[0], v, bad)
			}
		}
	})
	return err
}

// required refuses a command whose named flags are empty after the environment was read, all at once.
func required(cmd *cobra.Command, flags ...string) error {
	var missing []string
	for _, name := range flags {
		f := cmd.Flags().Lookup(name)
		if f.Value.String() == "" || f.Value.String() == "[]" {
			missing = append(missing, fmt.Sprintf("--%s or %s", name, f.Annotations[envKey][0]))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %v", missing)
	}
	return nil
}
