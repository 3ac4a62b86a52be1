package deadletter_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/deadletter"
	"github.com/vitrip/journeyman/events/inbox"
	schema "github.com/vitrip/journeyman/events/schema/json"
	"github.com/vitrip/journeyman/events/seal"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Messages go back to their group with a root cause, in their key's order however they were chosen; the story keeps everything.
func TestRedrive_E10_ToOriginInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var fixed atomic.Bool
	f.consume("view", inbox.ReplayRefused, func(events.Received) error {
		if !fixed.Load() {
			return outcome.Fatalf("flag", "unknown flag")
		}
		return nil
	})
	var sent []events.Record
	for n := 1; n <= 5; n++ {
		sent = append(sent, f.record("K-1", n), f.record("K-2", n))
	}
	f.publish(sent...)
	list := f.letters(10)
	d := f.desk()
	// Original bytes, headers and position.
	for _, m := range list {
		i := slices.IndexFunc(sent, func(r events.Record) bool { return r.Header(events.HeaderEventID) == m.MessageID })
		if string(m.Body) != string(sent[i].Body) || len(m.Headers) != 2 || m.Position.Topic != sent[i].Topic || m.Reason != "flag" || m.Attempts != 1 || m.Died.IsZero() {
			t.Errorf("dead letter %+v does not keep what came", m)
		}
	}
	if heaps, err := d.Heaps(f.ctx, ""); err != nil || len(heaps) != 1 || heaps[0].Count != 10 || heaps[0].Reason != "flag" {
		t.Errorf("heaps %+v, %v", heaps, err)
	}
	for what, w := range map[string]deadletter.Why{
		"root cause": {Actor: "ann", Reason: "fixed"}, "reason": {Actor: "ann", RootCause: "x"}, "actor": {Reason: "x", RootCause: "x"},
	} {
		if _, err := d.Redrive(f.ctx, deadletter.Request{Why: w, IDs: ids(list)}, nil); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("without %s: %v, want it refused", what, err)
		}
	}
	fixed.Store(true)
	third := list[slices.IndexFunc(list, func(m inbox.Dead) bool { return m.BusinessKey == "K-1" })+4]
	res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: []int64{third.ID, 99999}}, nil)
	if err != nil || len(res) != 2 || !errors.Is(res[0].Err, deadletter.ErrOutOfOrder) || !errors.Is(res[1].Err, deadletter.ErrNotFound) {
		t.Fatalf("a later message before an earlier: %+v, %v; want it refused", res, err)
	}
	all := ids(list)
	slices.Reverse(all)
	if res, err = d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: all, Rate: 1000}, nil); err != nil || len(res) != 10 {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, r := range res {
		if r.Err != nil || r.Target != "group:view" {
			t.Errorf("%+v", r)
		}
	}
	f.eventually("all of them", func() bool { return f.count(`SELECT count(*) FROM applied`) == 10 })
	for _, key := range []string{"K-1", "K-2"} {
		if got := f.order("view", key); got != "1 2 3 4 5" {
			t.Errorf("%s applied as %s", key, got)
		}
	}
	story, err := d.Story(f.ctx, third.MessageID)
	if err != nil || len(story) != 1 || story[0].Action != "redrive" || story[0].RootCause != why().RootCause || string(story[0].Letter.Body) != string(third.Body) || story[0].Letter.Error == "" {
		t.Errorf("story %+v, %v", story, err)
	}
	for _, sql := range []string{`UPDATE journeyman.dead_letter_act SET reason = 'x'`, `DELETE FROM journeyman.dead_letter_act`, `TRUNCATE journeyman.dead_letter_act`} {
		if _, err := f.pool.Exec(f.ctx, sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

// A message that fails again is set aside again, and its story grows.
func TestRedrive_E10_FailsAgain(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.consume("view", inbox.ReplayRefused, bad)
	f.publish(f.record("K", 1))
	d := f.desk()
	m := f.letters(1)[0]
	for range 2 {
		if res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: []int64{m.ID}}, nil); err != nil || res[0].Err != nil {
			t.Fatalf("%+v, %v", res, err)
		}
		before := m.ID
		f.eventually("its return", func() bool { m = f.letters(1)[0]; return m.ID != before })
	}
	if n := len(slices.DeleteFunc(slices.Clone(m.Headers), func(h events.Header) bool { return h.Name != events.HeaderRedriveID })); n != 1 {
		t.Errorf("%d redrive marks, want the last one alone: %v", n, m.Headers)
	}
	if err := d.Drop(f.ctx, m.ID, deadletter.Why{Actor: "ann"}); err == nil {
		t.Error("dropped without a reason")
	}
	if err := d.Drop(f.ctx, m.ID, deadletter.Why{Actor: "ann", Reason: "agreed with the owner"}); err != nil {
		t.Fatal(err)
	}
	story, err := d.Story(f.ctx, m.MessageID)
	if err != nil || len(story) != 3 || story[2].Action != "drop" || string(story[2].Letter.Body) != string(m.Body) {
		t.Errorf("story %+v, %v; want two redrives and a drop", story, err)
	}
	f.letters(0)
	if err := d.Drop(f.ctx, m.ID, why()); !errors.Is(err, deadletter.ErrNotFound) {
		t.Errorf("dropped twice: %v", err)
	}
}

// An edited message goes to its group under a new id that is linked to the original, with unknown fields kept.
func TestEdit_E10_NewLinkedID(t *testing.T) {
	t.Parallel()
	f := setup(t)
	headers := make(chan events.Received, 10)
	f.consume("view", inbox.ReplayRefused, func(m events.Received) error {
		headers <- m
		return bad(m)
	})
	r := f.record("K", 1)
	r.Body = append([]byte(`{"later":"a field of tomorrow",`), r.Body[1:]...)
	f.publish(r, f.record("K", 2))
	list := f.letters(2)
	schemas, err := schema.Compile(f.cat)
	if err != nil {
		t.Fatal(err)
	}
	d := f.desk(func(c *deadletter.Config) { c.Schemas = schemas })
	edit := func(id int64, data string) (deadletter.Result, error) {
		return d.Edit(f.ctx, deadletter.EditRequest{Why: why(), ID: id, Data: json.RawMessage(data)})
	}
	if _, err := edit(list[0].ID, `{"n": "one"}`); err == nil || !strings.Contains(err.Error(), "n") {
		t.Errorf("data that breaks the schema: %v, want it refused", err)
	}
	if _, err := edit(list[0].ID, `[1]`); err == nil {
		t.Error("data that is no object was taken")
	}
	if _, err := edit(list[1].ID, `{"n": 2, "good": true}`); !errors.Is(err, deadletter.ErrOutOfOrder) {
		t.Errorf("the second before the first: %v", err)
	}
	<-headers
	<-headers
	res, err := edit(list[0].ID, `{"n": 1, "good": true}`)
	if err != nil || res.NewMessageID == res.MessageID || res.MessageID != list[0].MessageID {
		t.Fatalf("%+v, %v", res, err)
	}
	m := <-headers
	if m.MessageID != res.NewMessageID || m.Metadata.Corrects != list[0].MessageID || m.Metadata.Sequence != 1 || m.Replay {
		t.Errorf("handler got %+v", m.Envelope)
	}
	f.eventually("the edited one", func() bool { return f.order("view", "K") == "1" })
	for _, id := range []string{res.MessageID, res.NewMessageID} {
		story, err := d.Story(f.ctx, id)
		if err != nil || len(story) != 1 || story[0].NewMessageID != res.NewMessageID || string(story[0].Letter.Body) != string(r.Body) {
			t.Errorf("story of %s: %+v, %v", id, story, err)
		}
	}
	if n := f.count(`SELECT count(*) FROM journeyman.dead_letter_act WHERE convert_from(new_body, 'UTF8')::jsonb->>'later' = 'a field of tomorrow'`); n != 1 {
		t.Error("a field we do not know was lost in the edit")
	}
}

// To another group and to a topic.
func TestRedrive_E10_Elsewhere(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.consume("view", inbox.ReplayRefused, func(events.Received) error { return outcome.Fatalf("x", "no") })
	one, two := f.record("K", 1), f.record("K", 2)
	f.publish(one, two)
	list := f.letters(2)
	d := f.desk()
	if res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: ids(list[:1]), Group: "other"}, nil); err != nil || res[0].Err != nil || res[0].Target != "group:other" {
		t.Fatalf("%+v, %v", res, err)
	}
	stop := f.consume("other", inbox.ReplayRefused, nil) // gets both live, and the first again, under the same id
	f.eventually("the other group", func() bool {
		return f.order("other", "K") == "1 2" && f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 0
	})
	stop()
	if err := f.broker.EnsureTopics(f.ctx, 1, events.TopicSpec{Name: "triage", Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	if res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: ids(list[1:]), Topic: "triage"}, nil); err != nil || res[0].Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	got := f.read("triage", 1)[0]
	if string(got.Body) != string(two.Body) || got.Key != "K" || got.Header(events.HeaderRedriveID) == "" {
		t.Errorf("topic got %+v", got.Record)
	}
	f.letters(0)
	if _, err := f.desk(func(c *deadletter.Config) { c.Publisher = nil }).Redrive(f.ctx, deadletter.Request{Why: why(), IDs: []int64{1}, Topic: "x"}, nil); err == nil {
		t.Error("a topic without a publisher was taken")
	}
}

