package inbox_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
)

// Each version has its own handler with its own type; data that does not fit is dead, and so is a version nobody knows.
func TestByVersion_E6(t *testing.T) { onEach(t, testByVersionE6) }

func testByVersionE6(t *testing.T, f *fixture) {
	type v1 struct{ N int }
	type v2 struct {
		N              int
		IdempotencyKey string
	}
	write := func(ctx context.Context, tx *outbox.Tx, m events.Received, what string) error {
		_, err := tx.Exec(ctx, `INSERT INTO applied (key, id, body) VALUES ($1, $2, $3)`, m.Metadata.BusinessKey, m.MessageID, what)
		return err
	}
	f.runRoutes([]inbox.Route{inbox.ByVersion{
		1: inbox.Typed(func(ctx context.Context, tx *outbox.Tx, m events.Received, d v1) error {
			return write(ctx, tx, m, fmt.Sprintf("one %d", d.N))
		}),
		2: inbox.Typed(func(ctx context.Context, tx *outbox.Tx, m events.Received, d v2) error {
			return write(ctx, tx, m, fmt.Sprintf("two %d %s", d.N, d.IdempotencyKey))
		}),
	}.Route("test.thing.created"), {Types: []string{"test.*.counted"}, Handler: inbox.Typed(func(context.Context, *outbox.Tx, events.Received, struct{ N string }) error { return nil })}})
	f.publish(envelope(t, "test.thing.created", 1, events.NewID(), "a", 1), envelope(t, "test.thing.created", 2, events.NewID(), "b", 2),
		envelope(t, "test.thing.counted", 1, events.NewID(), "c", 3))
	f.eventually("two applied, one dead", func() bool { return f.applied() == 2 && len(f.dead()) == 1 })
	if n := f.count(`SELECT count(*) FROM applied WHERE (key, body) IN (('a', 'one 1'), ('b', 'two 2 idem-2'))`); n != 2 {
		t.Errorf("%d of two as their versions say", n)
	}
	if d := f.dead()[0]; d.Reason != inbox.ReasonData || d.BusinessKey != "c" {
		t.Errorf("got %s of %s", d.Reason, d.BusinessKey)
	}
}
