package operator

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/vitrip/journeyman/events"
)

// EventActed is the audit-class event that tells of each audit row (spec P2). It is staged in the act's transaction.
const EventActed = "platform.operator.acted"

// actedKey is the business key of all [EventActed]: they have one order, that of the rows.
const actedKey = "operator-audit"

//go:embed catalog.yaml
var catalog []byte

// Catalog is the catalog of the events of this package, for events.ParseCatalog.
func Catalog() []byte { return append([]byte(nil), catalog...) }

// Stager stages messages in a transaction. *outbox.Stager is one.
type Stager interface {
	Declare(types ...string) error
	Queue(b *pgx.Batch, o events.Origin, msgs []events.Message, keys ...string) error
}

// Acted is the data of [EventActed]: the audit row, so that the chain can be followed outside of the database too.
type Acted struct {
	Seq    int64           `json:"seq"`
	At     time.Time       `json:"at"`
	Actor  string          `json:"actor"`
	Action string          `json:"action"`
	Target string          `json:"target"`
	Reason string          `json:"reason"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
	Hash   string          `json:"hash"` // hex
}

func (r AuditRow) message() events.Message {
	return events.Message{Kind: events.KindEvent, Type: EventActed, Version: 1, BusinessKey: actedKey, Data: Acted{
		Seq: r.Seq, At: r.At, Actor: r.Actor, Action: r.Action, Target: r.Target, Reason: r.Reason, Before: r.Before, After: r.After, Hash: r.Hash,
	}}
}

func (r AuditRow) origin() events.Origin {
	return events.Origin{IDSeed: fmt.Sprintf("%s:%d:%s", actedKey, r.Seq, r.Hash), Actor: events.Actor{UserID: r.Actor}}
}
