// Package broker runs one core: it serialises commands behind a lock, moves
// the engine's clock, and hands jobs to the polls and streams that wait.
package broker

import (
	"sync"
	"time"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// stepsPerHold is how many steps run before the lock is given to others.
const stepsPerHold = 10_000

// Broker owns a [core.Core]. All methods are safe for concurrent use. Close it
// to stop its goroutine.
type Broker struct {
	mu      sync.Mutex
	core    *core.Core
	offset  time.Duration // engine clock minus real clock
	closed  bool
	polls   map[string][]*poll
	streams map[string]*streamGroup
	awaits  map[int64][]*Await
	durable *durable // nil: memory only

	wake chan struct{}
	done chan struct{}
	wg   sync.WaitGroup
}

// New starts a broker over an empty state whose keys begin at a time-derived offset.
func New(keyOffset int64, seed [32]byte) *Broker {
	b := newBroker(core.NewSeeded(time.Now().UTC().Round(0), keyOffset, seed))
	b.wg.Go(b.drive)
	return b
}

func newBroker(c *core.Core) *Broker {
	return &Broker{
		core:  c,
		polls: map[string][]*poll{}, streams: map[string]*streamGroup{}, awaits: map[int64][]*Await{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// Close ends waiting polls and streams and stops the clock; what is kept on
// disk is written. It does not wait for callers: they are told that the log is closed.
func (b *Broker) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	close(b.done)
	b.mu.Unlock()
	b.wg.Wait()
	if b.durable == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.durable.journal.Close()
}

// Done is closed when the broker closes.
func (b *Broker) Done() <-chan struct{} { return b.done }

// Do runs one command: timers that are due fire first, then fn, then what
// follows from it. With a state on disk it returns when all of that is there.
func (b *Broker) Do(fn func(c *core.Core) error) error {
	b.mu.Lock()
	if err := b.broken(); err != nil {
		b.mu.Unlock()
		return err
	}
	b.catchUp(b.now())
	err := fn(b.core)
	b.settle()
	if lost := b.unlock(); lost != nil {
		return lost
	}
	return err
}

// View runs fn for reading, after due timers have fired. It shows nothing that
// is not on disk yet; once the log is broken it shows what is in memory.
func (b *Broker) View(fn func(c *core.Core)) {
	b.mu.Lock()
	if b.broken() == nil {
		b.catchUp(b.now())
	}
	fn(b.core)
	_ = b.unlock() //nolint:errcheck // commands are refused with it; reading helps to find out why
}

// now has no monotonic part: a time read back from disk has none either.
func (b *Broker) now() time.Time { return time.Now().UTC().Add(b.offset).Round(0) }

// catchUp fires what is due until now, each at its own time.
func (b *Broker) catchUp(now time.Time) {
	for b.core.FireNext(now) {
		b.settle()
	}
}

// settle runs queued steps and delivers what they produced. A model that never
// rests is left to the driver.
func (b *Broker) settle() {
	b.core.Run(stepsPerHold)
	b.deliver()
	b.nudge()
}

func (b *Broker) nudge() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// drive sleeps until the next timer is due, fires it, and runs steps that are left over.
func (b *Broker) drive() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		b.mu.Lock()
		if b.broken() != nil {
			b.mu.Unlock()
			<-b.done // commands are refused with the reason
			return
		}
		b.catchUp(b.now())
		if !b.core.Idle() {
			b.core.Run(stepsPerHold)
			b.deliver()
		}
		wait := time.Hour
		if !b.core.Idle() {
			wait = 0
		} else if due, ok := b.core.NextDue(); ok {
			wait = max(0, min(wait, due.Sub(b.now())))
		}
		b.mu.Unlock()
		t.Reset(wait)
		select {
		case <-b.done:
			return
		case <-b.wake:
		case <-t.C:
		}
	}
}

// Now is the engine's time.
func (b *Broker) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now()
}

// Advance moves the engine's clock forward and fires what becomes due, in order.
func (b *Broker) Advance(d time.Duration) error {
	b.mu.Lock()
	b.setOffset(b.offset + d)
	b.catchUp(b.now())
	b.nudge()
	return b.unlock()
}

// SetClock moves the engine's clock to t. Going back fires nothing and delays timers.
func (b *Broker) SetClock(t time.Time) error {
	b.mu.Lock()
	b.setOffset(time.Until(t))
	b.catchUp(b.now())
	b.nudge()
	return b.unlock()
}

// ResetClock returns to real time.
func (b *Broker) ResetClock() error {
	b.mu.Lock()
	b.setOffset(0)
	b.nudge()
	return b.unlock()
}
