package sagas

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vitrip/journeyman/events/seal"
)

// resting are the contents of a record as they lie in the store: clear, or encrypted (spec E4). Encrypted, final is a sealed body;
// plan, origin and each value of partial are sealed JSON strings (seal.JSON), so that SQL merges partial results it cannot
// read. Each is bound to its operation and its place: moved elsewhere it does not open.
//
// What a record is found, ordered and moved by rests clear: ids, tenant, type, idempotency keys, business key, names of steps and
// of segments, states and times, the text of an error at the start. So do two digests of clear text: that of the request, by
// which repeats are compared, and that of the answer. Neither gives a text away, but each confirms one that somebody guessed whole.
type resting struct{ plan, origin, partial, final []byte }

// Places of a record's contents.
const (
	placePlan    = "plan"
	placeOrigin  = "origin"
	placePartial = "partial"
	placeFinal   = "final"
)

// restingAt is what a content is bound to.
func restingAt(operationID, place string) string { return "record\n" + operationID + "\n" + place }

func partialOf(segment string) string { return placePartial + "\n" + segment }

// SealedTables lists the columns of a record store whose contents may be encrypted, for [seal.Reseal].
func SealedTables(schema string) []seal.Table {
	var list []seal.Table
	for _, place := range []string{placePlan, placeOrigin, placePartial, placeFinal} {
		list = append(list, seal.Table{
			Name: schema + ".record", Column: place, JSON: place != placeFinal, Context: `E'record\n' || operation_id || E'\n` + place + `'`,
		})
	}
	return list
}

// seals says whether new contents rest encrypted.
func (s *Sagas) seals() bool { return s.cfg.Keys != nil && !s.cfg.KeysOpenOnly }

// restJSON marshals a content of a record as it rests.
func (s *Sagas) restJSON(operationID, place string, content any) (string, error) {
	text, err := json.Marshal(content)
	if err == nil && s.seals() {
		text, err = seal.JSON(s.cfg.Keys, text, restingAt(operationID, place))
	}
	if err != nil {
		return "", fmt.Errorf("%s of record %s: %w", place, operationID, err)
	}
	return string(text), nil
}

// restPartial marshals first partial results as they rest: each by itself, for others are put beside them later.
func (s *Sagas) restPartial(operationID string, partial map[string]any) (string, error) {
	all := make(map[string]json.RawMessage, len(partial))
	for segment, view := range partial {
		text, err := s.restJSON(operationID, partialOf(segment), view)
		if err != nil {
			return "", err
		}
		all[segment] = json.RawMessage(text)
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// restFinal gives a final answer as it rests.
func (s *Sagas) restFinal(operationID string, final []byte) ([]byte, error) {
	if final == nil || !s.seals() {
		return final, nil
	}
	body, err := seal.Seal(s.cfg.Keys, seal.AtRest, final, restingAt(operationID, placeFinal))
	if err != nil {
		return nil, fmt.Errorf("final answer of record %s: %w", operationID, err)
	}
	return body, nil
}

// open fills in the contents of a record that was read, whether they rest encrypted or clear. The error wraps [seal.ErrNoKey] or
// [seal.ErrTampered] and names the key; the record comes back without contents then, and must not be answered from.
func (s *Sagas) open(r record) (record, error) {
	if r.rest == nil {
		return r, nil
	}
	rest := *r.rest
	out := r
	out.rest = nil
	errs := []error{
		s.openJSON(r.ID, placePlan, rest.plan, &out.Plan), s.openJSON(r.ID, placeOrigin, rest.origin, &out.Origin),
		json.Unmarshal(rest.partial, &out.Partial),
	}
	for segment, view := range out.Partial {
		var clear json.RawMessage
		errs = append(errs, s.openJSON(r.ID, partialOf(segment), view, &clear))
		out.Partial[segment] = clear
	}
	if out.Final = rest.final; rest.final != nil {
		if _, sealed := seal.Sealed(rest.final); sealed {
			var err error
			out.Final, err = seal.Open(s.cfg.Keys, rest.final, restingAt(r.ID, placeFinal))
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return r, fmt.Errorf("contents of record %s: %w", r.ID, err)
	}
	return out, nil
}

func (s *Sagas) openJSON(operationID, place string, rest []byte, into any) error {
	text, err := seal.OpenJSON(s.cfg.Keys, rest, restingAt(operationID, place))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", place, err)
	}
	return nil
}
