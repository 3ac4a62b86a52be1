package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
)

func newConsumers(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "consumers", Short: "Consumer groups: how they stand, how far they are behind, pause and resume", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newConsumersList(s), newConsumersLag(s), newConsumersPause(s), newConsumersResume(s))
	return cmd
}

// consumer is a consumer group, as JSON shows it. Its field names are stable.
type consumer struct {
	Group    string     `json:"group"`
	State    string     `json:"state"` // running, absent, pausing or paused
	Members  int        `json:"members"`
	Busy     int        `json:"busy"`
	Waiting  int64      `json:"waiting"`
	Dead     int64      `json:"dead"`
	Parked   int64      `json:"parked"`
	Oldest   float64    `json:"oldest_waiting_seconds"`
	PausedAt *time.Time `json:"paused_at,omitempty"`
	PausedBy string     `json:"paused_by,omitempty"`
	Reason   string     `json:"reason,omitempty"`
	Topics   []string   `json:"topics"`
}

func consumerOf(g inbox.Group) consumer {
	state := "running"
	switch {
	case g.Paused != nil && g.Still:
		state = "paused"
	case g.Paused != nil:
		state = "pausing"
	case g.Members == 0:
		state = "absent"
	}
	return consumer{
		Group: g.Group, State: state, Members: g.Members, Busy: g.Busy, Waiting: g.Waiting, Dead: g.Dead, Parked: g.Parked,
		Oldest: g.OldestAge.Seconds(), PausedAt: g.Paused, PausedBy: g.PausedBy, Reason: g.Reason, Topics: append([]string{}, g.Topics...),
	}
}

func newConsumersList(s Streams) *cobra.Command {
	var f deliveryFlags
	cmd := &cobra.Command{
		Use: "list [GROUP]", Short: "List the groups that ever ran or were paused", Args: cobra.MaximumNArgs(1),
		Long: `The state is running, absent (no member lives), pausing (a member still handles something) or paused (all stand still).
With --json it prints {"groups": [{"group", "state", "members", "busy", "waiting", "dead", "parked", "oldest_waiting_seconds",
"paused_at", "paused_by", "reason", "topics"}]}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				list, err := inbox.NewDesk(f.db.schema).Groups(ctx, d.pool, first(args))
				if err != nil {
					return err
				}
				if len(args) == 1 && len(list) == 0 {
					return exit(ExitMissing, fmt.Errorf("group %s never ran here", args[0]))
				}
				all := []consumer{}
				var rows [][]string
				for _, g := range list {
					c := consumerOf(g)
					all = append(all, c)
					rows = append(rows, []string{c.Group, c.State, strconv.Itoa(c.Members), strconv.Itoa(c.Busy), strconv.FormatInt(c.Waiting, 10), strconv.FormatInt(c.Dead, 10), strconv.FormatInt(c.Parked, 10), c.Reason})
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"groups": all})
				}
				return table(s.Out, []string{"GROUP", "STATE", "MEMBERS", "BUSY", "WAITING", "DEAD", "PARKED", "PAUSED BECAUSE"}, rows)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// lag is how far a group is behind in a partition, as JSON shows it.
type lag struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Committed int64  `json:"committed"`
	End       int64  `json:"end"`
	Behind    int64  `json:"behind"`
	Lost      int64  `json:"lost,omitempty"`
	Ahead     bool   `json:"ahead,omitempty"`
}

func newConsumersLag(s Streams) *cobra.Command {
	var f deliveryFlags
	var topics []string
	cmd := &cobra.Command{
		Use: "lag GROUP", Short: "How many records of each partition a group has not finished", Args: cobra.ExactArgs(1),
		Long: `The topics are those the group subscribed to when it last ran, or those of --topics. Lost are records that the broker dropped
before the group came to them; ahead means that the topic was made anew and the group's position is behind its end.
With --json it prints {"group", "behind", "lost", "partitions": [{"topic", "partition", "committed", "end", "behind", "lost", "ahead"}]}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := required(cmd, f.bus.needs()); err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				if len(topics) == 0 {
					list, err := inbox.NewDesk(f.db.schema).Groups(ctx, d.pool, args[0])
					if err != nil {
						return err
					}
					if len(list) == 0 || len(list[0].Topics) == 0 {
						return exit(ExitMissing, fmt.Errorf("group %s never ran here: name its --topics", args[0]))
					}
					topics = list[0].Topics
				}
				list, err := d.bus.Lag(ctx, args[0], topics...)
				if err != nil {
					return err
				}
				return printLag(s, args[0], list, f.asJSON)
			})
		},
	}
	f.add(cmd)
	f.bus.addConnection(cmd)
	cmd.Flags().StringSliceVar(&topics, "topics", nil, "these topics, comma-separated")
	return cmd
}

