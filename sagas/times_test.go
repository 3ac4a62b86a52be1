package sagas_test

import (
	"testing"
	"time"

	"github.com/vitrip/journeyman/sagas"
	"github.com/vitrip/journeyman/sagas/amendment"
	"github.com/vitrip/journeyman/sagas/refund"
	"github.com/vitrip/journeyman/sagas/ticketing"
	"github.com/vitrip/journeyman/sagas/tourbooking"
)

// The time-outs and retentions of the types there are. Single-supplier bookings and exports have no type of their own: an
// application that adds one gives it 5 min / 30 d and 7 d / 30 d, in the type or by Limits. An amendment is as the booking it changes.
func TestI05_TimeoutsAndRetentionByType(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		make               func() (sagas.Type, error)
		timeout, retention time.Duration
	}{
		"tour booking": {func() (sagas.Type, error) { return tourbooking.Type(tourbooking.TypeConfig{}) }, 30 * time.Minute, 30 * day},
		"refund":       {func() (sagas.Type, error) { return refund.Type(refund.TypeConfig{}) }, time.Hour, 90 * day},
		"amendment":    {func() (sagas.Type, error) { return amendment.Type(amendment.TypeConfig{}) }, 30 * time.Minute, 30 * day},
		"ticketing":    {func() (sagas.Type, error) { return ticketing.Type(ticketing.TypeConfig{}) }, day, 90 * day},
	} {
		typ, err := c.make()
		if err != nil || typ.Timeout != c.timeout || typ.Retention != c.retention {
			t.Errorf("%s: got %v and %v, %v; want %v and %v", name, typ.Timeout, typ.Retention, err, c.timeout, c.retention)
		}
	}
}
