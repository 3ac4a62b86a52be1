// Package journal keeps a state on disk as a snapshot and the log of what
// happened since.
//
// A directory holds one generation N: N.snapshot and N.log, both versioned and
// with checksums. [Journal.Rotate] begins generation N+1 with a new snapshot and an empty log; the
// snapshot's rename is the moment it counts, and the old files go afterwards.
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
// use; Replay, Rotate and Close are the owner's. Close it to stop its goroutine.
type Journal struct {
	dir        string
	lock       *os.File
	generation uint64
	fresh      bool // there was no state yet

	mu      sync.Mutex
	changed *sync.Cond
	file    *os.File // log of the generation; nil before Replay or the first Rotate
	queue   []byte
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
	if j.generation, err = newest(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j.fresh = j.generation == 0
	return j, nil
}

// Fresh reports that the directory holds no state: the first call must be Rotate. Otherwise it is Replay.
func (j *Journal) Fresh() bool { return j.fresh }

func (j *Journal) path(generation uint64, kind string) string {
	return filepath.Join(j.dir, fmt.Sprintf("%08d.%s", generation, kind))
}

// Replay reads the snapshot and then every record of the log. A torn tail, the
// unfinished last write of a process that was killed, is cut off; damage anywhere else is a [CorruptError].
func (j *Journal) Replay(snapshot, record func(data []byte) error) error {
	state, err := readSnapshot(j.path(j.generation, "snapshot"), j.generation)
	if err != nil {
		return err
	}
	if err := snapshot(state); err != nil {
		return fmt.Errorf("%s: %w", j.path(j.generation, "snapshot"), err)
	}
	name := j.path(j.generation, "log")
	b, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("command log: %w", err)
	}
	if err := checkHeader(name, logMagic, j.generation, b); err != nil {
		return err
	}
	end, err := frames(name, b, record)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("command log: %w", err)
	}
	if err := f.Truncate(int64(end)); err != nil {
		return errors.Join(fmt.Errorf("command log: cut the torn tail: %w", err), f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(fmt.Errorf("command log: %w", err), f.Close())
	}
	j.begin(f, int64(end))
	return nil
}

func (j *Journal) begin(f *os.File, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.file, j.size = f, size
	if j.stopped == nil {
		j.stopped = make(chan struct{})
		go j.write(j.stopped)
	}
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
		for len(j.queue) == 0 && !j.closed {
			j.changed.Wait()
		}
		if len(j.queue) == 0 || j.err != nil {
			return
		}
		batch, j.queue = j.queue, batch[:0]
		file := j.file
		j.mu.Unlock()
		_, err := file.Write(batch)
		if err == nil {
			err = file.Sync()
		}
		j.mu.Lock()
		if err != nil {
			j.err = fmt.Errorf("command log: %w", err)
		} else {
			j.synced += int64(len(batch))
		}
		j.changed.Broadcast()
	}
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
