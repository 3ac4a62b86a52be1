package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// pageSize is how many items one search asks for.
const pageSize = 500

// Engine reads the history of a Camunda 8.8 REST API (version 2). The zero Client is [http.DefaultClient].
type Engine struct {
	Address string // for example http://127.0.0.1:8080, without /v2
	Client  *http.Client
}

// History is what the engine tells about a run.
type History struct {
	Instances []Instance
	Elements  []Element // those that carried an operation id
	Incidents int       // active
	Jobs      int
}

// Read fetches the whole history. It blocks until all pages were read or ctx ends.
func (e Engine) Read(ctx context.Context) (History, error) {
	var h History
	err := e.search(ctx, "process-instances", nil, func(raw json.RawMessage) error {
		var i struct{ ProcessInstanceKey, ProcessDefinitionID, State string }
		if err := json.Unmarshal(raw, &i); err != nil {
			return err
		}
		key, err := parseKey("processInstanceKey", i.ProcessInstanceKey)
		h.Instances = append(h.Instances, Instance{Key: key, ProcessID: i.ProcessDefinitionID, State: i.State})
		return err
	})
	if err != nil {
		return h, err
	}
	if h.Elements, err = e.elements(ctx); err != nil {
		return h, err
	}
	if h.Incidents, err = e.count(ctx, "incidents", map[string]any{"state": "ACTIVE"}); err != nil {
		return h, err
	}
	h.Jobs, err = e.count(ctx, "jobs", nil)
	return h, err
}

// elements joins the local variable operationId of each task with the state of its element instance.
func (e Engine) elements(ctx context.Context) ([]Element, error) {
	operation := map[int64]string{}
	err := e.search(ctx, "variables", map[string]any{"name": "operationId"}, func(raw json.RawMessage) error {
		var v struct{ ScopeKey, Value string }
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		scope, err := parseKey("scopeKey", v.ScopeKey)
		if err != nil {
			return err
		}
		var id string
		if err := json.Unmarshal([]byte(v.Value), &id); err != nil {
			return fmt.Errorf("variable operationId of scope %d: %w", scope, err)
		}
		operation[scope] = id
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []Element
	err = e.search(ctx, "element-instances", nil, func(raw json.RawMessage) error {
		var i struct{ ElementInstanceKey, ElementID, State string }
		if err := json.Unmarshal(raw, &i); err != nil {
			return err
		}
		key, err := parseKey("elementInstanceKey", i.ElementInstanceKey)
		if err != nil {
			return err
		}
		if id, ok := operation[key]; ok {
			all = append(all, Element{Key: key, ElementID: i.ElementID, OperationID: id, State: i.State})
		}
		return nil
	})
	return all, err
}

type found struct {
	Items []json.RawMessage `json:"items"`
	Page  struct {
		TotalItems int `json:"totalItems"`
	} `json:"page"`
}

// search walks all pages of a search by offset.
func (e Engine) search(ctx context.Context, what string, filter map[string]any, each func(json.RawMessage) error) error {
	for from := 0; ; {
		f, err := e.post(ctx, what, filter, from, pageSize)
		if err != nil {
			return err
		}
		for _, raw := range f.Items {
			if err := each(raw); err != nil {
				return fmt.Errorf("search %s: %w", what, err)
			}
		}
		if from += len(f.Items); len(f.Items) == 0 || from >= f.Page.TotalItems {
			return nil
		}
	}
}

func (e Engine) count(ctx context.Context, what string, filter map[string]any) (int, error) {
	f, err := e.post(ctx, what, filter, 0, 1)
	return f.Page.TotalItems, err
}

func (e Engine) post(ctx context.Context, what string, filter map[string]any, from, limit int) (found, error) {
	var f found
	body := map[string]any{"page": map[string]any{"from": from, "limit": limit}}
	if filter != nil {
		body["filter"] = filter
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return f, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.Address+"/v2/"+what+"/search", bytes.NewReader(raw))
	if err != nil {
		return f, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := e.Client
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return f, fmt.Errorf("search %s: %w", what, err)
	}
	defer res.Body.Close() //nolint:errcheck // read only
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return f, fmt.Errorf("search %s: %w", what, err)
	}
	if res.StatusCode != http.StatusOK {
		return f, fmt.Errorf("search %s: status %d, want 200: %.300s", what, res.StatusCode, text)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("search %s: %w", what, err)
	}
	return f, nil
}

func parseKey(field, text string) (int64, error) {
	key, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s %q: want a number in a string", field, text)
	}
	return key, nil
}

// ElementState gives the state of the newest element instance that carried
// this operation id: ACTIVE, COMPLETED or TERMINATED, "" when there is none.
func (e Engine) ElementState(ctx context.Context, operationID string) (string, error) {
	quoted, err := json.Marshal(operationID)
	if err != nil {
		return "", err
	}
	scope := ""
	err = e.search(ctx, "variables", map[string]any{"name": "operationId", "value": string(quoted)}, func(raw json.RawMessage) error {
		var v struct{ ScopeKey string }
		err := json.Unmarshal(raw, &v)
		scope = v.ScopeKey
		return err
	})
	if err != nil || scope == "" {
		return "", err
	}
	state := ""
	err = e.search(ctx, "element-instances", map[string]any{"elementInstanceKey": scope}, func(raw json.RawMessage) error {
		var i struct{ State string }
		err := json.Unmarshal(raw, &i)
		state = i.State
		return err
	})
	return state, err
}
