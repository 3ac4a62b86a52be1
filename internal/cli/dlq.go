package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/schema/codec"
)

func newDLQ(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "dlq", Short: "Messages that consumers set aside", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newDLQList(s), newDLQHeaps(s), newDLQShow(s), newDLQRedrive(s), newDLQEdit(s), newDLQDrop(s), newDLQForward(s))
	return cmd
}

// dead is a message that was set aside, as JSON shows it. Its field names are stable.
type dead struct {
	ID          int64     `json:"id"`
	Group       string    `json:"group"`
	State       string    `json:"state"`
	BusinessKey string    `json:"business_key"`
	MessageID   string    `json:"message_id"`
	Type        string    `json:"type"`
	Topic       string    `json:"topic"`
	Partition   int       `json:"partition"`
	Offset      int64     `json:"offset"`
	Attempts    int       `json:"attempts"`
	Class       string    `json:"class"`
	Reason      string    `json:"reason"`
	Error       string    `json:"error"`
	Sent        time.Time `json:"sent"`
	First       time.Time `json:"first"`
	Died        time.Time `json:"died"`
	Headers     []pair    `json:"headers,omitempty"`
	Body        []byte    `json:"body,omitempty"` // base64
	Story       []told    `json:"story,omitempty"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// told is one act of a message's story.
type told struct {
	At           time.Time `json:"at"`
	Actor        string    `json:"actor"`
	Action       string    `json:"action"`
	Reason       string    `json:"reason"`
	RootCause    string    `json:"root_cause"`
	Target       string    `json:"target"`
	MessageID    string    `json:"message_id"`
	NewMessageID string    `json:"new_message_id,omitempty"`
	Error        string    `json:"error"` // of which it had been set aside
}

func deadOf(m inbox.Dead) dead {
	return dead{
		ID: m.ID, Group: m.Group, State: m.State, BusinessKey: m.BusinessKey, MessageID: m.MessageID, Type: m.Type, Topic: m.Position.Topic,
		Partition: m.Position.Partition, Offset: m.Position.Offset, Attempts: m.Attempts, Class: m.Class, Reason: m.Reason, Error: m.Error,
		Sent: m.Sent, First: m.First, Died: m.Died,
	}
}

// letters makes the desk. Acts are audited in their own transaction.
func (d delivery) letters(schemaName string, edit func(*deadletter.Config)) (*deadletter.Desk, error) {
	cfg := deadletter.Config{DB: d.pool, Schema: schemaName, Keys: d.keys, Audit: func(ctx context.Context, tx pgx.Tx, a deadletter.Act) error {
		return d.record(ctx, tx, a.Actor, "dlq."+a.Action, "letter:"+strconv.FormatInt(a.Letter.ID, 10), a.Reason, map[string]any{
			"root_cause": a.RootCause, "target": a.Target, "message_id": a.Letter.MessageID, "new_message_id": a.NewMessageID, "group": a.Letter.Group,
		})
	}}
	if d.bus != nil {
		cfg.Publisher = d.bus
	}
	if edit != nil {
		edit(&cfg)
	}
	desk, err := deadletter.New(cfg)
	return desk, exit(ExitUsage, err)
}

// heapFlags choose messages.
type heapFlags struct {
	filter deadletter.Filter
	limit  int
}

func (f *heapFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.filter.Group, "group", "", "only of this consumer group")
	cmd.Flags().StringVar(&f.filter.Type, "type", "", "only of this message type")
	cmd.Flags().StringVar(&f.filter.Reason, "why", "", "only set aside for this reason, for example poisoned")
	cmd.Flags().StringVar(&f.filter.BusinessKey, "key", "", "only of this business key")
	cmd.Flags().StringVar(&f.filter.State, "state", "", "only dead, or parked")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most this many")
}

func newDLQList(s Streams) *cobra.Command {
	var f deliveryFlags
	var h heapFlags
	cmd := &cobra.Command{
		Use: "list", Short: "List messages in the order in which they were set aside", Args: cobra.NoArgs,
		Long: `With --json it prints {"letters": [{"id", "group", "state", "business_key", "message_id", "type", "topic", "partition", "offset",
"attempts", "class", "reason", "error", "sent", "first", "died"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk, err := d.letters(f.db.schema, nil)
				if err != nil {
					return err
				}
				list, err := desk.List(ctx, h.filter, h.limit)
				if err != nil {
					return err
				}
				all := []dead{}
				var rows [][]string
				for _, m := range list {
					all = append(all, deadOf(m))
					rows = append(rows, []string{strconv.FormatInt(m.ID, 10), m.State, m.Group, m.Type, m.BusinessKey, m.Reason, strconv.Itoa(m.Attempts), moment(m.Died), m.Error})
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"letters": all})
				}
				return table(s.Out, []string{"ID", "STATE", "GROUP", "TYPE", "BUSINESS KEY", "REASON", "ATTEMPTS", "DIED", "ERROR"}, rows)
			})
		},
	}
	f.add(cmd)
	h.add(cmd)
	return cmd
}

