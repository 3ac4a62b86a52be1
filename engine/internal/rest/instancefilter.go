package rest

import (
	"encoding/json"
	"slices"
	"unicode/utf16"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// take removes a property from a filter and returns it; nil when it is not there or null.
func take(filter map[string]json.RawMessage, name string) json.RawMessage {
	raw := filter[name]
	delete(filter, name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// takeMatcher removes a property and reads it as a filter value; nil when it is not there.
func takeMatcher(filter map[string]json.RawMessage, name string, k kind) (matcher, error) {
	raw := take(filter, name)
	if raw == nil {
		return nil, nil
	}
	return parseFilter(name, k, raw)
}

// takeBool removes a property that is true or false; nil when it is not there.
func takeBool(filter map[string]json.RawMessage, name string) (*bool, error) {
	raw := take(filter, name)
	if raw == nil {
		return nil, nil
	}
	var b bool
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, badFilter(name)
	}
	return &b, nil
}

// instanceExtras are the filters of process instances by what is inside them:
// variables of the root scope, tags, elements, incidents and jobs.
func instanceExtras(filter map[string]json.RawMessage) ([]func(instanceItem) bool, error) {
	var tests []func(instanceItem) bool
	add := func(t func(i *core.Instance) bool) {
		if t != nil {
			tests = append(tests, func(v instanceItem) bool { return t(v.of) })
		}
	}
	byVariable, err := variableFilter(filter, "variables")
	if err != nil {
		return nil, err
	}
	add(func(i *core.Instance) bool { return byVariable(i.Root) })
	for _, part := range []func(map[string]json.RawMessage) (func(*core.Instance) bool, error){tagFilter, elementFilter, messageFilter, retriesFilter, batchFilter} {
		t, err := part(filter)
		if err != nil {
			return nil, err
		}
		add(t)
	}
	return tests, nil
}

// tagFilter wants an instance to have all of the tags.
func tagFilter(filter map[string]json.RawMessage) (func(*core.Instance) bool, error) {
	raw := take(filter, "tags")
	if raw == nil {
		return nil, nil
	}
	var tags []string
	if err := json.Unmarshal(raw, &tags); err != nil {
		return nil, badFilter("tags")
	}
	return func(i *core.Instance) bool {
		return !slices.ContainsFunc(tags, func(t string) bool { return !slices.Contains(i.Tags(), t) })
	}, nil
}

// elementFilter wants one element instance that meets all of its conditions together.
func elementFilter(filter map[string]json.RawMessage) (func(*core.Instance) bool, error) {
	id, err := takeMatcher(filter, "elementId", kindString)
	if err != nil {
		return nil, err
	}
	inState, err := takeMatcher(filter, "elementInstanceState", kindString)
	if err != nil {
		return nil, err
	}
	incident, err := takeBool(filter, "hasElementInstanceIncident")
	if err != nil {
		return nil, err
	}
	if id == nil && inState == nil && incident == nil {
		return nil, nil
	}
	return func(i *core.Instance) bool {
		for e := range i.Elements() {
			if (id == nil || id(e.Node.ID)) && (inState == nil || inState(state(e))) && (incident == nil || *incident == e.HasIncident()) {
				return true
			}
		}
		return false
	}, nil
}

// messageFilter wants an active incident with such a message, or with a message of such a hash code.
func messageFilter(filter map[string]json.RawMessage) (func(*core.Instance) bool, error) {
	text, err := takeMatcher(filter, "errorMessage", kindString)
	if err != nil {
		return nil, err
	}
	hash, err := takeMatcher(filter, "incidentErrorHashCode", kindInt)
	if err != nil {
		return nil, err
	}
	if text == nil && hash == nil {
		return nil, nil
	}
	return func(i *core.Instance) bool {
		for inc := range i.Incidents() {
			if inc.Active && (text == nil || text(inc.Message)) && (hash == nil || hash(int64(hashCode(inc.Message)))) {
				return true
			}
		}
		return false
	}, nil
}

// hashCode is the hash of a text as Java computes it, over UTF-16 units.
func hashCode(s string) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + int32(u)
	}
	return h
}

// retriesFilter asks for a job that failed and can be tried again.
func retriesFilter(filter map[string]json.RawMessage) (func(*core.Instance) bool, error) {
	want, err := takeBool(filter, "hasRetriesLeft")
	if want == nil || err != nil {
		return nil, err
	}
	return func(i *core.Instance) bool {
		for j := range i.Jobs() {
			if j.FailedWithRetriesLeft() {
				return *want
			}
		}
		return !*want
	}, nil
}

// batchFilter knows that no instance was ever part of a batch operation: there are none.
func batchFilter(filter map[string]json.RawMessage) (func(*core.Instance) bool, error) {
	var all []matcher
	for _, name := range []string{"batchOperationKey", "batchOperationId"} {
		m, err := takeMatcher(filter, name, kindString)
		if err != nil {
			return nil, err
		}
		if m != nil {
			all = append(all, m)
		}
	}
	if all == nil {
		return nil, nil
	}
	return func(*core.Instance) bool {
		return !slices.ContainsFunc(all, func(m matcher) bool { return !m(nil) })
	}, nil
}
