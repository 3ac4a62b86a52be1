package sagas

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Archive is the object store that records go to when their retention ends. Safe for concurrent use. An object has one JSON line
// for each record, its contents as they rested: encrypted where [Config.Keys] were given. Keep a copy of a key as long as objects
// that were written under it.
type Archive interface {
	// Put stores content under name, durably when it returns nil. Putting the same again changes nothing; names are made
	// from the content, so one name never gets two contents.
	Put(ctx context.Context, name string, content []byte) error
}

// DirArchive is an [Archive] in a directory: for one machine, or for a mounted object store. The directory must exist.
type DirArchive struct{ dir string }

// NewDirArchive opens an archive in an existing directory.
func NewDirArchive(dir string) (*DirArchive, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("archive: %s is not a directory", dir)
	}
	return &DirArchive{dir: dir}, nil
}

// Put writes a file of its own and renames it into place, so that a crash leaves no half object.
func (a *DirArchive) Put(ctx context.Context, name string, content []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("archive: name %q leads out of the archive", name)
	}
	path := filepath.Join(a.dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("archive: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	if err := write(path, content); err != nil {
		return fmt.Errorf("archive %s: %w", name, err)
	}
	return nil
}

func write(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // renamed by then
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