// A message older than inboxes remember goes back in explicit mode only; a handler that takes no replays puts it back.
func TestRedrive_E10_OldOnesOnlyExplicitly(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var fixed atomic.Bool
	broken := func(m events.Received) error {
		if !fixed.Load() {
			return outcome.Fatalf("x", "no")
		}
		return nil
	}
	stop := f.consume("view", inbox.ReplayRefused, broken)
	f.publish(f.record("K", 1))
	m := f.letters(1)[0]
	if _, err := f.pool.Exec(f.ctx, `UPDATE journeyman.inbox_dead SET sent_at = now() - interval '20 days'`); err != nil {
		t.Fatal(err)
	}
	fixed.Store(true)
	d := f.desk()
	redrive := func(explicit bool) error {
		t.Helper()
		res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: []int64{f.letters(1)[0].ID}, Explicit: explicit}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return res[0].Err
	}
	if err := redrive(false); !errors.Is(err, deadletter.ErrTooOld) {
		t.Fatalf("got %v, want ErrTooOld", err)
	}
	if err := redrive(true); err != nil {
		t.Fatal(err)
	}
	f.eventually("its return", func() bool { l := f.letters(1)[0]; return l.ID != m.ID && l.Reason == inbox.ReasonReplay })
	stop()
	f.consume("view", inbox.ReplayQuiet, broken)
	if err := redrive(true); err != nil {
		t.Fatal(err)
	}
	f.eventually("the handler that takes replays", func() bool { return f.count(`SELECT count(*) FROM applied WHERE replay`) == 1 })
	f.letters(0)
}

