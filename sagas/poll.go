package sagas

import (
	"sync"
	"time"
)

// retryAfter is the poll cadence (spec Z7).
var retryAfter = []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 60 * time.Second} //nolint:gochecknoglobals // constant

// minPollGap: polls of one operation that come faster are refused.
const minPollGap = time.Second

// maxPollBook bounds the memory of the book. What is forgotten is polled for the first time again.
const maxPollBook = 100_000

// pollBook remembers, per operation and in this process only, when it was polled. Counts go to the store in batches.
type pollBook struct {
	mu    sync.Mutex
	ops   map[string]*pollState
	order []string // insertion order, for forgetting
	now   func() time.Time
}

type pollState struct {
	answered   int       // polls answered so far
	last       time.Time // of the last answered poll; zero before the first
	notBefore  time.Time // what the last Retry-After asked for
	creating   int       // requests that are making the record just now
	created    time.Time // when the creating request was answered; requests that arrived before are no polls
	polls      int64     // not yet written to the store
	violations int64
}

func newPollBook() *pollBook { return &pollBook{ops: map[string]*pollState{}, now: time.Now} }

func (b *pollBook) state(id string, before int64) *pollState {
	st := b.ops[id]
	if st == nil {
		if len(b.order) >= maxPollBook {
			delete(b.ops, b.order[0])
			b.order = b.order[1:]
		}
		st = &pollState{answered: int(min(before, int64(len(retryAfter))))}
		b.ops[id] = st
		b.order = append(b.order, id)
	}
	return st
}

// creating notes that a request found no record and is about to make one. Call done when its answer is out; calling it again does nothing.
func (b *pollBook) creating(id string) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.state(id, 0)
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
	st.created = b.now()
	if st.answered == 0 {
		st.notBefore = st.created.Add(retryAfter[0])
	}
}

// poll is one poll of a running operation. before is the number of polls the store knows of. It gives the wait to ask for next; allowed is false when the last poll was less than a second ago.
func (b *pollBook) poll(id string, before int64) (wait time.Duration, early, allowed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.state(id, before)
	now := b.now()
	if !st.last.IsZero() && now.Sub(st.last) < minPollGap {
		st.violations++
		return minPollGap, true, false
	}
	early = !st.notBefore.IsZero() && now.Before(st.notBefore)
	st.last = now
	st.answered++
	st.polls++
	if early {
		st.violations++
	}
	wait = retryAfter[min(st.answered, len(retryAfter)-1)]
	st.notBefore = now.Add(wait)
	return wait, early, true
}

// duringCreation says whether a request that arrived then came before the creating request was answered.
func (b *pollBook) duringCreation(id string, arrived time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	st := b.ops[id]
	return st != nil && (st.creating > 0 || arrived.Before(st.created))
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
