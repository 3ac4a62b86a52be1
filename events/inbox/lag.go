package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/postgres"
)

// LagConfig configures a [LagWatch]. Reader and DB must be set.
type LagConfig struct {
	Reader  events.LagReader // the broker
	DB      *pgxpool.Pool    // knows the groups and their topics
	Schemas []string         // whose inbox tables name the groups, none means "journeyman"
	Every   time.Duration    // between two looks, 0 means 15 s
	Within  time.Duration    // deadline of one look, below Every; 0 means a third of it
	Log     zerolog.Logger   // the zero value logs nothing
}

// PartitionLag is how far a group is behind in one partition.
type PartitionLag struct {
	Group string
	events.Lag
	OldestAge time.Duration // of the first record that is not finished, by the broker's time; 0 when there is none
}

// SchemaGroup is a group as one schema knows it. Two schemas may know one: at the broker it is the same.
type SchemaGroup struct {
	Schema string
	Group
}

// LagView is what a look found.
type LagView struct {
	At         time.Time     // when it ended; zero before the first one
	Groups     []SchemaGroup // by schema and name
	Partitions []PartitionLag
	Failed     int // groups whose lag is not known: the broker did not tell, or has no such topic
}

// LagWatch looks again and again how far the groups of its schemas are behind,
// beside consumers and relays: it shares nothing with them but the broker, and
// asks it a few questions a group. One record of each partition that is behind is read for its time, once.
// Make one with [WatchLag]. Any number of processes may watch; they see the same.
type LagWatch struct {
	cfg   LagConfig
	desks map[string]*Desk // by schema

	mu    sync.Mutex
	view  LagView
	times map[events.Position]time.Time // of records that groups stood at in the last look
}

// WatchLag checks the configuration and refuses all that is wrong with it at once. It asks nobody.
func WatchLag(cfg LagConfig) (*LagWatch, error) {
	if cfg.Every == 0 {
		cfg.Every = 15 * time.Second
	}
	if cfg.Within == 0 {
		cfg.Within = cfg.Every / 3
	}
	if len(cfg.Schemas) == 0 {
		cfg.Schemas = []string{postgres.DefaultSchema}
	}
	var errs []error
	if cfg.Reader == nil || cfg.DB == nil {
		errs = append(errs, errors.New("reader and pool: want both"))
	}
	if cfg.Every < 0 || cfg.Within < 0 || cfg.Within >= cfg.Every {
		errs = append(errs, fmt.Errorf("every %v and within %v, want above 0, and within below every", cfg.Every, cfg.Within))
	}
	w := &LagWatch{cfg: cfg, desks: map[string]*Desk{}, times: map[events.Position]time.Time{}}
	for _, schema := range cfg.Schemas {
		errs = append(errs, postgres.CheckSchema(schema))
		w.desks[schema] = NewDesk(schema)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("inbox lag: %w", err)
	}
	return w, nil
}

// Run looks until ctx is cancelled and returns nil. It survives outages of
// database and broker: what it could not find out is left out of the view and counted.
func (w *LagWatch) Run(ctx context.Context) error {
	tick := time.NewTicker(w.cfg.Every)
	defer tick.Stop()
	for {
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.Warn().Err(err).Msg("inbox: lag of consumer groups is not known")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Look looks once and replaces the view. The error names every group whose lag could not be found out.
func (w *LagWatch) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Within)
	defer cancel()
	var view LagView
	var errs []error
	topics := map[string][]string{}
	for _, schema := range slices.Sorted(maps.Keys(w.desks)) {
		list, err := w.desks[schema].Groups(ctx, w.cfg.DB, "")
		if err != nil {
			errs = append(errs, err)
			view.Failed++
			continue
		}
		for _, g := range list {
			view.Groups = append(view.Groups, SchemaGroup{schema, g})
			topics[g.Group] = append(topics[g.Group], g.Topics...)
		}
	}
	times := map[events.Position]time.Time{}
	for _, group := range slices.Sorted(maps.Keys(topics)) {
		lags, err := w.lags(ctx, group, topics[group], times)
		if err != nil {
			errs = append(errs, err)
			view.Failed++
		}
		view.Partitions = append(view.Partitions, lags...)
	}
	view.At = time.Now()
	w.mu.Lock()
	w.view, w.times = view, times
	w.mu.Unlock()
	return errors.Join(errs...)
}

