package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Names in a folder of keys.
const (
	keySuffix   = ".key"    // ID.key holds a key as base64 of 32 bytes
	currentName = "current" // holds the id of the current key
)

// look is how often a folder is read again at most.
const look = time.Second

// Dir is a folder of key files. It reads the folder again when asked for a key
// it does not know, and for the current key once a second, so that a rotation
// needs no restart. Safe for concurrent use.
type Dir struct {
	path string

	mu      sync.Mutex
	keys    map[string][]byte
	current string
	read    time.Time
	failed  error
}

// OpenDir reads a folder of keys and refuses all that is wrong with it at once:
// no current key, a key of the wrong length, a file that others may read.
func OpenDir(path string) (*Dir, error) {
	d := &Dir{path: path}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(); err != nil {
		return nil, err
	}
	return d, nil
}

// Current gives the id of the current key. A folder that cannot be read (any more, or for a moment) leaves it as it was, see [Dir.Failed].
func (d *Dir) Current() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.read) >= look {
		d.failed = d.load()
		d.read = time.Now()
	}
	return d.current, nil
}

// Failed gives why the folder could not be read when it was last looked at; until that is mended its last good state is used.
func (d *Dir) Failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Key gives a key.
func (d *Dir) Key(id string) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k, ok := d.keys[id]
	if !ok && time.Since(d.read) >= look {
		if err := d.load(); err != nil {
			return nil, err
		}
		k, ok = d.keys[id]
	}
	if !ok {
		return nil, fmt.Errorf("not in %s: %w", d.path, ErrNoKey)
	}
	return k, nil
}

// IDs lists the ids of the keys, sorted.
func (d *Dir) IDs() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.keys))
}

// load replaces what is known of the folder, or nothing when something is wrong with it.
func (d *Dir) load() error {
	list, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	keys := map[string][]byte{}
	var errs []error
	for _, f := range list {
		id, is := strings.CutSuffix(f.Name(), keySuffix)
		if !is {
			continue
		}
		k, err := readKey(filepath.Join(d.path, f.Name()))
		if err == nil {
			err = CheckID(id)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("key %s: %w", id, err))
			continue
		}
		keys[id] = k
	}
	raw, err := os.ReadFile(filepath.Join(d.path, currentName))
	current := string(bytes.TrimSpace(raw))
	if err != nil {
		errs = append(errs, err)
	} else if keys[current] == nil {
		errs = append(errs, fmt.Errorf("file %s names key %q, which is not there", currentName, current))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keys in %s: %w", d.path, err)
	}
	d.keys, d.current, d.read = keys, current, time.Now()
	return nil
}

func readKey(path string) ([]byte, error) {
	info, err := os.Stat(path) // follows links: secrets are often mounted as such
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("mode %v, want nothing for others: chmod o= %s", info.Mode().Perm(), path)
	}
	raw, err := os.ReadFile(path) //nolint:gosec // a folder the user points at
	if err != nil {
		return nil, err
	}
	k, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(raw)))
	if err != nil || len(k) != KeySize {
		return nil, fmt.Errorf("is not base64 of %d bytes", KeySize)
	}
	return k, nil
}

// Generate adds a new random key to a folder, which it makes when it is not
// there, and makes it the current one. An id that is taken is refused.
func Generate(path, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	var k [KeySize]byte
	_, _ = rand.Read(k[:]) // never fails
	name := filepath.Join(path, id+keySuffix)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400) //nolint:gosec // a folder the user points at
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("key %q is there already: %w", id, err)
	}
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(k[:]) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	return Use(path, id)
}

// Use makes a key of a folder the current one.
func Use(path, id string) error {
	if _, err := readKey(filepath.Join(path, id+keySuffix)); err != nil {
		return fmt.Errorf("key %q: %w", id, err)
	}
	tmp, err := os.CreateTemp(path, ".current*")
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	_, err = tmp.WriteString(id + "\n")
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return errors.Join(fmt.Errorf("keys: %w", err), os.Remove(tmp.Name()))
	}
	if err := os.Rename(tmp.Name(), filepath.Join(path, currentName)); err != nil {
		return errors.Join(fmt.Errorf("keys: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}
