package outbox

import "github.com/vitrip/journeyman/events/seal"

// SealedTables lists the tables of a schema whose bodies may be encrypted, for [seal.Reseal].
func SealedTables(schema string) []seal.Table {
	var list []seal.Table
	for _, name := range []string{"outbox", "outbox_parked", "outbox_skipped", "event_log", "event_ledger"} {
		list = append(list, seal.Table{Name: schema + "." + name, Context: "event_id::text"})
	}
	return list
}
