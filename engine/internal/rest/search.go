package rest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// field is one property that a search can filter and sort by.
type field[T any] struct {
	kind kind
	// get is nil, string, int64, bool, time.Time or, in filters alone, []string of which one must match.
	get func(T) any
}

type kind int

const (
	kindString kind = iota
	kindKey
	kindInt
	kindDate
	kindBool
)

// searchable is a collection with its properties.
type searchable[T any] struct {
	key    func(T) int64
	fields map[string]field[T]
	or     bool            // its filter takes "$or"
	plain  map[string]bool // properties that 8.8 filters by plain equality only
	// extra takes what is no property of the item out of a filter; the tests run under the engine's lock.
	extra func(filter map[string]json.RawMessage) ([]func(T) bool, error)
}

// query is the body of every search.
type query struct {
	Filter map[string]json.RawMessage `json:"filter"`
	Sort   []struct {
		Field string `json:"field"`
		Order string `json:"order"`
	} `json:"sort"`
	Page struct {
		From   int    `json:"from"`
		Limit  *int   `json:"limit"`
		After  string `json:"after"`
		Before string `json:"before"`
	} `json:"page"`
}

type page struct {
	TotalItems        int    `json:"totalItems"`
	HasMoreTotalItems bool   `json:"hasMoreTotalItems"`
	StartCursor       string `json:"startCursor,omitempty"` // left out without items
	EndCursor         string `json:"endCursor,omitempty"`
}

type results[T any] struct {
	Items []T  `json:"items"`
	Page  page `json:"page"`
}

const (
	defaultLimit = 100
	maxLimit     = 10_000
)

// plan is a validated query.
type plan[T any] struct {
	keep    func(T) bool
	compare func(a, b T) int
	names   []string // sort fields
	q       query
	limit   int
	of      *searchable[T]
	desc    []bool

	// instance narrows what is looked at: the process instance key that the filter asks for, 0 = any.
	instance int64
}

// prepare reads and validates the body of a search.
func (s *searchable[T]) prepare(r *http.Request) (*plan[T], error) {
	var q query
	if err := read(r, &q, true); err != nil {
		return nil, err
	}
	return s.plan(q)
}

func (s *searchable[T]) plan(q query) (*plan[T], error) {
	p := &plan[T]{q: q, limit: defaultLimit, of: s}
	var err error
	if p.keep, err = s.predicate(q.Filter, s.or); err != nil {
		return nil, err
	}
	if raw, ok := q.Filter["processInstanceKey"]; ok {
		if k, err := parseOperand("processInstanceKey", kindKey, raw); err == nil {
			p.instance, _ = k.(int64)
		}
	}
	for _, o := range q.Sort {
		if _, ok := s.fields[o.Field]; !ok {
			return nil, problemf(http.StatusBadRequest, "Unexpected value '%s' for enum field 'field'.", o.Field)
		}
		switch strings.ToUpper(o.Order) {
		case "", "ASC":
			p.desc = append(p.desc, false)
		case "DESC":
			p.desc = append(p.desc, true)
		default:
			return nil, problemf(http.StatusBadRequest, "Unexpected value '%s' for enum field 'order'. Use any of the following values: [ASC, DESC]", o.Order)
		}
		p.names = append(p.names, o.Field)
	}
	if q.Page.Limit != nil {
		p.limit = *q.Page.Limit
	}
	switch {
	case p.limit < 0 || p.limit > maxLimit:
		return nil, problemf(http.StatusBadRequest, "The value for page.limit is '%d' but must be within [0, %d].", p.limit, maxLimit)
	case q.Page.From < 0:
		return nil, problemf(http.StatusBadRequest, "The value for page.from is '%d' but must not be negative.", q.Page.From)
	case q.Page.After != "" && q.Page.Before != "", q.Page.From > 0 && q.Page.After+q.Page.Before != "":
		return nil, problemf(http.StatusBadRequest, "Only one of [from, after, before] is allowed.")
	}
	p.compare = func(a, b T) int { return p.order(p.position(a), p.position(b)) }
	return p, nil
}

