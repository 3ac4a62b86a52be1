package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/crash"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// Messages that wait beside the one whose turn it is share its transaction: one
// round trip with all inbox rows, a savepoint before each handler, one COMMIT.
// Handlers do not notice. Who fails goes back to its savepoint and is settled
// after the commit as it would be alone; what follows it of its key is then
// delivered alone, and so is everything that is not plain: repeats, replays, keys
// with a message in retry, and of a strict order what comes too early or too
// late. The places of strict orders are locked before the inbox rows, sorted, as
// a message alone does it, and moved once, behind the last message applied. When the transaction itself fails,
// or a handler meets a deadlock, each message is delivered alone, and the member
// groups nothing for a minute.

// BatchHandler applies several messages of one route in one transaction, in
// order, with few statements. An error, a panic or a failed statement undoes all
// of them, and each is then applied by a call of its own, whose error counts. It
// must not emit.
type BatchHandler func(ctx context.Context, tx *outbox.Tx, messages []events.Received) error

// one is the handler for a message that comes alone.
func (f BatchHandler) one(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	err := f(ctx, tx, []events.Received{m})
	if err == nil && len(tx.Messages()) > 0 {
		return outcome.Fatalf(ReasonEmit, "a batch handler must not emit")
	}
	return err
}

const savepoint = "journeyman_inbox"

// group is messages on their way through one transaction.
type group struct {
	*Inbox
	all    []events.Delivery
	odd    map[int]bool // by place in all: to be delivered alone
	ended  map[int]bool
	plain  []grouped
	rows   []grouped // whose inbox rows the transaction wrote
	failed []failure
	spoilt map[string]bool // keys that have an odd message: what follows is odd too
	places map[turn]int64  // of strict orders: how far they are with the messages that are free to go
}

// turn is what a strict order counts: a key in a scope.
type turn struct{ scope, key string }

func (m message) at() turn { return turn{m.order.scope, m.Key} }

type grouped struct {
	message
	no     int
	staged *outbox.Staged
	start  time.Time
}

type failure struct {
	grouped
	oc *outcome.Error
}

// group sorts out what may share a transaction. It reads framed bodies, for which it may have to ask the registry.
func (i *Inbox) group(ctx context.Context, batch []events.Delivery) *group {
	g := &group{Inbox: i, all: batch, odd: map[int]bool{}, ended: map[int]bool{}, spoilt: map[string]bool{}, places: map[turn]int64{}}
	ids := map[string]bool{}
	for no, d := range batch {
		m, skip, err := i.open(d)
		switch {
		case skip:
			g.ended[no] = true
			continue
		case err != nil || m.replay.ID != "" || ids[m.id] || g.spoilt[d.Key]:
			g.leaveOut(grouped{message: message{Delivery: d}, no: no})
			continue
		}
		if i.read(ctx, &m); m.unread != nil {
			g.leaveOut(grouped{message: message{Delivery: d}, no: no})
			continue
		}
		ids[m.id] = true
		g.plain = append(g.plain, grouped{message: m, no: no})
	}
	clear(g.spoilt) // it speaks of what follows, and all that follows is sorted out
	return g
}

// leaveOut gives a message back to be delivered alone, and with it what follows it of its key.
func (g *group) leaveOut(m grouped) { g.odd[m.no], g.spoilt[m.Key] = true, true }

// run gives what came to an end, and the others in their order. An error means that nothing of the group was committed.
func (g *group) run(ctx, work context.Context) (ended, rest []events.Delivery, err error) {
	if len(g.plain) > 1 {
		if err = g.transact(ctx, work); err == nil {
			g.settleFailed(work)
		}
	}
	for no, d := range g.all {
		if g.ended[no] {
			ended = append(ended, d)
		} else {
			rest = append(rest, d)
		}
	}
	return ended, rest, err
}

