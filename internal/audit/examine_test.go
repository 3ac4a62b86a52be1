package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/vitrip/journeyman/internal/audit"
)

// clean is a run without faults: one confirmed tour, one that failed and was
// undone, one refused before anything was done, and two orphans that were undone.
func clean() audit.Input {
	effect := func(seq int64, kind, booking, segment, reference string) audit.Effect {
		return audit.Effect{Seq: seq, Supplier: segment, Kind: kind, Booking: booking, Segment: segment, Amount: 100, Currency: "EUR", Reference: reference}
	}
	return audit.Input{
		Bookings: []audit.Booking{
			{Name: "plain", Operation: "op_a", Key: "acme:A", Type: "tour-booking", State: "completed"},
			{Name: "undone", Operation: "op_b", Key: "acme:B", Type: "tour-booking", State: "failed", Reason: "SOLD_OUT"},
			{Name: "refused", Operation: "op_c", Key: "acme:C", Type: "tour-booking", State: "failed", Reason: "SOLD_OUT"},
			{Name: "late", Operation: "op_d", Key: "acme:D", Type: "tour-booking", State: "expired"},
			{Name: "stopped", Operation: "op_e", Key: "acme:E", Type: "tour-booking", State: "failed", Reason: "cancelled"},
			{Name: "refund", Operation: "op_f", Key: "acme:F", Type: "refund", State: "completed"},
			{Name: "at the door", Key: "acme:G", Type: "tour-booking"},
		},
		Effects: []audit.Effect{
			effect(1, "reserve", "acme:A", "flight", "op_a:flightReserve:flight"),
			effect(2, "reserve", "acme:B", "flight", "op_b:flightReserve:flight"),
			effect(3, "cancel", "acme:B", "flight", "op_b:flightReserve:flight:undo"),
			effect(4, "reserve", "acme:D", "hotel", "op_d:hotelReserve:hotel"),
			effect(5, "cancel", "acme:D", "hotel", "op_d:hotelReserve:hotel:undo"),
			effect(6, "authorize", "acme:E", "payment", "op_e:paymentAuthorize"),
			effect(7, "void", "acme:E", "payment", "op_e:paymentAuthorize:undo"),
		},
		Elements: []audit.Element{
			{Key: 1, ElementID: "flightReserve", OperationID: "op_a:flightReserve:flight", State: "COMPLETED"},
			{Key: 2, ElementID: "flightReserve", OperationID: "op_b:flightReserve:flight", State: "COMPLETED"},
			{Key: 3, ElementID: "hotelReserve", OperationID: "op_d:hotelReserve:hotel", State: "TERMINATED"},
			{Key: 4, ElementID: "paymentAuthorize", OperationID: "op_e:paymentAuthorize", State: "TERMINATED"},
			{Key: 5, ElementID: "hotelReserve", OperationID: "op_c:hotelReserve:hotel", State: "TERMINATED"},
		},
		Instances: []audit.Instance{{Key: 10, ProcessID: "tour-booking", State: "COMPLETED"}},
		Staged: []audit.Staged{
			{ID: "m1", Key: "acme:A", Sequence: 1}, {ID: "m2", Key: "acme:A", Sequence: 2}, {ID: "m3", Key: "acme:B", Sequence: 1},
		},
		Records: []audit.Record{
			{Topic: "t", Offset: 0, ID: "m1", Key: "acme:A", Sequence: 1},
			{Topic: "t", Offset: 1, ID: "m3", Key: "acme:B", Sequence: 1},
			{Topic: "t", Offset: 2, ID: "m2", Key: "acme:A", Sequence: 2},
			{Topic: "t", Offset: 3, ID: "m1", Key: "acme:A", Sequence: 1},
		},
		Applied: map[string]int{"m1": 1, "m2": 1},
		Jobs:    9,
		Kills:   []string{"worker.claimed", "worker.claimed", "relay.delete.after"},
		Planned: []string{"worker.claimed", "relay.delete.after"},
		Wall:    1500 * time.Millisecond,
	}
}

func TestExamine_clean(t *testing.T) {
	t.Parallel()
	want := audit.Report{
		Bookings: 6, Confirmed: 1, Rejected: 1, Compensated: 1, Cancelled: 1, Expired: 1, Refunds: 1,
		Jobs: 9, WorkerKills: 3, KillPointsHit: 2, KillPointsPlanned: 2, KillPointsMissed: []string{},
		DuplicatesDelivered: 1, SideEffects: 7, OrphansMade: 2, EventsCommitted: 3, EventsInKafka: 3,
		WallSeconds: 1.5, Findings: []string{},
	}
	got := audit.Examine(clean())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	if !got.Clean() {
		t.Error("a clean run is called unclean")
	}
}

