package archive

import (
	"context"
	"errors"
)

// Store is object storage. Package events/archive/bucket opens one by URL.
// Safe for concurrent use.
type Store interface {
	// Create writes an object whole or not at all, and never over another: it fails with [ErrExists].
	Create(ctx context.Context, name string, content []byte) error
	// Read gives the whole object, [ErrMissing] when there is none.
	Read(ctx context.Context, name string) ([]byte, error)
	// List gives the names of all objects that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
}

// Errors of a [Store], to test for with errors.Is.
var (
	ErrExists  = errors.New("object exists")
	ErrMissing = errors.New("no such object")
)
