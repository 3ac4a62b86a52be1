package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// deadTime is how far the clocks move while no worker process lives: beyond the
// job time-out and the lease of what the dead one held, so that the next one
// need not wait for them.
const deadTime = 31 * time.Second

// noticeTime is how long the engine may take to see that the connections of a dead process are closed.
const noticeTime = 100 * time.Millisecond

// act waits for an act's condition and does it.
func (p *player) act(ctx context.Context, b Booking, a Act, releases map[string]func()) error {
	all, err := parseConditions(a.When)
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := p.wait(ctx, b, c); err != nil {
			return err
		}
	}
	if all[0].kind == "killed" {
		return nil // done by onKill, before the next process started
	}
	saga := sagaID(b)
	switch {
	case a.Cancel:
		p.table.set(b.Name, "cancelling", "", false, false)
		got, err := p.partner(b.Tenant).cancel(ctx, saga)
		if err == nil && got.status != http.StatusAccepted && got.status != http.StatusOK {
			err = fmt.Errorf("cancel: status %d, want 202: %.200s", got.status, got.body)
		}
		return err
	case a.Advance != "":
		return p.advance(ctx, b.Name, a.Advance)
	case a.Release != "":
		release := releases[a.Release]
		if release == nil {
			return fmt.Errorf("release %q: no fault holds it", a.Release)
		}
		release()
		return nil
	default:
		m, _ := p.watch.first(saga, all[0].what)
		return produceAgain(ctx, p.brokers, m)
	}
}

func (p *player) advance(ctx context.Context, name, by string) error {
	d, err := time.ParseDuration(by)
	if err != nil {
		return err
	}
	p.table.say("%s: both clocks move by %s", name, by)
	return p.clocks.advance(ctx, d)
}

// wait blocks until the condition holds.
func (p *player) wait(ctx context.Context, b Booking, c condition) error {
	tick := time.NewTicker(p.tick)
	defer tick.Stop()
	for {
		ok, err := p.holds(ctx, b, c)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("condition %s %s never came", c.kind, c.what)
		case <-tick.C:
		}
	}
}

func (p *player) holds(ctx context.Context, b Booking, c condition) (bool, error) {
	segment, action, _ := strings.Cut(c.what, ".")
	saga := sagaID(b)
	switch c.kind {
	case "call":
		return p.world.called(businessKey(b), segment, action), nil
	case "event":
		_, ok := p.watch.first(saga, c.what)
		return ok, nil
	case "element":
		state, err := p.engine.ElementState(ctx, saga+":"+c.what)
		ended := state == "COMPLETED" || state == "TERMINATED"
		return state == c.state || c.state == "ENDED" && ended, err
	case "killed":
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.pending[saga].killed[c.what], nil
	default:
		for _, e := range p.world.effects() {
			if e.Booking == businessKey(b) && e.Segment == segment && e.Kind == action {
				return true, nil
			}
		}
		return false, nil
	}
}

// onKill runs while no worker process lives: it moves the clocks, by what the
// booking says that was killed there or else past the dead one's time-outs.
func (p *player) onKill(ctx context.Context, k kill) error {
	saga, _, _ := strings.Cut(k.detail, ":")
	p.mu.Lock()
	entry := p.pending[saga]
	p.mu.Unlock()
	p.table.say("kill -9 of the worker process at %s", k.point)
	by := deadTime
	if entry != nil {
		for _, a := range entry.booking.Acts {
			if a.When != "killed "+k.point {
				continue
			}
			d, err := time.ParseDuration(a.Advance)
			if err != nil {
				return err
			}
			by = d
			p.table.say("%s: both clocks move by %s while the worker is dead", entry.booking.Name, a.Advance)
		}
	}
	// A long poll of the dead process that the engine still holds would take jobs that nobody runs until they time out.
	select {
	case <-time.After(noticeTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	err := p.clocks.advance(ctx, by)
	if entry != nil {
		p.mu.Lock()
		entry.killed[k.point] = true
		p.mu.Unlock()
	}
	return err
}