// The audit that the caller brings commits with the act or undoes it.
func TestDesk_P2_AuditIsPartOfTheAct(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.consume("view", inbox.ReplayRefused, bad)
	f.publish(f.record("K", 1))
	m := f.letters(1)[0]
	var acts []deadletter.Act
	refuse := errors.New("audit is full")
	d := f.desk(func(c *deadletter.Config) {
		c.Audit = func(_ context.Context, _ pgx.Tx, a deadletter.Act) error {
			acts = append(acts, a)
			if len(acts) == 1 {
				return refuse
			}
			return nil
		}
	})
	if err := d.Drop(f.ctx, m.ID, why()); !errors.Is(err, refuse) {
		t.Fatalf("got %v, want the audit's error", err)
	}
	f.letters(1)
	if n := f.count(`SELECT count(*) FROM journeyman.dead_letter_act`); n != 0 {
		t.Error("an act without its audit was kept")
	}
	if err := d.Drop(f.ctx, m.ID, why()); err != nil || len(acts) != 2 || acts[1].Letter.MessageID != m.MessageID {
		t.Errorf("%v, %+v", err, acts)
	}
}

// Bodies that rest encrypted stay so on their way, and can be mended.
func TestEdit_E4_BodiesStayEncrypted(t *testing.T) {
	t.Parallel()
	f := setup(t, "encryption: {domain: at_rest}\n")
	folder := t.TempDir()
	if err := errors.Join(seal.Generate(folder, "k1"), seal.Use(folder, "k1")); err != nil {
		t.Fatal(err)
	}
	keys, err := seal.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	f.keys = keys
	stop := f.consume("view", inbox.ReplayRefused, bad)
	f.publish(f.record("K", 1), f.record("K", 2))
	list := f.letters(2)
	stop()
	clear := func(table string) int {
		return f.count(`SELECT count(*) FROM journeyman.` + table + ` WHERE position('messageId' IN encode(body, 'escape')) > 0`)
	}
	d := f.desk()
	if res, err := d.Edit(f.ctx, deadletter.EditRequest{Why: why(), ID: list[0].ID, Data: json.RawMessage(`{"n": 1, "good": true}`)}); err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := d.Redrive(f.ctx, deadletter.Request{Why: why(), IDs: ids(list[1:]), Group: "other"}, nil); err != nil || res[0].Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if n := clear("inbox_retry") + clear("dead_letter_act"); n != 0 || f.count(`SELECT count(*) FROM journeyman.inbox_retry`) != 2 {
		t.Errorf("%d bodies rest in the clear", n)
	}
	f.consume("view", inbox.ReplayRefused, bad)
	f.consume("other", inbox.ReplayRefused, nil)
	f.eventually("both groups", func() bool {
		return f.order("view", "K") == "1" && f.count(`SELECT count(*) FROM journeyman.inbox_retry`) == 0
	})
}

