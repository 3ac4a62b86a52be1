package rest

import (
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/core"
)

type definitionItem struct {
	Name                 string  `json:"name"`
	ResourceName         string  `json:"resourceName"`
	Version              int32   `json:"version"`
	VersionTag           *string `json:"versionTag,omitempty"`
	ProcessDefinitionID  string  `json:"processDefinitionId"`
	TenantID             string  `json:"tenantId"`
	ProcessDefinitionKey key     `json:"processDefinitionKey"`
	HasStartForm         bool    `json:"hasStartForm"`

	latest bool
}

func viewDefinition(c *core.Core, p *core.Process) definitionItem {
	return definitionItem{
		Name: p.DisplayName(), ResourceName: p.Resource, Version: p.Version, ProcessDefinitionID: p.ID, TenantID: DefaultTenant,
		ProcessDefinitionKey: key(p.Key), VersionTag: textPtr(p.Tag), latest: c.IsLatest(p),
	}
}

var definitionSearch = searchable[definitionItem]{
	key: func(d definitionItem) int64 { return int64(d.ProcessDefinitionKey) },
	fields: map[string]field[definitionItem]{
		"name":                 {kindString, func(d definitionItem) any { return d.Name }},
		"isLatestVersion":      {kindBool, func(d definitionItem) any { return d.latest }},
		"resourceName":         {kindString, func(d definitionItem) any { return d.ResourceName }},
		"version":              {kindInt, func(d definitionItem) any { return int64(d.Version) }},
		"versionTag":           {kindString, func(d definitionItem) any { return textOf(d.VersionTag) }},
		"processDefinitionId":  {kindString, func(d definitionItem) any { return d.ProcessDefinitionID }},
		"tenantId":             {kindString, func(d definitionItem) any { return d.TenantID }},
		"processDefinitionKey": {kindKey, func(d definitionItem) any { return int64(d.ProcessDefinitionKey) }},
		"hasStartForm":         {kindBool, func(definitionItem) any { return false }},
	},
}

func (s *server) searchDefinitions(r *http.Request) (any, error) {
	p, err := definitionSearch.prepare(r)
	if err != nil {
		return nil, err
	}
	g := gather[definitionItem]{plan: p}
	s.broker.View(func(c *core.Core) {
		for d := range c.Definitions() {
			if d.Deleted {
				continue
			}
			g.add(viewDefinition(c, d))
		}
	})
	return g.answer()
}

func (s *server) definition(r *http.Request) (*core.Process, *definitionItem, error) {
	k, err := pathKey(r, "processDefinitionKey")
	if err != nil {
		return nil, nil, err
	}
	var (
		p    *core.Process
		item definitionItem
	)
	s.broker.View(func(c *core.Core) {
		if p = c.Definition(k); p != nil && !p.Deleted {
			item = viewDefinition(c, p)
		}
	})
	if item.ProcessDefinitionKey == 0 {
		return nil, nil, missing("Process Definition", k)
	}
	return p, &item, nil
}

func (s *server) getDefinition(r *http.Request) (any, error) {
	_, item, err := s.definition(r)
	if err != nil {
		return nil, err
	}
	return item, nil
}

func (s *server) definitionXML(r *http.Request) (any, error) {
	p, _, err := s.definition(r)
	if err != nil {
		return nil, err
	}
	return document{"text/xml", p.XML}, nil // the XML of a version never changes
}

func (s *server) deleteResource(r *http.Request) (any, error) {
	k, err := pathKey(r, "resourceKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		OperationReference number `json:"operationReference"`
		DeleteHistory      *bool  `json:"deleteHistory"` // clients of 8.9 send false and expect a body
	}
	if err := read(r, &in, true); err != nil {
		return nil, err
	}
	if in.DeleteHistory != nil && *in.DeleteHistory {
		return nil, problemf(http.StatusBadRequest, "deleteHistory is not supported by the embedded engine.")
	}
	if err := s.broker.Do(func(c *core.Core) error { return c.DeleteResource(k) }); err != nil {
		return nil, err
	}
	if in.DeleteHistory != nil {
		return map[string]any{"resourceKey": key(k), "batchOperation": nil}, nil
	}
	return document{}, nil // 8.8: 200 without a body
}
