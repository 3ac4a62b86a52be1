package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/time/rate"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/inbox"
	"github.com/vitrip/journeyman/events/seal"
)

// Why says who acts, and for what reason. RootCause is what had gone wrong; it
// may be empty only when a message is dropped (spec E10).
type Why struct{ Actor, Reason, RootCause string }

func (w Why) check(needCause bool) error {
	var errs []error
	for name, text := range map[string]string{"actor": w.Actor, "reason": w.Reason, "root cause": w.RootCause} {
		blank := strings.TrimSpace(text) == ""
		if blank && (name != "root cause" || needCause) || len(text) > 1000 || strings.ContainsRune(text, 0) {
			errs = append(errs, fmt.Errorf("%s: %d characters, want 1 to 1000", name, len(text)))
		}
	}
	return errors.Join(errs...)
}

// Request gives messages back or sends them elsewhere. IDs and Why must be set.
type Request struct {
	Why
	IDs        []int64
	Group      string // send to this group instead of the one that set it aside
	Topic      string // publish to this topic instead; at least once
	Explicit   bool   // in explicit replay mode: handlers see that, and must take replays
	OutOfOrder bool   // although older messages of the key stay
	Rate       int    // messages a second, 0 means no limit
}

// Result is what became of one message. Err is nil when it went.
type Result struct {
	ID           int64
	MessageID    string
	NewMessageID string // of an edited message
	Target       string
	Err          error
}

// Redrive acts on each message in a transaction of its own, in the order in
// which they were set aside, and goes on behind one that cannot go. The error is
// about the request; what became of each message is in the results, which end
// early when ctx does. progress, which may be nil, is called after each.
func (d *Desk) Redrive(ctx context.Context, r Request, progress func(Result)) ([]Result, error) {
	errs := []error{r.check(true)}
	if len(r.IDs) == 0 || r.Rate < 0 || r.Group != "" && r.Topic != "" {
		errs = append(errs, fmt.Errorf("%d ids, rate %d, group %q, topic %q: want ids, a rate of 0 or more and at most one target", len(r.IDs), r.Rate, r.Group, r.Topic))
	}
	if r.Topic != "" && d.cfg.Publisher == nil {
		errs = append(errs, fmt.Errorf("topic %q: no publisher is configured", r.Topic))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("redrive: %w", err)
	}
	limit := rate.NewLimiter(rate.Inf, 1)
	if r.Rate > 0 {
		limit = rate.NewLimiter(rate.Limit(r.Rate), 1)
	}
	var results []Result
	for _, id := range slices.Compact(slices.Sorted(slices.Values(r.IDs))) {
		if err := limit.Wait(ctx); err != nil {
			return results, err
		}
		res := Result{ID: id}
		res.Err = d.inTx(ctx, id, func(tx pgx.Tx, m inbox.Dead) (Act, error) { return d.redrive(ctx, tx, r, m, &res) })
		results = append(results, res)
		if progress != nil {
			progress(res)
		}
		if ctx.Err() != nil {
			return results, ctx.Err()
		}
	}
	return results, nil
}

// inTx locks a message, runs fn and writes what it gives to the audit.
func (d *Desk) inTx(ctx context.Context, id int64, fn func(tx pgx.Tx, m inbox.Dead) (Act, error)) error {
	err := pgx.BeginFunc(ctx, d.cfg.DB, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, d.sql.lock, id)
		if err != nil {
			return err
		}
		m, err := pgx.CollectExactlyOneRow(rows, scanLetter)
		if errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		}
		if err != nil {
			return err
		}
		act, err := fn(tx, m)
		if err != nil || d.cfg.Audit == nil {
			return err
		}
		return d.cfg.Audit(ctx, tx, act)
	})
	if err != nil {
		return fmt.Errorf("message %d: %w", id, err)
	}
	return nil
}

