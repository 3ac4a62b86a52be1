package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/outbox"
)

func newWork(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "work", Short: "Durable work and scheduled messages: queues, quarantine", Args: cobra.NoArgs, RunE: showHelp}
	cmd.AddCommand(newWorkQueues(s), newWorkList(s), newWorkQuarantine(s),
		newWorkAct(s, "retry", "Give an item of the quarantine back to its queue", "goes back to its queue", (*work.Desk).Retry),
		newWorkAct(s, "drop", "Forget an item of the quarantine for good", "is forgotten", (*work.Desk).Drop))
	return cmd
}

// workQueue is a queue of durable work, as JSON shows it. Its field names are stable.
type workQueue struct {
	Queue            string  `json:"queue"`
	Due              int64   `json:"due"`
	Scheduled        int64   `json:"scheduled"`
	Retrying         int64   `json:"retrying"`
	Running          int64   `json:"running"`
	OldestDue        float64 `json:"oldest_due_seconds"`
	Dead             int64   `json:"dead"`
	Parked           int64   `json:"parked"`
	OldestQuarantine float64 `json:"oldest_quarantine_seconds"`
}

func newWorkQueues(s Streams) *cobra.Command {
	var f deliveryFlags
	cmd := &cobra.Command{
		Use: "queues", Short: "How the queues that hold anything stand", Args: cobra.NoArgs,
		Long: `With --json it prints {"queues": [{"queue", "due", "scheduled", "retrying", "running", "oldest_due_seconds", "dead", "parked",
"oldest_quarantine_seconds"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				list, err := work.NewDesk(f.db.schema).Stats(ctx, d.pool, "")
				if err != nil {
					return err
				}
				all := []workQueue{}
				var rows [][]string
				n := func(n int64) string { return strconv.FormatInt(n, 10) }
				for _, q := range list {
					all = append(all, workQueue{q.Queue, q.Due, q.Scheduled, q.Retrying, q.Running, q.OldestDue.Seconds(), q.Dead, q.Parked, q.OldestQuarantine.Seconds()})
					rows = append(rows, []string{q.Queue, n(q.Due), n(q.Scheduled), n(q.Retrying), n(q.Running), q.OldestDue.Round(time.Second).String(), n(q.Dead), n(q.Parked)})
				}
				if f.asJSON {
					return printJSON(s.Out, map[string]any{"queues": all})
				}
				return table(s.Out, []string{"QUEUE", "DUE", "SCHEDULED", "RETRYING", "RUNNING", "OLDEST DUE", "DEAD", "PARKED"}, rows)
			})
		},
	}
	f.add(cmd)
	return cmd
}

// workItem is an item, as JSON shows it.
type workItem struct {
	Row       int64      `json:"row"`
	State     string     `json:"state"` // waiting, running, dead or parked
	Queue     string     `json:"queue"`
	ID        string     `json:"id"`
	Key       string     `json:"key"`
	Attempts  int        `json:"attempts"`
	Class     string     `json:"class,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Error     string     `json:"error"`
	Put       time.Time  `json:"put"`
	NotBefore time.Time  `json:"not_before"`
	Next      *time.Time `json:"next,omitempty"`
	Died      *time.Time `json:"died,omitempty"`
	Owner     string     `json:"owner,omitempty"`
	Lease     *time.Time `json:"lease_until,omitempty"`
}

func printItems(s Streams, asJSON bool, items []workItem) error {
	if asJSON {
		return printJSON(s.Out, map[string]any{"items": append([]workItem{}, items...)})
	}
	var rows [][]string
	for _, i := range items {
		at := i.Next
		if i.Died != nil {
			at = i.Died
		}
		rows = append(rows, []string{strconv.FormatInt(i.Row, 10), i.State, i.Queue, i.ID, i.Key, strconv.Itoa(i.Attempts), moment(*at), i.Reason, i.Error})
	}
	return table(s.Out, []string{"ROW", "STATE", "QUEUE", "ID", "KEY", "ATTEMPTS", "NEXT OR DIED", "REASON", "ERROR"}, rows)
}

func newWorkList(s Streams) *cobra.Command {
	var f deliveryFlags
	var queue string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List items that wait or are being done, by queue and time", Args: cobra.NoArgs,
		Long: `With --json it prints {"items": [{"row", "state", "queue", "id", "key", "attempts", "error", "put", "not_before", "next", "owner", "lease_until"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				list, err := work.NewDesk(f.db.schema).List(ctx, d.pool, queue, limit)
				if err != nil {
					return err
				}
				var items []workItem
				for _, w := range list {
					i := workItem{Row: w.Row, State: "waiting", Queue: w.Queue, ID: w.ID, Key: w.Key, Attempts: w.Attempts, Error: w.LastError, Put: w.Put, NotBefore: w.NotBefore, Next: &w.Next}
					if w.Lease != nil {
						i.State, i.Owner, i.Lease = "running", w.Owner, w.Lease
					}
					items = append(items, i)
				}
				return printItems(s, f.asJSON, items)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&queue, "queue", "", "only of this queue")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

func newWorkQuarantine(s Streams) *cobra.Command {
	var f deliveryFlags
	var queue string
	var limit int
	cmd := &cobra.Command{
		Use: "quarantine", Short: "List items that a person must decide about, the oldest first", Args: cobra.NoArgs,
		Long: `With --json it prints {"items": [{"row", "state", "queue", "id", "key", "attempts", "class", "reason", "error", "put", "not_before", "died"}]}.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				list, err := work.NewDesk(f.db.schema).Quarantine(ctx, d.pool, queue, limit)
				if err != nil {
					return err
				}
				var items []workItem
				for _, q := range list {
					items = append(items, workItem{
						Row: q.Row, State: q.State, Queue: q.Queue, ID: q.ID, Key: q.Key, Attempts: q.Attempts, Class: q.Class, Reason: q.Reason,
						Error: q.Error, Put: q.Put, NotBefore: q.NotBefore, Died: &q.Died,
					})
				}
				return printItems(s, f.asJSON, items)
			})
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&queue, "queue", "", "only of this queue")
	cmd.Flags().IntVar(&limit, "limit", 100, "at most this many")
	return cmd
}

