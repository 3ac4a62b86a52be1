package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/work"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/internal/postgres/pgtest"
	"github.com/vitrip/journeyman/outbox"
)

func migrated(t *testing.T) (*pgxpool.Pool, map[string]string) {
	t.Helper()
	pool := pgtest.Pool(t)
	if err := app.Migrate(context.Background(), pool, "journeyman", "records"); err != nil {
		t.Fatal(err)
	}
	return pool, map[string]string{"JOURNEYMAN_DSN": pool.Config().ConnString(), "USER": "ann"}
}

// audited counts audit rows of an action.
func audited(t *testing.T, pool *pgxpool.Pool, action, target string) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), `SELECT count(*) FROM journeyman.operator_audit WHERE action = $1 AND target = $2 AND reason <> ''`, action, target).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Pause and resume are durable, audited, and refuse to be done twice.
func TestConsumers_PauseAndResume(t *testing.T) {
	t.Parallel()
	pool, env := migrated(t)
	p := decode[consumer](t, env, ExitDone, "events", "consumers", "pause", "view", "--reason", "wrong prices")
	if p.State != "paused" || p.Reason != "wrong prices" || !strings.HasPrefix(p.PausedBy, "ann") {
		t.Errorf("pause %+v", p)
	}
	if code, _, errs := run(env, "events", "consumers", "pause", "view", "--reason", "again"); code != ExitWrong || !strings.Contains(errs, inbox.ErrPaused.Error()) {
		t.Errorf("a second pause: %d %s", code, errs)
	}
	if _, err := pool.Exec(context.Background(), `INSERT INTO journeyman.inbox_member VALUES ('view', 'm', journeyman.now(), 2, false)`); err != nil {
		t.Fatal(err)
	}
	l := decode[struct{ Groups []consumer }](t, env, ExitDone, "events", "consumers", "list")
	if len(l.Groups) != 1 || l.Groups[0].State != "pausing" || l.Groups[0].Members != 1 || l.Groups[0].Busy != 2 {
		t.Errorf("list %+v", l)
	}
	if r := decode[consumer](t, env, ExitDone, "events", "consumers", "resume", "view", "--reason", "right again"); r.State != "running" {
		t.Errorf("resume %+v", r)
	}
	if code, _, errs := run(env, "events", "consumers", "resume", "view", "--reason", "again"); code != ExitWrong || !strings.Contains(errs, "not paused") {
		t.Errorf("a second resume: %d %s", code, errs)
	}
	if code, _, _ := run(env, "events", "consumers", "list", "nobody"); code != ExitMissing {
		t.Errorf("list of a group that never ran: %d", code)
	}
	if code, _, errs := run(env, "events", "consumers", "lag", "view"); code != ExitUsage || !strings.Contains(errs, "kafka") {
		t.Errorf("lag without a broker: %d %s", code, errs)
	}
	if audited(t, pool, "consumers.pause", "group:view") != 1 || audited(t, pool, "consumers.resume", "group:view") != 1 {
		t.Error("not audited")
	}
}

// Items are listed, and given back or dropped with an audit row.
func TestWork_Quarantine(t *testing.T) {
	t.Parallel()
	pool, env := migrated(t)
	ctx := context.Background()
	store, err := work.NewStore("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Put(ctx, pool, work.Item{Queue: "checks", ID: "a"}, work.Item{Queue: "checks", ID: "b"}); err != nil {
		t.Fatal(err)
	}
	dead := make(chan struct{}, 2)
	r, err := work.NewRunner(pool, work.Config{Hooks: work.Hooks{Dead: func(string, string, string, bool) { dead <- struct{}{} }}},
		work.Queue{Name: "checks", Concurrency: 1, PoisonedAfter: 1, Handler: func(context.Context, *outbox.Tx, work.Task) error { return errors.New("never") }})
	if err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(running) }()
	<-dead
	<-dead
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	q := decode[struct{ Items []workItem }](t, env, ExitDone, "work", "quarantine")
	if len(q.Items) != 2 || q.Items[0].State != "dead" || q.Items[0].Reason != work.ReasonPoisoned {
		t.Fatalf("quarantine %+v", q)
	}
	first, second := strconv.FormatInt(q.Items[0].Row, 10), strconv.FormatInt(q.Items[1].Row, 10)
	decode[struct {
		Row    int64
		Action string
	}](t, env, ExitDone, "work", "retry", first, "--reason", "fixed")
	decode[struct {
		Row    int64
		Action string
	}](t, env, ExitDone, "work", "drop", second, "--reason", "not needed")
	if code, _, errs := run(env, "work", "drop", second, "--reason", "x"); code != ExitMissing || !strings.Contains(errs, "no such item") {
		t.Errorf("a second drop: %d %s", code, errs)
	}
	s := decode[struct{ Queues []workQueue }](t, env, ExitDone, "work", "queues")
	if len(s.Queues) != 1 || s.Queues[0].Due != 1 || s.Queues[0].Dead != 0 {
		t.Errorf("queues %+v", s)
	}
	if l := decode[struct{ Items []workItem }](t, env, ExitDone, "work", "list", "--queue", "checks"); len(l.Items) != 1 || l.Items[0].State != "waiting" {
		t.Errorf("list %+v", l)
	}
	if audited(t, pool, "work.retry", "work:"+first) != 1 || audited(t, pool, "work.drop", "work:"+second) != 1 {
		t.Error("not audited")
	}
}
