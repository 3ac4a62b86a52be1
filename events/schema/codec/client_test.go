//go:build kafka

package codec_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/vitrip/journeyman/events/schema/codec"
	"github.com/vitrip/journeyman/events/schema/registry"
	"github.com/vitrip/journeyman/test/clients/toolcache"
)

const sharedYAML = `
domains: [test]
messages:
  - {type: test.avro.shared, class: domain, owner: test, producers: [tester], format: avro, schema: {type: record, name: Shared, namespace: test.v1,
      fields: [{name: id, type: string}, {name: n, type: int}, {name: labels, type: {type: map, values: string}}, {name: tags, type: {type: array, items: string}}, {name: note, type: ["null", string], default: null}]}}
  - {type: test.proto.shared, class: domain, owner: test, producers: [tester], format: protobuf,
      schema: 'syntax = "proto3"; message Shared { string id = 1; int32 n = 2; map<string, string> labels = 3; repeated string tags = 4; optional string note = 5; }'}
  - {type: test.json.shared, class: domain, owner: test, producers: [tester], wire: confluent, schema: {type: object, required: [id], properties: {id: {type: string}, n: {type: integer}, labels: {type: object, additionalProperties: {type: string}}, tags: {type: array, items: {type: string}}, note: {type: string}}}}
`

// TestWire_PublicClient_E5: another maker's client reads what we
// write in every format, and we read what it writes of Avro and JSON, over a real registry.
func TestWire_PublicClient_E5(t *testing.T) {
	t.Parallel()
	_, _, url := services(t)
	modules, err := toolcache.Node(t.Context(), "../../../test/registry/node")
	if err != nil {
		t.Fatal(err)
	}
	asks, err := registry.New(registry.Config{URLs: []string{url}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asks.Close)
	c, err := codec.New(t.Context(), codec.Config{Catalog: parse(t, sharedYAML), Registry: asks, Producer: "tester"})
	if err != nil {
		t.Fatal(err)
	}
	const data = `{"id":"x","labels":{"a":"1","b":"2"},"n":-7,"note":"words","tags":["p","q"]}`
	types := []string{"test.avro.shared", "test.proto.shared", "test.json.shared"}
	var in bytes.Buffer
	for _, messageType := range types {
		body, err := c.Encode(messageType, 1, []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&in).Encode(map[string]any{"body": body}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", "../../../test/registry/node/client.mjs", modules, url) //nolint:gosec // paths of the test
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for _, messageType := range types {
		if !lines.Scan() {
			t.Fatalf("%s: no answer", messageType)
		}
		var answer struct {
			Error string
			Data  json.RawMessage
			Body  []byte
		}
		if err := json.Unmarshal(lines.Bytes(), &answer); err != nil || answer.Error != "" {
			t.Errorf("%s: the client cannot read it: %s", messageType, lines.Text())
			continue
		}
		theirs, err := canonical(answer.Data)
		if err != nil || theirs != data {
			t.Errorf("%s: the client read %s, want %s", messageType, theirs, data)
		}
		if messageType == "test.proto.shared" {
			continue // the client writes no message index, so what it writes is not of Confluent's format
		}
		got, err := c.Decode(t.Context(), messageType, 1, answer.Body)
		if err != nil {
			t.Errorf("%s: what the client wrote, %x: %v", messageType, answer.Body, err)
			continue
		}
		if ours, err := canonical(got); err != nil || ours != data {
			t.Errorf("%s: read %s of what the client wrote, want %s", messageType, ours, data)
		}
	}
}

// canonical sorts the keys of objects.
func canonical(data []byte) (string, error) {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return "", err
	}
	out, err := json.Marshal(v)
	return string(out), err
}
