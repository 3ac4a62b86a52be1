package outbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/seal"
)

// Chain is the name of the hash chain of a message of class audit: one for each
// producer and partition of its topic.
func Chain(producer, topic string, partitions int, businessKey string) string {
	return fmt.Sprintf("%s/%s/%d", producer, topic, events.Partition(businessKey, partitions))
}

// special is a row whose class or order scope asks for more than a row in the
// outbox. None of it needs a round trip of its own.
//
//   - Strict order: the row carries the sequence of the message before it in its scope.
//   - Audit: the row is linked into its hash chain and written to event_ledger.
//   - Compliance: the row is written to event_ledger.
//   - Analytical: the row is dropped and counted while the backlog is above the
//     limit. These come last, because they draw their sequence only when they
//     are written: a dropped one leaves no gap.
type special struct {
	row
	origin events.Origin
	back   int64 // counts back from the key's new sequence to this row's own
	at     any   // nil: the time of staging
}

// lockChains locks the heads of the rows' hash chains, sorted as keys are and after all keys.
func (s *Stager) lockChains(b *pgx.Batch, rows []row) {
	var chains []string
	for _, r := range rows {
		if r.entry.Class.Chained() {
			chains = append(chains, Chain(s.cfg.Producer, r.entry.Topic, r.entry.Partitions, r.BusinessKey))
		}
	}
	if len(chains) > 0 {
		slices.Sort(chains)
		b.Queue(s.classes.lockChains, slices.Compact(chains))
	}
}

// queueSpecial adds one row that is ordered strictly or kept in the ledger.
func (s *Stager) queueSpecial(b *pgx.Batch, o events.Origin, r special) {
	args := []any{
		events.Shard(r.BusinessKey), r.id, r.Type, r.Version, string(r.entry.Class), r.entry.Topic, r.BusinessKey,
		o.OperationID, r.headers, r.body, r.back, r.at,
	}
	ordered := r.entry.OrderScope != ""
	switch {
	case r.entry.Class.Chained():
		b.Queue(s.classes.insertAs(ordered, true, true), append(args, r.entry.OrderScope, r.sum, Chain(s.cfg.Producer, r.entry.Topic, r.entry.Partitions, r.BusinessKey))...)
	case r.entry.Class.Immutable():
		b.Queue(s.classes.insertAs(ordered, true, false), append(args, r.entry.OrderScope, r.sum)...)
	default:
		b.Queue(s.classes.insertAs(ordered, false, false), append(args, r.entry.OrderScope)...)
	}
}

// queueShed adds rows that may be dropped.
func (s *Stager) queueShed(b *pgx.Batch, o events.Origin, rows []special) {
	if len(rows) == 0 {
		return
	}
	b.Queue(s.classes.pressure, s.cfg.ShedAbove)
	for _, r := range rows {
		b.Queue(s.classes.insertShed, events.Shard(r.BusinessKey), r.id, r.Type, r.Version, string(r.entry.Class), r.entry.Topic, r.BusinessKey,
			o.OperationID, r.headers, r.body, r.at)
	}
}

// plain reports whether a row in the outbox is all the message asks for.
func plain(e events.Entry) bool {
	return e.OrderScope == "" && !e.Class.Immutable() && !e.Class.Sheds()
}

// protect seals a rendered body as its class asks, and gives the digest of the clear one where it is kept.
func (s *Stager) protect(e events.Entry, id string, body []byte) (stored []byte, sum string, err error) {
	if e.Class.Immutable() {
		h := sha256.Sum256(body)
		sum = hex.EncodeToString(h[:])
	}
	switch e.Encryption {
	case events.EncryptNone:
		return body, sum, nil
	case events.EncryptEndToEnd:
		stored, err = seal.Seal(s.cfg.Keys, seal.EndToEnd, body, id)
	default:
		stored, err = seal.Seal(s.cfg.Keys, seal.AtRest, body, id)
	}
	return stored, sum, err
}
