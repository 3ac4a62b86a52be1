package asyncapi

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events"
)

//go:embed page.html.tmpl
var pageText string

// Page gives one HTML page about a catalog: a list of the message types to
// filter, and for each what the catalog says of it. It loads nothing from anywhere.
func Page(catalog *events.Catalog, info Info) ([]byte, error) {
	page, err := template.New("page").Funcs(template.FuncMap{"schema": schemaText, "id": func(e events.Entry) string { return events.Topic(e.Type, e.Version) }}).Parse(pageText)
	if err != nil {
		return nil, fmt.Errorf("events page: %w", err)
	}
	type domain struct {
		Name    string
		Entries []events.Entry
	}
	var domains []domain
	for _, name := range catalog.Domains() {
		if list := catalog.Match(name + ".*"); len(list) > 0 {
			domains = append(domains, domain{name, list})
		}
	}
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{"Info": info, "Domains": domains, "Queues": catalog.Queues(), "Count": len(catalog.Entries())}); err != nil {
		return nil, fmt.Errorf("events page: %w", err)
	}
	return b.Bytes(), nil
}

func schemaText(schema any) (string, error) {
	if schema == nil {
		return "", nil
	}
	if text, ok := schema.(string); ok { // Protobuf
		return text, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(schema); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}
