package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/vitrip/journeyman/events"
)

// errUnusable marks an answer that no further try would change.
var errUnusable = errors.New("schema cannot be used")

// Register gives the id of a schema under a subject, which it creates when it is
// not there. A schema that breaks the subject's compatibility level is refused
// with [ErrIncompatible]. While the registry is unavailable the id comes from the cache folder, if it is there.
func (c *Client) Register(ctx context.Context, subject string, s Schema) (int, error) {
	return c.settle(ctx, subject, s, func(ctx context.Context) (int, error) {
		return c.api.RegisterSchema(ctx, subject, plain(s), -1, -1)
	})
}

// Lookup gives the id of a schema that is registered under a subject already,
// for services that may not register. One that is not is [events.ErrSchemaUnknown].
func (c *Client) Lookup(ctx context.Context, subject string, s Schema) (int, error) {
	return c.settle(ctx, subject, s, func(ctx context.Context) (int, error) {
		found, err := c.api.LookupSchema(ctx, subject, plain(s))
		return found.ID, err
	})
}

func (c *Client) settle(ctx context.Context, subject string, s Schema, question func(ctx context.Context) (int, error)) (int, error) {
	id := 0
	err := c.ask(ctx, func(ctx context.Context) error {
		var err error
		id, err = question(ctx)
		return err
	})
	if errors.Is(err, events.ErrSchemaUnavailable) {
		kept, known, fault := c.recallID(subject, s)
		if fault != nil {
			return 0, fmt.Errorf("subject %s: %w", subject, fault)
		}
		if known {
			id, err = kept, nil
		}
	} else if err == nil {
		err = errors.Join(c.keepID(subject, s, id), c.keep(id, s))
	}
	if answer, ok := errors.AsType[*sr.ResponseError](err); ok && answer.StatusCode == http.StatusConflict {
		err = fmt.Errorf("%w: %w", ErrIncompatible, err)
	}
	if err != nil {
		return 0, fmt.Errorf("subject %s: %w", subject, err)
	}
	if id <= 0 {
		return 0, fmt.Errorf("subject %s: registry gave id %d, want 1 or more", subject, id)
	}
	c.mu.Lock()
	c.schemas[id] = s
	c.mu.Unlock()
	return id, nil
}

// Compatible reports whether a schema may follow the latest one of a subject at
// the subject's level, with the registry's reasons. A subject that is not there takes every schema.
func (c *Client) Compatible(ctx context.Context, subject string, s Schema) (ok bool, reasons []string, err error) {
	err = c.ask(ctx, func(ctx context.Context) error {
		res, err := c.api.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, -1, plain(s))
		ok, reasons = res.Is, res.Messages
		return err
	})
	if errors.Is(err, events.ErrSchemaUnknown) {
		return true, nil, nil
	}
	return ok, reasons, err
}

// SetLevel sets a subject's compatibility level: "BACKWARD", "FULL_TRANSITIVE" and so on.
func (c *Client) SetLevel(ctx context.Context, subject, level string) error {
	var l sr.CompatibilityLevel
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("subject %s: compatibility level %q: %w", subject, level, err)
	}
	return c.ask(ctx, func(ctx context.Context) error {
		return c.api.SetCompatibility(ctx, sr.SetCompatibility{Level: l}, subject)[0].Err
	})
}

func plain(s Schema) sr.Schema {
	return sr.Schema{Schema: s.Text, Type: map[events.Format]sr.SchemaType{events.FormatAvro: sr.TypeAvro, events.FormatProtobuf: sr.TypeProtobuf, events.FormatJSON: sr.TypeJSON}[s.Format]}
}

const maxReferences = 64

// whole gives a schema with all that it names.
func (c *Client) whole(ctx context.Context, got sr.Schema) (Schema, error) {
	s := Schema{Text: got.Schema}
	switch got.Type {
	case sr.TypeAvro:
		s.Format = events.FormatAvro
	case sr.TypeProtobuf:
		s.Format = events.FormatProtobuf
	case sr.TypeJSON:
		s.Format = events.FormatJSON
	default:
		return s, fmt.Errorf("%w: type %v", errUnusable, got.Type)
	}
	seen := 0
	err := c.collect(ctx, got.References, &s.References, &seen)
	return s, err
}

// collect adds what references name, before what names it.
func (c *Client) collect(ctx context.Context, references []sr.SchemaReference, into *[]Reference, seen *int) error {
	for _, r := range references {
		if slices.ContainsFunc(*into, func(have Reference) bool { return have.Name == r.Name }) {
			continue
		}
		if *seen++; *seen > maxReferences {
			return fmt.Errorf("%w: names more than %d others", errUnusable, maxReferences)
		}
		got, err := c.api.SchemaByVersion(ctx, r.Subject, r.Version)
		if err != nil {
			return err
		}
		if err := c.collect(ctx, got.References, into, seen); err != nil {
			return err
		}
		*into = append(*into, Reference{Name: r.Name, Text: got.Schema.Schema})
	}
	return nil
}
