package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/internal/app"
)

// Secrets of a schema registry: one of them.
const (
	registryPassword = "JOURNEYMAN_REGISTRY_PASSWORD" //nolint:gosec // the name of a variable
	registryToken    = "JOURNEYMAN_REGISTRY_TOKEN"    //nolint:gosec // the name of a variable
)

// messagesHelp is for the help of commands that write messages.
const messagesHelp = `Messages are JSON unless a file of --catalog says otherwise for their type: format avro or protobuf, with the schema. Those need
--registry, a schema registry of Confluent's API; schemas are registered at the start, or only looked up with --registry-look-up.
` + registryPassword + ` belongs to --registry-user, ` + registryToken + ` stands for both.
With --encrypt bodies of a class rest encrypted under the current key of --keys (journeyman events keys); it is read again
every second, so a rotation needs no restart. Every process of an environment has the same of all these.`

// messageFlags say how messages are written down: the same flags for every command that writes some.
type messageFlags struct {
	catalogs []string
	keys     string
	encrypt  map[string]string
	registry registry.Config
	tls      tlsFlags
	lookUp   bool
}

func (f *messageFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.catalogs, "catalog", nil, "catalog files whose entries stand in place of ours of the same type and version, comma-separated")
	fl.StringVar(&f.keys, "keys", "", "folder of key files, where bodies of messages rest encrypted")
	fl.StringToStringVar(&f.encrypt, "encrypt", nil, "classes whose bodies are encrypted: saga=at_rest,audit=end_to_end")
	fl.StringSliceVar(&f.registry.URLs, "registry", nil, "URLs of the schema registry, comma-separated; only types in Avro or Protobuf need one")
	fl.StringVar(&f.registry.Username, "registry-user", "", "user of the registry; the password is in "+registryPassword)
	f.tls.add(cmd, "registry", "REGISTRY")
	fl.StringVar(&f.registry.Cache, "registry-cache", "", "folder that remembers schemas, for starts while the registry is down")
	fl.BoolVar(&f.lookUp, "registry-look-up", false, "register nothing: a schema that a pipeline has not registered refuses to start")
	for flag, variable := range map[string]string{
		"catalog": "CATALOG", "keys": "KEYS", "encrypt": "ENCRYPT", "registry": "REGISTRY", "registry-user": "REGISTRY_USER", "registry-cache": "REGISTRY_CACHE",
		"registry-look-up": "REGISTRY_LOOK_UP",
	} {
		env(cmd, flag, "JOURNEYMAN_"+variable)
	}
}

// addQuiet declares them for commands whose messages are few: all but the keys are left out of the help.
func (f *messageFlags) addQuiet(cmd *cobra.Command) {
	f.add(cmd)
	for _, name := range []string{"catalog", "encrypt", "registry", "registry-user", "registry-tls", "registry-ca", "registry-cert", "registry-key", "registry-cache", "registry-look-up"} {
		_ = cmd.Flags().MarkHidden(name) // the flag exists
	}
}

// open reads the files that the flags name, and secrets from the environment. All mistakes are told at once.
func (f *messageFlags) open(getenv func(string) string) (app.Messages, error) {
	m := app.Messages{LookUp: f.lookUp, Encryption: map[events.Class]events.Encryption{}}
	var errs []error
	for _, name := range f.catalogs {
		text, err := os.ReadFile(name) //nolint:gosec // the user names the file
		if err == nil {
			var c *events.Catalog
			if c, err = events.ParseCatalog(text); err == nil {
				m.Catalogs = append(m.Catalogs, c)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--catalog %s: %w", name, err))
		}
	}
	for class, how := range f.encrypt {
		m.Encryption[events.Class(class)] = events.Encryption(how)
	}
	if f.keys != "" {
		dir, err := seal.OpenDir(f.keys)
		if err != nil {
			errs = append(errs, fmt.Errorf("--keys: %w", err))
		} else {
			m.Keys = dir
		}
	} else if len(f.encrypt) > 0 {
		errs = append(errs, errors.New("--encrypt: want --keys or JOURNEYMAN_KEYS"))
	}
	tls, err := f.tls.config()
	errs = append(errs, err)
	if len(f.registry.URLs) > 0 {
		cfg := f.registry
		cfg.TLS, cfg.Password, cfg.Token = tls, getenv(registryPassword), getenv(registryToken)
		if (cfg.Username == "") != (cfg.Password == "") {
			errs = append(errs, fmt.Errorf("--registry-user and %s: want both or none", registryPassword))
		}
		m.Registry = &cfg
	} else if f.registry.Username != "" || f.registry.Cache != "" || f.lookUp || tls != nil {
		errs = append(errs, errors.New("--registry-user, --registry-cache, --registry-look-up, --registry-tls: want --registry or JOURNEYMAN_REGISTRY"))
	}
	return m, errors.Join(errs...)
}
