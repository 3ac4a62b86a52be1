package dedup

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
)

// QueueClaims adds the claims of several transactional operations in one statement, in the order of their ids. Of claims with one id
// the first is won. It waits for twins as [Store.QueueClaim] does.
func (s *Store) QueueClaims(b *pgx.Batch, claims []Claim) []*Fenced {
	n := len(claims)
	out := make([]*Fenced, n)
	text := func() []string { return make([]string, n) }
	ids, tenants, keys, types, sagas, clusters, elements, undo, policy := text(), text(), text(), text(), text(), text(), text(), text(), text()
	sums, fields := make([][]byte, n), text()
	input, meta := make([]*string, n), make([]*string, n)
	jobs, instances, elementKeys := make([]int64, n), make([]int64, n), make([]int64, n)
	at := map[string]*Fenced{}
	for i, c := range claims {
		out[i] = &Fenced{}
		if at[c.OperationID] == nil {
			at[c.OperationID] = out[i]
		}
		ids[i], tenants[i], keys[i], types[i], sagas[i] = c.OperationID, c.Tenant, c.BusinessKey, c.JobType, c.SagaID
		clusters[i], elements[i], undo[i], policy[i] = c.Cluster, c.ElementID, c.UndoType, c.Policy
		if sums[i] = c.Fingerprint.Sum; sums[i] == nil {
			sums[i] = []byte{}
		}
		f, _ := json.Marshal(list(c.Fingerprint.Fields)) //nolint:errchkjson // strings
		fields[i], input[i], meta[i] = string(f), docText(c.Input), docText(c.Meta)
		jobs[i], instances[i], elementKeys[i] = c.JobKey, c.ProcessInstanceKey, c.ElementInstanceKey
	}
	b.Queue(s.q.claims, ids, tenants, keys, types, sagas, sums, fields, input, meta, clusters, jobs, instances, elementKeys, elements, undo, policy).Query(func(rows pgx.Rows) error {
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

// QueueUsedBy is [Store.QueueUsed] for several process instances; one that used nothing is not in the map.
func (s *Store) QueueUsedBy(b *pgx.Batch, cluster string, processInstanceKeys []int64, to map[int64]int64) {
	b.Queue(s.q.usedBy, cluster, processInstanceKeys).Query(func(rows pgx.Rows) error {
		var key, used int64
		_, err := pgx.ForEachRow(rows, []any{&key, &used}, func() error {
			to[key] = used
			return nil
		})
		return err
	})
}

// Finish is the outcome of one operation of several.
type Finish struct {
	OperationID string
	Fence       int64
	Outcome     Outcome
	Retention
}

// QueueFinishes is [Store.QueueFinish] for several transactional operations, all claimed in this transaction.
func (s *Store) QueueFinishes(b *pgx.Batch, ends []Finish) {
	n := len(ends)
	text := func() []string { return make([]string, n) }
	ids, class, reason, code, message := text(), text(), text(), text(), text()
	fences, sizes := make([]int64, n), make([]int32, n)
	vars, hashes, retain, keep := make([]*string, n), make([][]byte, n), make([]time.Duration, n), make([]*time.Duration, n)
	for i, e := range ends {
		ids[i], fences[i], class[i], reason[i], code[i], message[i] = e.OperationID, e.Fence, string(e.Outcome.Class), e.Outcome.Reason, e.Outcome.Code, e.Outcome.Message
		vars[i], hashes[i], sizes[i], retain[i] = docText(e.Outcome.Variables), Hash(e.Outcome), int32(len(e.Outcome.Variables)), e.For //nolint:gosec // bounded by the engine's message size
		keep[i] = e.keep()
	}
	b.Queue(s.q.finishes, ids, fences, class, reason, code, message, vars, hashes, sizes, retain, keep)
}

// QueueDropAttemptsOf is [Store.QueueDropAttempts] for several jobs.
func (s *Store) QueueDropAttemptsOf(b *pgx.Batch, cluster string, jobKeys []int64) {
	b.Queue(s.q.dropAttempts, cluster, jobKeys)
}

func docText(d json.RawMessage) *string {
	if d == nil {
		return nil
	}
	t := string(d)
	return &t
}
