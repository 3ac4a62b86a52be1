package inbox

import (
	"context"
	"maps"
	"slices"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/outcome"
)

// ReasonData is why a message is dead whose data does not fit its handler's type.
const ReasonData = "data"

// Typed makes a handler from one that takes the message's data as T, read by
// encoding/json; fields that T does not have are passed over, as those that a
// producer adds within a version must be (spec E5). Data that does not fit is FATAL.
func Typed[T any](h func(ctx context.Context, tx *outbox.Tx, m events.Received, data T) error) Handler {
	return func(ctx context.Context, tx *outbox.Tx, m events.Received) error {
		var data T
		if err := m.Decode(&data); err != nil {
			return &outcome.Error{Class: outcome.Fatal, Reason: ReasonData, Message: err.Error(), Err: err}
		}
		return h(ctx, tx, m, data)
	}
}

// ByVersion has one handler for each major version of a type that its consumer
// understands (spec E6). A version it does not name goes to inbox_dead with the reason "version" and an alert.
type ByVersion map[int]Handler

// Route binds the versions to message types.
func (v ByVersion) Route(types ...string) Route {
	return Route{Types: types, Versions: slices.Sorted(maps.Keys(v)), Handler: v.handle}
}

func (v ByVersion) handle(ctx context.Context, tx *outbox.Tx, m events.Received) error {
	h := v[m.MessageVersion]
	if h == nil {
		return outcome.Fatalf(ReasonVersion, "version %d: no handler", m.MessageVersion)
	}
	return h(ctx, tx, m)
}
