package inbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// gate lets handlers begin, or not while an operator has paused the group. It is
// shut until the database has said that the group may run.
type gate struct {
	mu     sync.Mutex
	open   chan struct{} // closed while handlers may begin
	passes bool
	busy   atomic.Int64 // messages being handled
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

// set opens or shuts the gate and reports whether that is a change.
func (g *gate) set(passes bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if passes == g.passes {
		return false
	}
	if g.passes = passes; passes {
		close(g.open)
	} else {
		g.open = make(chan struct{})
	}
	return true
}

// wait blocks until the gate is open and reports false when ctx ended first.
func (g *gate) wait(ctx context.Context) bool {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-open:
		return ctx.Err() == nil
	}
}

// enter is wait, and counts n messages as being handled. Whoever shuts the gate
// sees them counted, or they see it shut.
func (g *gate) enter(ctx context.Context, n int) bool {
	for g.wait(ctx) {
		g.mu.Lock()
		if g.passes {
			g.busy.Add(int64(n))
			g.mu.Unlock()
			return true
		}
		g.mu.Unlock()
	}
	return false
}

func (g *gate) leave(n int) { g.busy.Add(-int64(n)) }

// shut reports whether the gate is shut and nothing is being handled.
func (g *gate) shut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.passes && g.busy.Load() == 0
}

// memberAlive is how long a heartbeat counts.
const memberAlive = 10 * time.Second

// watch asks the database whether the group is paused, every Sweep, and shows
// that this member lives. While the database does not answer the gate stays as it was.
func (i *Inbox) watch(ctx context.Context) {
	me := events.NewID()
	tick := time.NewTicker(i.cfg.Sweep)
	defer tick.Stop()
	joined, told, beaten := false, false, time.Time{}
	for {
		err := func() error {
			if !joined {
				if _, err := i.db.Exec(ctx, i.groups.join, i.cfg.Group, i.topics); err != nil {
					return err
				}
				joined = true
			}
			var paused bool
			var by, reason string
			if err := i.db.QueryRow(ctx, i.groups.gate, i.cfg.Group).Scan(&paused, &by, &reason); err != nil && !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			if i.gate.set(!paused) && paused {
				i.cfg.Log.Warn().Str("group", i.cfg.Group).Str("actor", by).Str("reason", reason).Msg("inbox: paused by an operator")
			}
			still := i.gate.shut()
			if still == told && time.Since(beaten) < memberAlive/4 {
				return nil
			}
			_, err := i.db.Exec(ctx, i.groups.beat, i.cfg.Group, me, i.gate.busy.Load(), still)
			if err == nil {
				told, beaten = still, time.Now()
			}
			return err
		}()
		if err != nil && ctx.Err() == nil {
			i.cfg.Log.Warn().Err(err).Msg("inbox: look at the group's state")
		}
		select {
		case <-ctx.Done():
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_, _ = i.db.Exec(bye, i.groups.leave, i.cfg.Group, me) // its heartbeat ends by itself otherwise
			return
		case <-tick.C:
		}
	}
}

// Group is how a consumer group stands.
type Group struct {
	Group     string
	Topics    []string
	Paused    *time.Time // nil: it runs
	PausedBy  string
	Reason    string
	Members   int  // with a heartbeat in the last ten seconds
	Busy      int  // messages being handled, as of the heartbeats
	Still     bool // paused, and every member has seen it and handles nothing
	Counts         // what waits for another attempt or a person
	OldestAge time.Duration
}

// Groups gives one group or, with "", all that ever ran or were paused, by name.
func (d *Desk) Groups(ctx context.Context, db outbox.Querier, group string) ([]Group, error) {
	rows, err := db.Query(ctx, d.groups.groups, group, memberAlive)
	if err != nil {
		return nil, fmt.Errorf("inbox groups: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Group, error) {
		var g Group
		var oldest float64
		err := row.Scan(&g.Group, &g.Topics, &g.Paused, &g.PausedBy, &g.Reason, &g.Members, &g.Busy, &g.Still, &g.Waiting, &g.Dead, &g.Parked, &oldest)
		g.OldestAge = time.Duration(oldest * float64(time.Second))
		return g, err
	})
}

// Conditions to test for with errors.Is.
var (
	ErrPaused    = errors.New("the group is paused already")
	ErrNotPaused = errors.New("the group is not paused")
)

// Pause stops a consumer group until [Desk.Resume]: in every process, over
// restarts, also one that does not run yet. Members see it within their Sweep:
// they finish what they handle, begin nothing, and stay in the group, so that no
// partition moves. [Group].Still tells when all stand still. Call it in the
// transaction of the audit row.
func (d *Desk) Pause(ctx context.Context, tx outbox.Execer, group, actor, reason string) error {
	if group == "" || actor == "" || reason == "" {
		return fmt.Errorf("pause group %q by %q for %q: want a group, an actor and a reason", group, actor, reason)
	}
	tag, err := tx.Exec(ctx, d.groups.pause, group, actor, reason)
	if err != nil {
		return fmt.Errorf("pause group %s: %w", group, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrPaused
	}
	return nil
}

// Resume lets a paused group go on. Call it in the transaction of the audit row.
func (d *Desk) Resume(ctx context.Context, tx outbox.Execer, group string) error {
	tag, err := tx.Exec(ctx, d.groups.resume, group)
	if err != nil {
		return fmt.Errorf("resume group %s: %w", group, err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotPaused
	}
	return nil
}
