package inbox

import (
	"time"

	"github.com/vitrip/journeyman/events"
)

// ReplayPolicy says what a route does with a message that the group may have
// handled before and that a replay brings again on purpose (spec E9):
// [events.ReplayAgain], or one that is older than the inbox remembers (spec
// E10). Handlers see events.Received.Replay in every case. A replayed message
// that the group has certainly not handled needs no policy: it is handled as
// any other.
type ReplayPolicy string

// The policies.
const (
	ReplayRefused ReplayPolicy = ""      // pass over it: the default, so that no effect of a live group happens twice
	ReplayQuiet   ReplayPolicy = "quiet" // handle it once per replay; messages the handler emits are dropped
	ReplayFull    ReplayPolicy = "full"  // handle it once per replay; what it emits is published, marked as replay
)

// replay is how a message that is delivered again stands to this group.
type replay struct {
	events.Redelivery
	again   bool // the group may have handled it: the identity is that of the replay
	refused bool // it came from the dead letters, and the route does not take it: back there
}

// ReasonReplay says that a message that was given back in explicit replay mode
// went to inbox_dead again, because its route does not take replays.
const ReasonReplay = "replay"

// replayed looks at the headers of a message and decides: with other groups'
// messages, and with those the route does not take, it reports that the message
// is to be passed over. One that is to be handled again gets an identity of the
// replay's own, so that a replay that is resumed, or a record that comes twice,
// does not handle it twice either.
func (i *Inbox) replayed(m *message) (skip bool) {
	d := events.RedeliveryOf(m.Record)
	if d.ID == "" {
		return false
	}
	if d.Group != "" && d.Group != i.cfg.Group {
		return true
	}
	m.replay = replay{Redelivery: d, again: d.Mode == events.ReplayAgain || i.forgotten(d)}
	if !m.replay.again {
		return false
	}
	if m.route.Replay == ReplayRefused && m.Header(events.HeaderRedriveID) != "" {
		m.replay.refused = true
		m.id = m.id + "@" + clean(d.ID)
		return false
	}
	if m.route.Replay == ReplayRefused {
		i.about(i.cfg.Log.Warn(), *m).Str("replay_id", d.ID).Msg("inbox: replayed message passed over, its handler does not take replays")
		if i.cfg.Hooks.Refused != nil {
			i.cfg.Hooks.Refused(m.env.MessageType, m.env.MessageID, d.ID)
		}
		return true
	}
	m.id = m.id + "@" + clean(d.ID)
	return false
}

// forgotten says whether the inbox may have dropped its row of the message. Unknown times count as old.
func (i *Inbox) forgotten(d events.Redelivery) bool {
	return time.Since(d.Published) > i.cfg.Keep-clockSlack
}

// clockSlack is by how much the clocks of databases and processes may differ here.
const clockSlack = time.Hour
