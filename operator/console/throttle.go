package console

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// Bounds of failed sign-ins.
const (
	freeTries    = 5                // that an address may fail before it has to wait
	firstWait    = time.Second      // it doubles with each further failure
	longestWait  = time.Minute      // so that people behind the same address are not shut out
	forgetAfter  = 15 * time.Minute // without a failure
	maxAddresses = 10000            // that are remembered
)

// throttle slows down whoever fails to sign in, by address. It is of this process, as sessions are.
type throttle struct {
	mu  sync.Mutex
	all map[string]tries
}

type tries struct {
	failed int
	last   time.Time
	next   time.Time // not before
}

func newThrottle() *throttle { return &throttle{all: map[string]tries{}} }

// enter lets an attempt in, as one that fails until [throttle.passed] or [throttle.undecided] says otherwise, so that many at once are
// no way around. A wait above 0 means that it is refused unseen.
func (t *throttle) enter(address string) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	one, known := t.all[address]
	if known && now.Sub(one.last) >= forgetAfter {
		one = tries{}
	}
	if wait = one.next.Sub(now); wait > 0 {
		return wait
	}
	one.failed++
	one.last = now
	if over := one.failed - freeTries; over >= 0 {
		one.next = now.Add(min(firstWait<<min(over, 10), longestWait))
	}
	if !known && len(t.all) >= maxAddresses {
		t.makeRoom(now)
	}
	t.all[address] = one
	return 0
}

// makeRoom forgets those who have been quiet for long enough, or else the one who was quiet for longest.
func (t *throttle) makeRoom(now time.Time) {
	oldest, at := "", now
	for a, one := range t.all {
		if now.Sub(one.last) >= forgetAfter {
			delete(t.all, a)
		} else if !one.last.After(at) {
			oldest, at = a, one.last
		}
	}
	if len(t.all) >= maxAddresses {
		delete(t.all, oldest)
	}
}

// passed forgets the failures of an address from which somebody has signed in.
func (t *throttle) passed(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, address)
}

// undecided takes back an attempt of which nobody could say whether it was good.
func (t *throttle) undecided(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.all[address]; ok && one.failed > 0 {
		one.failed--
		one.next = time.Time{}
		t.all[address] = one
	}
}

// addressOf is what attempts are counted by: an IPv4 address, or the /64 that one IPv6 host has to itself.
func addressOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.String()
		}
	}
	return a.String()
}
