// Package bucket opens object storage by URL for package events/archive, over
// gocloud.dev/blob.
//
//	file:///var/lib/journeyman/archive     a folder, made when it is missing
//	mem://                                 the process's memory, for tests
//	s3://name?region=eu-central-1          Amazon S3 and what speaks its protocol
//
// All take ?prefix=folder/. The S3 driver is large and not part of this
// package: a program that wants it imports gocloud.dev/blob/s3blob itself, as
// the command journeyman does. Other drivers of gocloud.dev work the same way.
// Write-once storage (S3 Object Lock) is set on the bucket, not here.
package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"sort"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // file://
	_ "gocloud.dev/blob/memblob"  // mem://
	"gocloud.dev/gcerrors"

	"github.com/vitrip/journeyman/events/archive"
)

// Bucket is a [archive.Store]. Close it when it is not needed any more.
type Bucket struct{ b *blob.Bucket }

// Open opens the bucket. It does not look whether it can be written to.
func Open(ctx context.Context, address string) (*Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("bucket %q: want a URL such as file:///var/archive or s3://name?region=…", address)
	}
	if u.Scheme == "file" {
		q := u.Query()
		for name, value := range map[string]string{
			"create_dir": "true", "metadata": "skip",
			"no_tmp_dir": "true", // the temporary file stands beside the object: a rename across disks fails
		} {
			if !q.Has(name) {
				q.Set(name, value)
			}
		}
		u.RawQuery = q.Encode()
	}
	b, err := blob.OpenBucket(ctx, u.String())
	if err != nil {
		return nil, fmt.Errorf("bucket %s://%s%s: %w", u.Scheme, u.Host, u.Path, err)
	}
	return &Bucket{b}, nil
}

// Close closes the bucket.
func (b *Bucket) Close() error { return b.b.Close() }

// Create writes an object as [archive.Store] says.
func (b *Bucket) Create(ctx context.Context, name string, content []byte) error {
	err := b.b.WriteAll(ctx, name, content, &blob.WriterOptions{IfNotExist: true})
	switch {
	case err == nil:
		return nil
	case gcerrors.Code(err) == gcerrors.FailedPrecondition:
		return fmt.Errorf("%s: %w", name, archive.ErrExists)
	}
	return fmt.Errorf("write %s: %w", name, err)
}

// Read gives the whole object.
func (b *Bucket) Read(ctx context.Context, name string) ([]byte, error) {
	content, err := b.b.ReadAll(ctx, name)
	switch {
	case err == nil:
		return content, nil
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, fmt.Errorf("%s: %w", name, archive.ErrMissing)
	}
	return nil, fmt.Errorf("read %s: %w", name, err)
}

// List gives the names that begin with prefix, sorted. In a folder, what others are just writing is not among them.
func (b *Bucket) List(ctx context.Context, prefix string) ([]string, error) {
	for n := 1; ; n++ {
		names, err := b.list(ctx, prefix)
		if err == nil || n == mostLists || gcerrors.Code(err) != gcerrors.NotFound {
			return names, err
		}
	}
}

// mostLists bounds how often a listing begins anew: of a folder it fails when a file goes just then, as unfinished ones do.
const mostLists = 10

// unfinished is how the driver of folders calls a file until it is whole.
var unfinished = regexp.MustCompile(`\.[0-9a-f]+\.tmp$`) //nolint:gochecknoglobals // compiled once

func (b *Bucket) list(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	for it := b.b.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			sort.Strings(names)
			return names, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		if !unfinished.MatchString(o.Key) {
			names = append(names, o.Key)
		}
	}
}

// Delete removes an object. One that is not there is removed. Nothing of package events/archive deletes; it is for programs that
// keep objects of a limited life in the same kind of storage.
func (b *Bucket) Delete(ctx context.Context, name string) error {
	if err := b.b.Delete(ctx, name); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}
