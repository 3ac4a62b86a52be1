// Replay: a projection turned out wrong, and is built anew from the event log,
// beside the old one, while the shop goes on selling.
//
//	DATABASE_URL="host=/var/run/postgresql user=me" go run ./examples/replay
//
// The order of things at the end is what makes it safe: first the replay, up to
// the moment it began; then the live handler of the new projection, which gets
// at least everything since. Where both bring the same sale, the sequence of the
// customer's key tells that it was counted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/replay"
	"github.com/vitrip/journeyman/examples/local"
	"github.com/vitrip/journeyman/outbox"
)

func main() {
	local.Main("replay", func(ctx context.Context, dsn string) error { return run(ctx, os.Stdout, dsn, 3000) })
}

// run sells, finds the projection wrong, and rebuilds it in two goes: the first is stopped half way.
func run(ctx context.Context, out io.Writer, dsn string, sales int) error {
	s, err := open(ctx, dsn)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.sell(ctx, sales); err != nil {
		return err
	}
	if err := s.report(ctx, out, "wrong", "spent"); err != nil {
		return err
	}

	// Count first: nothing is written.
	source := replay.FromLog(s.pool, "", nil)
	choice := replay.Filter{Types: []string{"shop.sale.closed"}}
	runner, err := replay.New(replay.Config{DB: s.pool, Stager: s.stager})
	if err != nil {
		return err
	}
	plan, err := runner.Plan(ctx, source, choice, nil)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "a replay would deliver %d sales of %d customers\n", plan.Messages, plan.Keys); err != nil {
		return err
	}

	// The handler, its rows and the replay's place commit together: stopped or
	// killed anywhere, each sale is counted once.
	target := replay.Apply("spent_anew", nil, countRight)
	half, stop := context.WithCancel(ctx)
	defer stop()
	impatient, err := replay.New(replay.Config{DB: s.pool, Stager: s.stager, Progress: func(p replay.Replay) {
		if p.Delivered*2 >= plan.Messages {
			stop()
		}
	}})
	if err != nil {
		return err
	}
	p, err := impatient.Start(half, replay.Request{
		Actor: "ann", Reason: "refunds were counted as sales", Source: source, Target: target, Mode: events.ReplayAgain, Filter: choice,
	})
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the first go ended with %w", err)
	}
	if _, err := fmt.Fprintf(out, "stopped: %s\n", p.State); err != nil {
		return err
	}
	if err := s.sell(ctx, 10); err != nil { // the shop goes on; these are the live handler's
		return err
	}
	if p, err = runner.Resume(ctx, p.ID, source, target, nil); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "resumed: %s after %d sales\n", p.State, p.Delivered); err != nil {
		return err
	}
	if err := s.goLive(ctx); err != nil {
		return err
	}
	return s.report(ctx, out, "right", "spent_anew")
}

// countWrong is how the old projection counts: it takes refunds for sales.
func countWrong(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	return count(ctx, tx, m, "spent", func(cents int64) int64 { return max(cents, -cents) })
}

// countRight is how the new one does.
func countRight(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	return count(ctx, tx, m, "spent_anew", func(cents int64) int64 { return cents })
}

func count(ctx context.Context, tx *outbox.Tx, m events.Received, table string, worth func(int64) int64) error {
	var sale struct{ Cents int64 }
	if err := m.Decode(&sale); err != nil {
		return err
	}
	// Sequences of a key grow in the order in which its messages come: one that is not behind the last was counted.
	_, err := tx.Exec(ctx, `
		INSERT INTO `+table+` AS s (customer, cents, sequence) VALUES ($1, $2, $3)
		ON CONFLICT (customer) DO UPDATE SET cents = s.cents + excluded.cents, sequence = excluded.sequence WHERE s.sequence < excluded.sequence`,
		m.Metadata.BusinessKey, worth(sale.Cents), m.Metadata.Sequence)
	return err
}
