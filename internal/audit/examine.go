package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// leastOrphans is how many orphans the script makes on purpose: fewer means that the run proved nothing about them.
const leastOrphans = 2

// undoneBy says which kind of effect takes back which.
var undoneBy = map[string]string{ //nolint:gochecknoglobals // a constant table
	"reserve": "cancel", "authorize": "void", "refund": "reinstate", "ticket": "withdraw",
}

// Examine counts and judges. It does no I/O and does not change in.
func Examine(in Input) Report {
	e := examiner{in: in, r: Report{Findings: []string{}, KillPointsMissed: []string{}}}
	e.effects()
	e.orphans()
	e.bookings()
	e.events()
	e.order()
	e.stuck()
	e.kills()
	e.r.Jobs = in.Jobs
	e.r.WallSeconds = float64(in.Wall.Milliseconds()) / 1000
	return e.r
}

type examiner struct {
	in Input
	r  Report
}

func (e *examiner) find(format string, args ...any) {
	e.r.Findings = append(e.r.Findings, fmt.Sprintf(format, args...))
}

// business is one effect as a business person counts it: never by idempotency key or reference.
type business struct {
	kind, booking, segment, currency string
	amount                           int64
}

func (e *examiner) effects() {
	seen := map[business]int{}
	for _, f := range e.in.Effects {
		e.r.SideEffects++
		b := business{f.Kind, f.Booking, f.Segment, f.Currency, f.Amount}
		if seen[b]++; seen[b] > 1 {
			e.r.Repeated++
			e.find("repeated: %s %s of booking %s (%d %s) at %s for the %d. time, reference %s",
				f.Segment, f.Kind, f.Booking, f.Amount, f.Currency, f.Supplier, seen[b], f.Reference)
		}
	}
	for _, id := range sortedKeys(e.in.Applied) {
		if n := e.in.Applied[id]; n > 1 {
			e.r.Repeated += n - 1
			e.find("repeated: the consumer applied event %s %d times", id, n)
		}
	}
}

// orphans counts effects whose element was terminated, and effects of sagas
// that ended without completing that still stand. A saga that completed owns
// one effect of each kind and segment, whichever element found it: a follow-up
// task may have taken over from the element that a time-out ended.
func (e *examiner) orphans() {
	states := map[string][]string{}
	for _, el := range e.in.Elements {
		states[el.OperationID] = append(states[el.OperationID], el.State)
	}
	saga := map[string]Booking{}
	for _, b := range e.in.Bookings {
		saga[b.Operation] = b
	}
	undone, standing := map[business]int{}, map[business]int{}
	for _, f := range e.in.Effects {
		b := business{kind: f.Kind, booking: f.Booking, segment: f.Segment}
		standing[b]++
		undone[business{f.Kind, f.Booking, f.Segment, f.Currency, f.Amount}]++
	}
	for _, f := range e.in.Effects {
		undo, compensable := undoneBy[f.Kind]
		if !compensable {
			continue
		}
		owner, known := saga[sagaOf(f.Reference)]
		owned := known && owner.State == "completed" && standing[business{kind: f.Kind, booking: f.Booking, segment: f.Segment}] == 1
		orphan := terminated(states[f.Reference]) && !owned
		if orphan {
			e.r.OrphansMade++
		}
		failed := known && (owner.State == "failed" || owner.State == "expired")
		if !orphan && !failed {
			continue
		}
		back := business{undo, f.Booking, f.Segment, f.Currency, f.Amount}
		if undone[back] > 0 {
			undone[back]--
			continue
		}
		e.r.OrphansOpen++
		e.find("open orphan: %s %s of booking %s at %s still stands, reference %s", f.Segment, f.Kind, f.Booking, f.Supplier, f.Reference)
	}
}

// terminated reports whether the operation's element ended without completing in every instance the engine knows.
func terminated(states []string) bool {
	return len(states) > 0 && !slices.ContainsFunc(states, func(s string) bool { return s != "TERMINATED" })
}

// sagaOf cuts an operation id of a step, "<saga>:<element>…", back to its saga.
func sagaOf(operation string) string {
	saga, _, _ := strings.Cut(operation, ":")
	return saga
}

func (e *examiner) bookings() {
	did := map[string]bool{}
	for _, f := range e.in.Effects {
		if _, forward := undoneBy[f.Kind]; forward {
			did[sagaOf(f.Reference)] = true
		}
	}
	for _, b := range e.in.Bookings {
		if b.Wrong != "" {
			e.r.Unexpected++
			e.find("unexpected: %s: %s", b.Name, b.Wrong)
		}
		if b.Operation == "" {
			continue
		}
		e.r.Bookings++
		if b.Type == "refund" {
			e.r.Refunds++
		}
		switch {
		case b.State == "completed" && b.Type == "tour-booking":
			e.r.Confirmed++
		case b.State == "expired":
			e.r.Expired++
		case b.State == "failed" && b.Reason == "cancelled":
			e.r.Cancelled++
		case b.State == "failed" && did[b.Operation]:
			e.r.Compensated++
		case b.State == "failed":
			e.r.Rejected++
		}
	}
}

