package eventstest

import (
	"context"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
)

// LagTimes checks what a transport says of the times of records: each partition that the group is behind in has that of its next record,
// from within the last minute, and none at its end.
func LagTimes(ctx context.Context, t *testing.T, r events.LagReader, group, topic string) {
	t.Helper()
	lags, err := r.Lag(ctx, group, topic)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lags {
		at := events.Position{Topic: l.Topic, Partition: l.Partition, Offset: l.Next}
		when, err := r.TimeAt(ctx, at)
		if age := time.Since(when); err != nil || (l.Behind > 0) != (age >= 0 && age < time.Minute) {
			t.Errorf("%+v is of %v, %v", l, when, err)
		}
		at.Offset = l.End
		if when, err := r.TimeAt(ctx, at); err != nil || !when.IsZero() {
			t.Errorf("the end of %+v is of %v, %v", l, when, err)
		}
	}
}
