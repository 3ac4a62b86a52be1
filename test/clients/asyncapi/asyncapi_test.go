//go:build clients

package asyncapi

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vitrip/journeyman/events"
	"github.com/vitrip/journeyman/events/asyncapi"
	"github.com/vitrip/journeyman/internal/app"
	"github.com/vitrip/journeyman/outbox"
	"github.com/vitrip/journeyman/test/clients/toolcache"
)

type diagnostic struct {
	Severity            int
	Code, Message, Path string
}

type parsed struct {
	Diagnostics        []diagnostic
	Version            string
	Channels, Messages []string
	Operations         []struct{ ID, Action string }
}

// severities of the parser's diagnostics.
const (
	severityError   = 0
	severityWarning = 1
)

func parse(t *testing.T, modules string, document []byte) parsed {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	file := filepath.Join(t.TempDir(), "asyncapi.yaml")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "node", "parse.mjs", modules, file).Output() //nolint:gosec // paths of the test
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("parser: %v\n%s", err, e.Stderr)
	}
	if err != nil {
		t.Fatalf("parser: %v", err)
	}
	var p parsed
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return p
}

func modules(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	at, err := toolcache.Node(ctx, ".")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

const everyKind = `
domains: [test]
encryption: {saga: end_to_end}
messages:
  - {type: test.thing.created, class: domain, owner: test, producers: [tester], consumers: [view], pii: "<b>none</b>",
     schema: {type: object, required: [price], properties: {price: {$ref: "#/$defs/money"}, list: {type: array, items: {$ref: "#/$defs/money"}}}, $defs: {money: {type: integer, minimum: 0}}}}
  - {type: test.thing.created, version: 2, class: domain, owner: test, producers: [tester]}
  - {type: test.thing.make.requested, kind: command, class: domain, owner: test, producers: ["*"]}
  - {type: test.access.granted, class: audit, owner: test, producers: [tester], retry: []}
  - {type: test.saga.started, class: saga, owner: test, producers: [tester], topic: test.saga.progress.v1}
  - {type: test.saga.completed, class: saga, owner: test, producers: [tester], topic: test.saga.progress.v1}
`

// The public parser takes every document without an error, and understands what the catalog says.
func TestPublicParserTakesOurDocuments(t *testing.T) {
	t.Parallel()
	at := modules(t)
	house, err := app.Catalog()
	if err != nil {
		t.Fatal(err)
	}
	every, err := events.ParseCatalog([]byte(everyKind))
	if err != nil {
		t.Fatal(err)
	}
	own, err := events.ParseCatalog(outbox.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	for name, catalog := range map[string]*events.Catalog{"house": house, "every kind": every, "outbox": own} {
		text, err := asyncapi.YAML(catalog, asyncapi.Info{Title: name, Version: "1"})
		if err != nil {
			t.Fatal(err)
		}
		p := parse(t, at, text)
		for _, d := range p.Diagnostics {
			if d.Severity <= severityWarning && !toleratedWarning(d.Severity, d.Code) {
				t.Errorf("%s: severity %d, %s at %s: %s", name, d.Severity, d.Code, d.Path, d.Message)
			}
		}
		if p.Version != "3.0.0" {
			t.Errorf("%s: understood as version %q", name, p.Version)
		}
		for _, e := range catalog.Entries() {
			id := events.Topic(e.Type, e.Version)
			if !slices.Contains(p.Channels, e.Topic) || !slices.Contains(p.Messages, id) {
				t.Errorf("%s: the parser found no channel %s or message %s", name, e.Topic, id)
			}
			if !slices.ContainsFunc(p.Operations, func(o struct{ ID, Action string }) bool { return o.ID == "send."+id && o.Action == "send" }) {
				t.Errorf("%s: no operation sends %s", name, id)
			}
		}
	}
}

// toleratedWarning: what asks for information that a catalog does not hold.
func toleratedWarning(severity int, code string) bool {
	return severity == severityWarning && slices.Contains([]string{"asyncapi-id", "asyncapi-info-contact", "asyncapi-info-license", "asyncapi-defaultContentType"}, code)
}

// The parser is no rubber stamp: it refuses a document that is broken in one place.
func TestPublicParserRefusesBrokenDocuments(t *testing.T) {
	t.Parallel()
	at := modules(t)
	every, err := events.ParseCatalog([]byte(everyKind))
	if err != nil {
		t.Fatal(err)
	}
	text, err := asyncapi.YAML(every, asyncapi.Info{Title: "t", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		"action: send": "action: shout", "#/components/schemas/Envelope": "#/components/schemas/Nothing", "address: test.thing.created.v1": "address: {}", "minimum: 0": "minimum: none",
	} {
		broken := strings.Replace(string(text), from, to, 1)
		if broken == string(text) {
			t.Fatalf("the document has no %q", from)
		}
		p := parse(t, at, []byte(broken))
		if !slices.ContainsFunc(p.Diagnostics, func(d diagnostic) bool { return d.Severity == severityError }) {
			t.Errorf("%q: the parser has nothing to say", to)
		}
	}
}
