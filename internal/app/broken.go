package app

import (
	"context"
	"sync/atomic"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/internal/rule"
)

// breakRelay is no rule of the path: it stands for "what the broker acknowledged is in the broker". A test build
// switches it off to see that the demo's audit notices lost events.
const breakRelay = 901

// publisher is pub, but for test builds that break the relay.
func publisher(pub events.Publisher) events.Publisher {
	if rule.Off(breakRelay) {
		return &forgetful{Publisher: pub}
	}
	return pub
}

// forgetful acknowledges every tenth record without publishing it.
type forgetful struct {
	events.Publisher
	n atomic.Int64
}

func (f *forgetful) Publish(ctx context.Context, records []events.Record) []error {
	var kept []events.Record
	var at []int
	for i, r := range records {
		if f.n.Add(1)%10 != 0 {
			kept, at = append(kept, r), append(at, i)
		}
	}
	errs := make([]error, len(records))
	for i, err := range f.Publisher.Publish(ctx, kept) {
		errs[at[i]] = err
	}
	return errs
}
