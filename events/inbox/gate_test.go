package inbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/outbox"
)

func (f *fixture) group() inbox.Group {
	f.Helper()
	list, err := f.desk.Groups(f.ctx, f.pool, "view")
	if err != nil {
		f.Fatal(err)
	}
	if len(list) != 1 {
		return inbox.Group{}
	}
	return list[0]
}

// A pause reaches every member, outlives restarts, and is over when it is resumed.
func TestPause_IsDurable(t *testing.T) { onEach(t, testPauseIsDurable) }

func testPauseIsDurable(t *testing.T, f *fixture) {
	stops := []func(){f.run(apply), f.run(apply)}
	f.publish(f.created("K", 1))
	f.eventually("the first message", func() bool { return f.applied() == 1 })
	if err := f.desk.Pause(f.ctx, f.pool, "view", "ann", "the price list is wrong"); err != nil {
		t.Fatal(err)
	}
	f.eventually("both members stand still", func() bool { g := f.group(); return g.Members == 2 && g.Still && g.Busy == 0 })
	if g := f.group(); g.Paused == nil || g.PausedBy != "ann" || g.Reason != "the price list is wrong" || len(g.Topics) != 3+1 {
		t.Errorf("got %+v", g)
	}
	if err := f.desk.Pause(f.ctx, f.pool, "view", "bob", "me too"); !errors.Is(err, inbox.ErrPaused) {
		t.Errorf("a second pause: got %v, want ErrPaused", err)
	}
	f.publish(f.created("K", 2))
	for _, stop := range stops {
		stop()
	}
	f.eventually("the members are gone", func() bool { return f.group().Members == 0 })
	f.run(apply) // a new process finds the pause
	f.eventually("the new member stands still", func() bool { g := f.group(); return g.Members == 1 && g.Still })
	if n := f.applied(); n != 1 {
		t.Errorf("%d messages applied while paused, want 1", n)
	}
	if err := f.desk.Resume(f.ctx, f.pool, "view"); err != nil {
		t.Fatal(err)
	}
	f.eventually("the second message", func() bool { return f.order("K") == "1 2" })
	if err := f.desk.Resume(f.ctx, f.pool, "view"); !errors.Is(err, inbox.ErrNotPaused) {
		t.Errorf("a second resume: got %v, want ErrNotPaused", err)
	}
}

// A pause lets handlers finish, and holds retries too.
func TestPause_FinishesWhatItTook(t *testing.T) { onEach(t, testPauseFinishesWhatItTook) }

func testPauseFinishesWhatItTook(t *testing.T, f *fixture) {
	began, release := make(chan struct{}), make(chan struct{})
	f.run(func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		if m.Metadata.BusinessKey == "slow" {
			close(began)
			<-release
		}
		if m.Metadata.BusinessKey == "sick" && m.Attempt == 1 {
			return errors.New("not yet")
		}
		return apply(ctx, tx, m)
	})
	f.publish(f.created("slow", 1))
	<-began
	if err := f.desk.Pause(f.ctx, f.pool, "view", "ann", "stop"); err != nil {
		t.Fatal(err)
	}
	f.eventually("the pause is seen, one is busy", func() bool { g := f.group(); return g.Paused != nil && !g.Still })
	close(release)
	f.eventually("it stands still", func() bool { return f.group().Still && f.applied() == 1 })
	if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.inbox_group SET paused_at = NULL`); err != nil {
		t.Fatal(err)
	}
	f.publish(f.created("sick", 1))
	f.eventually("the sick one", func() bool { return f.order("sick") == "1" })
}
