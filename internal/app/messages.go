package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
)

// Messages says how messages are written down: in which format, under whose schema, encrypted or not. Every process of an
// environment says the same. The zero value is what the application's catalogs say, and these need neither registry nor keys.
type Messages struct {
	// Catalogs have entries that stand in place of the application's own of the same type and version, or beside them: the same
	// events in Avro or Protobuf, for example. Later ones win.
	Catalogs   []*events.Catalog
	Registry   *registry.Config                   // must be set when a type is of wire confluent; nil = none is asked
	LookUp     bool                               // schemas are registered by a pipeline: one that is not refuses to start
	Encryption map[events.Class]events.Encryption // whose bodies are encrypted, beside what catalogs say
	Keys       seal.Keys                          // must be set when a class is encrypted
}

// writing is what the settings come to.
type writing struct {
	catalog  *events.Catalog
	codec    *codec.Codec
	keys     seal.Keys
	registry *registry.Client // nil = none
}

// open compiles the schemas and asks the registry for those of the types that are emitted, the settings' own among them, for as long
// as it may take: nobody is asked when none of them needs it. All mistakes are told at once, types that need a registry by name.
func (m Messages) open(emits []string) (w writing, err error) {
	w.keys = m.Keys
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.catalog, err = Catalog(); err != nil {
		return w, err
	}
	if w.catalog, err = w.catalog.Override(m.Catalogs...); err != nil {
		return w, err
	}
	if w.catalog, err = w.catalog.Encrypted(m.Encryption); err != nil {
		return w, err
	}
	errs := []error{w.catalog.Complete()}
	if w.catalog.Encrypts() && m.Keys == nil {
		errs = append(errs, errors.New("app: Messages.Keys is nil, but bodies are encrypted"))
	}
	if m.Registry != nil {
		w.registry, err = registry.New(*m.Registry)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return w, err
	}
	for _, c := range m.Catalogs {
		for _, e := range c.Entries() {
			emits = append(emits, e.Type)
		}
	}
	w.codec, err = codec.New(context.Background(), codec.Config{Catalog: w.catalog, Registry: w.registry, Producer: producer, Emits: emits, LookUp: m.LookUp}) // the registry's client bounds it
	if err != nil {
		return w, fmt.Errorf("app: messages: %w", err)
	}
	return w, nil
}

// stager stages such messages.
func (w writing) stager(schema, env string) (*outbox.Stager, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return outbox.NewStager(outbox.Config{
		Schema: schema, Catalog: w.catalog, Schemas: w.codec, Codec: w.codec, Keys: w.keys, Producer: producer, Instance: fmt.Sprintf("%s-%d", host, os.Getpid()), Env: env,
	})
}

// close ends idle connections.
func (w writing) close() {
	if w.registry != nil {
		w.registry.Close()
	}
}
