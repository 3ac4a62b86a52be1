package worker

import (
	"slices"
	"sync"
	"time"
)

// What lets a type's jobs share transactions (path rule 26). The sum over a group is what its budget bounds, and that goes by the mean; the
// slowest twentieth is held to half the budget. Judged by the slowest twentieth alone, a handler of a tenth of a millisecond ran singly
// whenever the machine was busy, which kept it busy.
const (
	paceWindow = 64
	paceEnough = 16                    // runs before a type is judged
	paceEvery  = 8                     // runs between two judgements
	paceFast   = 5 * time.Millisecond  // mean of the handler, under which the type may share
	paceSlow   = groupMost / 2         // and its p95
	groupMost  = 50 * time.Millisecond // of all handlers of one transaction
	singlyFor  = time.Minute           // after a deadlock or a split
)

// pace is how long a type's handler takes, and whether its jobs may share a transaction.
type pace struct {
	mu      sync.Mutex
	ring    [paceWindow]time.Duration
	n       int
	skip    int // runs that do not count: each connection's first, which prepares the handler's statements
	p95     time.Duration
	mean    time.Duration
	singly  time.Time // until then its jobs run singly
	never   bool      // its handler changes settings of the transaction
	grouped int64     // jobs that ended in a shared transaction
	splits  int64
}

func (p *pace) record(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.skip > 0 {
		p.skip--
		return
	}
	p.ring[p.n%paceWindow] = d
	p.n++
	if p.n < paceEnough || p.n%paceEvery != 0 {
		return
	}
	have := slices.Clone(p.ring[:min(p.n, paceWindow)])
	slices.Sort(have)
	p.p95 = have[(len(have)*95-1)/100]
	sum := time.Duration(0)
	for _, d := range have {
		sum += d
	}
	p.mean = sum / time.Duration(len(have))
}

// shares reports whether the type's jobs may share a transaction now.
func (p *pace) shares() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n >= paceEnough && p.mean < paceFast && p.p95 < paceSlow && !p.never && !time.Now().Before(p.singly)
}

// most is what one more run takes at most, near enough.
func (p *pace) most() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.p95
}

// expect is what one more run takes: the mean, as what counts is the sum of many.
func (p *pace) expect() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean
}

func (p *pace) split() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.splits++
	p.singly = time.Now().Add(singlyFor)
}

func (p *pace) settings() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.never = true
}

func (p *pace) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grouped++
}
