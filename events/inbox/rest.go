package inbox

import (
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
)

// SealAtRest encrypts a body that is put into a group's tables from outside, as
// the group's own members do (spec E4). It can be opened for that group and position alone.
func SealAtRest(keys seal.Keys, group string, p events.Position, body []byte) ([]byte, error) {
	return seal.Seal(keys, seal.AtRest, body, bound(group, p))
}
