package sagas

import (
	"sync"
	"time"
)

// retryAfter is the poll cadence (spec Z7).
var retryAfter = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 60 * time.Second} //nolint:gochecknoglobals // constant

// minPollGap: polls of one operation that come faster are refused.
const minPollGap = time.Second

// maxPollBook bounds the memory of the book. What is forgotten loses counts that were not flushed, no more.
const maxPollBook = 100_000

// pollBook holds, in this process, the counts of polls that are not in the store yet, and which operations are being made
// just now. The cadence itself is in the store: it holds across processes.
type pollBook struct {
	mu    sync.Mutex
	ops   map[string]*pollState
	order []string // insertion order, for forgetting
}

type pollState struct {
	creating   int       // requests that are making the record just now
	created    time.Time // when the creating request was answered; requests that arrived before are no polls
	polls      int64     // not yet written to the store
	violations int64
}

func newPollBook() *pollBook { return &pollBook{ops: map[string]*pollState{}} }

func (b *pollBook) state(id string) *pollState {
	st := b.ops[id]
	if st == nil {
		if len(b.order) >= maxPollBook {
			delete(b.ops, b.order[0])
			b.order = b.order[1:]
		}
		st = &pollState{}
		b.ops[id] = st
		b.order = append(b.order, id)
	}
	return st
}

// creating notes that a request found no record and is about to make one. Call done when its answer is out; calling it again does nothing.
func (b *pollBook) creating(id string) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.state(id)
	st.creating++
	var once sync.Once
	return func() {
		once.Do(func() { b.created(st) })
	}
}

// created ends what creating began.
func (b *pollBook) created(st *pollState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st.creating--
	st.created = time.Now()
}

// duringCreation says whether a request that arrived then came before the creating request was answered.
func (b *pollBook) duringCreation(id string, arrived time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.ops[id]
	return st != nil && (st.creating > 0 || arrived.Before(st.created))
}

func (b *pollBook) count(id string, answered, violation bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.state(id)
	if answered {
		st.polls++
	}
	if violation {
		st.violations++
	}
}

// take gives the counts since the last time and forgets them.
func (b *pollBook) take() (ids []string, polls, violations []int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, st := range b.ops {
		if st.polls > 0 || st.violations > 0 {
			ids, polls, violations = append(ids, id), append(polls, st.polls), append(violations, st.violations)
			st.polls, st.violations = 0, 0
		}
	}
	return ids, polls, violations
}

// forget drops an operation that has ended; its counts must have been taken.
func (b *pollBook) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if st := b.ops[id]; st != nil && st.polls == 0 && st.violations == 0 {
		delete(b.ops, id)
	}
}
