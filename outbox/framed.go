package outbox

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/vitrip/journeyman/events"
)

// checkCodec refuses a stager without codec for a type that needs one.
func (c Config) checkCodec() []error {
	if c.Catalog == nil || c.Codec != nil {
		return nil
	}
	var errs []error
	for _, e := range c.Catalog.Entries() {
		if e.Wire == events.WireConfluent && c.Catalog.MayStage(e, c.Producer) == nil && (len(c.Emits) == 0 || slices.Contains(c.Emits, e.Type)) {
			errs = append(errs, fmt.Errorf("codec: missing, and message type %s v%d is of wire %s", e.Type, e.Version, e.Wire))
		}
	}
	return errs
}

// frame gives the body of a message whose envelope travels in headers, nil for
// others. Both have their data checked. It asks no registry: the schema's id is known since the start.
func (s *Stager) frame(e events.Entry, data []byte) ([]byte, error) {
	if e.Wire != events.WireConfluent {
		if s.cfg.Schemas == nil {
			return nil, nil
		}
		return nil, s.cfg.Schemas.Check(e.Type, e.Version, data)
	}
	if s.cfg.Codec == nil {
		return nil, fmt.Errorf("is of wire %s, but the stager has no codec", e.Wire)
	}
	return s.cfg.Codec.Encode(e.Type, e.Version, data)
}

// idempotencyKey is what repeats are recognised by, where that is in the data.
func idempotencyKey(e events.Entry, data []byte) string {
	var d struct {
		Key string `json:"idempotencyKey"`
	}
	if e.IdempotencyKey != events.DedupData || json.Unmarshal(data, &d) != nil {
		return ""
	}
	return d.Key
}
