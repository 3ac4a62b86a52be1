// Package compat compares two versions of a catalog and finds what would break
// those who read and write its messages (spec E5).
package compat

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vitrip/journeyman/events"
)

// Break is one change that must not happen silently.
type Break struct {
	Type    string `json:"type"`
	Version int    `json:"version"`
	Change  string `json:"change"` // "removed", "schema", or the catalog's field
	Field   string `json:"field"`  // of the data, for a schema: "data.price.currency"
	From    string `json:"from"`
	To      string `json:"to"`
	Fix     string `json:"fix"` // what to do
}

// String says it in one line.
func (b Break) String() string {
	what := b.Change
	if b.Field != "" {
		what += " of " + b.Field
	}
	return fmt.Sprintf("%s v%d: %s: was %s, is %s; %s", b.Type, b.Version, what, shown(b.From), shown(b.To), b.Fix)
}

func shown(v string) string {
	if v == "" {
		return "nothing"
	}
	return v
}

// Compare lists what breaks between an old and a new catalog, by type and version:
//
//   - a type or version that is gone, or whose kind, class, topic, partition or
//     idempotency key, partition count, format, wire form, retry schedule,
//     poison rule or DLQ changed, or whose end of service came nearer, unless the new catalog signs it off
//     ([events.SignOff]). A version that is gone after the end it had declared needs no signature (spec E5);
//   - a schema that changed other than its format's rules allow. That needs a
//     new major version and cannot be signed off.
//
// JSON Schema: optional properties may come, and words that say nothing of the
// data may change (title, description, default, examples). Avro: what
// [avro.Breaks] says, so fields with a default may come. Protobuf: what
// [proto.Breaks] says, so fields may come and may go when their number and name are reserved.
//
// A queue family that is gone, or whose class, retry schedule or poison rule changed, is told of alike, as version 1.
//
// A new type, a new version, a new queue and the first schema of a version break nothing.
func Compare(was, is *events.Catalog) []Break { return CompareAt(was, is, time.Now()) }

// CompareAt is [Compare] at a time, which decides whether a declared end of service has come.
func CompareAt(was, is *events.Catalog, now time.Time) []Break {
	var found []Break
	signed := is.SignOffs()
	for _, old := range was.Entries() {
		after, there := is.Entry(old.Type, old.Version)
		if !there {
			if from := served(old); old.ServedUntil.IsZero() || now.Before(old.ServedUntil) {
				found = append(found, unsigned(signed, Break{Type: old.Type, Version: old.Version, Change: "removed", From: from})...)
			}
			continue
		}
		if !after.ServedUntil.IsZero() && after.ServedUntil.Before(old.ServedUntil) {
			found = append(found, unsigned(signed, Break{
				Type: old.Type, Version: old.Version, Change: "served_until", From: old.ServedUntil.Format(time.DateOnly), To: after.ServedUntil.Format(time.DateOnly),
			})...)
		}
		is := fields(after)
		for i, f := range fields(old) {
			if f.value != is[i].value {
				found = append(found, unsigned(signed, Break{Type: old.Type, Version: old.Version, Change: f.name, From: f.value, To: is[i].value})...)
			}
		}
		for _, d := range differences(old, after) {
			found = append(found, Break{Type: old.Type, Version: old.Version, Change: "schema", Field: d.field, From: d.from, To: d.to,
				Fix: fmt.Sprintf("add version %d and keep this one as it was", old.Version+1)})
		}
	}
	return append(found, queues(signed, was, is)...)
}

// queues compares the families of durable work.
func queues(signed []events.SignOff, was, is *events.Catalog) (found []Break) {
	for _, old := range was.Queues() {
		now, there := is.Queue(old.Name)
		if !there {
			found = append(found, unsigned(signed, Break{Type: old.Name, Version: 1, Change: "removed", From: "in the catalog"})...)
			continue
		}
		for _, f := range []struct{ name, from, to string }{
			{"class", string(old.Class), string(now.Class)}, {"retry", delays(old.Retry), delays(now.Retry)},
			{"poisoned_after", strconv.Itoa(old.PoisonedAfter), strconv.Itoa(now.PoisonedAfter)},
		} {
			if f.from != f.to {
				found = append(found, unsigned(signed, Break{Type: old.Name, Version: 1, Change: f.name, From: f.from, To: f.to})...)
			}
		}
	}
	return found
}

func delays(list []time.Duration) string {
	var texts []string
	for _, d := range list {
		texts = append(texts, d.String())
	}
	return strings.Join(texts, ", ")
}

// served says what the catalog promised of a version.
func served(e events.Entry) string {
	if e.ServedUntil.IsZero() {
		return "in the catalog"
	}
	return "served until " + e.ServedUntil.Format(time.DateOnly)
}

type field struct{ name, value string }

func fields(e events.Entry) []field {
	return []field{
		{"kind", string(e.Kind)}, {"class", string(e.Class)}, {"topic", e.Topic}, {"format", string(e.Format)}, {"wire", string(e.Wire)}, {"partition_key", e.PartitionKey}, {"idempotency_key", e.IdempotencyKey},
		{"partitions", strconv.Itoa(e.Partitions)}, {"retry", delays(e.Retry)}, {"poisoned_after", strconv.Itoa(e.PoisonedAfter)}, {"dlq", e.DLQ},
	}
}

// unsigned gives the break unless somebody signed for exactly this change.
func unsigned(signed []events.SignOff, b Break) []Break {
	if slices.ContainsFunc(signed, func(s events.SignOff) bool {
		return s.Type == b.Type && s.Version == b.Version && s.Change == b.Change && s.To == b.To
	}) {
		return nil
	}
	b.Fix = fmt.Sprintf("undo it, or sign it off: signed_off: [{type: %s, version: %d, change: %s, to: %q, reason: …, approved_by: …}]", b.Type, b.Version, b.Change, b.To)
	return []Break{b}
}
