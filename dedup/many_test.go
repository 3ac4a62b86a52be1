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
	bare := dedup.Claim{OperationID: "bare-2", State: dedup.Claimed}
	out := dedup.Outcome{Class: outcome.Business, Reason: "r", Code: "SOLD_OUT", Message: "m", Variables: json.RawMessage(`{"n":12345678901234567890,  "s":"ä"}`)}
	used := map[int64]int64{}
	var won []*dedup.Fenced
	batch(t, ctx, pool, func(b *pgx.Batch) {
		b.Queue("BEGIN")
		s.QueueClaim(b, claim("one"))
		s.QueueClaim(b, dedup.Claim{OperationID: "bare-1", State: dedup.Claimed})
		won = s.QueueClaims(b, []dedup.Claim{claim("two"), claim("one"), bare, claim("two"), claim("gone")})
		s.QueueFinish(b, "one", 1, dedup.EffectNone, out, len(out.Variables), dedup.Retention{For: time.Hour})
		s.QueueFinish(b, "bare-1", 1, dedup.EffectNone, dedup.Outcome{Class: outcome.Success}, 0, dedup.Retention{For: time.Hour})
		s.QueueFinishes(b, []dedup.Finish{
			{OperationID: "two", Fence: 1, Outcome: out, Retention: dedup.Retention{For: time.Hour}}, {OperationID: "bare-2", Fence: 1, Outcome: dedup.Outcome{Class: outcome.Success}, Retention: dedup.Retention{For: time.Hour}},
			{OperationID: "gone", Fence: 2, Outcome: out, Retention: dedup.Retention{For: time.Hour}}, // not the fence it was claimed with
		})
		s.QueueUnclaim(b, []string{"gone", "two"})
		s.QueueUsedBy(b, "c", []int64{6, 99, 0}, used)
		b.Queue("COMMIT")
	})
	for i, want := range []bool{true, false, true, false, true} {
		if won[i].Won != want {
			t.Errorf("claim %d won: %v, want %v", i, won[i].Won, want)
		}
	}
	if want := map[int64]int64{6: int64(2 * len(out.Variables))}; !cmp.Equal(used, want) {
		t.Errorf("used %v, want %v", used, want)
	}
	read := func(id string) dedup.Operation {
		op, ok, err := s.Lookup(ctx, pool, id)
		if err != nil || !ok {
			t.Fatalf("%s: %v %v", id, ok, err)
		}
		return op
	}
	for one, two := range map[string]string{"one": "two", "bare-1": "bare-2"} {
		if d := cmp.Diff(read(one), read(two), cmpopts.IgnoreFields(dedup.Operation{}, "OperationID", "ReadAt", "CreatedAt", "SettledAt", "ExpiresAt")); d != "" {
			t.Errorf("alone and together differ (-alone +together):\n%s", d)
		}
		if d := read(two).ExpiresAt.Sub(read(two).SettledAt).Round(time.Second); d != time.Hour {
			t.Errorf("kept for %s", d)
		}
	}
	if _, ok, err := s.Lookup(ctx, pool, "gone"); ok || err != nil {
		t.Errorf("a claim that was taken back is there: %v", err)
	}
}
