package sagas

import (
	"bytes"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed openapi.yaml
var openapi []byte

// Docs is what the OpenAPI document tells partners about a type.
type Docs struct {
	// Reasons are the codes that reason.code of a final answer may hold, each with what it means to a partner, beside
	// those every type has (see [CommonReasons]).
	Reasons map[string]string
	// Segments are the members that partial_result may hold, each with the values of its status. A name in angle
	// brackets stands for names that are made per request.
	Segments map[string][]string
}

// CommonReasons are the final reason codes of every type, with their meaning.
func CommonReasons() map[string]string {
	return map[string]string{
		"deadline":        "the operation had not ended within its time-out; its effects were undone",
		"cancelled":       "a cancel was asked for in time; the effects were undone",
		"failed":          "a step failed without a code of its own; the effects were undone",
		"remediated":      "the operation failed past its point of no return and a person settled it",
		codeInstanceEnded: "the operation was ended by an operator; its effects were undone",
	}
}

// OpenAPI is the OpenAPI 3.1 document of the API in YAML, with what the declared types add to it.
func (s *Sagas) OpenAPI() ([]byte, error) {
	names := slices.Sorted(maps.Keys(s.types))
	schemas := map[string]any{"OperationType": map[string]any{"type": "string", "enum": names}}
	for _, name := range names {
		t := s.types[name]
		reasons := CommonReasons()
		maps.Copy(reasons, t.Docs.Reasons)
		var text bytes.Buffer
		for _, code := range slices.Sorted(maps.Keys(reasons)) {
			fmt.Fprintf(&text, "- `%s`: %s\n", code, reasons[code])
		}
		schemas["Reason."+name] = map[string]any{
			"type": "string", "description": text.String(), "enum": slices.Sorted(maps.Keys(reasons)),
		}
		segments := map[string]any{}
		for segment, states := range t.Docs.Segments {
			segments[segment] = map[string]any{"type": "object", "required": []string{"status"}, "properties": map[string]any{
				"status":    map[string]any{"type": "string", "enum": states},
				"kind":      map[string]any{"type": "string"},
				"reference": map[string]any{"type": "string"},
				"code":      map[string]any{"type": "string"},
			}}
		}
		schemas["PartialResult."+name] = map[string]any{
			"type": "object", "properties": segments,
			"description": fmt.Sprintf("Time-out %v, answers kept for %v after the end.", t.Timeout, t.Retention),
		}
	}
	var out bytes.Buffer
	out.Write(openapi)
	enc := yaml.NewEncoder(indented{&out})
	enc.SetIndent(2)
	if err := enc.Encode(schemas); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	return out.Bytes(), nil
}

// indented puts what is written under components.schemas, with which openapi.yaml ends.
type indented struct{ to *bytes.Buffer }

func (w indented) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if len(bytes.TrimSpace(line)) > 0 {
			w.to.WriteString("    ")
		}
		w.to.Write(line)
	}
	return len(p), nil
}

func (a *api) openapi(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "max-age=300")
	_, _ = w.Write(a.document)
}