func (g *group) transact(ctx, work context.Context) error {
	conn, err := g.db.Acquire(work)
	if err != nil {
		return err
	}
	defer conn.Release()
	mine, err := g.begin(work, conn)
	if err != nil {
		g.rollback(conn)
		return err
	}
	shared := &sharedTx{conn: conn.Conn()}
	var applied []grouped
	for at := 0; at < len(mine); {
		n := 1
		if mine[at].route.Batch != nil {
			for at+n < len(mine) && mine[at+n].route.Batch != nil && mine[at+n].route.no == mine[at].route.no {
				n++
			}
		}
		run := slices.DeleteFunc(slices.Clone(mine[at:at+n]), func(m grouped) bool { return g.spoilt[m.Key] && m.entry.Class.Ordered() })
		at += n
		if len(run) == 0 {
			continue
		}
		ok, err := g.apply(work, conn, shared, run)
		if err != nil {
			g.rollback(conn)
			return err
		}
		if ok {
			applied = append(applied, run...)
		}
		if shared.touched || ctx.Err() != nil { // what a handler set must not hold for the next one; a drain begins nothing
			break
		}
	}
	return g.commit(work, conn, shared, applied)
}

// begin opens the transaction, writes the inbox rows of all in one round trip and gives those that are new and free to go.
func (g *group) begin(ctx context.Context, conn *pgxpool.Conn) ([]grouped, error) {
	ids, prints, keys := make([]string, len(g.plain)), make([][]byte, len(g.plain)), []string{}
	for n, m := range g.plain {
		ids[n], prints[n] = m.id, m.print
		switch {
		case m.order.strict:
			g.places[m.at()] = 0
		case m.entry.Class.Ordered():
			keys = append(keys, m.Key)
		}
	}
	var fresh, behind []string
	list := func(into *[]string) func(pgx.Rows) error {
		return func(rows pgx.Rows) (err error) { *into, err = pgx.CollectRows(rows, pgx.RowTo[string]); return err }
	}
	b := &pgx.Batch{}
	b.Queue("BEGIN")
	b.Queue("SET LOCAL lock_timeout = '5s'")
	b.Queue(g.idle)
	for _, at := range sorted(g.places) {
		b.Queue(g.order.lock, g.cfg.Group, at.scope, at.key).QueryRow(func(row pgx.Row) error {
			var last int64
			err := row.Scan(&last)
			g.places[at] = last
			return err
		})
	}
	b.Queue(g.groups.insertAll, g.cfg.Group, ids, prints).Query(list(&fresh))
	b.Queue(g.groups.behindAll, g.cfg.Group, keys).Query(list(&behind)) // after the wait for twins
	b.Queue("SET LOCAL lock_timeout TO DEFAULT")
	err := conn.SendBatch(ctx, b).Close()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "55P03" {
		return nil, errTwin
	}
	if err != nil {
		return nil, err
	}
	waiting, inserted := map[string]bool{}, map[string]bool{}
	for _, k := range behind {
		waiting[k] = true
	}
	for _, id := range fresh {
		inserted[id] = true
	}
	var mine []grouped
	for _, m := range g.plain {
		if inserted[m.id] {
			g.rows = append(g.rows, m)
		}
		if !inserted[m.id] || m.entry.Class.Ordered() && g.spoilt[m.Key] || g.waits(&m, waiting) {
			g.leaveOut(m)
		} else {
			mine = append(mine, m)
		}
	}
	clear(g.spoilt)
	return mine, nil
}

// waits reports a message whose turn has not come, or is over. The turn of a strict order passes to the next one.
func (g *group) waits(m *grouped, waiting map[string]bool) bool {
	if !m.order.strict {
		return m.entry.Class.Ordered() && waiting[m.Key]
	}
	m.order.last = g.places[m.at()]
	if m.late() || g.gap(m.message, m.order.last) {
		return true
	}
	g.places[m.at()] = m.env.Metadata.Sequence
	return false
}

// sorted gives places in the one order in which they are locked.
func sorted[V any](places map[turn]V) []turn {
	return slices.SortedFunc(maps.Keys(places), func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.key, b.key))
	})
}