func newDLQHeaps(s Streams) *cobra.Command {
	var f deliveryFlags
	var group string
	cmd := &cobra.Command{
		Use: "heaps", Short: "Count messages by group, type and reason", Args: cobra.NoArgs,
		Long: `With --json it prints {"depth": {"dead", "parked", "unforwarded", "refused"}, "heaps": [{"group", "state", "type", "reason", "count", "first", "last", "error"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk, err := d.letters(f.db.schema, nil)
				if err != nil {
					return err
				}
				depth, err := desk.Depth(ctx)
				if err != nil {
					return err
				}
				heaps, err := desk.Heaps(ctx, group)
				if err != nil {
					return err
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"depth": depth, "heaps": append([]deadletter.Heap{}, heaps...)})
				}
				var rows [][]string
				for _, h := range heaps {
					rows = append(rows, []string{strconv.FormatInt(h.Count, 10), h.State, h.Group, h.Type, h.Reason, moment(h.First), moment(h.Last), h.Error})
				}
				return table(s.Out, []string{"COUNT", "STATE", "GROUP", "TYPE", "REASON", "FIRST", "LAST", "LATEST ERROR"}, rows)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&group, "group", "", "only of this consumer group")
	return cmd
}

func newDLQShow(s Streams) *cobra.Command {
	var f deliveryFlags
	var body bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show one message with its headers and its story", Args: cobra.ExactArgs(1),
		Long: `Show prints a message and what was done with it before. Its body only with --body: it may hold what others must not see.
With --json it prints the object that list has, with "headers", "story" and, with --body, "body" in base64.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				m, err := inbox.NewDesk(f.db.schema).Show(ctx, d.pool, ids[0])
				if err != nil {
					return err
				}
				desk, err := d.letters(f.db.schema, nil)
				if err != nil {
					return err
				}
				out := deadOf(m)
				for _, h := range m.Headers {
					out.Headers = append(out.Headers, pair{h.Name, h.Value})
				}
				story, err := desk.Story(ctx, m.MessageID)
				if err != nil {
					return err
				}
				for _, a := range story {
					out.Story = append(out.Story, told{a.At, a.Actor, a.Action, a.Reason, a.RootCause, a.Target, a.Letter.MessageID, a.NewMessageID, a.Letter.Error})
				}
				if body {
					if out.Body, err = desk.Clear(m); err != nil {
						return err
					}
				}
				if f.asJSON {
					return printJSON(s.Out, out)
				}
				return printDead(s, out)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&body, "body", false, "with the body, opened when it is encrypted")
	return cmd
}

func printDead(s Streams, m dead) error {
	if err := facts(s.Out, "id", strconv.FormatInt(m.ID, 10), "state", m.State, "group", m.Group, "type", m.Type, "business key", m.BusinessKey, "message id", m.MessageID,
		"position", fmt.Sprintf("%s/%d at %d", m.Topic, m.Partition, m.Offset), "reason", m.Reason, "class", m.Class, "error", m.Error, "attempts", strconv.Itoa(m.Attempts),
		"sent", moment(m.Sent), "first attempt", moment(m.First), "set aside", moment(m.Died)); err != nil {
		return err
	}
	for _, h := range m.Headers {
		if _, err := fmt.Fprintf(s.Out, "  %s: %s\n", plain(h.Name), plain(h.Value)); err != nil {
			return err
		}
	}
	for _, a := range m.Story {
		if _, err := fmt.Fprintf(s.Out, "%s  %s %s: %s (root cause: %s) %s %s\n", moment(a.At), plain(a.Actor), a.Action, plain(a.Reason), plain(a.RootCause), plain(a.Target), a.NewMessageID); err != nil {
			return err
		}
	}
	if m.Body != nil {
		_, err := fmt.Fprintln(s.Out, plain(string(m.Body)))
		return err
	}
	return nil
}

