package dedup_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/dedup"
	"github.com/vitrip/journeyman/outcome"
)

// TestStore_many: what is claimed and finished together reads as if each had been alone.
func TestStore_many(t *testing.T) {
	t.Parallel()
	ctx, pool, s := open(t)
	claim := func(id string) dedup.Claim {
		return dedup.Claim{
			OperationID: id, Tenant: "t", BusinessKey: "B-1", JobType: "flight.reserve", SagaID: "S", State: dedup.Claimed,
			Fingerprint: dedup.Fingerprint{Sum: []byte{1, 2}, Fields: []string{"offer", `odd "name", {x}`}},
			Input:       json.RawMessage(`{"offer":"F1"}`), Meta: json.RawMessage(`{"a":1}`), UndoType: "flight.cancel", Policy: "undo",
			JobContext: dedup.JobContext{Cluster: "c", JobKey: 5, ProcessInstanceKey: 6, ElementInstanceKey: 7, ElementID: "e"},
		}
	}
	hour := dedup.Retention{For: time.Hour, Keep: 48 * time.Hour}
	out := dedup.Outcome{Class: outcome.Business, Reason: "r", Code: "SOLD_OUT", Message: "m", Variables: json.RawMessage(`{"n":12345678901234567890,  "s":"ä"}`)}
	used := map[int64]int64{}
	record := func(c dedup.Claim, o dedup.Outcome) dedup.Record {
		return dedup.Record{Claim: c, Outcome: o, Retention: hour}
	}
	nothing := func(id string) dedup.Claim { return dedup.Claim{OperationID: id} }
	fine := dedup.Outcome{Class: outcome.Success}
	var won []bool
	var before int64
	var seen dedup.Operation
	var entered, again bool
	batch(t, ctx, pool, func(b *pgx.Batch) {
		b.Queue("BEGIN")
		s.QueueClaim(b, claim("one"))
		s.QueueClaim(b, dedup.Claim{OperationID: "bare-1", State: dedup.Claimed})
		won = s.QueueEnterAll(b, []string{"bare-2", "gone", "one", "two", "two"})
		s.QueueFinish(b, "one", 1, dedup.EffectNone, out, len(out.Variables), hour)
		s.QueueFinish(b, "bare-1", 1, dedup.EffectNone, fine, 0, hour)
		s.QueueRecordAll(b, "c", []dedup.Record{record(claim("two"), out), record(nothing("bare-2"), fine)}) // and nothing of "gone"
		s.QueueEnter(b, "three", "300ms", "c", 6, &before)
		s.QueueEntered(b, "three", &seen, &entered)
		s.QueueRecord(b, record(claim("three"), out))
		s.QueueEnter(b, "three", "300ms", "c", 99, new(int64))
		s.QueueEntered(b, "three", &seen, &again)
		s.QueueUsedBy(b, "c", []int64{6, 99, 0}, used)
		b.Queue("COMMIT")
	})
	for i, want := range []bool{true, true, false, true, false} {
		if won[i] != want {
			t.Errorf("claim %d won: %v, want %v", i, won[i], want)
		}
	}
	if want := map[int64]int64{6: int64(3 * len(out.Variables))}; !cmp.Equal(used, want) {
		t.Errorf("used %v, want %v", used, want)
	}
	if entered || !again || before != int64(2*len(out.Variables)) {
		t.Errorf("entered alone: there %v, after its end %v, used before %d", entered, again, before)
	}
	read := func(id string) dedup.Operation {
		op, ok, err := s.Lookup(ctx, pool, id)
		if err != nil || !ok {
			t.Fatalf("%s: %v %v", id, ok, err)
		}
		return op
	}
	for one, two := range map[string]string{"two": "one", "three": "one", "bare-2": "bare-1"} { // new and old way
		if d := cmp.Diff(read(one), read(two), cmpopts.IgnoreFields(dedup.Operation{}, "OperationID", "ReadAt", "CreatedAt", "SettledAt", "ExpiresAt")); d != "" {
			t.Errorf("%s and %s differ (-record +claim and finish):\n%s", one, two, d)
		}
		if d := read(one).ExpiresAt.Sub(read(one).SettledAt).Round(time.Second); d != time.Hour {
			t.Errorf("kept for %s", d)
		}
		if op := read(one); op.CreatedAt.IsZero() || op.CreatedAt.After(op.SettledAt) || op.SettledAt.Sub(op.CreatedAt) > time.Minute {
			t.Errorf("%s created %s, settled %s", one, op.CreatedAt, op.SettledAt)
		}
	}
	if _, ok, err := s.Lookup(ctx, pool, "gone"); ok || err != nil {
		t.Errorf("a claim without an end is there: %v", err)
	}
}