// newWorkAct makes a command that does something to one item of the quarantine.
func newWorkAct(s Streams, name, short, told string, do func(d *work.Desk, ctx context.Context, tx outbox.Execer, row int64) error) *cobra.Command {
	var f deliveryFlags
	var act actFlags
	cmd := &cobra.Command{
		Use: name + " ROW", Short: short, Args: cobra.ExactArgs(1),
		Long: `ROW is the number that "journeyman work quarantine" shows. The act is audited. With --json it prints {"row", "action"}.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			row, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || row < 1 {
				return exit(ExitUsage, fmt.Errorf("row %q: want a number as the quarantine shows it", args[0]))
			}
			who, err := actor(act.actor, s)
			if err != nil {
				return err
			}
			return f.with(cmd, s, func(ctx context.Context, d delivery) error {
				desk := work.NewDesk(f.db.schema)
				err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
					is, err := desk.Show(ctx, tx, row)
					if err == nil {
						err = do(desk, ctx, tx, row)
					}
					if err != nil {
						return err
					}
					return d.record(ctx, tx, who, "work."+name, fmt.Sprintf("work:%d", row), act.reason, map[string]any{
						"queue": is.Queue, "id": is.ID, "key": is.Key, "was": is.State, "why": is.Reason, "attempts": is.Attempts,
					})
				})
				switch {
				case errors.Is(err, work.ErrNotQuarantined):
					return exit(ExitMissing, fmt.Errorf("row %d: %w", row, err))
				case err != nil:
					return err
				case f.asJSON:
					return printJSON(s.Out, map[string]any{"row": row, "action": name})
				}
				_, err = fmt.Fprintf(s.Out, "item %d %s\n", row, told)
				return err
			})
		},
	}
	f.add(cmd)
	act.add(cmd)
	return cmd
}
