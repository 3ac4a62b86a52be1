package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

type catalogFile struct {
	Domains  []string          `yaml:"domains"`
	Services map[string]string `yaml:"services"`
	Messages []entryFile       `yaml:"messages"`
	Queues   []queueFile       `yaml:"queues"`
	Signed   []SignOff         `yaml:"signed_off"`

	JSONSchemaApproved Approval `yaml:"json_schema_approved"` // of entries that say nothing of it

	Encryption map[Class]Encryption `yaml:"encryption"`
}

type entryFile struct {
	Type           string      `yaml:"type"`
	Version        *int        `yaml:"version"`
	Kind           Kind        `yaml:"kind"`
	Class          Class       `yaml:"class"`
	Owner          string      `yaml:"owner"`
	Producers      []string    `yaml:"producers"`
	Consumers      []string    `yaml:"consumers"`
	Exceptions     []Exception `yaml:"exceptions"`
	PartitionKey   string      `yaml:"partition_key"`
	OrderScope     string      `yaml:"order_scope"`
	IdempotencyKey string      `yaml:"idempotency_key"`
	RetentionDays  *int        `yaml:"retention_days"`
	Financial      bool        `yaml:"financial"`
	Format         Format      `yaml:"format"`
	Wire           Wire        `yaml:"wire"`
	Schema         any         `yaml:"schema"`
	Message        string      `yaml:"message"`
	Retry          *[]string   `yaml:"retry"`
	PoisonedAfter  *int        `yaml:"poisoned_after"`
	DLQ            string      `yaml:"dlq"`
	OperatorAction string      `yaml:"operator_action"`
	PII            string      `yaml:"pii"`
	Topic          string      `yaml:"topic"`
	Partitions     *int        `yaml:"partitions"`

	Compatibility      Compatibility `yaml:"compatibility"`
	JSONSchemaApproved Approval      `yaml:"json_schema_approved"`
	ServedUntil        string        `yaml:"served_until"`
}

// Limits of a catalog entry. Retry schedules are bounded (spec R5).
const (
	maxRetries    = 32
	maxRetryDelay = 24 * time.Hour
	maxName       = 200 // bytes of a topic or type name; Kafka takes 249
)

// scopeOfTopic as order_scope means that each topic is a scope of its own.
const scopeOfTopic = "topic"

