package asyncapi_test

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/asyncapi"
)

const catalogYAML = `
domains: [test]
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view], pii: "<b>none</b>",
     schema: {type: object, properties: {price: {$ref: "#/$defs/money"}}, $defs: {money: {type: integer, minimum: 0}}}}
  - {type: test.thing.created, version: 2, class: domain, owner: test, producers: [tester]}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: ["*"], idempotency_key: data.idempotencyKey}
`

func catalog(t *testing.T) *events.Catalog {
	t.Helper()
	c, err := events.ParseCatalog([]byte(catalogYAML))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var info = asyncapi.Info{Title: "Things", Version: "1"} //nolint:gochecknoglobals // constant

// Every reference of the document leads somewhere, and every entry is in it.
func TestYAML_ReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	text, err := asyncapi.YAML(catalog(t), info)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	refs := 0
	var visit func(node any)
	visit = func(node any) {
		switch v := node.(type) {
		case map[string]any:
			if to, ok := v["$ref"].(string); ok {
				refs++
				var at any = doc
				for _, step := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
					at = at.(map[string]any)[step] //nolint:forcetypeassert // the test is over otherwise
				}
				if at == nil {
					t.Errorf("%s leads nowhere", to)
				}
			}
			for _, below := range v {
				visit(below)
			}
		case []any:
			for _, below := range v {
				visit(below)
			}
		}
	}
	visit(doc)
	if refs < 10 {
		t.Errorf("%d references, want more", refs)
	}
	for _, want := range []string{"asyncapi: 3.0.0", "address: test.thing.created.v2", "send.test.thing.make.requested.v1", "#/components/schemas/test.thing.created.v1/$defs/money", "partitions: 4"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %s", want)
		}
	}
	if _, err := asyncapi.YAML(catalog(t), asyncapi.Info{}); err == nil {
		t.Error("a document without title was made")
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	page, err := asyncapi.Page(catalog(t), info)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="test.thing.created.v1"`, `href="#test.thing.created.v2"`, "&lt;b&gt;none", "minimum: 0", "3 message types", "data.idempotencyKey", "in order per business key"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(string(page), "http://") || strings.Contains(string(page), "https://") {
		t.Error("the page loads something")
	}
}

// Avro, Protobuf and framed JSON are described in the language of their format.
func TestYAML_Formats_E5(t *testing.T) {
	t.Parallel()
	c, err := events.ParseCatalog([]byte(`
domains: [test]
messages:
  - {type: test.a.booked, class: domain, owner: test, producers: [p], format: avro, schema: {type: record, name: A, fields: [{name: id, type: string}]}}
  - {type: test.b.booked, class: domain, owner: test, producers: [p], format: protobuf, schema: 'syntax = "proto3"; message B { string id = 1; }'}
  - {type: test.c.booked, class: domain, owner: test, producers: [p], wire: confluent, schema: {type: object}}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := asyncapi.YAML(c, info)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Messages map[string]struct {
				ContentType string `yaml:"contentType"`
				Payload     map[string]any
				Bindings    struct{ Kafka map[string]any }
			}
			Schemas map[string]any
		}
	}
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string][2]string{
		"test.a.booked.v1": {"application/avro", "application/vnd.apache.avro;version=1.9.0"}, "test.b.booked.v1": {"application/protobuf", "application/vnd.google.protobuf;version=3"},
		"test.c.booked.v1": {"application/json", ""},
	} {
		m := doc.Components.Messages[id]
		if format, _ := m.Payload["schemaFormat"].(string); m.ContentType != want[0] || format != want[1] || m.Bindings.Kafka["schemaIdPayloadEncoding"] != "confluent" {
			t.Errorf("%s: got %+v", id, m)
		}
		if _, there := doc.Components.Schemas[id]; there != (want[1] == "") {
			t.Errorf("%s: schema among the components: %v", id, there)
		}
	}
	if page, err := asyncapi.Page(c, info); err != nil || !strings.Contains(string(page), "message B { string id = 1; }") {
		t.Errorf("the page lacks the .proto text: %v", err)
	}
}
