package outbox

import (
	"sync"
	"time"
)

// pauseAfter is how long nothing may get through before the relay calls itself paused.
const pauseAfter = 2 * time.Second

// outage notices that nothing can be published, tells it once, and tells the end of it (spec R5).
type outage struct {
	mu     sync.Mutex
	since  time.Time // first failure with no success since; zero = healthy
	paused bool
	reason string
}

// failed notes a pass in which nothing got through. now says not to wait for pauseAfter.
func (o *outage) failed(r *Relay, err error, now bool) {
	o.mu.Lock()
	if o.since.IsZero() {
		o.since = time.Now()
	}
	tell := !o.paused && (now || time.Since(o.since) >= pauseAfter)
	o.paused = o.paused || tell
	o.reason = err.Error()
	o.mu.Unlock()
	if !tell {
		return
	}
	r.cfg.Log.Error().Err(err).Msg("outbox relay: paused, nothing can be published; tries go on")
	if r.cfg.Hooks.Paused != nil {
		r.cfg.Hooks.Paused(err.Error())
	}
}

// over notes a success.
func (o *outage) over(r *Relay) {
	o.mu.Lock()
	paused, since := o.paused, o.since
	o.paused, o.since, o.reason = false, time.Time{}, ""
	o.mu.Unlock()
	if !paused {
		return
	}
	r.cfg.Log.Info().Dur("after", time.Since(since)).Msg("outbox relay: resumed")
	if r.cfg.Hooks.Resumed != nil {
		r.cfg.Hooks.Resumed(time.Since(since))
	}
}

func (o *outage) now() (paused bool, reason string, since time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.paused, o.reason, o.since
}