func TestNew_RefusesAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := deadletter.New(deadletter.Config{Schema: "Bad", InboxKeep: time.Hour})
	for _, want := range []string{"schema", "pool", "inbox keep"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %q", err, want)
		}
	}
}

// In a strict order what follows a dead message is held; given back, it goes first and the others follow (spec E4).
func TestRedrive_E4_StrictOrderGoesOn(t *testing.T) {
	t.Parallel()
	f := setup(t, `  - {type: test.saga.moved, class: saga, owner: test, producers: [tester], consumers: [view], retry: [20ms], partitions: 1}`+"\n")
	var fixed atomic.Bool
	order := make(chan int64, 10)
	i, err := inbox.New(f.broker, f.pool, inbox.Config{Group: "view", Catalog: f.cat, Concurrency: 4, Sweep: 20 * time.Millisecond},
		inbox.Route{Types: []string{"test.saga.moved"}, Handler: func(_ context.Context, _ *outbox.Tx, m events.Received) error {
			if m.Metadata.Sequence == 2 && !fixed.Load() {
				return outcome.Fatalf("x", "no")
			}
			order <- m.Metadata.Sequence
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	f.background(i.Run)
	for n := 1; n <= 4; n++ {
		r := f.record("S", n)
		r.Topic = "test.saga.moved.v1"
		r.Body = []byte(strings.NewReplacer("test.thing.created", "test.saga.moved", `"eventClass":"domain"`, `"eventClass":"saga"`).Replace(string(r.Body)))
		r.Headers = append(r.Headers, events.Header{Name: events.HeaderPreviousSequence, Value: strconv.Itoa(n - 1)})
		f.publish(r)
	}
	m := f.letters(1)[0]
	f.eventually("the others to be held", func() bool {
		return f.count(`SELECT count(*) FROM journeyman.inbox_retry WHERE scope IS NOT NULL`) == 2
	})
	fixed.Store(true)
	if res, err := f.desk().Redrive(f.ctx, deadletter.Request{Why: why(), IDs: []int64{m.ID}}, nil); err != nil || res[0].Err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	for want := int64(1); want <= 4; want++ {
		select {
		case got := <-order:
			if got != want {
				t.Fatalf("sequence %d, want %d", got, want)
			}
		case <-f.ctx.Done():
			t.Fatalf("waited in vain for sequence %d", want)
		}
	}
}