func (e *examiner) events() {
	committed := map[string]Staged{}
	for _, s := range e.in.Staged {
		if _, twice := committed[s.ID]; twice {
			e.r.EventsPhantom++
			e.find("phantom: event %s was staged twice", s.ID)
		}
		committed[s.ID] = s
	}
	e.r.EventsCommitted = len(committed)
	published := map[string]bool{}
	for _, k := range e.in.Records {
		if published[k.ID] {
			e.r.DuplicatesDelivered++
			continue
		}
		published[k.ID] = true
		s, ok := committed[k.ID]
		switch {
		case !ok:
			e.r.EventsPhantom++
			e.find("phantom: event %q (%s, key %s) stands in %s[%d]@%d and was never committed", k.ID, k.Type, k.Key, k.Topic, k.Partition, k.Offset)
		case s.Key != k.Key || s.Sequence != k.Sequence:
			e.r.EventsPhantom++
			e.find("phantom: event %s was committed as %s #%d and published as %s #%d", k.ID, s.Key, s.Sequence, k.Key, k.Sequence)
		}
	}
	e.r.EventsInKafka = len(published)
	for _, id := range sortedKeys(committed) {
		if !published[id] {
			e.r.EventsLost++
			e.find("lost: event %s (key %s #%d) was committed and is not in Kafka", id, committed[id].Key, committed[id].Sequence)
		}
	}
}

// order looks at the first sight of each event: within a partition the sequence of a key must rise.
// Two committed events of one key may not share a number, and none may be missing: consumers hold back behind a gap (spec E4).
func (e *examiner) order() {
	type lane struct {
		topic     string
		partition int
		key       string
	}
	records := slices.Clone(e.in.Records)
	slices.SortStableFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	})
	last, seen := map[lane]int64{}, map[string]bool{}
	where := map[string]string{}
	for _, k := range records {
		if seen[k.ID] {
			continue
		}
		seen[k.ID] = true
		l := lane{k.Topic, k.Partition, k.Key}
		if before, ok := last[l]; ok && k.Sequence <= before {
			e.r.OrderViolations++
			e.find("order: %s[%d]@%d: key %s #%d came after #%d", k.Topic, k.Partition, k.Offset, k.Key, k.Sequence, before)
		}
		last[l] = max(last[l], k.Sequence)
		place := fmt.Sprintf("%s[%d]", k.Topic, k.Partition)
		if other, ok := where[k.Topic+"\x00"+k.Key]; ok && other != place {
			e.r.OrderViolations++
			e.find("order: key %s stands in %s and in %s", k.Key, other, place)
		}
		where[k.Topic+"\x00"+k.Key] = place
	}
	drawn, count, highest := map[string]string{}, map[string]int64{}, map[string]int64{}
	for _, s := range e.in.Staged {
		highest[s.Key] = max(highest[s.Key], s.Sequence)
		number := fmt.Sprintf("%s #%d", s.Key, s.Sequence)
		if drawn[number] == "" {
			count[s.Key]++
		}
		if other, ok := drawn[number]; ok && other != s.ID {
			e.r.OrderViolations++
			e.find("order: %s was drawn by %s and by %s", number, other, s.ID)
		}
		drawn[number] = s.ID
	}
	for _, key := range sortedKeys(count) {
		if count[key] != highest[key] {
			e.r.OrderViolations++
			e.find("order: key %s has %d events and counts to %d", key, count[key], highest[key])
		}
	}
}

func (e *examiner) stuck() {
	for _, b := range e.in.Bookings {
		switch {
		case b.Operation == "" || b.State == "completed" || b.State == "failed" || b.State == "expired":
		default:
			e.r.Stuck++
			e.find("stuck: %s (%s) is still %q", b.Name, b.Operation, b.State)
		}
	}
	for _, i := range e.in.Instances {
		if i.State == "ACTIVE" {
			e.r.Stuck++
			e.find("stuck: process instance %d of %s is still active", i.Key, i.ProcessID)
		}
	}
	if e.in.Incidents > 0 {
		e.r.Stuck += e.in.Incidents
		e.find("stuck: %d active incidents", e.in.Incidents)
	}
}

func (e *examiner) kills() {
	hit := map[string]bool{}
	for _, k := range e.in.Kills {
		hit[k] = true
	}
	planned := map[string]bool{}
	for _, p := range e.in.Planned {
		if planned[p] {
			continue
		}
		planned[p] = true
		if !hit[p] {
			e.r.KillPointsMissed = append(e.r.KillPointsMissed, p)
			e.find("kill point not hit: %s", p)
		}
	}
	e.r.WorkerKills, e.r.KillPointsHit, e.r.KillPointsPlanned = len(e.in.Kills), len(hit), len(planned)
	if e.r.OrphansMade < leastOrphans {
		e.find("only %d orphans were made, want at least %d: the run proves nothing about them", e.r.OrphansMade, leastOrphans)
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
