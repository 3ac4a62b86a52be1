package app

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/vitrip/journeyman/events/archive"
	"github.com/vitrip/journeyman/events/audit"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/work"
)

// Background is what processes do beside jobs and events. Any number of processes may do all of it: an item has one at a time by its
// lease, and of archivers and forwarders one works while the others stand by. The zero value does nothing of it.
type Background struct {
	// Work does durable work (spec E14): messages that were scheduled are staged when they are due, and Queues are served, which
	// the catalog must have.
	Work   bool
	Queues []work.Queue
	// DeadLetters copies what consumers set aside to the DLQ topics of the catalog, which [App.EnsureTopics] then makes, too.
	DeadLetters bool
	// EventArchive is where days of the event log that are over go, and the audit chains; nil = nowhere. Once set, days stay in
	// the database until their archive was verified.
	EventArchive archive.Store
	// LagEvery is how often the broker is asked how far consumer groups are behind, for the metrics; 0 = never.
	LagEvery time.Duration
}

// workConcurrency is how many scheduled messages a process stages at once.
const workConcurrency = 2

// workPoll is how often due items are looked for. It bounds how late a scheduled message is.
const workPoll = 500 * time.Millisecond

// auditEvery is how often the audit chains are archived.
const auditEvery = time.Minute

// schemas are those that hold inboxes: one, or two.
func (a *App) schemas() []string {
	if a.schema() == a.recordSchema() {
		return []string{a.schema()}
	}
	return []string{a.schema(), a.recordSchema()}
}

// background adds the loops that the configuration asks for.
func (a *App) background(all map[string]func(context.Context) error) error {
	b := a.cfg.Background
	if b.Work {
		r, err := work.NewRunner(a.cfg.Pool, work.Config{Schema: a.cfg.Schema, Stager: a.stager, Keys: a.keys, Catalog: a.catalog, Poll: workPoll, Hooks: a.done.Hooks(work.Hooks{}), Log: a.cfg.Log}, append([]work.Queue{work.Messages(workConcurrency)}, b.Queues...)...)
		if err != nil {
			return err
		}
		all["work"] = r.Run
	}
	if b.DeadLetters {
		for _, schema := range a.schemas() {
			f, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: a.cfg.Pool, Schema: schema, Publisher: a.bus, Catalog: a.catalog, Keys: a.keys, Log: a.cfg.Log})
			if err != nil {
				return err
			}
			all["dead letters of "+schema] = f.Run
		}
	}
	if b.EventArchive != nil {
		r, err := archive.New(a.cfg.Pool, b.EventArchive, archive.Config{Schema: a.cfg.Schema, Log: a.cfg.Log})
		if err != nil {
			return err
		}
		all["event archive"], all["audit archive"] = r.Run, a.archiveAudit
	}
	if b.LagEvery > 0 {
		w, err := inbox.WatchLag(inbox.LagConfig{Reader: a.bus, DB: a.cfg.Pool, Schemas: a.schemas(), Every: b.LagEvery, Log: a.cfg.Log})
		if err != nil {
			return err
		}
		a.lag.Store(w)
		all["lag"] = w.Run
	}
	return nil
}

// archiveAudit writes what the archive lacks of the audit chains, until ctx ends.
func (a *App) archiveAudit(ctx context.Context) error {
	tick := time.NewTicker(auditEvery)
	defer tick.Stop()
	for {
		if _, err := audit.Archive(ctx, a.cfg.Pool, a.schema(), a.cfg.Background.EventArchive); err != nil && ctx.Err() == nil {
			a.cfg.Log.Error().Err(err).Msg("audit chains not archived; tried again in a minute")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// countWork counts items of durable work and how old they are, by queue.
func (a *App) countWork(ctx context.Context, b *bytes.Buffer) error {
	stats, err := work.NewDesk(a.schema()).Stats(ctx, a.cfg.Pool, "")
	if err != nil {
		return err
	}
	return work.WriteMetrics(b, stats)
}

// writeDelivery shows what consumers and runners of this process did, and how far groups are behind, in processes that watch it.
func (a *App) writeDelivery(b *bytes.Buffer) {
	_ = a.handled.WriteMetrics(b) // a buffer takes everything
	_ = a.done.WriteMetrics(b)
	if w := a.lag.Load(); w != nil {
		_ = w.WriteMetrics(b)
	}
}

func (c Config) checkBackground() []error {
	var errs []error
	if c.Background.LagEvery < 0 {
		errs = append(errs, fmt.Errorf("app: Background.LagEvery is %v, want 0 or more", c.Background.LagEvery))
	}
	if len(c.Background.Queues) > 0 && !c.Background.Work {
		errs = append(errs, fmt.Errorf("app: Background.Queues has %d queues, but Background.Work is off", len(c.Background.Queues)))
	}
	return errs
}
