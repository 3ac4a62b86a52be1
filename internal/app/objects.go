package app

import (
	"context"
	"errors"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/export"
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

// Deleter is object storage that objects can be removed from. *bucket.Bucket of package events/archive is one.
type Deleter interface {
	archive.Store
	Delete(ctx context.Context, name string) error // one that is not there is removed
}

// ExportObjects is where data exports are written: the same kind of storage, whose objects are deleted when their time has come.
func ExportObjects(store Deleter) export.Objects { return files{objects{store}, store} }

type files struct {
	objects
	store Deleter
}

// Delete removes an object.
func (f files) Delete(ctx context.Context, name string) error { return f.store.Delete(ctx, name) }
