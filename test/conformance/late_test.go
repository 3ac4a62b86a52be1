package conformance

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// A real cluster answers searches late: what the last command did is not in them
// yet. lateness makes the embedded engine look like that (ZEEBE_TEST_LATE=100ms),
// to prove that no case relies on more: a search that is asked for the first time
// finds nothing for that long, an entity read for the first time is not found.
type lateness struct {
	by time.Duration // zero: searches are not late

	mu    sync.Mutex
	first map[string]time.Time
}

// hide replaces an answer that a late cluster would not give yet.
func (l *lateness) hide(req *http.Request, body []byte, res *http.Response, answer []byte) []byte {
	search := req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/search")
	entity := req.Method == http.MethodGet && strings.Count(req.URL.Path, "/") == 3 && req.URL.Path != "/v2/authentication/me"
	if l == nil || l.by == 0 || res.StatusCode != http.StatusOK || !search && !entity {
		return answer
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, known := l.first[req.URL.Path+string(body)]
	if !known {
		asked = time.Now()
		l.first[req.URL.Path+string(body)] = asked
	}
	if time.Since(asked) >= l.by {
		return answer
	}
	if search {
		return []byte(`{"items":[],"page":{"totalItems":0}}`)
	}
	res.StatusCode = http.StatusNotFound
	return []byte(`{"type":"about:blank","title":"NOT_FOUND","status":404,"detail":"not yet"}`)
}
