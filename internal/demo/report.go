package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/vitrip/journeyman/internal/audit"
)

// PrintReport writes a report for people.
func PrintReport(w io.Writer, r audit.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d bookings: %d confirmed, %d rejected, %d compensated, %d cancelled, %d expired, %d refunds; %d jobs in %.1f s\n",
		r.Bookings, r.Confirmed, r.Rejected, r.Compensated, r.Cancelled, r.Expired, r.Refunds, r.Jobs, r.WallSeconds)
	fmt.Fprintf(&b, "broken on purpose: %d kills of the worker process at %d of %d points, %d orphans, %d duplicates delivered\n\n",
		r.WorkerKills, r.KillPointsPlanned-len(r.KillPointsMissed), r.KillPointsPlanned, r.OrphansMade, r.DuplicatesDelivered)
	b.WriteString("audit from the outside\n")
	for _, line := range []struct {
		what string
		bad  int
		of   string
	}{
		{"side effects repeated", r.Repeated, fmt.Sprintf("of %d at the suppliers", r.SideEffects)},
		{"orphans open", r.OrphansOpen, fmt.Sprintf("of %d made", r.OrphansMade)},
		{"events lost", r.EventsLost, fmt.Sprintf("of %d committed", r.EventsCommitted)},
		{"events phantom", r.EventsPhantom, fmt.Sprintf("of %d in Kafka", r.EventsInKafka)},
		{"order violations", r.OrderViolations, "per business key"},
		{"stuck", r.Stuck, "operations, instances, incidents"},
		{"unexpected ends", r.Unexpected, "against the script"},
	} {
		verdict := "ok  "
		if line.bad != 0 {
			verdict = "BAD "
		}
		fmt.Fprintf(&b, "  %s %-22s %4d   %s\n", verdict, line.what, line.bad, line.of)
	}
	const most = 40
	for i, f := range r.Findings {
		if i == most {
			fmt.Fprintf(&b, "  and %d more\n", len(r.Findings)-most)
			break
		}
		fmt.Fprintf(&b, "  - %s\n", f)
	}
	if r.Clean() {
		b.WriteString("clean\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
