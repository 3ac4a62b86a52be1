package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
	"github.com/vitrip/journeyman/engine/internal/journal"
)

// snapshotAfter is the shortest log, in bytes, that a snapshot replaces. The log
// also grows to twice the last snapshot, so that writing snapshots stays a fraction of all writing.
const snapshotAfter = 16 << 20

// durable ties a broker to its directory. Its fields are guarded by the broker's lock.
type durable struct {
	journal     *journal.Journal
	incarnation string
	least       int64 // a log shorter than this is not replaced
	last        int64 // bytes of the last snapshot
	writing     bool  // a snapshot is being written
	failed      error // a record could not be encoded, or a snapshot not be written
}

// meta is what a snapshot holds besides the core.
type meta struct {
	Incarnation string        `json:"incarnation"`
	Offset      time.Duration `json:"clockOffset"`
}

// Open starts a broker over the state in dir; an empty or missing directory
// gets a new state with the given key offset, incarnation and seed of random numbers.
// An error names the file; nothing is changed then, apart from a torn tail that was cut off.
func Open(dir string, keyOffset int64, incarnation string, seed [32]byte) (*Broker, error) {
	return open(dir, keyOffset, incarnation, seed, snapshotAfter)
}

func open(dir string, keyOffset int64, incarnation string, seed [32]byte, least int64) (*Broker, error) {
	j, err := journal.Open(dir)
	if err != nil {
		return nil, err
	}
	b := newBroker(nil)
	b.durable = &durable{journal: j, incarnation: incarnation, least: least}
	if j.Fresh() {
		b.core = core.NewSeeded(b.now(), keyOffset, seed)
		err = b.firstSnapshot()
	} else {
		err = j.Replay(b.restore, b.replay)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	b.core.RecordTo(b.record)
	b.wg.Go(b.drive)
	return b, nil
}

// Incarnation names the state that is kept on disk; empty when none is kept.
func (b *Broker) Incarnation() string {
	if b.durable == nil {
		return ""
	}
	return b.durable.incarnation
}

func (b *Broker) restore(data []byte) error {
	head, state, found := bytes.Cut(data, []byte("\n"))
	if !found {
		return errors.New("the snapshot has no head line")
	}
	var m meta
	if err := json.Unmarshal(head, &m); err != nil {
		return fmt.Errorf("head line: %w", err)
	}
	c, err := core.Restore(state)
	if err != nil {
		return err
	}
	b.core, b.offset, b.durable.incarnation, b.durable.last = c, m.Offset, m.Incarnation, int64(len(data))
	return nil
}

func (b *Broker) replay(data []byte) error {
	var r core.Record
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	if r.Op == core.OpClock {
		b.offset = r.D
		return nil
	}
	return b.core.Apply(r)
}

// record writes one call of the core to the log.
func (b *Broker) record(r core.Record) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // values keep their bytes
	if err := enc.Encode(r); err != nil {
		b.durable.failed = fmt.Errorf("command log: %w", err)
		return
	}
	b.durable.journal.Append(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

// setOffset moves the clock, on disk too.
func (b *Broker) setOffset(d time.Duration) {
	b.offset = d
	if b.durable != nil {
		b.record(core.Record{Op: core.OpClock, D: d})
	}
}

// broken is why no command is taken any more; nil while all is well.
func (b *Broker) broken() error {
	if b.durable == nil {
		return nil
	}
	if b.durable.failed != nil {
		return b.durable.failed
	}
	return b.durable.journal.Err()
}

// unlock ends a locked section and returns when what was done in it is on disk.
func (b *Broker) unlock() error {
	d := b.durable
	if d == nil {
		b.mu.Unlock()
		return nil
	}
	if d.failed == nil && !d.writing && !b.closed && b.core.Idle() && d.journal.Size() > max(d.least, 2*d.last) {
		if err := b.snapshot(); err != nil {
			d.failed = err
		}
	}
	place, failed := d.journal.Place(), d.failed
	b.mu.Unlock()
	return errors.Join(failed, d.journal.Wait(place))
}

// snapshot begins to replace the log by the state. Under the lock the state is
// only captured; it is written while the engine goes on.
func (b *Broker) snapshot() error {
	d := b.durable
	write, err := b.capture()
	if err != nil {
		return err
	}
	generation, err := d.journal.Switch()
	if err != nil {
		return err
	}
	d.writing = true
	b.wg.Go(func() {
		size, err := d.journal.Snapshot(generation, write)
		b.mu.Lock()
		defer b.mu.Unlock()
		if d.writing = false; err != nil {
			d.failed = err
			return
		}
		d.last = size
	})
	return nil
}

// firstSnapshot is that of a new state.
func (b *Broker) firstSnapshot() error {
	write, err := b.capture()
	if err != nil {
		return err
	}
	b.durable.last, err = b.durable.journal.Start(write)
	return err
}

// capture takes the state and returns what writes it.
func (b *Broker) capture() (func(io.Writer) error, error) {
	state, err := b.core.Capture()
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(meta{b.durable.incarnation, b.offset})
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return func(w io.Writer) error {
		if _, err := w.Write(append(head, '\n')); err != nil {
			return err
		}
		_, err := state.WriteTo(w)
		return err
	}, nil
}

// Settled returns when everything that has happened is on disk.
func (b *Broker) Settled() error {
	if b.durable == nil {
		return nil
	}
	return b.durable.journal.Wait(b.durable.journal.Place())
}
