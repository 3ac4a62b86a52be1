package journal

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// chunk is how much of a snapshot one frame holds, in bytes.
const chunk = 1 << 20

// endMark is the last frame of a snapshot.
const endMark = "end of snapshot"

// Start begins generation 1 of a fresh directory with the state that write writes.
func (j *Journal) Start(write func(io.Writer) error) (size int64, err error) {
	const first = 1
	f, err := create(j.path(first, "log"), header(logMagic, first))
	if err != nil {
		return 0, fmt.Errorf("command log: %w", err)
	}
	if size, err = j.writeSnapshot(first, write); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	j.base, j.fresh = first, false
	j.begin(f, first, headerSize)
	return size, nil
}

// Switch begins the log of the next generation: what is appended from now on
// goes there. It does not wait. The caller takes the state at this very place and gives it to [Journal.Snapshot].
func (j *Journal) Switch() (generation uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.err != nil:
		return 0, j.err
	case j.closed:
		return 0, errors.New("snapshot: the command log is closed")
	case j.written != j.last:
		return 0, fmt.Errorf("snapshot: log %d has not begun yet", j.last)
	}
	j.last++
	j.cut, j.size = len(j.queue), headerSize
	j.changed.Broadcast()
	return j.last, nil
}

// Snapshot writes the state at the begin of the generation's log, and returns its
// size in bytes. It waits for the disk while records go on being appended. When it returns without an
// error the files of earlier generations are gone; after an error they and the logs since are the state, as before.
func (j *Journal) Snapshot(generation uint64, write func(io.Writer) error) (size int64, err error) {
	j.mu.Lock()
	for j.written < generation && j.err == nil {
		j.changed.Wait()
	}
	err = j.err
	j.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if size, err = j.writeSnapshot(generation, write); err != nil {
		return 0, err
	}
	before := j.base
	j.base = generation
	for g := before; g < generation; g++ {
		if err := remove(j.path(g, "log"), j.path(g, "snapshot")); err != nil {
			return size, err
		}
	}
	return size, nil
}

// writeSnapshot makes the snapshot of a generation count, or leaves everything as it was.
func (j *Journal) writeSnapshot(generation uint64, write func(io.Writer) error) (int64, error) {
	tmp := j.path(generation, "tmp")
	f, err := create(tmp, header(snapshotMagic, generation))
	if err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	w := &framer{to: f}
	if err = write(w); err == nil {
		err = w.end()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = errors.Join(os.Rename(tmp, j.path(generation, "snapshot")), syncDir(j.dir))
	}
	if err != nil {
		return 0, fmt.Errorf("snapshot: %w", err)
	}
	return w.size, nil
}

// framer cuts what is written into frames.
type framer struct {
	to    io.Writer
	rest  []byte
	frame []byte
	size  int64
}

// Write implements io.Writer.
func (w *framer) Write(p []byte) (int, error) {
	n := len(p)
	w.size += int64(n)
	for len(p) > 0 {
		k := min(chunk-len(w.rest), len(p))
		w.rest = append(w.rest, p[:k]...)
		p = p[k:]
		if len(w.rest) == chunk {
			if err := w.flush(w.rest); err != nil {
				return 0, err
			}
			w.rest = w.rest[:0]
		}
	}
	return n, nil
}

func (w *framer) flush(payload []byte) error {
	w.frame = appendFrame(w.frame[:0], payload)
	_, err := w.to.Write(w.frame)
	return err
}

// end writes what is left and the mark that the snapshot is whole.
func (w *framer) end() error {
	if len(w.rest) > 0 {
		if err := w.flush(w.rest); err != nil {
			return err
		}
	}
	return w.flush([]byte(endMark))
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

// newest finds the highest snapshot, whose generation is base, and the last of
// the logs that follow it, and removes what an interrupted process left. base is 0 when the directory holds no state.
func newest(dir string) (base, last uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, 0, fmt.Errorf("data directory: %w", err)
	}
	logs, files := map[uint64]string{}, map[string]uint64{}
	for _, e := range entries {
		m := fileName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		n, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("data directory: %s: %w", e.Name(), err)
		}
		files[e.Name()] = n
		if m[2] == "snapshot" {
			base = max(base, n)
		}
		if m[2] == "log" {
			logs[n] = filepath.Join(dir, e.Name())
		}
	}
	last = base
	for _, n := range slices.Sorted(maps.Keys(logs)) {
		if n <= base {
			continue
		}
		info, err := os.Stat(logs[n])
		if err != nil {
			return 0, 0, fmt.Errorf("data directory: %w", err)
		}
		switch {
		case info.Size() <= headerSize: // an interrupted switch leaves an empty one
		case base == 0:
			return 0, 0, fmt.Errorf("data directory: %s has records and its snapshot is not there: restore it, or remove the directory to begin anew", logs[n])
		case n != last+1:
			return 0, 0, fmt.Errorf("data directory: %s has records and log %d before it is not there: restore it", logs[n], last+1)
		default:
			last = n
		}
	}
	for name, n := range files {
		if snapshot := filepath.Ext(name) == ".snapshot"; n < base || n > last || (n != base && snapshot) || filepath.Ext(name) == ".tmp" {
			if err := remove(filepath.Join(dir, name)); err != nil {
				return 0, 0, err
			}
		}
	}
	return base, last, nil
}
