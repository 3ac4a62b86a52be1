package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// chunk is how much of a snapshot one frame holds.
const chunk = 8 << 20

// endMark is the last frame of a snapshot.
const endMark = "end of snapshot"

// Rotate begins a new generation with the given snapshot: what is queued is
// written first, what comes afterwards goes to the new log. On an error the journal writes nothing any more.
func (j *Journal) Rotate(state []byte) error {
	if err := j.Wait(j.Place()); err != nil {
		return err
	}
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return errors.New("snapshot: the command log is closed")
	}
	err := j.rotate(state)
	if err != nil {
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
	}
	return err
}

func (j *Journal) rotate(state []byte) error {
	next := j.generation + 1
	f, err := create(j.path(next, "log"), header(logMagic, next))
	if err != nil {
		return fmt.Errorf("command log: %w", err)
	}
	body := header(snapshotMagic, next)
	for rest := state; len(rest) > 0; {
		n := min(chunk, len(rest))
		body = appendFrame(body, rest[:n])
		rest = rest[n:]
	}
	body = appendFrame(body, []byte(endMark))
	tmp := j.path(next, "tmp")
	s, err := create(tmp, body)
	if err == nil {
		err = errors.Join(s.Close(), os.Rename(tmp, j.path(next, "snapshot")), syncDir(j.dir))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), f.Close())
	}
	old := j.file
	before := j.generation
	j.generation, j.fresh = next, false
	j.begin(f, headerSize)
	if old != nil {
		if err := old.Close(); err != nil {
			return fmt.Errorf("command log: %w", err)
		}
		return remove(j.path(before, "log"), j.path(before, "snapshot"))
	}
	return nil
}

// create writes a new file, also over one that an earlier attempt left, and syncs it.
func create(name string, content []byte) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func remove(names ...string) error {
	for _, n := range names {
		if err := os.Remove(n); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove old state: %w", err)
		}
	}
	return nil
}

func readSnapshot(name string, generation uint64) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if err := checkHeader(name, snapshotMagic, generation, b); err != nil {
		return nil, err
	}
	var state, last []byte
	end, err := frames(name, b, func(p []byte) error {
		state = append(state, last...)
		last = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	if end != len(b) || string(last) != endMark {
		return nil, &CorruptError{name, int64(end), "a snapshot is whole or not there, this one ends too early"}
	}
	return state, nil
}

var fileName = regexp.MustCompile(`^(\d{8,})\.(snapshot|log|tmp)$`)

// newest finds the generation that counts, the highest with a snapshot, and
// removes what an interrupted Rotate left. 0: the directory holds no state.
func newest(dir string) (uint64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	var best uint64
	files := map[string]uint64{}
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("data directory: %s: %w", e.Name(), err)
		}
		files[e.Name()] = n
		if m[2] == "snapshot" {
			best = max(best, n)
		}
	}
	for name, n := range files {
		if n <= best || filepath.Ext(name) != ".log" {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return 0, fmt.Errorf("data directory: %w", err)
		}
		if info.Size() > headerSize { // an interrupted Rotate leaves an empty one
			return 0, fmt.Errorf("data directory: %s has records and its snapshot is not there: restore it, or remove the directory to begin anew", filepath.Join(dir, name))
		}
	}
	for name, n := range files {
		if n != best {
			if err := remove(filepath.Join(dir, name)); err != nil {
				return 0, err
			}
		}
	}
	return best, nil
}
