package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/archive/bucket"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/outbox"
)

func newReplay(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "replay", Short: "Deliver published messages once more", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newReplayRun(s), newReplayResume(s), newReplayList(s), newReplayShow(s), newReplayCancel(s))
	return cmd
}

// routeFlags say from where and to where.
type routeFlags struct {
	source, archive, inbox, to, dir string
	topics                          []string
}

func (f *routeFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.source, "source", "log", "log, archive or broker")
	cmd.Flags().StringVar(&f.archive, "archive", "", "URL of the archive: file:///…, s3://name?region=…")
	cmd.Flags().StringSliceVar(&f.topics, "topic", nil, "topics to read, with --source broker")
	cmd.Flags().StringVar(&f.to, "to", "", "group:NAME (into the group's queue), topic:NAME, or origin (the topics they came from)")
	cmd.Flags().StringVar(&f.inbox, "inbox-schema", "", "PostgreSQL schema of the group's inbox; that of --schema when empty")
	env(cmd, "archive", "JOURNEYMAN_ARCHIVE")
}

// open makes the source, and the target unless dry.
func (f *routeFlags) open(ctx context.Context, d delivery, schema string, dry bool) (replay.Source, replay.Target, func(), error) {
	var src replay.Source
	closing := func() {}
	switch f.source {
	case "log":
		src = replay.FromLog(d.pool, schema, d.keys)
	case "archive":
		b, err := bucket.Open(ctx, f.archive)
		if err != nil {
			return nil, nil, nil, exit(ExitUsage, fmt.Errorf("--archive: %w", err))
		}
		closing = func() { _ = b.Close() }
		src = replay.FromArchive(b, d.keys)
	case "broker":
		if d.bus == nil || len(f.topics) == 0 {
			return nil, nil, nil, exit(ExitUsage, errors.New("--source broker: want --kafka or --nats, and --topic"))
		}
		src = replay.FromBroker(d.bus, d.keys, f.topics...)
	default:
		return nil, nil, nil, exit(ExitUsage, fmt.Errorf("--source %q: want log, archive or broker", f.source))
	}
	if dry {
		return src, nil, closing, nil
	}
	target, err := f.target(d, schema)
	return src, target, closing, err
}

func (f *routeFlags) target(d delivery, schema string) (replay.Target, error) {
	kind, name, _ := strings.Cut(f.to, ":")
	switch {
	case kind == "group" && name != "":
		t, err := replay.ToGroup(replay.GroupConfig{DB: d.pool, Schema: schema, Inbox: f.inbox, Group: name, Keys: d.keys})
		return t, exit(ExitUsage, err)
	case (f.to == "origin" || kind == "topic" && name != "") && d.bus == nil:
		return nil, exit(ExitUsage, fmt.Errorf("--to %s: want --kafka or --nats", f.to))
	case f.to == "origin":
		return replay.ToOrigin(d.bus), nil
	case kind == "topic" && name != "":
		return replay.ToTopic(d.bus, name), nil
	}
	return nil, exit(ExitUsage, fmt.Errorf("--to %q: want group:NAME, topic:NAME or origin", f.to))
}

