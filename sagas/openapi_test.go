package sagas

import (
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

type apiDocument struct {
	OpenAPI string `yaml:"openapi"`
	Paths   map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct {
				Schema struct {
					AllOf []struct {
						Properties struct {
							Type struct {
								Enum []string `yaml:"enum"`
							} `yaml:"type"`
						} `yaml:"properties"`
					} `yaml:"allOf"`
				} `yaml:"schema"`
			} `yaml:"content"`
		} `yaml:"responses"`
	} `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			Enum       []string                  `yaml:"enum"`
			Properties map[string]map[string]any `yaml:"properties"`
		} `yaml:"schemas"`
		Parameters map[string]any `yaml:"parameters"`
		Headers    map[string]any `yaml:"headers"`
	} `yaml:"components"`
}

// The document lists exactly the routes there are, with every status and problem type each may answer.
func TestOpenAPIIsTheRoutes(t *testing.T) {
	w := setup(t)
	r := w.do(w.server(w.s), http.MethodGet, "/v1/openapi.yaml", "", "")
	if r.status != http.StatusOK || r.header.Get("Content-Type") != "application/yaml" {
		t.Fatalf("got %d %s, want the document without credentials", r.status, r.header.Get("Content-Type"))
	}
	var d apiDocument
	if err := yaml.Unmarshal(r.body, &d); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" {
		t.Errorf("openapi: got %q", d.OpenAPI)
	}
	got, want := map[string][]string{}, map[string][]string{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for status, res := range op.Responses {
				var types []string
				for _, all := range res.Content["application/problem+json"].Schema.AllOf {
					types = append(types, all.Properties.Type.Enum...)
				}
				got[strings.ToUpper(method)+" "+path+" "+status] = types
			}
		}
	}
	problems := map[string]bool{problemMethod: true} // of wrong methods, which are no routes
	for _, route := range routes() {
		for status, types := range route.answers {
			var urns []string
			for _, name := range types {
				problems[name] = true
				urns = append(urns, problemURN+name)
			}
			want[route.method+" "+route.path+" "+strconv.Itoa(status)] = urns
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-code +document):\n%s", diff)
	}
	// Every problem type there is belongs to some answer.
	text, err := os.ReadFile("problem.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`problem[A-Z]\w+ += "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1) {
		if !problems[m[1]] {
			t.Errorf("problem %q is no answer of any route", m[1])
		}
	}
	// Every reference leads somewhere.
	for _, m := range regexp.MustCompile(`"#/components/(\w+)/([\w.-]+)"`).FindAllStringSubmatch(string(r.body), -1) {
		_, schema := d.Components.Schemas[m[2]]
		if m[1] == "schemas" && !schema || m[1] == "parameters" && d.Components.Parameters[m[2]] == nil || m[1] == "headers" && d.Components.Headers[m[2]] == nil {
			t.Errorf("reference %s leads nowhere", m[0])
		}
	}
	if got := d.Components.Schemas["Reason.trip"].Enum; !slices.Contains(got, "SOLD_OUT") || !slices.Contains(got, "deadline") {
		t.Errorf("reasons of a trip: got %v, want the type's own and the common ones", got)
	}
	if d.Components.Schemas["PartialResult.trip"].Properties["hotel"] == nil {
		t.Error("the partial result of a trip does not list hotel")
	}
}