func letterIDs(args []string) ([]int64, error) {
	var ids []int64
	for _, a := range args {
		id, err := strconv.ParseInt(a, 10, 64)
		if err != nil || id < 1 {
			return nil, exit(ExitUsage, fmt.Errorf("id %q: want the number that list shows", a))
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// causeFlags say why a message may go once more.
type causeFlags struct {
	actFlags
	cause                string
	explicit, outOfOrder bool
	keep                 time.Duration
}

func (f *causeFlags) add(cmd *cobra.Command) {
	f.actFlags.add(cmd)
	cmd.Flags().StringVar(&f.cause, "root-cause", "", "what had gone wrong")
	cmd.Flags().BoolVar(&f.explicit, "explicit", false, "in explicit replay mode: for messages older than inboxes remember")
	cmd.Flags().BoolVar(&f.outOfOrder, "out-of-order", false, "although older messages of the key stay")
	cmd.Flags().DurationVar(&f.keep, "inbox-keep", 14*24*time.Hour, "how long the group's inbox remembers")
	_ = cmd.MarkFlagRequired("root-cause") // the flag exists
}

func newDLQRedrive(s Streams) *cobra.Command {
	var f deliveryFlags
	var c causeFlags
	var group, topic string
	var rate int
	cmd := &cobra.Command{
		Use: "redrive ID...", Short: "Give messages back to their group, or send them elsewhere", Args: cobra.MinimumNArgs(1),
		Long: `Redrive acts on exactly the ids given, in the order in which they were set aside. A message whose key has an older one that
stays is refused. It ends with 3 when some went and some did not, with 1 when none went.
With --json it prints {"results": [{"id", "message_id", "target", "error"}]}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			who, err := actor(c.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk, err := d.letters(f.db.schema, func(cfg *deadletter.Config) { cfg.InboxKeep = c.keep })
				if err != nil {
					return err
				}
				show := onceASecond()
				n := 0
				results, err := desk.Redrive(ctx, deadletter.Request{
					Why: deadletter.Why{Actor: who, Reason: c.reason, RootCause: c.cause}, IDs: ids, Group: group, Topic: topic,
					Explicit: c.explicit, OutOfOrder: c.outOfOrder, Rate: rate,
				}, func(deadletter.Result) {
					if n++; show() {
						_, _ = fmt.Fprintf(s.Err, "%d of %d\n", n, len(ids))
					}
				})
				return showResults(s, results, err, f.asJSON)
			})
		},
	}
	f.add(cmd)
	f.bus.addConnection(cmd)
	c.add(cmd)
	cmd.Flags().StringVar(&group, "to-group", "", "send to this group instead")
	cmd.Flags().StringVar(&topic, "to-topic", "", "publish to this topic instead; needs --kafka or --nats")
	cmd.Flags().IntVar(&rate, "rate", 0, "messages a second, 0 means no limit")
	return cmd
}

func showResults(s Streams, results []deadletter.Result, err error, asJSON bool) error {
	type result struct {
		ID           int64  `json:"id"`
		MessageID    string `json:"message_id"`
		NewMessageID string `json:"new_message_id,omitempty"`
		Target       string `json:"target"`
		Error        string `json:"error"`
	}
	all := []result{}
	went := 0
	for _, r := range results {
		one := result{r.ID, r.MessageID, r.NewMessageID, r.Target, ""}
		if r.Err != nil {
			one.Error = r.Err.Error()
		} else {
			went++
		}
		all = append(all, one)
	}
	var printing error
	if asJSON {
		printing = printJSON(s.Out, map[string]any{"results": all})
	} else {
		for _, r := range all {
			text := "went to " + r.Target
			if r.Error != "" {
				text = r.Error
			} else if r.NewMessageID != "" {
				text += " as " + r.NewMessageID
			}
			if _, printing = fmt.Fprintf(s.Out, "%d  %s  %s\n", r.ID, r.MessageID, plain(text)); printing != nil {
				break
			}
		}
	}
	switch {
	case printing != nil:
		return printing
	case err != nil:
		return err
	case went == len(results):
		return nil
	case went > 0:
		return exit(ExitPartly, errSilent)
	}
	return exit(ExitWrong, errSilent)
}

func newDLQEdit(s Streams) *cobra.Command {
	var f deliveryFlags
	var c causeFlags
	var file, dir string
	cmd := &cobra.Command{
		Use: "edit ID", Short: "Send a mended copy to the group, under a new linked id", Args: cobra.ExactArgs(1),
		Long: `Edit reads the new data of a message, a JSON object, from a file or standard input. All else of the message stays. The copy has
a new id and names the original as its cause; the original stays in the story. With --dir the data must fit the catalog's schema.
With --json it prints {"results": [{"id", "message_id", "new_message_id", "target", "error"}]}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			who, err := actor(c.actor, s)
			if err != nil {
				return err
			}
			data, err := dataFrom(s, file)
			if err != nil {
				return exit(ExitUsage, fmt.Errorf("--data: %w", err))
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk, err := d.letters(f.db.schema, func(cfg *deadletter.Config) { cfg.InboxKeep = c.keep })
				if err == nil && dir != "" {
					desk, err = d.checked(f.db.schema, dir, c.keep)
				}
				if err != nil {
					return err
				}
				res, err := desk.Edit(ctx, deadletter.EditRequest{
					Why: deadletter.Why{Actor: who, Reason: c.reason, RootCause: c.cause}, ID: ids[0], Data: data, Explicit: c.explicit, OutOfOrder: c.outOfOrder,
				})
				if err != nil {
					return err
				}
				return showResults(s, []deadletter.Result{res}, nil, f.asJSON)
			})
		},
	}
	f.add(cmd)
	c.add(cmd)
	cmd.Flags().StringVar(&file, "data", "-", "file with the new data, - means standard input")
	cmd.Flags().StringVar(&dir, "dir", "", "folder with the catalogs, to check the data")
	return cmd
}

// checked makes a desk that checks data against the catalogs below a folder.
func (d delivery) checked(schemaName, dir string, keep time.Duration) (*deadletter.Desk, error) {
	catalog, err := catalogsBelow(dir)
	if err != nil {
		return nil, exit(ExitUsage, fmt.Errorf("--dir: %w", err))
	}
	schemas, err := codec.Compile(catalog)
	if err != nil {
		return nil, exit(ExitUsage, fmt.Errorf("--dir: %w", err))
	}
	return d.letters(schemaName, func(cfg *deadletter.Config) { cfg.Schemas, cfg.InboxKeep = schemas, keep })
}

// maxData bounds what edit reads.
const maxData = 10 << 20

func dataFrom(s Streams, file string) (json.RawMessage, error) {
	in := s.In
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // a file the user points at
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	return io.ReadAll(io.LimitReader(in, maxData))
}

func newDLQDrop(s Streams) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: "drop ID...", Short: "Take messages away for good; their story keeps them", Args: cobra.MinimumNArgs(1),
		Long: `It ends with 3 when some went and some did not, with 1 when none went. With --json it prints {"results": [{"id", "message_id", "target", "error"}]}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := letterIDs(args)
			if err != nil {
				return err
			}
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk, err := d.letters(f.db.schema, nil)
				if err != nil {
					return err
				}
				var results []deadletter.Result
				for _, id := range ids {
					results = append(results, deadletter.Result{ID: id, Target: "nowhere", Err: desk.Drop(ctx, id, deadletter.Why{Actor: who, Reason: act.reason})})
				}
				return showResults(s, results, ctx.Err(), f.asJSON)
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}

func newDLQForward(s Streams) *cobra.Command {
	var f deliveryFlags
	var dir, level string
	var replication int
	cmd := &cobra.Command{
		Use: "forward", Short: "Copy messages that were set aside to the catalog's DLQ topics, until stopped", Args: cobra.NoArgs,
		Long: `Forward creates the DLQ topics that the catalogs below --dir name and copies to them what consumers set aside, with the
original bytes and the story as headers. Any number may run; one at a time copies. Ctrl-C ends it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := required(cmd, "dsn", f.bus.needs()); err != nil {
				return err
			}
			catalog, err := catalogsBelow(dir)
			if err != nil {
				return exit(ExitUsage, err)
			}
			log, err := newLog(s, "journeyman-dlq-forward", level)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				if err := d.bus.EnsureTopics(ctx, replication, deadletter.Topics(catalog)...); err != nil {
					return exit(ExitMissing, err)
				}
				fw, err := deadletter.NewForwarder(deadletter.ForwarderConfig{DB: d.pool, Schema: f.db.schema, Publisher: d.bus, Catalog: catalog, Keys: d.keys, Log: log})
				if err != nil {
					return exit(ExitUsage, err)
				}
				return fw.Run(ctx)
			})
		},
	}
	f.add(cmd)
	f.bus.addConnection(cmd)
	cmd.Flags().StringVar(&dir, "dir", ".", "folder with the catalogs")
	cmd.Flags().IntVar(&replication, "replication", 3, "copies of each partition of a topic that is created, at least so many of one that exists")
	cmd.Flags().StringVar(&level, "log-level", "info", "trace, debug, info, warn, error or disabled")
	return cmd
}
