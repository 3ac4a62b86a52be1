package suppliers

import (
	"net/http"
	"sync"
)

// keys remembers the first answer to each idempotency key. One key at a time: a request with a key
// that is being worked on waits for the first.
type keys struct {
	mu   sync.Mutex
	seen map[string]*remembered
}

type remembered struct {
	mu     sync.Mutex
	print  string
	answer *answer
}

func newKeys() *keys { return &keys{seen: map[string]*remembered{}} }

// once runs act for the first request with key and gives its answer to every later one. A later one whose
// print differs is refused. An answer of 5xx is not remembered. key "" is refused.
func (k *keys) once(key, print string, act func() answer) answer {
	if key == "" {
		return refused(http.StatusBadRequest, "KEY_MISSING", "header Idempotency-Key is missing")
	}
	k.mu.Lock()
	m := k.seen[key]
	if m == nil {
		if len(k.seen) >= maxRecords {
			k.mu.Unlock()
			return refused(http.StatusServiceUnavailable, "FULL", errFull.Error())
		}
		m = &remembered{print: print}
		k.seen[key] = m
	}
	k.mu.Unlock()

	m.mu.Lock()
	defer m.mu.Unlock()
	if m.print != print {
		return refused(http.StatusUnprocessableEntity, "KEY_REUSED", "this key was used for another request")
	}
	if m.answer != nil {
		a := *m.answer
		a.after = nil // a repeat causes nothing
		return a
	}
	a := act()
	if a.status < http.StatusInternalServerError {
		m.answer = &a
	}
	return a
}