func (d *Desk) redrive(ctx context.Context, tx pgx.Tx, r Request, m inbox.Dead, res *Result) (Act, error) {
	res.MessageID = m.MessageID
	ordered, err := d.mayGo(ctx, tx, m, r.OutOfOrder, r.Explicit)
	if err != nil {
		return Act{}, err
	}
	act := Act{Actor: r.Actor, Action: "redrive", Reason: r.Reason, RootCause: r.RootCause, Target: "group:" + m.Group, RedriveID: events.NewID(), Letter: m}
	switch {
	case r.Topic != "":
		act.Action, act.Target = "redirect", "topic:"+r.Topic
	case r.Group != "" && r.Group != m.Group:
		act.Action, act.Target = "redirect", "group:"+r.Group
	}
	res.Target = act.Target
	if err := d.write(ctx, tx, act, nil); err != nil {
		return act, err
	}
	headers := marked(act, m, r.Explicit)
	switch {
	case r.Topic != "":
		body, err := atBroker(d.cfg.Keys, m)
		if err != nil {
			return act, err
		}
		if _, err := tx.Exec(ctx, d.sql.remove, m.ID); err != nil {
			return act, err
		}
		// Last: what comes after it in the transaction can only be the audit and the commit.
		return act, d.cfg.Publisher.Publish(ctx, []events.Record{{Topic: r.Topic, Key: m.BusinessKey, Headers: headers, Body: body}})[0]
	case act.Action == "redirect":
		body, err := atBroker(d.cfg.Keys, m)
		if err != nil {
			return act, err
		}
		if _, err := tx.Exec(ctx, d.sql.remove, m.ID); err != nil {
			return act, err
		}
		_, err = d.put(ctx, tx, r.Group, m, m.MessageID, headers, body, ordered)
		return act, err
	}
	b := &pgx.Batch{}
	b.Queue(d.sql.queueKey, m.Group, m.BusinessKey)
	b.Queue(d.sql.giveBack, m.ID, flat(headers), ordered)
	return act, tx.SendBatch(ctx, b).Close()
}

// mayGo refuses what may not go back now, and says whether its key's order must be kept.
func (d *Desk) mayGo(ctx context.Context, tx pgx.Tx, m inbox.Dead, outOfOrder, explicit bool) (ordered bool, err error) {
	ordered = true
	if body, err := m.Clear(d.cfg.Keys); err == nil {
		if env, err := events.ParseRecord(events.Record{Key: m.BusinessKey, Headers: m.Headers, Body: body}); err == nil && env.Metadata.EventClass.Valid() {
			ordered = env.Metadata.EventClass.Ordered()
		}
	}
	if age := time.Since(m.Sent); age > d.cfg.InboxKeep && !explicit {
		return ordered, fmt.Errorf("%d days: %w", int(age.Hours()/24), ErrTooOld)
	}
	if !ordered || outOfOrder {
		return ordered, nil
	}
	var older int64
	if err := tx.QueryRow(ctx, d.sql.older, m.Group, m.BusinessKey, m.ID).Scan(&older); err != nil {
		return ordered, err
	}
	if older != 0 {
		return ordered, fmt.Errorf("message %d: %w", older, ErrOutOfOrder)
	}
	return ordered, nil
}

// marked gives the message's headers for its way back: marks of an earlier one are replaced.
func marked(a Act, m inbox.Dead, explicit bool) []events.Header {
	var headers []events.Header
	for _, h := range m.Headers {
		switch h.Name {
		case events.HeaderRedriveID, events.HeaderReplayID, events.HeaderReplayMode, events.HeaderReplayGroup, events.HeaderPublishedAt:
		default:
			headers = append(headers, h)
		}
	}
	headers = append(headers, events.Header{Name: events.HeaderRedriveID, Value: a.RedriveID})
	if explicit {
		group, _ := strings.CutPrefix(a.Target, "group:")
		if strings.HasPrefix(a.Target, "topic:") {
			group = ""
		}
		d := events.Redelivery{ID: a.RedriveID, Mode: events.ReplayAgain, Group: group, Published: m.Sent}
		headers = d.Mark(events.Record{Headers: headers}).Headers
	}
	return headers
}

// atBroker gives the body as it was at the broker: what was encrypted only to rest here is opened.
func atBroker(keys seal.Keys, m inbox.Dead) ([]byte, error) {
	if mode, sealed := seal.Sealed(m.Body); sealed && mode == seal.AtRest {
		return m.Clear(keys)
	}
	return m.Body, nil
}

// write keeps the message and the act.
func (d *Desk) write(ctx context.Context, tx pgx.Tx, a Act, newBody []byte) error {
	var id int64
	return tx.QueryRow(ctx, d.sql.act, a.Letter.ID, a.Actor, a.Action, a.Reason, a.RootCause, a.Target, a.RedriveID, a.NewMessageID, newBody).Scan(&id)
}

// put adds a message to a group's queue at a position of its own, encrypted when the original is, and gives the body as it rests.
func (d *Desk) put(ctx context.Context, tx pgx.Tx, group string, m inbox.Dead, id string, headers []events.Header, body []byte, ordered bool) ([]byte, error) {
	p := events.Position{Topic: m.Position.Topic, Partition: -2}
	if err := tx.QueryRow(ctx, d.sql.offset).Scan(&p.Offset); err != nil {
		return nil, err
	}
	if mode, sealed := seal.Sealed(m.Body); sealed && mode == seal.AtRest {
		var err error
		if body, err = inbox.SealAtRest(d.cfg.Keys, group, p, body); err != nil {
			return nil, err
		}
	}
	b := &pgx.Batch{}
	b.Queue(d.sql.queueKey, group, m.BusinessKey)
	b.Queue(d.sql.enqueue, group, m.BusinessKey, id, m.Type, ordered, p.Topic, p.Partition, p.Offset, flat(headers), body, m.Sent, "from the dead letters")
	return body, tx.SendBatch(ctx, b).Close()
}

