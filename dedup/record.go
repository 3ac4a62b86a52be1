package dedup

import (
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/internal/rule"
)

// Record is what the end of a transactional operation writes down: who it is and what came of it.
type Record struct {
	Claim         // State, Owner and Lease do not count
	Fence   int64 // that the claim gave
	Outcome Outcome
	Retention
	JobEnds bool // the job's attempts end with it
}

// QueueEnter adds the claim of a transactional operation, as [Store.QueueClaim] does, and bounds the wait for a twin (rule 8: the
// caller ends the bound). The row holds only the id until [Store.QueueRecord] writes the rest in the same transaction. used is the
// bytes that our workers completed for the process instance so far; it is given when the claim was won.
func (s *Store) QueueEnter(b *pgx.Batch, operationID string, wait string, cluster string, processInstanceKey int64, used *int64) *Fenced {
	f := &Fenced{}
	b.Queue(s.rec.enter, operationID, wait, cluster, processInstanceKey).Query(func(rows pgx.Rows) error {
		defer rows.Close()
		if rows.Next() {
			f.Won = true
			if err := rows.Scan(&f.Fence, used); err != nil {
				return err
			}
		}
		rows.Close()
		return rows.Err()
	})
	return f
}

// QueueEntered adds a read of the row, unless this transaction claimed it; ok says whether there is one.
func (s *Store) QueueEntered(b *pgx.Batch, operationID string, to *Operation, ok *bool) {
	queueOne(b.Queue(s.rec.entered, operationID), to, ok)
}

// QueueEnterAll is [Store.QueueEnter] for several operations in one statement, in the order given: it must be that of the ids. Of
// claims with one id the first is won. It bounds no wait.
func (s *Store) QueueEnterAll(b *pgx.Batch, operationIDs []string) []*Fenced {
	out := make([]*Fenced, len(operationIDs))
	all := make([]Fenced, len(operationIDs))
	at := make(map[string]*Fenced, len(operationIDs))
	for i, id := range operationIDs {
		out[i] = &all[i]
		if at[id] == nil {
			at[id] = out[i]
		}
	}
	b.Queue(s.rec.enterAll, operationIDs).Query(func(rows pgx.Rows) error {
		var id string
		var fence int64
		_, err := pgx.ForEachRow(rows, []any{&id, &fence}, func() error {
			at[id].Won, at[id].Fence = true, fence
			return nil
		})
		return err
	})
	return out
}

// QueueRecord adds the end of an operation that was entered in this transaction: all of its row, with state done.
func (s *Store) QueueRecord(b *pgx.Batch, r Record) {
	c, o := r.Claim, r.Outcome
	if c.Fingerprint.Sum == nil {
		c.Fingerprint.Sum = []byte{}
	}
	ends := int64(0)
	if r.JobEnds {
		ends = c.JobKey
	}
	b.Queue(s.rec.record, c.OperationID, r.Fence, c.Tenant, c.BusinessKey, c.JobType, c.SagaID, c.Fingerprint.Sum, arrayText(c.Fingerprint.Fields), doc(c.Input), doc(c.Meta),
		c.Cluster, c.JobKey, c.ProcessInstanceKey, c.ElementInstanceKey, c.ElementID, c.UndoType, c.Policy, string(o.Class), o.Reason, o.Code, o.Message, doc(o.Variables),
		Hash(o), len(o.Variables), r.For, r.keep(), rule.Off(20), ends)
}

// QueueRecordAll is [Store.QueueRecord] for several operations of jobs of one cluster, all entered in this transaction.
func (s *Store) QueueRecordAll(b *pgx.Batch, cluster string, rs []Record) {
	n := len(rs)
	texts := make([]string, 15*n)
	text := func() []string { t := texts[:n:n]; texts = texts[n:]; return t }
	ids, tenants, keys, types, sagas, fields, clusters, elements, undo, policy := text(), text(), text(), text(), text(), text(), text(), text(), text(), text()
	class, reason, code, message := text(), text(), text(), text()
	fences, jobs, instances, elementKeys, sizes := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int32, n)
	input, meta, vars := make([]*string, n), make([]*string, n), make([]*string, n)
	sums, hashes, retain, keep := make([][]byte, n), make([][]byte, n), make([]time.Duration, n), make([]*time.Duration, n)
	for i := range rs {
		c, f := &rs[i].Claim, &rs[i]
		ids[i], fences[i], tenants[i], keys[i], types[i], sagas[i] = c.OperationID, f.Fence, c.Tenant, c.BusinessKey, c.JobType, c.SagaID
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
	b.Queue(s.rec.recordAll, ids, fences, tenants, keys, types, sagas, sums, fields, input, meta, clusters, jobs, instances, elementKeys, elements, undo, policy,
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
