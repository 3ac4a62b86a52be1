package outbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
)

// TestStager_together: what several operations of one transaction stage together lies in the outbox as if each had staged alone: in
// order, with gapless sequences by key, headers and times untouched.
func TestStager_together(t *testing.T) {
	t.Parallel()
	f := setup(t)
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	msg := func(key string, n int) events.Message {
		return events.Message{Type: "test.thing.created", BusinessKey: key, OccurredAt: at.Add(time.Duration(n) * time.Second), Data: map[string]int{"n": n}}
	}
	odd := `quote " backslash \ {comma,} ä`
	var staged []*outbox.Staged
	for i, msgs := range [][]events.Message{{msg("A", 0), msg("B", 1)}, {msg("A", 2)}, nil, {msg("B", 3), msg("A", 4)}} {
		st, err := f.Prepare(events.Origin{OperationID: fmt.Sprint("op-", i), BusinessKey: "A", CorrelationID: odd}, msgs)
		if err != nil {
			t.Fatal(err)
		}
		staged = append(staged, st)
	}
	for range 2 { // the second time the keys are known
		b := &pgx.Batch{}
		b.Queue("BEGIN")
		if err := f.QueueStaged(b, staged, "C"); err != nil {
			t.Fatal(err)
		}
		if b.Len() != 3 {
			t.Errorf("%d statements, want BEGIN, one for the keys and one for all messages", b.Len())
		}
		b.Queue("COMMIT")
		if err := f.pool.SendBatch(f.ctx, b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := f.pool.Query(f.ctx, `SELECT business_key, seq, operation_id, extract(epoch FROM occurred_at - $1)::int, $2 = ANY (headers) FROM journeyman.outbox ORDER BY id`, at, odd)
	if err != nil {
		t.Fatal(err)
	}
	var got string
	var key, op string
	var seq, n int
	var whole bool
	if _, err := pgx.ForEachRow(rows, []any{&key, &seq, &op, &n, &whole}, func() error {
		got += fmt.Sprintln(key, seq, op, n, whole)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := "A 1 op-0 0 true\nB 1 op-0 1 true\nA 2 op-1 2 true\nB 2 op-3 3 true\nA 3 op-3 4 true\n" +
		"A 4 op-0 0 true\nB 3 op-0 1 true\nA 5 op-1 2 true\nB 4 op-3 3 true\nA 6 op-3 4 true\n"
	if got != want {
		t.Errorf("the outbox holds\n%swant\n%s", got, want)
	}
	var turn int
	if err := f.pool.QueryRow(f.ctx, `SELECT turn FROM journeyman.outbox_key WHERE business_key = 'C'`).Scan(&turn); err != nil || turn != 2 {
		t.Errorf("key C was locked %d times, want 2 (%v)", turn, err)
	}
	if _, err := f.Prepare(events.Origin{OperationID: "op"}, []events.Message{{Type: "test.thing.unknown", BusinessKey: "A"}}); err == nil {
		t.Error("an unknown message was prepared")
	}
}