func TestExamine_faults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(*audit.Input)
		count func(audit.Report) int
		want  int
		says  string
	}{
		"the same business effect under another idempotency key": {
			func(in *audit.Input) {
				again := in.Effects[0]
				again.Reference = "op_a:flightReserve:flight"
				in.Effects = append(in.Effects, again)
			},
			func(r audit.Report) int { return r.Repeated }, 1, "repeated: flight reserve of booking acme:A",
		},
		"an undo done twice": {
			func(in *audit.Input) { in.Effects = append(in.Effects, in.Effects[2]) },
			func(r audit.Report) int { return r.Repeated }, 1, "flight cancel of booking acme:B",
		},
		"an event applied twice": {
			func(in *audit.Input) { in.Applied["m2"] = 3 },
			func(r audit.Report) int { return r.Repeated }, 2, "applied event m2 3 times",
		},
		"a failed saga whose room still stands": {
			func(in *audit.Input) { in.Effects = append(in.Effects[:2:2], in.Effects[3:]...) },
			func(r audit.Report) int { return r.OrphansOpen }, 1, "open orphan: flight reserve of booking acme:B",
		},
		"an orphan of a saga that went on": {
			func(in *audit.Input) {
				other := in.Effects[3]
				other.Amount, other.Reference = 90, "op_d:hotelFollowUp"
				in.Effects[4] = other
				in.Bookings[3].State = "completed"
			},
			func(r audit.Report) int { return r.OrphansOpen }, 1, "open orphan: hotel reserve of booking acme:D",
		},
		"an effect that a follow-up took over is no orphan": {
			func(in *audit.Input) {
				in.Effects = append(in.Effects[:4:4], in.Effects[5:]...)
				in.Bookings[3].State = "completed"
			},
			func(r audit.Report) int { return 10*r.OrphansMade + r.OrphansOpen }, 10, "only 1 orphans were made",
		},
		"an undo of another amount": {
			func(in *audit.Input) { in.Effects[2].Amount = 99 },
			func(r audit.Report) int { return r.OrphansOpen }, 1, "open orphan: flight reserve",
		},
		"a run that made no orphans": {
			func(in *audit.Input) { in.Elements[2].State = "COMPLETED" },
			func(r audit.Report) int { return 2 - r.OrphansMade }, 1, "only 1 orphans were made",
		},
		"a lost event": {
			func(in *audit.Input) { in.Records = append(in.Records[:1:1], in.Records[2:]...) },
			func(r audit.Report) int { return r.EventsLost }, 1, "lost: event m3",
		},
		"a phantom": {
			func(in *audit.Input) { in.Staged = in.Staged[:2] },
			func(r audit.Report) int { return r.EventsPhantom }, 1, `phantom: event "m3"`,
		},
		"an event published under another number": {
			func(in *audit.Input) { in.Records[2].Sequence = 7 },
			func(r audit.Report) int { return r.EventsPhantom }, 1, "published as acme:A #7",
		},
		"an event staged twice": {
			func(in *audit.Input) { in.Staged = append(in.Staged, in.Staged[0]) },
			func(r audit.Report) int { return r.EventsPhantom }, 1, "staged twice",
		},
		"two events in the wrong order": {
			func(in *audit.Input) { in.Records[0].Offset, in.Records[2].Offset, in.Records[3].Offset = 2, 0, 3 },
			func(r audit.Report) int { return r.OrderViolations }, 1, "acme:A #1 came after #2",
		},
		"a key in two partitions": {
			func(in *audit.Input) { in.Records[2].Partition = 1 },
			func(r audit.Report) int { return r.OrderViolations }, 1, "key acme:A stands in",
		},
		"one number drawn twice": {
			func(in *audit.Input) {
				in.Staged = append(in.Staged, audit.Staged{ID: "m4", Key: "acme:B", Sequence: 1})
				in.Records = append(in.Records, audit.Record{Topic: "u", ID: "m4", Key: "acme:B", Sequence: 1})
			},
			func(r audit.Report) int { return r.OrderViolations }, 1, "drawn by",
		},
		"a number that nobody drew": {
			func(in *audit.Input) { in.Staged[2].Sequence, in.Records[1].Sequence = 2, 2 },
			func(r audit.Report) int { return r.OrderViolations }, 1, "key acme:B has 1 events and counts to 2",
		},
		"an operation without an end": {
			func(in *audit.Input) { in.Bookings[0].State = "in_progress" },
			func(r audit.Report) int { return r.Stuck }, 1, "stuck: plain",
		},
		"an instance that still runs": {
			func(in *audit.Input) { in.Instances[0].State = "ACTIVE" },
			func(r audit.Report) int { return r.Stuck }, 1, "process instance 10",
		},
		"incidents": {
			func(in *audit.Input) { in.Incidents = 2 },
			func(r audit.Report) int { return r.Stuck }, 2, "2 active incidents",
		},
		"a kill point that was not hit": {
			func(in *audit.Input) { in.Planned = append(in.Planned, "worker.commit.after") },
			func(r audit.Report) int { return len(r.KillPointsMissed) }, 1, "not hit: worker.commit.after",
		},
		"a booking that ended otherwise": {
			func(in *audit.Input) { in.Bookings[0].Wrong = "failed, want completed" },
			func(r audit.Report) int { return r.Unexpected }, 1, "failed, want completed",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := clean()
			tt.spoil(&in)
			r := audit.Examine(in)
			if got := tt.count(r); got != tt.want {
				t.Errorf("count %d, want %d; findings:\n%s", got, tt.want, strings.Join(r.Findings, "\n"))
			}
			if r.Clean() || !strings.Contains(strings.Join(r.Findings, "\n"), tt.says) {
				t.Errorf("findings %q do not say %q", r.Findings, tt.says)
			}
		})
	}
}
