package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
)

// prefixed asks a shared broker by the names that the test's topics and groups have there.
type prefixed struct {
	events.LagReader
	prefix string
	refuse string // a group that the broker does not tell of
}

func (p prefixed) Lag(ctx context.Context, group string, topics ...string) ([]events.Lag, error) {
	if group == p.refuse {
		return nil, errors.New("not authorized")
	}
	own := make([]string, len(topics))
	for n, t := range topics {
		own[n] = p.prefix + t
	}
	lags, err := p.LagReader.Lag(ctx, p.prefix+group, own...)
	for n := range lags {
		lags[n].Topic = strings.TrimPrefix(lags[n].Topic, p.prefix)
	}
	return lags, err
}

func (p prefixed) TimeAt(ctx context.Context, at events.Position) (time.Time, error) {
	at.Topic = p.prefix + at.Topic
	return p.LagReader.TimeAt(ctx, at)
}

func (f *fixture) watch(refuse string) *inbox.LagWatch {
	f.Helper()
	w, err := inbox.WatchLag(inbox.LagConfig{Reader: prefixed{f.lag, f.mine, refuse}, DB: f.pool, Every: time.Minute, Within: 20 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	return w
}

func TestLagWatch_V3(t *testing.T) { onEach(t, testLagWatchV3) }

// The watch finds the groups, what they have not finished and how old that is; a group that catches up is at 0.
func testLagWatchV3(t *testing.T, f *fixture) {
	stop := f.run(apply)
	f.publish(f.created("K", 1))
	f.eventually("the first message", func() bool { return f.applied() == 1 && f.behind() == 0 })
	stop()
	f.publish(f.created("K", 2), f.created("K", 3))
	w := f.watch("")
	behind := func() (n int64, oldest time.Duration) {
		t.Helper()
		if err := w.Look(f.ctx); err != nil {
			t.Fatal(err)
		}
		for _, l := range w.View().Partitions {
			if l.Group != "view" {
				t.Errorf("group %q", l.Group)
			}
			n, oldest = n+l.Behind, max(oldest, l.OldestAge)
		}
		return n, oldest
	}
	n, first := behind()
	if n != 2 || first <= 0 || first > time.Minute {
		t.Errorf("%d behind, the oldest for %v, want 2 and a moment", n, first)
	}
	if _, later := behind(); later <= first {
		t.Errorf("the oldest is %v old, later %v", first, later)
	}
	var page bytes.Buffer
	if err := w.WriteMetrics(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`journeyman_consumer_lag{topic="test.thing.created.v1",group="view",partition="`, "} 2\n", `journeyman_consumer_oldest_unprocessed_age_seconds{topic="test.thing.created.v1",group="view",`,
		`journeyman_consumer_members{group="view",schema="journeyman"} 0`, "journeyman_consumer_lag_unknown 0\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("metrics lack %q:\n%s", want, page.String())
		}
	}
	f.run(apply)
	f.eventually("the rest", func() bool { return f.applied() == 3 && f.behind() == 0 })
	if n, oldest := behind(); n != 0 || oldest != 0 {
		t.Errorf("%d behind, the oldest for %v, want nothing", n, oldest)
	}
}

// A group that the broker does not tell of is missing and counted; others are shown. Before the first look all is unknown.
func TestLagWatch_UnknownIsNotZero(t *testing.T) {
	t.Parallel()
	f := setup(t, transports()[0])
	w := f.watch("secret")
	unknown := func() string {
		t.Helper()
		var page bytes.Buffer
		if err := w.WriteMetrics(&page); err != nil {
			t.Fatal(err)
		}
		return page.String()
	}
	if got := unknown(); !strings.Contains(got, "journeyman_consumer_lag_unknown 1\n") {
		t.Errorf("before the first look:\n%s", got)
	}
	if _, err := f.pool.Exec(f.ctx, `
		INSERT INTO journeyman.inbox_group (consumer, topics) VALUES ('secret', '{test.thing.created.v1}'), ('view', '{test.thing.created.v1}')`); err != nil {
		t.Fatal(err)
	}
	if err := w.Look(f.ctx); err == nil || !strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "view") {
		t.Errorf("look: %v, want an error that names the group", err)
	}
	if got := unknown(); !strings.Contains(got, "journeyman_consumer_lag_unknown 1\n") || strings.Contains(got, `group="secret",partition`) || !strings.Contains(got, `group="view",partition="0"} 0`) {
		t.Errorf("one of two:\n%s", got)
	}
}

func TestWatchLag_RefusesAllMistakesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := inbox.WatchLag(inbox.LagConfig{Every: time.Second, Within: time.Second, Schemas: []string{"Bad-Schema"}})
	if err == nil {
		t.Fatal("taken")
	}
	for _, want := range []string{"reader and pool", "every 1s and within 1s", "Bad-Schema"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q: %v", want, err)
		}
	}
}
