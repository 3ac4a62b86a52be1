package compat

import (
	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/schema/avro"
	"github.com/vitrip/journeyman/events/schema/proto"
)

// differences lists what breaks between the schemas of two entries, by the rules
// of their format. Another format is a change of its own and leaves nothing to compare.
func differences(old, now events.Entry) []difference {
	switch {
	case old.Format != now.Format:
		return nil
	case old.Format == events.FormatJSON || old.Schema == nil || now.Schema == nil:
		return schemas(old.Schema, now.Schema)
	case old.Format == events.FormatAvro:
		was, err := avro.Parse(old.Schema)
		if err != nil {
			return unreadable(old, now, err)
		}
		is, err := avro.Parse(now.Schema)
		if err != nil {
			return []difference{{"data", "a schema", "none that can be read: " + err.Error()}}
		}
		var found []difference
		for _, d := range avro.Breaks(was, is) {
			found = append(found, difference{d.Field, d.From, d.To})
		}
		return found
	}
	was, err := proto.Parse(old.Schema, old.Message)
	if err != nil {
		return unreadable(old, now, err)
	}
	is, err := proto.Parse(now.Schema, now.Message)
	if err != nil {
		return []difference{{"data", "a schema", "none that can be read: " + err.Error()}}
	}
	var found []difference
	for _, d := range proto.Breaks(was, is) {
		found = append(found, difference{d.Field, d.From, d.To})
	}
	return found
}

// unreadable is an old schema that nobody could have used: it may be mended, and only a change of it is told.
func unreadable(old, now events.Entry, err error) []difference {
	if text(plain(old.Schema)) == text(plain(now.Schema)) && old.Message == now.Message {
		return nil
	}
	return []difference{{"data", "a schema that could not be read: " + err.Error(), "another"}}
}