func printLag(s Streams, group string, list []events.Lag, asJSON bool) error {
	all := []lag{}
	var rows [][]string
	var behind, lost int64
	for _, l := range list {
		behind, lost = behind+l.Behind, lost+l.Lost
		all = append(all, lag{l.Topic, l.Partition, l.Committed, l.End, l.Behind, l.Lost, l.Ahead})
		note := ""
		if l.Ahead {
			note = "position is behind the end"
		}
		rows = append(rows, []string{l.Topic, strconv.Itoa(l.Partition), strconv.FormatInt(l.Committed, 10), strconv.FormatInt(l.End, 10), strconv.FormatInt(l.Behind, 10), strconv.FormatInt(l.Lost, 10), note})
	}
	if asJSON {
		return printJSON(s.Out, map[string]any{"group": group, "behind": behind, "lost": lost, "partitions": all})
	}
	return table(s.Out, []string{"TOPIC", "PARTITION", "COMMITTED", "END", "BEHIND", "LOST", "NOTE"}, rows)
}

func newConsumersPause(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "pause GROUP", Short: "Stop a group in every process until it is resumed", Args: cobra.ExactArgs(1),
		Long: `Members finish what they handle and begin nothing. They stay in the group, so no partition moves; a member that starts later
finds the pause. The command waits until all stand still, at most --wait, and ends with 1 when one still works then; the pause
holds all the same. The act is audited. With --json it prints the group as "list" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk := inbox.NewDesk(f.db.schema)
				err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					if err := desk.Pause(ctx, tx, args[0], who, act.reason); err != nil {
						return err
					}
					return d.record(ctx, tx, who, "consumers.pause", "group:"+args[0], act.reason, map[string]any{"group": args[0], "paused": true})
				})
				if err != nil {
					return fmt.Errorf("group %s: %w", args[0], err)
				}
				return awaitStill(ctx, s, d, desk, args[0], wait, f.asJSON)
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "how long to wait for handlers to end")
	return cmd
}

// awaitStill shows what members still do until none does anything.
func awaitStill(ctx context.Context, s Streams, d delivery, desk *inbox.Desk, group string, wait time.Duration, asJSON bool) error {
	deadline := time.Now().Add(wait)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	show := onceASecond()
	for {
		list, err := desk.Groups(ctx, d.pool, group)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return errors.New("the group is gone")
		}
		late := time.Now().After(deadline)
		if list[0].Still || late {
			if asJSON {
				err = printJSON(s.Out, consumerOf(list[0]))
			} else {
				_, err = fmt.Fprintf(s.Out, "group %s is %s\n", group, consumerOf(list[0]).State)
			}
			if err == nil && !list[0].Still {
				err = exit(ExitWrong, fmt.Errorf("group %s: a member still works after %v, or has not seen the pause", group, wait))
			}
			return err
		}
		if show() {
			_, _ = fmt.Fprintf(s.Err, "group %s: %d members, %d messages being handled\n", group, list[0].Members, list[0].Busy)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func newConsumersResume(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "resume GROUP", Short: "Let a paused group go on", Args: cobra.ExactArgs(1),
		Long: `The act is audited. With --json it prints {"group", "state": "running"}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					if err := inbox.NewDesk(f.db.schema).Resume(ctx, tx, args[0]); err != nil {
						return err
					}
					return d.record(ctx, tx, who, "consumers.resume", "group:"+args[0], act.reason, map[string]any{"group": args[0], "paused": false})
				})
				switch {
				case err != nil:
					return fmt.Errorf("group %s: %w", args[0], err)
				case f.asJSON:
					return printJSON(s.Out, map[string]any{"group": args[0], "state": "running"})
				}
				_, err = fmt.Fprintf(s.Out, "group %s goes on\n", args[0])
				return err
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
