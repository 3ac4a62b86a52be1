package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// matcher tests one property's value.
type matcher func(v any) bool

// parseFilter reads a filter value: plain (equality) or an object of operators that all must hold.
func parseFilter(name string, k kind, raw json.RawMessage) (matcher, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		want, err := parseOperand(name, k, raw)
		if err != nil {
			return nil, err
		}
		return func(v any) bool { return equal(v, want) }, nil
	}
	var ops map[string]json.RawMessage
	if err := json.Unmarshal(raw, &ops); err != nil {
		return nil, badFilter(name)
	}
	var all []matcher
	for op, arg := range ops {
		m, err := parseOperator(name, k, op, arg)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return func(v any) bool {
		for _, m := range all {
			if !m(v) {
				return false
			}
		}
		return true
	}, nil
}

// matches tests a value, or each of several.
func matches(m matcher, v any) bool {
	list, ok := v.([]string)
	if !ok {
		return m(v)
	}
	return slices.ContainsFunc(list, func(s string) bool { return m(s) })
}

func badFilter(name string) error {
	return problemf(http.StatusBadRequest, "Request property [filter.%s] cannot be parsed", name)
}

// equality reports an object of operators that says no more than a plain value:
// what clients of 8.9 send in its place, with empty lists beside it.
func equality(raw json.RawMessage) bool {
	var ops map[string]json.RawMessage
	if err := json.Unmarshal(raw, &ops); err != nil || ops["$eq"] == nil {
		return false
	}
	for op, arg := range ops {
		if op != "$eq" && (op != "$in" && op != "$notIn" || string(bytes.TrimSpace(arg)) != "[]") {
			return false
		}
	}
	return true
}

func parseOperator(name string, k kind, op string, arg json.RawMessage) (matcher, error) {
	switch op {
	case "$exists":
		var want bool
		if err := json.Unmarshal(arg, &want); err != nil {
			return nil, badFilter(name + "." + op)
		}
		return func(v any) bool { return exists(v) == want }, nil
	case "$in", "$notIn":
		var list []json.RawMessage
		if err := json.Unmarshal(arg, &list); err != nil {
			return nil, badFilter(name + "." + op)
		}
		if len(list) == 0 { // no condition: the Java client sends empty lists with every filter
			return func(any) bool { return true }, nil
		}
		wants := make([]any, 0, len(list))
		for _, x := range list {
			w, err := parseOperand(name, k, x)
			if err != nil {
				return nil, err
			}
			wants = append(wants, w)
		}
		in := op == "$in"
		return func(v any) bool {
			for _, w := range wants {
				if equal(v, w) {
					return in
				}
			}
			return !in
		}, nil
	case "$like":
		var pattern string
		if k != kindString {
			return nil, badFilter(name + "." + op)
		}
		if err := json.Unmarshal(arg, &pattern); err != nil {
			return nil, badFilter(name + "." + op)
		}
		return func(v any) bool {
			s, ok := v.(string)
			return ok && like(pattern, s)
		}, nil
	}
	want, err := parseOperand(name, k, arg)
	if err != nil {
		return nil, err
	}
	switch op {
	case "$eq":
		return func(v any) bool { return equal(v, want) }, nil
	case "$neq":
		return func(v any) bool { return !equal(v, want) }, nil
	}
	if k != kindInt && k != kindDate {
		return nil, badFilter(name + "." + op)
	}
	tests := map[string]func(c int) bool{
		"$gt": func(c int) bool { return c > 0 }, "$gte": func(c int) bool { return c >= 0 },
		"$lt": func(c int) bool { return c < 0 }, "$lte": func(c int) bool { return c <= 0 },
	}
	test, ok := tests[op]
	if !ok {
		return nil, badFilter(name + "." + op)
	}
	return func(v any) bool {
		switch x := v.(type) {
		case int64:
			w, ok := want.(int64)
			return ok && test(cmp.Compare(x, w))
		case time.Time:
			w, ok := want.(time.Time)
			return ok && !x.IsZero() && test(x.Compare(w))
		}
		return false
	}, nil
}

func parseOperand(name string, k kind, raw json.RawMessage) (any, error) {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, badFilter(name)
	}
	switch k {
	case kindString:
		if s, ok := v.(string); ok {
			return s, nil
		}
	case kindKey:
		text := strings.Trim(string(bytes.TrimSpace(raw)), `"`)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, problemf(http.StatusBadRequest, "The provided %s '%s' is not a valid key. Expected a numeric value. Did you pass an entity id instead of an entity key?", name, text)
		}
		return n, nil
	case kindInt:
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				return i, nil
			}
		}
	case kindBool:
		if b, ok := v.(bool); ok {
			return b, nil
		}
	case kindDate:
		if s, ok := v.(string); ok {
			if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
				return t, nil
			}
			return nil, problemf(http.StatusBadRequest, "The provided %s '%s' cannot be parsed as a date according to RFC 3339, section 5.6.", name, s)
		}
	}
	return nil, badFilter(name)
}

func exists(v any) bool {
	switch x := v.(type) {
	case nil:
		return false
	case string:
		return x != ""
	case time.Time:
		return !x.IsZero()
	}
	return true // a number that is 0 is there
}

func equal(v, want any) bool {
	if t, ok := v.(time.Time); ok {
		w, ok := want.(time.Time)
		return ok && t.Equal(w)
	}
	return v == want
}

// like matches * (any text) and ? (one character); a backslash makes the next character plain.
func like(pattern, s string) bool {
	p, t := []rune(pattern), []rune(s)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && p[i] == '?':
			i++
			j++
		case i+1 < len(p) && p[i] == '\\' && p[i+1] == t[j]:
			i += 2
			j++
		case i < len(p) && p[i] != '\\' && p[i] == t[j]:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
