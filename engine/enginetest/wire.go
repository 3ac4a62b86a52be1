package enginetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/vitrip/journeyman/bpmn"
)

// key is a key: a string on the wire.
type key int64

func (k key) MarshalJSON() ([]byte, error) { return json.Marshal(strconv.FormatInt(int64(k), 10)) }

func (k *key) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "" || s == "null" {
		*k = 0
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	*k = key(n)
	return err
}

// call makes one REST call. out may be nil.
func (e *Env) call(method, route string, body, out any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return e.do(method, route, "application/json", bytes.NewReader(doc), out)
}

func (e *Env) do(method, route, contentType string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(e.ctx, method, "http://"+e.engine.RESTAddr()+"/v2"+route, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := e.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		var problem struct{ Title, Detail string }
		if json.Unmarshal(text, &problem) != nil || problem.Title+problem.Detail == "" {
			problem.Detail = string(text)
		}
		return fmt.Errorf("%s %s: %d %s: %s", method, route, resp.StatusCode, problem.Title, problem.Detail)
	}
	if out == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, out)
}

// must ends the test when the call fails.
func (e *Env) must(method, route string, body, out any) {
	e.t.Helper()
	if err := e.call(method, route, body, out); err != nil {
		e.t.Fatalf("enginetest: %v", err)
	}
}

// search gives all items of a search, in the order of their keys.
func search[T any](e *Env, route string, filter map[string]any) []T {
	e.t.Helper()
	var all []T
	after := ""
	for {
		const limit = 1000
		page := map[string]any{"limit": limit}
		if after != "" {
			page["after"] = after
		}
		var out struct {
			Items []T
			Page  struct{ EndCursor string }
		}
		e.must("POST", route, map[string]any{"filter": filter, "page": page}, &out)
		all = append(all, out.Items...)
		if len(out.Items) < limit {
			return all
		}
		after = out.Page.EndCursor
	}
}

type instanceItem struct {
	Key   key    `json:"processInstanceKey"`
	State string `json:"state"`
}

func (e *Env) instances(processID string) []instanceItem {
	e.t.Helper()
	all := search[instanceItem](e, "/process-instances/search", map[string]any{"processDefinitionId": processID})
	slices.SortFunc(all, func(a, b instanceItem) int { return int(a.Key - b.Key) })
	return all
}

func (e *Env) deploy(name string, text []byte) {
	e.t.Helper()
	defs, err := bpmn.Parse(bytes.NewReader(text))
	if err != nil {
		e.t.Fatalf("enginetest: %s: %v", name, err)
	}
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("resources", name)
	if err == nil {
		_, err = part.Write(text)
	}
	if err == nil {
		err = form.Close()
	}
	if err == nil {
		err = e.do("POST", "/deployments", form.FormDataContentType(), &body, nil)
	}
	if err != nil {
		e.t.Fatalf("enginetest: deploy %s: %v", name, err)
	}
	e.models = append(e.models, parsed{name, text, defs})
}

// element finds a flow node in the deployed models.
func (e *Env) element(id string) *bpmn.Element {
	for _, m := range e.models {
		if el := m.defs.Element(id); el != nil {
			return el
		}
	}
	return nil
}

// known ends the test for an element id that no model has: a test must not pass because of a typing error.
func (e *Env) known(ids ...string) {
	e.t.Helper()
	for _, id := range ids {
		if e.element(id) == nil {
			e.t.Fatalf("enginetest: no model has an element %q", id)
		}
	}
}
