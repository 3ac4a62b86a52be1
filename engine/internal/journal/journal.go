// Package journal keeps a state on disk as a snapshot and the log of what
// happened since.
//
// A directory holds generation N: N.snapshot and N.log, both versioned and with
// checksums. [Journal.Switch] begins N+1.log, where everything goes from then
// on, and costs nothing; [Journal.Snapshot] writes N+1.snapshot, the state at
// that place, while records go on coming. Its rename is the moment it counts, and the files
// of N go afterwards. Until then N.snapshot, N.log and N+1.log together are the state.
//
// Durability: [Journal.Append] only queues. One goroutine writes what is
// queued and calls fsync once for all of it; [Journal.Wait] returns when that
// is done, so many callers share one fsync and nobody is answered before it.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Journal is an open directory. Append, Wait and Size are safe for concurrent
// use; Start, Replay, Switch, Snapshot and Close are the owner's, Snapshot from
// any goroutine but one at a time. Close it to stop its goroutine.
type Journal struct {
	dir   string
	lock  *os.File
	base  uint64 // generation of the snapshot that counts; only changed by Start and Snapshot
	fresh bool   // there was no state yet

	mu      sync.Mutex
	changed *sync.Cond
	last    uint64   // generation of the log that Append writes to
	written uint64   // generation of file
	file    *os.File // nil before Replay or Start
	queue   []byte
	cut     int   // while written < last: how much of queue still goes to file
	queued  int64 // bytes ever queued
	synced  int64 // of those, bytes on disk
	size    int64 // bytes of the current log, queue included
	err     error // sticky: after it nothing is written
	closed  bool
	stopped chan struct{} // nil while no writer runs
}

// Open takes the directory, made when it does not exist. Another process that
// has it open is an error that names it.
func Open(dir string) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, lock: lock}
	j.changed = sync.NewCond(&j.mu)
	if j.base, j.last, err = newest(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j.fresh = j.base == 0
	return j, nil
}

// Fresh reports that the directory holds no state: the first call must be Start. Otherwise it is Replay.
func (j *Journal) Fresh() bool { return j.fresh }

func (j *Journal) path(generation uint64, kind string) string {
	return filepath.Join(j.dir, fmt.Sprintf("%08d.%s", generation, kind))
}

// Replay reads the snapshot and then every record of the logs. A torn tail, the
// unfinished last write of a process that was killed, is cut off; damage anywhere else is a [CorruptError].
func (j *Journal) Replay(snapshot, record func(data []byte) error) error {
	state, err := readSnapshot(j.path(j.base, "snapshot"), j.base)
	if err != nil {
		return err
	}
	if err := snapshot(state); err != nil {
		return fmt.Errorf("%s: %w", j.path(j.base, "snapshot"), err)
	}
	var end int
	for g := j.base; g <= j.last; g++ {
		if end, err = j.replayLog(g, record); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(j.path(j.last, "log"), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("command log: %w", err)
	}
	if err := f.Truncate(int64(end)); err != nil {
		return errors.Join(fmt.Errorf("command log: cut the torn tail: %w", err), f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("command log: %w", err), f.Close())
	}
	j.begin(f, j.last, int64(end))
	return nil
}

// replayLog reads one log and returns where its sound part ends; only the last one may have a torn tail.
func (j *Journal) replayLog(generation uint64, record func(data []byte) error) (int, error) {
	name := j.path(generation, "log")
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, fmt.Errorf("command log: %w", err)
	}
	if err := checkHeader(name, logMagic, generation, b); err != nil {
		return 0, err
	}
	end, err := frames(name, b, record)
	if err == nil && end != len(b) && generation != j.last {
		err = &CorruptError{name, int64(end), "no sound record there, but a log that follows"}
	}
	return end, err
}

// begin lets the writer work on the log f.
func (j *Journal) begin(f *os.File, generation uint64, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file, j.written, j.last, j.size = f, generation, generation, size
	j.stopped = make(chan struct{})
	go j.write(j.stopped)
}

// Append queues a record and returns its place, for Wait.
func (j *Journal) Append(record []byte) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.err != nil:
	case j.closed:
		j.err = errors.New("command log: closed")
	case len(record) == 0 || len(record) > maxFrame:
		j.err = fmt.Errorf("command log: record of %d bytes, want 1 to %d", len(record), maxFrame)
	default:
		before := len(j.queue)
		j.queue = appendFrame(j.queue, record)
		n := int64(len(j.queue) - before)
		j.queued += n
		j.size += n
	}
	j.changed.Broadcast()
	return j.queued
}

// Place is the place of the last record.
func (j *Journal) Place() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.queued
}

// Size is the log's length in bytes, what is queued included.
func (j *Journal) Size() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// Wait returns when everything up to place is on disk; an error means that it
// may not be, and that nothing is written any more.
func (j *Journal) Wait(place int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.synced < place && j.err == nil {
		j.changed.Wait()
	}
	return j.err
}

// Err is why nothing is written any more; nil while all is well.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// write is the writer's goroutine.
func (j *Journal) write(stopped chan struct{}) {
	defer close(stopped)
	var batch []byte
	j.mu.Lock()
	defer j.mu.Unlock()
	for {
		for len(j.queue) == 0 && j.written == j.last && !j.closed {
			j.changed.Wait()
		}
		if j.err != nil || (len(j.queue) == 0 && j.written == j.last) {
			return
		}
		// Up to the place where the next log begins, when there is one.
		next := uint64(0)
		if j.written < j.last {
			next = j.written + 1
			rest := append(batch[:0], j.queue[j.cut:]...)
			batch, j.queue, j.cut = j.queue[:j.cut], rest, 0
		} else {
			batch, j.queue = j.queue, batch[:0]
		}
		file := j.file
		j.mu.Unlock()
		file, err := j.flush(file, batch, next)
		j.mu.Lock()
		j.file = file
		if err != nil {
			j.err = fmt.Errorf("command log: %w", err)
		} else {
			j.synced += int64(len(batch))
			j.written = max(j.written, next)
		}
		j.changed.Broadcast()
	}
}

// flush writes batch to file and, unless next is 0, returns the log of generation next in its place.
func (j *Journal) flush(file *os.File, batch []byte, next uint64) (*os.File, error) {
	if len(batch) > 0 {
		if _, err := file.Write(batch); err != nil {
			return file, err
		}
		if err := file.Sync(); err != nil {
			return file, err
		}
	}
	if next == 0 {
		return file, nil
	}
	f, err := create(j.path(next, "log"), header(logMagic, next))
	if err != nil {
		return file, err
	}
	return f, errors.Join(syncDir(j.dir), file.Close())
}

// Close writes what is queued and gives the directory back.
func (j *Journal) Close() error {
	j.mu.Lock()
	already := j.closed
	j.closed = true
	j.changed.Broadcast()
	stopped, err := j.stopped, j.err
	j.mu.Unlock()
	if already {
		return nil
	}
	if stopped != nil {
		<-stopped
		err = errors.Join(j.Err(), j.file.Close())
	}
	return errors.Join(err, j.lock.Close())
}