func (w *LagWatch) lags(ctx context.Context, group string, topics []string, times map[events.Position]time.Time) ([]PartitionLag, error) {
	list, err := w.cfg.Reader.Lag(ctx, group, topics...)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", group, err)
	}
	out := make([]PartitionLag, len(list))
	for n, l := range list {
		out[n] = PartitionLag{Group: group, Lag: l}
		if l.Behind == 0 {
			continue
		}
		at := events.Position{Topic: l.Topic, Partition: l.Partition, Offset: l.Next}
		w.mu.Lock()
		when, known := w.times[at]
		w.mu.Unlock()
		if !known {
			if when, err = w.cfg.Reader.TimeAt(ctx, at); err != nil {
				return nil, fmt.Errorf("group %s: %w", group, err)
			}
		}
		if !when.IsZero() { // else it was finished meanwhile
			times[at] = when
			out[n].OldestAge = max(0, time.Since(when))
		}
	}
	return out, nil
}

// View gives what the last look found.
func (w *LagWatch) View() LagView {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

// WriteMetrics writes the view in the Prometheus text format. Groups that are
// not known are missing, so that nobody takes the last known figure for the
// present one; a view older than three looks counts as nothing known.
func (w *LagWatch) WriteMetrics(out io.Writer) error {
	view := w.View()
	if age := time.Since(view.At); age > 3*w.cfg.Every {
		view = LagView{Failed: 1}
	}
	partition := func(value func(PartitionLag) float64) (samples []string) {
		for _, l := range view.Partitions {
			samples = append(samples, fmt.Sprintf("{topic=%q,group=%q,partition=\"%d\"} %g", l.Topic, l.Group, l.Partition, value(l)))
		}
		return samples
	}
	group := func(value func(Group) float64) (samples []string) {
		for _, g := range view.Groups {
			samples = append(samples, fmt.Sprintf("{group=%q,schema=%q} %g", g.Group.Group, g.Schema, value(g.Group)))
		}
		return samples
	}
	for _, m := range []struct {
		name, help string
		samples    []string
	}{
		{"journeyman_consumer_lag", "Records that the group has not finished.", partition(func(l PartitionLag) float64 { return float64(l.Behind) })},
		{"journeyman_consumer_oldest_unprocessed_age_seconds", "Age of the first of them.", partition(func(l PartitionLag) float64 { return l.OldestAge.Seconds() })},
		{"journeyman_consumer_lost_records", "Records that the broker dropped before the group came to them.", partition(func(l PartitionLag) float64 { return float64(l.Lost) })},
		{"journeyman_consumer_ahead", "1 where the group's position is behind the end of the partition: it was made anew.", partition(func(l PartitionLag) float64 { return bit(l.Ahead) })},
		{"journeyman_consumer_members", "Members of the group that live.", group(func(g Group) float64 { return float64(g.Members) })},
		{"journeyman_consumer_paused", "1 while an operator has paused the group.", group(func(g Group) float64 { return bit(g.Paused != nil) })},
		{"journeyman_consumer_retrying", "Messages that wait for another attempt, and those behind them.", group(func(g Group) float64 { return float64(g.Waiting) })},
		{"journeyman_consumer_retrying_oldest_age_seconds", "Since when the oldest of them is tried.", group(func(g Group) float64 { return g.OldestAge.Seconds() })},
		{"journeyman_consumer_lag_unknown", "Groups whose lag is not known just now.", []string{fmt.Sprintf(" %d", view.Failed)}},
	} {
		if _, err := fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", m.name, m.help, m.name); err != nil {
			return err
		}
		for _, s := range m.samples {
			if _, err := fmt.Fprintf(out, "%s%s\n", m.name, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func bit(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
