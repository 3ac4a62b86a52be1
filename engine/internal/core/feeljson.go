package core

import (
	"encoding/json"

	"github.com/vitrip/journeyman/bpmn/feel"
)

// feelFromJSON reads a variable's JSON text as a FEEL value; numbers keep their digits.
func feelFromJSON(raw json.RawMessage) (feel.Value, error) { return feel.FromJSON(raw) }

// feelNumber is a static number in a model.
func feelNumber(text string) (value, error) {
	v, err := feel.FromJSON([]byte(text))
	if err != nil {
		return value{}, err
	}
	return value{"NUMBER", v.JSON()}, nil
}
