package outbox

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
)

// Staged is what one operation stages, checked and rendered.
type Staged struct {
	origin events.Origin
	rows   []row
}

// Keys lists the business keys of the messages, in their order.
func (s *Staged) Keys() []string {
	keys := make([]string, len(s.rows))
	for i, r := range s.rows {
		keys[i] = r.BusinessKey
	}
	return keys
}

// Prepare checks and renders the messages of an operation. An error means that one was refused (see [Stager.Check]).
func (s *Stager) Prepare(o events.Origin, msgs []events.Message) (*Staged, error) {
	st := &Staged{origin: o, rows: make([]row, 0, len(msgs))}
	var errs []error
	for i, m := range msgs {
		if m.BusinessKey == "" {
			m.BusinessKey = o.BusinessKey
		}
		r, err := s.prepare(o, m, i)
		errs = append(errs, err)
		st.rows = append(st.rows, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return st, nil
}

// QueueStaged is [Stager.Queue] for several operations of one transaction together: their keys are locked in one statement, and
// their messages go in one where nothing special is asked of them, in the order given.
func (s *Stager) QueueStaged(b *pgx.Batch, staged []*Staged, keys ...string) error {
	count := map[string]int64{}
	n, chained := 0, false
	for _, st := range staged {
		n += len(st.rows)
		for i := range st.rows {
			r := &st.rows[i]
			chained = chained || r.entry.Class.Chained()
			if r.entry.Class.Sheds() {
				count[r.BusinessKey] += 0 // draws its sequence only when it is not dropped
				continue
			}
			count[r.BusinessKey]++
		}
	}
	var errs []error
	for _, k := range keys {
		errs = append(errs, checkKey(k))
		count[k] += 0
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(count) == 0 {
		return nil
	}
	if n == 1 && len(count) == 1 && s.queueOne(b, staged) {
		return nil
	}
	s.lock(b, count)
	if chained {
		var all []row
		for _, st := range staged {
			all = append(all, st.rows...)
		}
		s.lockChains(b, all)
	}
	plains := make([]special, 0, n)
	sheds := make([][]special, len(staged))
	for i, st := range staged {
		for _, r := range st.rows {
			var at any
			if !r.OccurredAt.IsZero() {
				at = r.OccurredAt
			}
			if r.entry.Class.Sheds() {
				sheds[i] = append(sheds[i], special{row: r, at: at})
				continue
			}
			count[r.BusinessKey]--
			next := special{row: r, origin: st.origin, back: count[r.BusinessKey], at: at}
			if plain(r.entry) {
				plains = append(plains, next)
				continue
			}
			s.queuePlain(b, plains) // ids are drawn in the order of the messages
			plains = plains[:0]
			s.queueSpecial(b, st.origin, next)
		}
	}
	s.queuePlain(b, plains)
	for i, st := range staged { // last: each draws its sequence itself
		s.queueShed(b, st.origin, sheds[i])
	}
	return nil
}

// queueOne adds a transaction's only message with its only key in one statement, if nothing special is asked of it.
func (s *Stager) queueOne(b *pgx.Batch, staged []*Staged) bool {
	at := slices.IndexFunc(staged, func(st *Staged) bool { return len(st.rows) > 0 })
	r := staged[at].rows[0]
	if !plain(r.entry) || rule.Off(21) {
		return false
	}
	var occurred any
	if !r.OccurredAt.IsZero() {
		occurred = r.OccurredAt
	}
	b.Queue(s.sql.stageOne, events.Shard(r.BusinessKey), r.id, r.Type, r.Version, string(r.entry.Class), r.entry.Topic, r.BusinessKey,
		staged[at].origin.OperationID, r.headers, r.body, occurred)
	return true
}

// lock draws the xid and locks the key rows, sorted (path rule 21).
func (s *Stager) lock(b *pgx.Batch, count map[string]int64) {
	if rule.Off(21) {
		return
	}
	sorted := make([]string, 0, len(count))
	for k := range count {
		sorted = append(sorted, k)
	}
	slices.Sort(sorted)
	adds := make([]int64, len(sorted))
	for i, k := range sorted {
		adds[i] = count[k]
	}
	b.Queue(s.sql.lockKeys, sorted, adds)
}

// queuePlain adds the rows of messages that need nothing but a row.
func (s *Stager) queuePlain(b *pgx.Batch, rows []special) {
	n := len(rows)
	if n == 0 {
		return
	}
	if n == 1 {
		r := rows[0]
		b.Queue(s.sql.insert, events.Shard(r.BusinessKey), r.id, r.Type, r.Version, string(r.entry.Class), r.entry.Topic, r.BusinessKey,
			r.origin.OperationID, r.headers, r.body, r.back, r.at)
		return
	}
	texts := make([]string, 7*n)
	text := func() []string { t := texts[:n:n]; texts = texts[n:]; return t }
	ids, kinds, classes, topics, keys, operations, headers := text(), text(), text(), text(), text(), text(), text()
	shards, versions, bodies, backs, ats := make([]int16, n), make([]int32, n), make([][]byte, n), make([]int64, n), make([]*time.Time, n)
	for i := range rows {
		r := &rows[i]
		ids[i], kinds[i], classes[i], topics[i], keys[i], operations[i] = r.id, r.Type, string(r.entry.Class), r.entry.Topic, r.BusinessKey, r.origin.OperationID
		headers[i], shards[i], versions[i], bodies[i], backs[i] = arrayText(r.headers), events.Shard(r.BusinessKey), int32(r.Version), r.body, r.back //nolint:gosec // small
		if !r.OccurredAt.IsZero() {
			ats[i] = &r.OccurredAt
		}
	}
	b.Queue(s.sql.insertAll, shards, ids, kinds, versions, classes, topics, keys, operations, headers, bodies, backs, ats)
}

// arrayText is a list of texts as PostgreSQL spells an array: lists of different lengths in one parameter.
func arrayText(list []string) string {
	n := 2
	for _, s := range list {
		n += len(s) + 3
	}
	var b strings.Builder
	b.Grow(n + 8)
	b.WriteByte('{')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		for {
			at := strings.IndexAny(s, `"\`)
			if at < 0 {
				break
			}
			b.WriteString(s[:at])
			b.WriteByte('\\')
			b.WriteByte(s[at])
			s = s[at+1:]
		}
		b.WriteString(s)
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
