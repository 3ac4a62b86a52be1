package codec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/registry"
)

// reader reads what stands behind the id of a frame.
type reader struct {
	read func(rest []byte) (json.RawMessage, error)
	err  error // the id's schema does not fit the entry's: it never will
}

const maxIndex = 32 // messages inside messages that a frame may name

// Decode gives the data of a body, as [events.Codec] says.
func (c *Codec) Decode(ctx context.Context, messageType string, version int, body []byte) (json.RawMessage, error) {
	f, ok := c.forms[events.Topic(messageType, version)]
	if !ok || f.entry.Schema == nil {
		return nil, fmt.Errorf("%s v%d has no schema in the catalog", messageType, version)
	}
	id, rest, err := new(sr.ConfluentHeader).DecodeID(body)
	if err != nil {
		return nil, fmt.Errorf("body of %d bytes has no frame with a schema id", len(body))
	}
	r, err := c.reader(ctx, f, id)
	if err != nil {
		return nil, err
	}
	data, err := r.read(rest)
	if err != nil {
		return nil, fmt.Errorf("schema id %d: %w", id, err)
	}
	if !bytes.HasPrefix(data, []byte("{")) {
		return nil, fmt.Errorf("schema id %d: record is no object", id)
	}
	return data, nil
}

// reader gives the reader of an id for an entry. What does not fit is remembered too.
func (c *Codec) reader(ctx context.Context, f *form, id int) (reader, error) {
	f.mu.Lock()
	r, ok := f.readers[id]
	f.mu.Unlock()
	if ok {
		return r, r.err
	}
	if c.registry == nil {
		return r, errors.New("body is framed, but the codec has no registry")
	}
	s, err := c.registry.Schema(ctx, id)
	if err != nil {
		return r, err
	}
	if r.read, err = f.reads(s); err != nil {
		r.err = fmt.Errorf("schema id %d does not fit %s v%d: %w", id, f.entry.Type, f.entry.Version, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers[id] = r
	return r, r.err
}

func (f *form) reads(s registry.Schema) (func(rest []byte) (json.RawMessage, error), error) {
	if s.Format != f.entry.Format {
		return nil, fmt.Errorf("is of format %s, want %s", s.Format, f.entry.Format)
	}
	switch {
	case f.avro != nil:
		texts := make([]string, len(s.References))
		for i, r := range s.References {
			texts[i] = r.Text
		}
		r, err := f.avro.Reader(s.Text, texts...)
		if err != nil {
			return nil, err
		}
		return r.Decode, nil
	case f.proto != nil:
		imports := map[string]string{}
		for _, r := range s.References {
			imports[r.Name] = r.Text
		}
		r, err := f.proto.Reader(s.Text, imports)
		if err != nil {
			return nil, err
		}
		return func(rest []byte) (json.RawMessage, error) {
			index, record, err := new(sr.ConfluentHeader).DecodeIndex(rest, maxIndex)
			if err != nil {
				return nil, errors.New("frame has no message index")
			}
			return r.Decode(index, record)
		}, nil
	}
	return func(rest []byte) (json.RawMessage, error) {
		if !json.Valid(rest) {
			return nil, errors.New("record is no JSON")
		}
		return bytes.TrimSpace(rest), nil
	}, nil
}
