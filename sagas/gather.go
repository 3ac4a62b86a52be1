package sagas

import (
	"context"
	"sync"
	"time"
)

// Bounds of what is read together.
const (
	gatherLanes = 4               // statements at once
	gatherMost  = 64              // keys of one statement
	gatherTime  = 5 * time.Second // of one statement
)

// gather asks with one statement for what many requests want at the same moment. A request that comes alone is served at once;
// one that finds all lanes busy goes with the others that wait. It is safe for concurrent use, and its goroutines end with
// their statements.
type gather[K comparable, V any] struct {
	// all gives the values of the keys that are there. Its context ends with none of the requests.
	all func(ctx context.Context, keys []K) (map[K]V, error)

	mu    sync.Mutex
	busy  int
	queue []*asked[K, V]
}

// asked is one request for the value of a key.
type asked[K comparable, V any] struct {
	key   K
	ended chan struct{} // closed when the rest is set
	value V
	found bool
	first bool
	err   error
}

// get gives the value of a key, found = false when it has none. first is true for one of the requests of a statement that asked
// for the same key: what the statement did with it was done once.
func (g *gather[K, V]) get(ctx context.Context, key K) (v V, found, first bool, err error) {
	q := &asked[K, V]{key: key, ended: make(chan struct{})}
	if g.enqueue(q) {
		go g.serve(context.WithoutCancel(ctx))
	}
	select {
	case <-ctx.Done():
		return v, false, false, ctx.Err()
	case <-q.ended:
		return q.value, q.found, q.first, q.err
	}
}

// enqueue reports whether there was a free lane; it is the caller's then.
func (g *gather[K, V]) enqueue(q *asked[K, V]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.queue = append(g.queue, q)
	if g.busy == gatherLanes {
		return false
	}
	g.busy++
	return true
}

// serve runs statements until nobody waits.
func (g *gather[K, V]) serve(ctx context.Context) {
	for {
		g.mu.Lock()
		some := g.queue[:min(len(g.queue), gatherMost)]
		g.queue = g.queue[len(some):]
		if len(some) == 0 {
			g.queue = nil
			g.busy--
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		g.ask(ctx, some)
	}
}

// ask runs one statement.
func (g *gather[K, V]) ask(ctx context.Context, some []*asked[K, V]) {
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	keys, seen := make([]K, 0, len(some)), make(map[K]bool, len(some))
	for _, q := range some {
		if q.first = !seen[q.key]; q.first {
			seen[q.key] = true
			keys = append(keys, q.key)
		}
	}
	values, err := g.all(ctx, keys)
	for _, q := range some {
		q.value, q.found = values[q.key]
		q.err = err
		close(q.ended)
	}
}