// runner makes what runs replays, with progress to standard error.
func runner(s Streams, d delivery, schema, actor string) (*replay.Runner, error) {
	catalog, err := replay.Catalog()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	stage, err := outbox.NewStager(outbox.Config{Schema: schema, Catalog: catalog, Producer: "journeyman", Instance: host, Env: orElse(s.Getenv("JOURNEYMAN_ENV"), "development")})
	if err != nil {
		return nil, exit(ExitUsage, err)
	}
	show := onceASecond()
	return replay.New(replay.Config{
		DB: d.pool, Schema: schema, Stager: stage,
		Progress: func(p replay.Replay) {
			if show() {
				_, _ = fmt.Fprintf(s.Err, "replay %s: %d delivered, at %s\n", p.ID, p.Delivered, plain(p.Place))
			}
		},
		Audit: func(ctx context.Context, tx pgx.Tx, action, reason string, p replay.Replay) error {
			return d.record(ctx, tx, actor, action, "replay:"+p.ID, reason, p)
		},
	})
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func newReplayRun(s Streams) *cobra.Command {
	var f deliveryFlags
	var route routeFlags
	var act actFlags
	var from, until, group, mode string
	var filter replay.Filter
	var rate int
	var dry bool
	cmd := &cobra.Command{
		Use: "run", Short: "Start a replay and run it to its end", Args: cobra.NoArgs,
		Long: `Run delivers messages that were published before once more: from the event log, its archive or the broker, to a
consumer group's queue, to a topic, or to the topics they came from. Count first with --dry-run, which writes nothing.

--mode missing   fills holes: groups that have handled a message pass over it (the default)
--mode again     rebuilds: groups whose handler takes replays handle each message once more; others pass over it

Ctrl-C pauses it; "replay resume" goes on, also after a crash. With --json it prints the replay:
  {"id", "actor", "reason", "source", "target", "mode", "filter", "rate", "state", "place", "delivered", "suppressed", "error", "started", "updated", "ended"}
and with --dry-run {"source", "filter", "messages", "keys", "bytes", "types", "first", "last"}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			if filter.From, err = instant("from", from); err != nil {
				return err
			}
			if filter.Until, err = instant("until", until); err != nil {
				return err
			}
			if group != "" {
				catalog, err := catalogsBelow(route.dir)
				if err != nil {
					return exit(ExitUsage, fmt.Errorf("--for-group: %w", err))
				}
				types := replay.TypesFor(catalog, group)
				if len(types) == 0 {
					return exit(ExitUsage, fmt.Errorf("--for-group %q: no type of the catalog names it", group))
				}
				filter.Types = append(filter.Types, types...)
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				src, target, closing, err := route.open(ctx, d, f.db.schema, dry)
				if err != nil {
					return err
				}
				defer closing()
				r, err := runner(s, d, f.db.schema, who)
				if err != nil {
					return err
				}
				if dry {
					return plan(ctx, s, r, src, filter, f.asJSON)
				}
				p, err := r.Start(ctx, replay.Request{Actor: who, Reason: act.reason, Source: src, Target: target, Mode: events.ReplayMode(mode), Filter: filter, Rate: rate})
				return showEnd(s, p, err, f.asJSON)
			})
		},
	}
	f.add(cmd)
	f.bus.addConnection(cmd)
	route.add(cmd)
	act.add(cmd)
	cmd.Flags().StringVar(&from, "from", "", "published at or after, for example 2026-11-30T12:00:00Z")
	cmd.Flags().StringVar(&until, "until", "", "published before; the start when empty")
	cmd.Flags().StringSliceVar(&filter.Types, "type", nil, `message types, "*" stands for parts`)
	cmd.Flags().StringSliceVar(&filter.Keys, "key", nil, "business keys")
	cmd.Flags().StringVar(&filter.After, "after", "", "behind a place that an earlier replay of the same source reached")
	cmd.Flags().StringVar(&group, "for-group", "", "the types that the catalog sends to this consumer group")
	cmd.Flags().StringVar(&route.dir, "dir", ".", "folder with the catalogs, for --for-group")
	cmd.Flags().StringVar(&mode, "mode", string(events.ReplayMissing), "missing or again")
	cmd.Flags().IntVar(&rate, "rate", 0, "messages a second, 0 means no limit")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "count what would be delivered, write nothing")
	return cmd
}

func plan(ctx context.Context, s Streams, r *replay.Runner, src replay.Source, filter replay.Filter, asJSON bool) error {
	show := onceASecond()
	p, err := r.Plan(ctx, src, filter, func(n int64) {
		if show() {
			_, _ = fmt.Fprintf(s.Err, "counted %d\n", n)
		}
	})
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(s.Out, p)
	}
	types := make([]string, 0, len(p.Types))
	for t := range p.Types {
		types = append(types, t)
	}
	sort.Strings(types)
	pairs := []string{"messages", strconv.FormatInt(p.Messages, 10), "business keys", strconv.Itoa(p.Keys), "bytes", strconv.FormatInt(p.Bytes, 10), "until", moment(p.Filter.Until)}
	if p.First != nil {
		pairs = append(pairs, "first", moment(*p.First), "last", momentOf(p.Last))
	}
	for _, t := range types {
		pairs = append(pairs, t, strconv.FormatInt(p.Types[t], 10))
	}
	return facts(s.Out, pairs...)
}

// showEnd prints a replay whose run ended, well or not.
func showEnd(s Streams, p replay.Replay, err error, asJSON bool) error {
	if p.ID != "" {
		if printing := printReplay(s, p, asJSON); printing != nil {
			return printing
		}
	}
	return err
}

func printReplay(s Streams, p replay.Replay, asJSON bool) error {
	if asJSON {
		return printJSON(s.Out, p)
	}
	return facts(s.Out, "replay", p.ID, "state", p.State, "error", p.Error, "delivered", strconv.FormatInt(p.Delivered, 10), "suppressed", strconv.FormatInt(p.Suppressed, 10),
		"from", p.Source, "to", p.Target, "mode", string(p.Mode), "types", strings.Join(p.Filter.Types, " "), "keys", strings.Join(p.Filter.Keys, " "),
		"published from", moment(p.Filter.From), "until", moment(p.Filter.Until), "place", p.Place, "rate", strconv.Itoa(p.Rate),
		"who", p.Actor, "why", p.Reason, "started", moment(p.Started), "ended", momentOf(p.Ended))
}

func newReplayResume(s Streams) *cobra.Command {
	var f deliveryFlags
	var route routeFlags
	var act actFlags
	rate := -1
	cmd := &cobra.Command{
		Use: "resume ID", Short: "Go on with a replay that was paused, failed or killed", Args: cobra.ExactArgs(1),
		Long: `Resume goes on where the replay stopped. --source, --to and what belongs to them must be those it was started with.
A runner that still works on it stops before its next batch. With --json it prints the replay as "replay run" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				src, target, closing, err := route.open(ctx, d, f.db.schema, false)
				if err != nil {
					return err
				}
				defer closing()
				r, err := runner(s, d, f.db.schema, who)
				if err != nil {
					return err
				}
				p, err := r.Get(ctx, args[0])
				if err != nil {
					return err
				}
				if err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					return d.record(ctx, tx, who, "replay.resume", "replay:"+p.ID, act.reason, p)
				}); err != nil {
					return err
				}
				var limit *int
				if cmd.Flags().Changed("rate") {
					limit = &rate
				}
				p, err = r.Resume(ctx, args[0], src, target, limit)
				return showEnd(s, p, err, f.asJSON)
			})
		},
	}
	f.add(cmd)
	f.bus.addConnection(cmd)
	route.add(cmd)
	act.add(cmd)
	cmd.Flags().IntVar(&rate, "rate", 0, "messages a second from now on, 0 means no limit")
	return cmd
}

