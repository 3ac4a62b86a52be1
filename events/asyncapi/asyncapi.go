// Package asyncapi writes a catalog down for readers: an AsyncAPI 3 document
// and a page to browse.
package asyncapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/vitrip/journeyman/events"
)

// Info is what the document says of itself. Both must be set.
type Info struct{ Title, Version string }

type object = map[string]any

// YAML gives the AsyncAPI 3.0 document of a catalog: a channel for each topic, a
// message for each type and version with envelope and schema, and what owners,
// producers, consumers, retries and dead letters are, as x-journeyman.
func YAML(catalog *events.Catalog, info Info) ([]byte, error) {
	if info.Title == "" || info.Version == "" {
		return nil, fmt.Errorf("asyncapi: title %q and version %q, want both", info.Title, info.Version)
	}
	channels, operations, messages := object{}, object{}, object{}
	schemas := object{"Envelope": envelope(), "Headers": headers()}
	for _, t := range catalog.Topics() {
		channels[t.Name] = object{
			"address": t.Name, "messages": object{},
			"bindings": object{"kafka": object{
				"topic": t.Name, "partitions": t.Partitions, "topicConfiguration": object{"retention.ms": int64(t.Retention / time.Millisecond)}, "bindingVersion": "0.5.0",
			}},
		}
	}
	for _, e := range catalog.Entries() {
		id := events.Topic(e.Type, e.Version)
		messages[id] = message(e, id)
		if e.Schema != nil && e.Format == events.FormatJSON {
			data, err := rooted(e.Schema, id)
			if err != nil {
				return nil, fmt.Errorf("asyncapi: schema of %s: %w", id, err)
			}
			schemas[id] = data
		}
		channel := channels[e.Topic].(object)                               //nolint:forcetypeassert // made above
		channel["messages"].(object)[id] = ref("components/messages/" + id) //nolint:forcetypeassert // made above
		operations["send."+id] = object{
			"action": "send", "channel": ref("channels/" + e.Topic), "summary": fmt.Sprintf("%s %s", e.Kind, e.Type),
			"messages": []any{ref("channels/" + e.Topic + "/messages/" + id)},
		}
	}
	return encode(object{
		"asyncapi": "3.0.0", "info": object{"title": info.Title, "version": info.Version}, "defaultContentType": "application/json",
		"channels": channels, "operations": operations, "components": object{"messages": messages, "schemas": schemas},
	})
}

func encode(doc object) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(doc); err != nil {
		return nil, fmt.Errorf("asyncapi: %w", err)
	}
	return b.Bytes(), enc.Close()
}

func ref(path string) object { return object{"$ref": "#/" + path} }

func message(e events.Entry, id string) object {
	var retry []string
	for _, d := range e.Retry {
		retry = append(retry, d.String())
	}
	return object{
		"name": e.Type, "title": fmt.Sprintf("%s, version %d", e.Type, e.Version), "contentType": e.Format.ContentType(),
		"headers": ref("components/schemas/Headers"), "payload": payload(e, id), "bindings": object{"kafka": bindings(e)},
		"x-journeyman": object{
			"class": string(e.Class), "owner": e.Owner, "producers": e.Producers, "consumers": e.Consumers, "partitionKey": e.PartitionKey,
			"idempotencyKey": e.IdempotencyKey, "retentionDays": e.RetentionDays, "financial": e.Financial, "retry": retry,
			"poisonedAfter": e.PoisonedAfter, "dlq": e.DLQ, "operatorAction": e.OperatorAction, "pii": e.PII,
			"format": string(e.Format), "wire": string(e.Wire), "protobufMessage": e.Message,
			"guarantees": e.Class.Guarantees(), "orderScope": e.OrderScope, "encryption": string(e.Encryption),
			"compatibility": string(e.Compatibility), "jsonSchemaApprovedBy": e.JSONSchemaApproved.Who, "jsonSchemaApprovedWhy": e.JSONSchemaApproved.Why,
			"servedUntil": day(e.ServedUntil),
		},
	}
}

// day is "" where none is declared.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