// predicate tests all properties of a filter; with or, also "$or": filters of which one must hold, none is no condition.
func (s *searchable[T]) predicate(filter map[string]json.RawMessage, or bool) (func(T) bool, error) {
	var tests []func(T) bool
	if s.extra != nil {
		var err error
		if tests, err = s.extra(filter); err != nil {
			return nil, err
		}
	}
	for name, raw := range filter {
		if name == "$or" && or {
			test, err := s.anyOf(raw)
			if err != nil {
				return nil, err
			}
			tests = append(tests, test)
			continue
		}
		f, ok := s.fields[name]
		if !ok {
			return nil, badFilter(name)
		}
		if string(bytes.TrimSpace(raw)) == "null" { // as if it were left out
			continue
		}
		if trimmed := bytes.TrimSpace(raw); (f.kind == kindBool || s.plain[name] && !equality(raw)) && len(trimmed) > 0 && trimmed[0] == '{' {
			return nil, badFilter(name)
		}
		match, err := parseFilter(name, f.kind, raw)
		if err != nil {
			return nil, err
		}
		tests = append(tests, func(v T) bool { return matches(match, f.get(v)) })
	}
	return func(v T) bool {
		for _, t := range tests {
			if !t(v) {
				return false
			}
		}
		return true
	}, nil
}

func (s *searchable[T]) anyOf(raw json.RawMessage) (func(T) bool, error) {
	var filters []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &filters); err != nil {
		return nil, badFilter("$or")
	}
	tests := make([]func(T) bool, len(filters))
	for i, f := range filters {
		var err error
		if tests[i], err = s.predicate(f, false); err != nil {
			return nil, err
		}
	}
	return func(v T) bool {
		return len(tests) == 0 || slices.ContainsFunc(tests, func(t func(T) bool) bool { return t(v) })
	}, nil
}

// position is what an item is sorted by: the sort fields, then its key.
func (p *plan[T]) position(v T) []any {
	out := make([]any, 0, len(p.names)+1)
	for _, n := range p.names {
		x := p.of.fields[n].get(v)
		switch t := x.(type) {
		case time.Time:
			x = t.UnixNano()
			if t.IsZero() {
				x = nil
			}
		case bool:
			x = int64(0)
			if t {
				x = int64(1)
			}
		}
		out = append(out, x)
	}
	return append(out, p.of.key(v))
}

func (p *plan[T]) order(a, b []any) int {
	for i := range a {
		c := compareAny(a[i], b[i])
		if i < len(p.desc) && p.desc[i] && a[i] != nil && b[i] != nil { // what has no value comes last in both orders
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// compareAny orders two values of one field; nil comes last.
func compareAny(a, b any) int {
	if a == nil || b == nil {
		switch {
		case a == nil && b == nil:
			return 0
		case a == nil:
			return 1
		}
		return -1
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y)
		}
	}
	return 0
}

func (p *plan[T]) cursor(v T) (string, error) {
	raw, err := json.Marshal(p.position(v))
	if err != nil {
		return "", fmt.Errorf("cursor of a page: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

func (p *plan[T]) parseCursor(text string) ([]any, error) {
	bad := problemf(http.StatusBadRequest, "The cursor '%s' is not valid for this search.", text)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, bad
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var values []any
	if err := dec.Decode(&values); err != nil || len(values) != len(p.names)+1 {
		return nil, bad
	}
	for i, v := range values {
		if n, ok := v.(json.Number); ok {
			x, err := n.Int64()
			if err != nil {
				return nil, bad
			}
			values[i] = x
		}
	}
	return values, nil
}

// gather is what a search found, in the order of its source.
type gather[T any] struct {
	plan  *plan[T]
	items []T
}

func (g *gather[T]) add(v T) {
	if g.plan.keep(v) {
		g.items = append(g.items, v)
	}
}

// answer sorts and pages the items.
func (g *gather[T]) answer() (any, error) {
	res, err := g.plan.page(g.items)
	if err != nil {
		return nil, err
	}
	return res, nil
}

func (p *plan[T]) page(kept []T) (results[T], error) {
	if kept == nil {
		kept = []T{}
	}
	slices.SortStableFunc(kept, p.compare)
	total := len(kept)
	from, to := min(p.q.Page.From, total), total
	switch {
	case p.q.Page.After != "":
		at, err := p.parseCursor(p.q.Page.After)
		if err != nil {
			return results[T]{}, err
		}
		from, _ = slices.BinarySearchFunc(kept, at, func(v T, at []any) int {
			if p.order(p.position(v), at) <= 0 {
				return -1
			}
			return 1
		})
	case p.q.Page.Before != "":
		at, err := p.parseCursor(p.q.Page.Before)
		if err != nil {
			return results[T]{}, err
		}
		to, _ = slices.BinarySearchFunc(kept, at, func(v T, at []any) int { return p.order(p.position(v), at) })
		from = max(0, to-p.limit)
	}
	to = min(to, from+p.limit)
	out := results[T]{Items: kept[from:to], Page: page{TotalItems: total}}
	if len(out.Items) > 0 {
		var first, last error
		out.Page.StartCursor, first = p.cursor(out.Items[0])
		out.Page.EndCursor, last = p.cursor(out.Items[len(out.Items)-1])
		return out, errors.Join(first, last)
	}
	return out, nil
}