// EditRequest mends a message: its data is replaced, all else stays.
type EditRequest struct {
	Why
	ID         int64
	Data       json.RawMessage // a JSON object
	Explicit   bool
	OutOfOrder bool
}

// Edit sends a mended copy to the group that set the message aside, under a new
// id: header causation_id and metadata.corrects name the original, which stays in
// the story. The data must fit the schema of its type. A message whose body is
// no envelope, or encrypted by its producer, cannot be edited.
func (d *Desk) Edit(ctx context.Context, r EditRequest) (Result, error) {
	res := Result{ID: r.ID, NewMessageID: events.NewID()}
	if err := r.check(true); err != nil {
		return res, fmt.Errorf("edit: %w", err)
	}
	res.Err = d.inTx(ctx, r.ID, func(tx pgx.Tx, m inbox.Dead) (Act, error) {
		res.MessageID, res.Target = m.MessageID, "group:"+m.Group
		ordered, err := d.mayGo(ctx, tx, m, r.OutOfOrder, r.Explicit)
		if err != nil {
			return Act{}, err
		}
		body, err := d.mend(m, res.NewMessageID, r.Data)
		if err != nil {
			return Act{}, err
		}
		act := Act{
			Actor: r.Actor, Action: "edit", Reason: r.Reason, RootCause: r.RootCause, Target: res.Target,
			RedriveID: events.NewID(), NewMessageID: res.NewMessageID, Letter: m,
		}
		headers := marked(act, m, r.Explicit)
		for i, h := range headers {
			if h.Name == events.HeaderEventID {
				headers[i].Value = res.NewMessageID
			}
		}
		headers = append(headers, events.Header{Name: events.HeaderCausationID, Value: m.MessageID})
		rests, err := d.put(ctx, tx, m.Group, m, res.NewMessageID, headers, body, ordered)
		if err != nil {
			return act, err
		}
		if err := d.write(ctx, tx, act, rests); err != nil {
			return act, err
		}
		_, err = tx.Exec(ctx, d.sql.remove, m.ID)
		return act, err
	})
	return res, res.Err
}

// mend renders the message with another id and other data.
func (d *Desk) mend(m inbox.Dead, id string, data json.RawMessage) ([]byte, error) {
	if mode, sealed := seal.Sealed(m.Body); sealed && mode == seal.EndToEnd {
		return nil, errors.New("its body is encrypted by its producer and cannot be edited")
	}
	body, err := m.Clear(d.cfg.Keys)
	if err != nil {
		return nil, err
	}
	env, err := events.ParseRecord(events.Record{Key: m.BusinessKey, Headers: m.Headers, Body: body})
	if err != nil {
		return nil, fmt.Errorf("cannot be edited: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil || object == nil {
		return nil, errors.New("data: want a JSON object")
	}
	if d.cfg.Schemas != nil {
		if err := d.cfg.Schemas.Check(env.MessageType, env.MessageVersion, data); err != nil {
			return nil, err
		}
	}
	if events.Framed(body) { // its group reads the envelope form as well
		env.Metadata.Corrects, env.MessageID, env.Data = env.MessageID, id, data
		return json.Marshal(env)
	}
	// By fields as they came, so that fields we do not know stay.
	var fields, meta map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(fields["metadata"], &meta); err != nil {
		return nil, err
	}
	quoted := func(s string) json.RawMessage { return json.RawMessage(`"` + s + `"`) } // ids need no escapes
	meta["corrects"] = quoted(env.MessageID)
	if fields["metadata"], err = json.Marshal(meta); err != nil {
		return nil, err
	}
	fields["messageId"], fields["data"] = quoted(id), data
	return json.Marshal(fields)
}

// Drop takes a message away for good. Its story keeps it.
func (d *Desk) Drop(ctx context.Context, id int64, w Why) error {
	if err := w.check(false); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	return d.inTx(ctx, id, func(tx pgx.Tx, m inbox.Dead) (Act, error) {
		act := Act{Actor: w.Actor, Action: "drop", Reason: w.Reason, RootCause: w.RootCause, Letter: m}
		if err := d.write(ctx, tx, act, nil); err != nil {
			return act, err
		}
		_, err := tx.Exec(ctx, d.sql.remove, id)
		return act, err
	})
}