// payload describes the body: the envelope with its data, or the data alone behind a frame.
func payload(e events.Entry, id string) object {
	switch {
	case e.Wire == events.WireConfluent && e.Format == events.FormatAvro:
		return object{"schemaFormat": "application/vnd.apache.avro;version=1.9.0", "schema": e.Schema}
	case e.Wire == events.WireConfluent && e.Format == events.FormatProtobuf:
		return object{"schemaFormat": "application/vnd.google.protobuf;version=3", "schema": e.Schema}
	case e.Wire == events.WireConfluent:
		return ref("components/schemas/" + id)
	}
	own := object{"messageType": object{"const": e.Type}, "messageVersion": object{"const": e.Version}, "messageKind": object{"const": string(e.Kind)}}
	if e.Schema != nil {
		own["data"] = ref("components/schemas/" + id)
	}
	return object{"allOf": []any{ref("components/schemas/Envelope"), object{"type": "object", "properties": own}}}
}

func bindings(e events.Entry) object {
	b := object{"key": object{"type": "string", "description": "the business key"}, "bindingVersion": "0.5.0"}
	if e.Wire == events.WireConfluent {
		b["schemaIdLocation"], b["schemaIdPayloadEncoding"], b["schemaLookupStrategy"] = "payload", "confluent", "TopicNameStrategy"
	}
	return b
}

func envelope() object {
	text, id := object{"type": "string"}, object{"type": "string", "format": "uuid"}
	return object{
		"type": "object", "required": []string{"messageId", "messageKind", "messageType", "messageVersion", "occurredAt", "data", "metadata"},
		"properties": object{
			"messageId": id, "messageKind": object{"enum": []string{"event", "command"}}, "messageType": text,
			"messageVersion": object{"type": "integer", "minimum": 1}, "occurredAt": object{"type": "string", "format": "date-time"},
			"producer": text, "producerInstance": text, "traceId": text,
			"actor": object{"type": "object", "properties": object{"userId": text, "actorContext": text, "serviceClient": text}},
			"data":  object{"type": "object"},
			"metadata": object{"type": "object", "required": []string{"businessKey", "sequence"}, "properties": object{
				"businessKey": text, "sequence": object{"type": "integer", "minimum": 1, "description": "turn of the business key, without gaps"},
				"correlationId": text, "operationId": text, "processInstanceId": text, "eventClass": text, "httpIdempotencyKey": text,
				"corrects": id, "replay": object{"type": "boolean"},
			}},
		},
	}
}

func headers() object {
	text := object{"type": "string"}
	properties := object{}
	for _, h := range []string{
		events.HeaderEventID, events.HeaderEventType, events.HeaderEventVersion, events.HeaderOccurredAt, events.HeaderProducer, events.HeaderBusinessKey,
		events.HeaderCorrelationID, events.HeaderTraceID, events.HeaderProcessInstanceID, events.HeaderOperationID, events.HeaderEnv,
		events.HeaderTraceparent, events.HeaderSequence, events.HeaderPreviousSequence, events.HeaderEncryption,
		events.HeaderAuditChain, events.HeaderAuditLink, events.HeaderAuditPrevious, events.HeaderAuditHash,
		events.HeaderContentType, events.HeaderMessageKind, events.HeaderEventClass, events.HeaderProducerInstance, events.HeaderActorUserID, events.HeaderActorContext,
		events.HeaderActorServiceClient, events.HeaderHTTPIdempotencyKey, events.HeaderIdempotencyKey, events.HeaderCorrects, events.HeaderReplay,
	} {
		properties[h] = text
	}
	return object{"type": "object", "required": []string{events.HeaderEventID, events.HeaderEventType, events.HeaderEventVersion}, "properties": properties}
}

// rooted moves a schema's references to itself to where it stands in the document.
func rooted(schema any, id string) (any, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, err
	}
	return move(doc, "#/components/schemas/"+id), nil
}

func move(node any, root string) any {
	switch v := node.(type) {
	case map[string]any:
		for name, below := range v {
			if to, ok := below.(string); ok && name == "$ref" && strings.HasPrefix(to, "#") {
				v[name] = root + strings.TrimPrefix(to, "#")
				continue
			}
			v[name] = move(below, root)
		}
	case []any:
		for i := range v {
			v[i] = move(v[i], root)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return node
}
