package rest

import (
	"net/http"

	"github.com/vitrip/journeyman/engine/internal/core"
)

// modifyInstance activates and terminates elements of a running instance.
func (s *server) modifyInstance(r *http.Request) (any, error) {
	k, err := pathKey(r, "processInstanceKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		ActivateInstructions []struct {
			ElementID                  string `json:"elementId"`
			AncestorElementInstanceKey *key   `json:"ancestorElementInstanceKey"`
			VariableInstructions       []struct {
				Variables *vars  `json:"variables"`
				ScopeID   string `json:"scopeId"`
			} `json:"variableInstructions"`
		} `json:"activateInstructions"`
		TerminateInstructions []struct {
			ElementInstanceKey *key `json:"elementInstanceKey"`
		} `json:"terminateInstructions"`
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	m := core.Modification{Instance: k}
	for _, a := range in.ActivateInstructions {
		if a.ElementID == "" {
			return nil, problemf(http.StatusBadRequest, "No elementId provided.")
		}
		i := core.ActivateInstruction{ElementID: a.ElementID}
		if a.AncestorElementInstanceKey != nil && *a.AncestorElementInstanceKey != -1 { // -1 is the default: none
			i.Ancestor = int64(*a.AncestorElementInstanceKey)
		}
		for _, v := range a.VariableInstructions {
			if v.Variables == nil {
				return nil, problemf(http.StatusBadRequest, "No variables provided.")
			}
			i.Variables = append(i.Variables, core.VariableInstruction{Scope: v.ScopeID, Vars: v.Variables.doc})
		}
		m.Activate = append(m.Activate, i)
	}
	for _, t := range in.TerminateInstructions {
		if t.ElementInstanceKey == nil {
			return nil, problemf(http.StatusBadRequest, "No elementInstanceKey provided.")
		}
		m.Terminate = append(m.Terminate, int64(*t.ElementInstanceKey))
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.Modify(m) })
}

// migrateInstance moves a running instance to another process definition.
func (s *server) migrateInstance(r *http.Request) (any, error) {
	k, err := pathKey(r, "processInstanceKey")
	if err != nil {
		return nil, err
	}
	var in struct {
		TargetProcessDefinitionKey *key `json:"targetProcessDefinitionKey"`
		MappingInstructions        *[]struct {
			SourceElementID string `json:"sourceElementId"`
			TargetElementID string `json:"targetElementId"`
		} `json:"mappingInstructions"`
		OperationReference number `json:"operationReference"`
	}
	if err := read(r, &in, false); err != nil {
		return nil, err
	}
	switch {
	case in.TargetProcessDefinitionKey == nil:
		return nil, problemf(http.StatusBadRequest, "No targetProcessDefinitionKey provided.")
	case in.MappingInstructions == nil:
		return nil, problemf(http.StatusBadRequest, "No mappingInstructions provided.")
	}
	m := core.Migration{Instance: k, Target: int64(*in.TargetProcessDefinitionKey)}
	for _, e := range *in.MappingInstructions {
		if e.SourceElementID == "" || e.TargetElementID == "" {
			return nil, problemf(http.StatusBadRequest, "At least one of [sourceElementId, targetElementId] is missing in a mapping instruction.")
		}
		m.Elements = append(m.Elements, core.ElementMapping{Source: e.SourceElementID, Target: e.TargetElementID})
	}
	return nil, s.broker.Do(func(c *core.Core) error { return c.Migrate(m) })
}