var topicName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`) //nolint:gochecknoglobals // compiled once

// ParseCatalog reads a catalog file and checks it. Every mistake is named in
// one *[CatalogError]: the entry, the field, the value and what was expected.
// Unknown fields are mistakes. Left out fields: version 1, kind event,
// partition_key businessKey, idempotency_key messageId, for commands
// data.idempotencyKey (spec D2), retention by class (spec Z13), retry
// [DefaultRetry], poisoned_after one more than the schedule's length, dlq
// [DefaultDLQ], format json, wire envelope, for Avro and Protobuf confluent, topic [Topic], partitions [DefaultPartitions], order_scope
// "topic" for class saga and none for others, compatibility full, json_schema_approved that of the file. encryption says for each class
// how its bodies are kept (see [Encryption]); a class that is left out is not encrypted.
// What has no default may be left out; [Catalog.Complete] asks for it.
func ParseCatalog(text []byte) (*Catalog, error) {
	var file catalogFile
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&file); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &CatalogError{Problems: []string{"file is empty"}}
		}
		if te, ok := errors.AsType[*yaml.TypeError](err); ok {
			return nil, &CatalogError{Problems: te.Errors}
		}
		return nil, &CatalogError{Problems: []string{err.Error()}}
	}
	if err := dec.Decode(new(catalogFile)); !errors.Is(err, io.EOF) {
		return nil, &CatalogError{Problems: []string{"file holds more than one YAML document"}}
	}
	c := &Catalog{services: map[string]string{}, entries: map[typeVersion]Entry{}, queues: map[string]QueueFamily{}, encryption: map[Class]Encryption{}}
	p := &problems{}
	for class, how := range file.Encryption {
		p.check(class.Valid(), "encryption: class %q, want one of %v", class, Classes())
		p.check(how == EncryptAtRest || how == EncryptEndToEnd, "encryption: %q for class %s, want %s or %s", how, class, EncryptAtRest, EncryptEndToEnd)
		c.encryption[class] = how
	}
	c.domains = append(slices.Clone(file.Domains), PlatformDomain)
	slices.Sort(c.domains)
	c.domains = slices.Compact(c.domains)
	for _, d := range file.Domains {
		p.check(domainName.MatchString(d), "domains: %q, want kebab-case", d)
	}
	for service, domain := range file.Services {
		p.check(slices.Contains(c.domains, domain), "services: %q is of domain %q, which is not in domains", service, domain)
		c.services[service] = domain
	}
	p.check(len(file.Messages)+len(file.Queues) > 0, "messages: none")
	p.check((file.JSONSchemaApproved.Who == "") == (file.JSONSchemaApproved.Why == ""), "json_schema_approved: want who and why")
	for i, f := range file.Messages {
		if f.JSONSchemaApproved == (Approval{}) && (f.Format == "" || f.Format == FormatJSON) {
			f.JSONSchemaApproved = file.JSONSchemaApproved
		}
		e := f.entry(p, i, c)
		k := typeVersion{e.Type, e.Version}
		if _, twice := c.entries[k]; twice {
			p.add("message type %s v%d: twice in the catalog", e.Type, e.Version)
		}
		c.entries[k] = e
	}
	for i, f := range file.Queues {
		q := f.family(p, i, c)
		_, twice := c.queues[q.Name]
		p.check(!twice, "queue %s: twice in the catalog", q.Name)
		c.queues[q.Name] = q
	}
	for i, s := range file.Signed {
		p.check(s.Type != "" && s.Change != "" && s.Reason != "" && s.ApprovedBy != "", "signed_off[%d]: want type, change, reason and approved_by", i)
		s.Version = max(s.Version, 1)
		c.signed = append(c.signed, s)
	}
	c.applyEncryption()
	p.list = append(p.list, topicProblems(c.Entries())...)
	if len(p.list) > 0 {
		return nil, &CatalogError{Problems: p.list}
	}
	return c, nil
}

type problems struct{ list []string }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.add(format, args...)
	}
}

// entry fills in defaults and checks one entry.
func (f entryFile) entry(p *problems, i int, c *Catalog) Entry {
	e := Entry{
		Type: f.Type, Version: or(f.Version, 1), Kind: f.Kind, Class: f.Class, Owner: f.Owner, Producers: f.Producers,
		Consumers: f.Consumers, Exceptions: f.Exceptions, PartitionKey: f.PartitionKey, IdempotencyKey: f.IdempotencyKey,
		Financial: f.Financial, Format: f.Format, Wire: f.Wire, Schema: f.Schema, Message: f.Message, DLQ: f.DLQ, OperatorAction: f.OperatorAction, PII: f.PII,
		Topic: f.Topic, Partitions: or(f.Partitions, DefaultPartitions), Retry: DefaultRetry(), OrderScope: f.OrderScope,
		Compatibility: f.Compatibility, JSONSchemaApproved: f.JSONSchemaApproved,
	}
	who := fmt.Sprintf("messages[%d]", i)
	if e.Type != "" {
		who = "message type " + e.Type
	}
	wrong := func(ok bool, format string, args ...any) { p.check(ok, who+": "+format, args...) }
	setDefault(&e.Kind, KindEvent)
	setDefault(&e.PartitionKey, "businessKey")
	if e.Kind == KindCommand {
		setDefault(&e.IdempotencyKey, DedupData)
	}
	setDefault(&e.IdempotencyKey, DedupMessageID)
	setDefault(&e.DLQ, DefaultDLQ)
	setDefault(&e.Compatibility, CompatibilityFull)
	setDefault(&e.Format, FormatJSON)
	setDefault(&e.Wire, e.Format.wire())
	setDefault(&e.Topic, Topic(e.Type, e.Version))
	if e.Class == ClassSaga {
		setDefault(&e.OrderScope, scopeOfTopic)
	}
	if e.OrderScope == scopeOfTopic {
		e.OrderScope = e.Topic
	}
	e.RetentionDays = or(f.RetentionDays, e.Class.retentionDays(e.Financial))

	if err := CheckName(e.Kind, e.Type, c.domains); err != nil {
		p.add("messages[%d]: %v", i, err)
	}
	wrong(e.Version >= 1, "version %d, want 1 or more", e.Version)
	wrong(e.Class.Valid(), "class %q, want one of %v", e.Class, Classes())
	wrong(e.Owner == Domain(e.Type), "owner %q, want the domain of the type, %q", e.Owner, Domain(e.Type))
	wrong(len(e.Producers) > 0, "producers: none")
	wrong(e.PartitionKey == "businessKey", "partition_key %q, want businessKey", e.PartitionKey)
	wrong(slices.Contains([]string{DedupMessageID, DedupOperationID, DedupData}, e.IdempotencyKey),
		"idempotency_key %q, want %s, %s or %s", e.IdempotencyKey, DedupMessageID, DedupOperationID, DedupData)
	wrong(e.Kind != KindCommand || e.IdempotencyKey != DedupMessageID, "idempotency_key %q of a command, want %s or %s: a command that is sent again has another messageId",
		e.IdempotencyKey, DedupData, DedupOperationID)
	wrong(slices.Contains([]Format{FormatJSON, FormatAvro, FormatProtobuf}, e.Format), "format %q, want %s, %s or %s", e.Format, FormatJSON, FormatAvro, FormatProtobuf)
	wrong(e.Wire == WireConfluent || e.Wire == WireEnvelope && e.Format == FormatJSON, "wire %q, want %s, or %s with format %s", e.Wire, WireConfluent, WireEnvelope, FormatJSON)
	wrong(e.Wire != WireConfluent || e.Schema != nil, "schema: missing, want one: wire %s names it in each message", WireConfluent)
	wrong(e.Compatibility == CompatibilityFull, "compatibility %q, want %s: what breaks a reader or writer of a version is a new version", e.Compatibility, CompatibilityFull)
	wrong(e.Format == FormatJSON || e.JSONSchemaApproved == (Approval{}), "json_schema_approved: want none with format %s", e.Format)
	wrong((e.JSONSchemaApproved.Who == "") == (e.JSONSchemaApproved.Why == ""), "json_schema_approved: want who and why")
	if f.ServedUntil != "" {
		var err error
		e.ServedUntil, err = time.Parse(time.DateOnly, f.ServedUntil)
		wrong(err == nil, "served_until %q, want a day such as 2027-06-30", f.ServedUntil)
	}
	wrong(e.Message == "" || e.Format == FormatProtobuf, "message %q, want none: only format %s has it", e.Message, FormatProtobuf)
	wrong(e.OrderScope == "" || topicName.MatchString(e.OrderScope) && len(e.OrderScope) <= maxName, "order_scope %q, want %q or a name of up to %d of a-z, 0-9, '.', '_', '-'", e.OrderScope, scopeOfTopic, maxName)
	wrong(e.OrderScope == "" || e.Class.Ordered(), "order_scope %q, want none: class %s promises no order", e.OrderScope, e.Class)
	wrong(e.RetentionDays >= 1, "retention_days %d, want 1 or more", e.RetentionDays)
	if e.Financial || e.Class == ClassAudit || e.Class == ClassCompliance {
		wrong(e.RetentionDays >= sevenYears, "retention_days %d, want at least %d for audit, compliance and financial types", e.RetentionDays, sevenYears)
	}
	wrong(topicName.MatchString(e.Topic) && len(e.Topic) <= maxName, "topic %q, want up to %d of a-z, 0-9, '.', '_', '-'", e.Topic, maxName)
	wrong(e.Partitions >= 1 && e.Partitions <= Shards && Shards%e.Partitions == 0, "partitions %d, want a divisor of %d", e.Partitions, Shards)
	wrong(topicName.MatchString(e.DLQ) && e.DLQ != "none" && e.DLQ != "off", "dlq %q, want a topic name: it cannot be switched off", e.DLQ)
	for _, x := range e.Exceptions {
		wrong(x.Producer != "" && x.Reason != "" && x.ApprovedBy != "", "exceptions: want producer, reason and approved_by in each")
	}
	if f.Retry != nil {
		e.Retry = schedule(*f.Retry, wrong)
	}
	e.PoisonedAfter = or(f.PoisonedAfter, len(e.Retry)+1)
	wrong(e.PoisonedAfter >= 1 && e.PoisonedAfter <= len(e.Retry)+1, "poisoned_after %d, want 1 to %d, one more than the delays of retry", e.PoisonedAfter, len(e.Retry)+1)
	return e
}

// schedule reads the delays of a retry schedule, which is bounded (spec R5).
func schedule(texts []string, wrong func(ok bool, format string, args ...any)) (delays []time.Duration) {
	wrong(len(texts) <= maxRetries, "retry: %d delays, want at most %d", len(texts), maxRetries)
	for _, s := range texts {
		d, err := time.ParseDuration(s)
		wrong(err == nil && d > 0 && d <= maxRetryDelay, "retry: %q, want a duration above 0 and up to %v", s, maxRetryDelay)
		delays = append(delays, d)
	}
	return delays
}

// wire is how bodies of a format travel where the entry does not say.
func (f Format) wire() Wire {
	if f == FormatJSON {
		return WireEnvelope
	}
	return WireConfluent
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func setDefault[T ~string](p *T, value T) {
	if *p == "" {
		*p = value
	}
}