// apply runs one handler between savepoints. It reports false when the handler
// failed and its work was taken back; an error ends the whole group.
func (g *group) apply(ctx context.Context, conn *pgxpool.Conn, shared *sharedTx, run []grouped) (bool, error) {
	for n := range run {
		crash.Point("inbox.begun", run[n].env.MessageID)
		run[n].start = time.Now()
	}
	shared.head = append(shared.head, "SAVEPOINT "+savepoint)
	tx := outbox.NewTx(shared)
	var oc *outcome.Error
	var err error
	if len(run) == 1 {
		oc, err = g.handle(ctx, conn, tx, run[0].message)
	} else {
		oc, err = g.handleBatch(ctx, conn, tx, run)
	}
	if err != nil {
		return false, err
	}
	if conn.Conn().IsClosed() {
		return false, errLost
	}
	if oc != nil && oc.Reason == outcome.ReasonContention {
		return false, oc // over rows that a group holds longer than a message would: nobody's failed attempt
	}
	if msgs := tx.Messages(); oc == nil && len(msgs) > 0 {
		if g.cfg.Stager == nil || len(run) > 1 {
			oc = outcome.Fatalf(ReasonEmit, "handler emitted messages, but the inbox has no stager, or takes several messages")
		} else if run[0].staged, err = g.cfg.Stager.Prepare(g.origin(run[0].message), msgs); err != nil {
			oc = outcome.Fatalf(ReasonEmit, "%v", err)
		}
	}
	if oc == nil {
		shared.head = append(shared.head, "RELEASE SAVEPOINT "+savepoint)
		return true, nil
	}
	shared.head = append(shared.head, "ROLLBACK TO SAVEPOINT "+savepoint, "RELEASE SAVEPOINT "+savepoint)
	for _, m := range run {
		g.leaveOut(m)
	}
	if len(run) == 1 {
		g.tell(run[0].message, oc.Class, run[0].start)
		g.failed = append(g.failed, failure{run[0], oc})
	}
	return false, nil
}

// handleBatch runs a batch handler for several messages.
func (g *group) handleBatch(ctx context.Context, conn *pgxpool.Conn, tx *outbox.Tx, run []grouped) (*outcome.Error, error) {
	hctx, cancel := context.WithTimeout(ctx, g.cfg.HandlerTimeout)
	defer cancel()
	list := make([]events.Received, len(run))
	for n, m := range run {
		list[n] = m.received()
	}
	err := func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				g.cfg.Log.Error().Bytes("stack", debug.Stack()).Msg("inbox: batch handler panicked")
				err = outcome.Panicked(v)
			}
		}()
		return run[0].route.Batch(hctx, tx, list)
	}()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case tx.Refused() != nil:
		err = tx.Refused()
	case conn.Conn().IsClosed():
		return nil, errLost
	case err == nil && hctx.Err() != nil:
		err = hctx.Err()
	}
	return outcome.Classify(err), nil
}

// commit writes down what was applied, takes back the rows of what was left out, and ends the transaction.
func (g *group) commit(ctx context.Context, conn *pgxpool.Conn, shared *sharedTx, applied []grouped) error {
	done := map[int]bool{}
	var staged []*outbox.Staged
	for _, m := range applied {
		done[m.no] = true
		if m.staged != nil {
			staged = append(staged, m.staged)
		}
	}
	var out []string
	for _, m := range g.rows {
		if !done[m.no] {
			out = append(out, m.id)
		}
	}
	b := &pgx.Batch{}
	for _, sql := range shared.head {
		b.Queue(sql)
	}
	if len(out) > 0 {
		b.Queue(g.groups.forget, g.cfg.Group, out)
	}
	tops := map[turn]message{}
	for _, m := range applied { // in order, so that the last one of a place stays
		if m.order.strict {
			tops[m.at()] = m.message
		}
	}
	for _, at := range sorted(tops) {
		g.queueAdvance(b, tops[at])
	}
	if len(staged) > 0 {
		if err := g.cfg.Stager.QueueStaged(b, staged); err != nil {
			g.rollback(conn)
			return err
		}
	}
	oc, err := g.commitTx(ctx, conn, b)
	if err != nil {
		return err
	}
	if oc != nil {
		return fmt.Errorf("commit: %w", oc)
	}
	for _, m := range applied {
		crash.Point("inbox.committed", m.env.MessageID)
		g.ended[m.no] = true
		g.tell(m.message, outcome.Success, m.start)
	}
	if len(staged) > 0 {
		g.cfg.Stager.Wake()
	}
	return nil
}

// settleFailed writes down how the attempts of those that failed ended. One that cannot be written down is delivered again.
func (g *group) settleFailed(ctx context.Context) {
	for _, f := range g.failed {
		if err := g.settle(ctx, f.message, f.oc); err != nil {
			g.cfg.Log.Warn().Err(err).Msg("inbox: settle a message of a group")
			return // what follows of its key must not be settled before it
		}
		g.ended[f.no] = true
	}
}
