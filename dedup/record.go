package dedup

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Record is what the end of a transactional operation writes down: who it is and what came of it.
type Record struct {
	Claim   // State, Owner and Lease do not count
	Outcome Outcome
	Retention
	JobEnds bool // the job's attempts end with it
}

// QueueEnter adds the claim of a transactional operation: a lock on its id that is held to the end of the transaction. It waits for a
// twin whose transaction is open, and bounds that wait (rule 8: the caller ends the bound). Whether the claim was won is known after
// [Store.QueueEntered]. used is the bytes that our workers completed for the process instance so far.
func (s *Store) QueueEnter(b *pgx.Batch, operationID string, wait string, cluster string, processInstanceKey int64, used *int64) {
	b.Queue(s.rec.enter, operationID, cluster, processInstanceKey, wait).QueryRow(func(row pgx.Row) error { return row.Scan(nil, nil, used) })
}

// QueueEnterFree is [Store.QueueEnter] without the wait: free says whether no twin's transaction is open. If one is, roll back and wait for it.
func (s *Store) QueueEnterFree(b *pgx.Batch, operationID string, cluster string, processInstanceKey int64, free *bool, used *int64) {
	b.Queue(s.rec.enterFree, operationID, cluster, processInstanceKey).QueryRow(func(row pgx.Row) error { return row.Scan(free, used) })
}

// QueueEntered adds the read of the row after [Store.QueueEnter]; ok says whether there is one. If there is none the claim is won: nobody
// else enters the id before this transaction ends, and [Store.QueueRecord] writes the row.
func (s *Store) QueueEntered(b *pgx.Batch, operationID string, to *Operation, ok *bool) {
	s.QueueRead(b, operationID, to, ok)
}

// QueueEnterAll is [Store.QueueEnter] and [Store.QueueEntered] for several operations, in the order given: it must be that of the ids.
// won says which claims were; of those with one id the first may be. It bounds no wait.
func (s *Store) QueueEnterAll(b *pgx.Batch, operationIDs []string) (won []bool) {
	won = make([]bool, len(operationIDs))
	b.Queue(s.rec.enterAll, operationIDs)
	b.Queue(s.rec.standing, operationIDs).Query(func(rows pgx.Rows) error {
		seen := make(map[string]bool, len(operationIDs))
		var id string
		if _, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			seen[id] = true
			return nil
		}); err != nil {
			return err
		}
		for i, id := range operationIDs {
			won[i], seen[id] = !seen[id], true
		}
		return nil
	})
	return won
}

// ClaimedElsewhere reports the error of a transaction that recorded an operation which somebody had entered meanwhile without its lock, as
// workers of an earlier version do. Nothing of it was committed.
func ClaimedElsewhere(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.TableName == "operation" && pg.ConstraintName == "operation_pkey"
}

// QueueRecord adds the end of an operation whose claim was won in this transaction: its row, with state done.
func (s *Store) QueueRecord(b *pgx.Batch, r Record) {
	c, o := r.Claim, r.Outcome
	if c.Fingerprint.Sum == nil {
		c.Fingerprint.Sum = []byte{}
	}
	ends := int64(0)
	if r.JobEnds {
		ends = c.JobKey
	}
	b.Queue(s.rec.record, c.OperationID, c.Tenant, c.BusinessKey, c.JobType, c.SagaID, c.Fingerprint.Sum, arrayText(c.Fingerprint.Fields), doc(c.Input), doc(c.Meta),
		c.Cluster, c.JobKey, c.ProcessInstanceKey, c.ElementInstanceKey, c.ElementID, c.UndoType, c.Policy, string(o.Class), o.Reason, o.Code, o.Message, doc(o.Variables),
		Hash(o), len(o.Variables), r.For, r.keep(), ends)
}

// QueueRecordAll is [Store.QueueRecord] for several operations of jobs of one cluster, all claimed in this transaction.
func (s *Store) QueueRecordAll(b *pgx.Batch, cluster string, rs []Record) {
	n := len(rs)
	texts := make([]string, 15*n)
	text := func() []string { t := texts[:n:n]; texts = texts[n:]; return t }
	ids, tenants, keys, types, sagas, fields, clusters, elements, undo, policy := text(), text(), text(), text(), text(), text(), text(), text(), text(), text()
	class, reason, code, message := text(), text(), text(), text()
	jobs, instances, elementKeys, sizes := make([]int64, n), make([]int64, n), make([]int64, n), make([]int32, n)
	input, meta, vars := make([]*string, n), make([]*string, n), make([]*string, n)
	sums, hashes, retain, keep := make([][]byte, n), make([][]byte, n), make([]time.Duration, n), make([]*time.Duration, n)
	for i := range rs {
		c, f := &rs[i].Claim, &rs[i]
		ids[i], tenants[i], keys[i], types[i], sagas[i] = c.OperationID, c.Tenant, c.BusinessKey, c.JobType, c.SagaID
		if sums[i] = c.Fingerprint.Sum; sums[i] == nil {
			sums[i] = []byte{}
		}
		if i > 0 && slices.Equal(c.Fingerprint.Fields, rs[i-1].Fingerprint.Fields) {
			fields[i] = fields[i-1]
		} else {
			fields[i] = arrayText(c.Fingerprint.Fields)
		}
		input[i], meta[i], clusters[i] = docText(c.Input), docText(c.Meta), c.Cluster
		jobs[i], instances[i], elementKeys[i], elements[i], undo[i], policy[i] = c.JobKey, c.ProcessInstanceKey, c.ElementInstanceKey, c.ElementID, c.UndoType, c.Policy
		class[i], reason[i], code[i], message[i] = string(f.Outcome.Class), f.Outcome.Reason, f.Outcome.Code, f.Outcome.Message
		vars[i], hashes[i], sizes[i] = docText(f.Outcome.Variables), Hash(f.Outcome), int32(len(f.Outcome.Variables)) //nolint:gosec // bounded by the engine's message size
		retain[i], keep[i] = f.For, f.keep()
	}
	b.Queue(s.rec.recordAll, ids, tenants, keys, types, sagas, sums, fields, input, meta, clusters, jobs, instances, elementKeys, elements, undo, policy,
		class, reason, code, message, vars, hashes, sizes, retain, keep, cluster)
}

// arrayText is a list of texts as PostgreSQL spells an array, for lists of different lengths in one parameter.
func arrayText(list []string) string {
	var b strings.Builder
	n := 2
	for _, s := range list {
		n += len(s) + 3
	}
	b.Grow(n)
	b.WriteByte('{')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		for _, r := range []byte(s) {
			if r == '"' || r == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(r)
		}
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}
