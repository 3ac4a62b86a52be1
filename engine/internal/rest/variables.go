package rest

import (
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// truncateAt is from which length a search cuts a variable's value, in bytes; GET never cuts.
const truncateAt = 8191

type variableItem struct {
	VariableKey        key    `json:"variableKey"`
	Name               string `json:"name"`
	Value              string `json:"value"`
	ScopeKey           key    `json:"scopeKey"`
	ProcessInstanceKey key    `json:"processInstanceKey"`
	TenantID           string `json:"tenantId"`
	IsTruncated        *bool  `json:"isTruncated,omitempty"`
}

func viewVariable(v *core.Variable) variableItem {
	return variableItem{key(v.Key), v.Name, string(v.Value), key(v.Scope.Key), key(v.Scope.Inst.Key), DefaultTenant, nil}
}

var variableSearch = searchable[variableItem]{
	key: func(v variableItem) int64 { return int64(v.VariableKey) },
	fields: map[string]field[variableItem]{
		"name":               {kindString, func(v variableItem) any { return v.Name }},
		"value":              {kindString, func(v variableItem) any { return v.Value }},
		"variableKey":        {kindKey, func(v variableItem) any { return int64(v.VariableKey) }},
		"scopeKey":           {kindKey, func(v variableItem) any { return int64(v.ScopeKey) }},
		"processInstanceKey": {kindKey, func(v variableItem) any { return int64(v.ProcessInstanceKey) }},
		"tenantId":           {kindString, func(v variableItem) any { return v.TenantID }},
		"isTruncated":        {kindBool, func(v variableItem) any { return len(v.Value) > truncateAt }},
	},
}

func (s *server) searchVariables(r *http.Request) (any, error) {
	p, err := variableSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	g := gather[variableItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for v := range c.Variables(p.instance) {
			g.add(viewVariable(v))
		}
	})
	res, err := p.page(g.items)
	if err != nil {
		return nil, err
	}
	cut := r.URL.Query().Get("truncateValues") != "false"
	for i := range res.Items {
		v := &res.Items[i]
		long := cut && len(v.Value) > truncateAt
		if long {
			v.Value = v.Value[:truncateAt]
		}
		v.IsTruncated = &long
	}
	return res, nil
}

func (s *server) getVariable(r *http.Request) (any, error) {
	k, err := pathKey(r, "variableKey")
	if err != nil {
		return nil, err
	}
	var out *variableItem
	s.broker.View(func(c *core.Core) {
		if v := c.VariableByKey(k); v != nil {
			item := viewVariable(v)
			out = &item
		}
	})
	if out == nil {
		return nil, missing("Variable", k)
	}
	return out, nil
}
