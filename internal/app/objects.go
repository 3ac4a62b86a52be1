package app

import (
	"context"
	"errors"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/sagas"
)

// Objects is a [sagas.Archive] in the object storage of package events/archive.
func Objects(store archive.Store) sagas.Archive { return objects{store} }

type objects struct{ store archive.Store }

// Put writes an object once. Names are made from the content, so one that exists is this one.
func (o objects) Put(ctx context.Context, name string, content []byte) error {
	err := o.store.Create(ctx, name, content)
	if errors.Is(err, archive.ErrExists) {
		return nil
	}
	return err
}