func newReplayList(s Streams) *cobra.Command {
	var f deliveryFlags
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List replays, newest first", Args: cobra.NoArgs,
		Long: `With --json it prints {"replays": [...]}, each as "replay run" prints it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				r, err := runner(s, d, f.db.schema, "")
				if err != nil {
					return err
				}
				list, err := r.List(ctx, limit)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"replays": append([]replay.Replay{}, list...)})
				}
				var rows [][]string
				for _, p := range list {
					rows = append(rows, []string{p.ID, p.State, p.Source, p.Target, string(p.Mode), strconv.FormatInt(p.Delivered, 10), moment(p.Started), momentOf(p.Ended), p.Actor, p.Reason})
				}
				return table(s.Out, []string{"ID", "STATE", "FROM", "TO", "MODE", "DELIVERED", "STARTED", "ENDED", "WHO", "WHY"}, rows)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

func newReplayShow(s Streams) *cobra.Command {
	var f deliveryFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one replay", Args: cobra.ExactArgs(1), Long: `With --json it prints the replay as "replay run" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				r, err := runner(s, d, f.db.schema, "")
				if err != nil {
					return err
				}
				p, err := r.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return printReplay(s, p, f.asJSON)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newReplayCancel(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "End a replay for good", Args: cobra.ExactArgs(1),
		Long: `What was delivered stays delivered. With --json it prints the replay as "replay run" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				r, err := runner(s, d, f.db.schema, who)
				if err != nil {
					return err
				}
				p, err := r.Cancel(ctx, args[0], who, act.reason)
				if err != nil {
					return err
				}
				return printReplay(s, p, f.asJSON)
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
