package rest

import (
	"encoding/json"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// variableFilter takes a list of names and values out of a filter: each must match a variable of the scope itself.
func variableFilter(filter map[string]json.RawMessage, name string) (func(scope *core.Element) bool, error) {
	raw, ok := filter[name]
	if !ok {
		return func(*core.Element) bool { return true }, nil
	}
	delete(filter, name)
	var list []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, badFilter(name)
	}
	type test struct {
		name  string
		match matcher
	}
	var tests []test
	for _, v := range list {
		m, err := parseFilter(name+".value", kindString, v.Value)
		if err != nil {
			return nil, err
		}
		tests = append(tests, test{v.Name, m})
	}
	return func(scope *core.Element) bool {
		for _, t := range tests {
			v, ok := scope.Variable(t.name)
			if !ok || !t.match(string(v.Value)) {
				return false
			}
		}
		return true
	}, nil
}
